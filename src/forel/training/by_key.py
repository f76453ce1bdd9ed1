"""Rows of many keys, each of which has a model that learns as if it were trained on its rows alone."""

from collections.abc import Iterator
from dataclasses import dataclass

from forel.data import Block, Position, concatenate
from forel.data.block import BEGINNING
from forel.data.sources.files import is_one_shot
from forel.training.passes import Passes
from forel.validation import refuse

__all__ = ["GroupedPasses"]

FEWEST, MOST, ROWS_PER_KEY = 1 << 14, 1 << 19, 256  # rows that are learned at a time


@dataclass(eq=False)
class GroupedPasses(Passes):
    """Passes over large groups of blocks, so that each key has several rows in one; every pass reads the source."""

    def __post_init__(self) -> None:
        if self.number > 1 and is_one_shot(self.source):
            expected = "1 with by (--by) and a stream, which can be read only once; give a file"
            raise refuse("passes", self.number, expected)
        super().__post_init__()
        self._keys = set[bytes]()

    def blocks(self, pass_number: int, start: Position | None = BEGINNING, before: int = 0) -> Iterator[Block]:
        """Yield groups of blocks."""
        waiting = list[Block]()
        for block in super().blocks(pass_number, start, before):
            assert block.slices is not None
            self._keys.update(block.slices[0])
            if start == BEGINNING and self._keys == {b""}:
                column = self.options.slices[0]
                raise ValueError(f"by: got {column!r}, which no row has, expected a column, or a namespace of VW text")
            waiting.append(block)
            if sum(map(len, waiting)) >= min(max(FEWEST, ROWS_PER_KEY * len(self._keys)), MOST):
                yield concatenate(waiting)
                waiting = []
        if waiting:
            yield concatenate(waiting)

    def _needs_cache(self, pass_number: int) -> bool:
        return False  # a cache has no values of columns
