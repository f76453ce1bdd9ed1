"""Several passes over a source: the first pass writes parsed blocks to a cache, and later passes read the cache.

Rows are bitwise the same, from the source or from the cache.
"""

import warnings
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any, TypeVar

import numpy as np

from forel.data import Block, Names, Position, Problems, Reader, ReadOptions, read
from forel.data.block import BEGINNING
from forel.data.features.constant import add_constant, record_constant
from forel.data.features.kinds import Kinds
from forel.data.labels import ClassNames
from forel.data.pieces import Workers, ordered_pieces
from forel.data.pipeline import ordered_blocks
from forel.data.sources.files import fingerprints, is_one_shot
from forel.data.sources.row_cache import CacheWriteError, RowCache
from forel.training.run import Part
from forel.training.shuffle import ShuffledRows
from forel.validation import refuse

__all__ = ["Passes"]

T = TypeVar("T")


@dataclass(eq=False)
class Passes(Part):
    """Passes over a source, which may be a stream that can be read only once.

    Parameters
    ----------
    source : as in :func:`forel.data.read`
    options : read options; with ``tags``, which a cache does not hold, every pass reads the source
    number : number of passes
    threads : number of parser threads
    workers : read and parse the source elsewhere; None for threads of this process
    shuffle : seed of a random order of rows, another one for each pass; None for the order of the source
    names : records names of features in the first pass; None for none

    ``problems``, ``kinds`` and ``classes`` are those of the rows read so far.

    >>> with Passes(iter([{"x": 1.0}, {"x": 2.0}]), ReadOptions(), number=2) as passes:
    ...     for k in (1, 2):
    ...         print([block.values.tolist() for block in passes.blocks(k)])
    [[1.0, 2.0]]
    [[1.0, 2.0]]
    """

    source: Any
    options: ReadOptions
    number: int
    threads: int | None = None
    workers: Workers | None = None
    shuffle: int | None = None
    names: Names | None = None
    problems: Problems = field(init=False)
    kinds: Kinds = field(init=False)
    classes: ClassNames = field(init=False)
    _reader: Reader = field(init=False, repr=False)
    _cache: RowCache | None = field(default=None, init=False, repr=False)
    _shuffled: ShuffledRows | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        self.name = "source"
        self.problems, self.kinds = Problems(self.options.on_error), Kinds(self.options.kinds)
        self.classes = ClassNames(self.options.classes)
        # A cache has no constant feature and no names, so that it serves models with and without.
        self._reader = read(self.source, options=replace(self.options, names=False, constant=False))
        if self.number > 1 and self.options.tags and is_one_shot(self.source):
            raise refuse("passes", self.number, "1 for a stream with tags, which can be read only once; give a file")
        if self.shuffle is not None and self.options.tags:
            raise refuse("shuffle", self.shuffle, "None with predictions, which are in the order of the rows")
        if self.shuffle is not None and self.options.slices:
            raise refuse("shuffle", self.shuffle, "None with slices, which are in the order of the rows")

    def __enter__(self) -> "Passes":
        return self

    def __exit__(self, *error: Any) -> None:
        self._cache = self._shuffled = None  # which closes their files

    @property
    def fingerprint(self) -> dict[str, Any]:
        """Everything that blocks depend on, as JSON; only for sources that are files."""
        sources = None if is_one_shot(self.source) else fingerprints(self.source)
        if sources is None:
            expected = "files: a stream cannot be read again"
            raise refuse("checkpoint", "a source that is not files", expected)
        order = {} if self.shuffle is None else {"shuffle": self.shuffle}
        return {**self.options.resume_key, "sources": sources, "passes": self.number, **order}

    def sink(self, pass_number: int) -> Problems:
        """Return what collects the problems of a pass; those of later passes are known already."""
        return self.problems if pass_number == 1 else Problems(self.problems.on_error)

    def blocks(self, pass_number: int, start: Position | None = BEGINNING, before: int = 0) -> Iterator[Block]:
        """Yield the blocks of a pass from position ``start`` on; update problems, names, kinds and classes.

        Each row has its number in the source; ``before`` rows of the pass precede the position.
        """
        names = self.names if pass_number == 1 else None
        reader = replace(
            self._reader, problems=self.sink(pass_number), names=names, start=start or BEGINNING, kinds=self.kinds,
            classes=self.classes,
        )  # fmt: skip
        if self.shuffle is None:
            blocks = _numbered(self._blocks(pass_number, reader), before)
        else:
            blocks = self._in_random_order(pass_number, reader)
        if not self.options.constant:
            yield from blocks
        else:
            if names is not None:
                record_constant(names)
            yield from (add_constant(block, reader.options.bits) for block in blocks)

    def check(self, rows: int) -> None:
        """Raise if the first pass had no rows."""
        if not rows:
            found = self.problems
            hint = f"; {found.count} were malformed, the first: {found.messages[0]}" if found.messages else ""
            raise ValueError(f"source: got no rows, expected at least one{hint}")

    def pack(self) -> tuple[Any, dict[str, Any]]:
        """Return problems, kinds of columns and classes found so far, as JSON; a checkpoint stores names itself."""
        problems = {"count": self.problems.count, "messages": self.problems.messages}
        return {"problems": problems, "kinds": self.kinds.pack(), "classes": self.classes.names}, {}

    def unpack(self, known: Any, arrays: Any) -> None:
        """Continue with what :meth:`pack` returned."""
        self.problems.count, self.problems.messages = known["problems"]["count"], list(known["problems"]["messages"])
        self.kinds = Kinds.unpack(known["kinds"])
        self.classes.restore(known["classes"])

    def _blocks(self, pass_number: int, reader: Reader) -> Iterator[Block]:
        sliced = pass_number == 1 and self.options.slices  # a cache has no values of columns
        if self._cache is not None and reader.names is None and not sliced:
            yield from self._ordered(replace(reader, source=self._cache))
        elif self._cache is None and reader.start == BEGINNING and self._needs_cache(pass_number):
            yield from self._blocks_to_cache(reader)
        else:
            yield from self._ordered(reader)

    def _in_random_order(self, pass_number: int, reader: Reader) -> Iterator[Block]:
        """Yield all rows in random order, from a temporary file that is written at first."""
        if self._shuffled is None:
            assert self.shuffle is not None
            resumed = reader.start != BEGINNING  # with the problems found before
            problems = Problems(reader.problems.on_error) if resumed else reader.problems
            source = self._blocks(self.number, replace(reader, start=BEGINNING, problems=problems))
            self._shuffled = ShuffledRows(source, self.shuffle)
        yield from self._shuffled.blocks(pass_number, reader.start.blocks)

    def _ordered(self, reader: Reader) -> Iterator[Block]:
        """Yield blocks in order, from workers, or from threads, which also read the cache."""
        if self.workers is None or isinstance(reader.source, RowCache):
            return ordered_blocks(reader, self.threads)
        return ordered_pieces(reader, self.workers)

    def _needs_cache(self, pass_number: int) -> bool:
        """Return whether a later pass would read a cache."""
        return not self.options.tags and pass_number < self.number

    def _blocks_to_cache(self, reader: Reader) -> Iterator[Block]:
        new, found = Problems(reader.problems.on_error), Problems("skip")  # of reading alone: a cache has no others
        cache = self._try(RowCache)
        for block in chain(self._ordered(replace(reader, problems=new)), [None]):
            found.absorb(deepcopy(new))
            reader.problems.absorb(new)
            if block is not None:
                cache = None if cache is None else self._try(partial(cache.add, block))
                yield block
        if cache is not None:
            cache.finish(found, reader.kinds.known, reader.classes.names)
            self._cache = cache

    def _try(self, write: Callable[[], T]) -> T | None:
        """Continue without a cache if it cannot be written, unless a later pass depends on it."""
        try:
            return write()
        except CacheWriteError as error:
            if self.number > 1 and is_one_shot(self.source):
                message = f"{error.strerror}; a stream cannot be read again without it"
                raise CacheWriteError(error.errno, message) from error
            warnings.warn(f"{error.strerror}; each pass reads the source instead", RuntimeWarning, stacklevel=2)
            return None


def _numbered(blocks: Iterator[Block], before: int = 0) -> Iterator[Block]:
    """Yield blocks with the number of each row in the source, where ``before`` rows precede them."""
    for block in blocks:
        yield replace(block, numbers=np.arange(before, before + len(block)))
        before += len(block)
