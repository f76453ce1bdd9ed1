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

from forel.data import Block, Names, Position, Problems, Reader, ReadOptions, concatenate, read
from forel.data.block import BEGINNING, take_rows
from forel.data.features.kinds import Kinds
from forel.data.features.rows import add_constant, record_constant
from forel.data.labels import ClassNames
from forel.data.pieces import Workers, ordered_pieces
from forel.data.pipeline import ordered_blocks
from forel.data.sources.files import fingerprints, growth, is_one_shot, single_sources
from forel.data.sources.row_cache import CacheWriteError, RowCache
from forel.training.run import Part
from forel.training.shuffle import ShuffledRows
from forel.validation import refuse

__all__ = ["Passes"]

FEWEST, MOST, ROWS_PER_KEY = 1 << 14, 1 << 19, 256  # rows of many keys that are learned at a time

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
    by : the first column of the option ``slices``, of whose values each has a model: blocks are large, so that a key
        has several rows in one, and every pass reads the source; None for one model

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
    by: str | None = None
    problems: Problems = field(init=False)
    kinds: Kinds = field(init=False)
    classes: ClassNames = field(init=False)
    _reader: Reader = field(init=False, repr=False)
    _cache: RowCache | None = field(default=None, init=False, repr=False)
    _shuffled: ShuffledRows | None = field(default=None, init=False, repr=False)
    _keys: set[bytes] = field(default_factory=set, init=False, repr=False)

    def __post_init__(self) -> None:
        self.name = "source"
        self.problems, self.kinds = Problems(self.options.on_error), Kinds(self.options.kinds)
        self.classes = ClassNames(self.options.classes)
        # A cache has no constant feature and no names, so that it serves models with and without.
        self._reader = read(self.source, options=replace(self.options, names=False, constant=False))
        if self.number > 1 and (self.options.tags or self.by) and is_one_shot(self.source):
            what = "with by (--by) and a stream" if self.by else "for a stream with tags"
            raise refuse("passes", self.number, f"1 {what}, which can be read only once; give a file")
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
        sources = None if is_one_shot(self.source) else fingerprints(self.source, self.options.follow)
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
            again = self.options.follow and reader.start.blocks
            blocks = _numbered((self._unread if again else self._blocks)(pass_number, reader, before), before)
        else:
            blocks = self._in_random_order(pass_number, reader)
        if self.options.constant:
            if names is not None:
                record_constant(names)
            blocks = (add_constant(block, reader.options.bits) for block in blocks)
        yield from blocks if self.by is None else self._grouped(blocks, start == BEGINNING)

    def _growth(self, size: int | None = None) -> list[int] | None:
        """What a file that grows has, or had when it was of some size; None for others, which do not change."""
        return [*growth(single_sources(self.source)[0], size)] if self.options.follow else None

    def check(self, rows: int) -> None:
        """Raise if the first pass had no rows."""
        if not rows:
            found = self.problems
            hint = f"; {found.count} were malformed, the first: {found.messages[0]}" if found.messages else ""
            raise ValueError(f"source: got no rows, expected at least one{hint}")

    def pack(self) -> tuple[Any, dict[str, Any]]:
        """Return problems, kinds of columns and classes found so far, as JSON; a checkpoint stores names itself."""
        problems = {name: getattr(self.problems, name) for name in ("count", "messages", "warnings")}
        known = {"problems": problems, "kinds": self.kinds.pack(), "classes": self.classes.pack()}
        return {**known, "growth": self._growth()}, {}

    def unpack(self, known: Any, arrays: Any) -> None:
        """Continue with what :meth:`pack` returned."""
        before = known["growth"]
        if before is not None and (found := self._growth(before[0])) != before:
            got = f"of {found[0]:,} bytes" if found and found[0] < before[0] else "with other lines than before"
            expected = f"the {before[0]:,} bytes it had before, and more after them; or start again without resume"
            raise refuse("resume", f"{self.source} {got}", expected)
        for name, value in known["problems"].items():
            setattr(self.problems, name, value)
        self.kinds = Kinds.unpack(known["kinds"])
        self.classes.restore(**known["classes"])

    def _unread(self, pass_number: int, reader: Reader, before: int) -> Iterator[Block]:
        """Yield what follows the first rows of a file that grows, whose blocks are others each time it is read."""
        line, first = 0, Problems("later")  # of rows before, which are known
        self.classes.restore(self.classes.names, {})
        for block in self._ordered(replace(reader, start=BEGINNING, problems=first)):
            known, before = min(before, len(block)), max(0, before - len(block))
            if known:
                line = block.line if block.lines is None else int(block.lines[known - 1])
            first.waiting = [one for one in first.waiting if one.line > line]
            if known < len(block):
                self.problems.absorb(first)
                yield take_rows(block, np.arange(known, len(block)))
        self.problems.absorb(first)

    def _blocks(self, pass_number: int, reader: Reader, before: int = 0) -> Iterator[Block]:
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

    def _grouped(self, blocks: Iterator[Block], whole: bool) -> Iterator[Block]:
        """Yield blocks in groups; raise if no row of a whole source has a key."""
        waiting = list[Block]()
        for block in blocks:
            assert block.slices is not None
            self._keys.update(block.slices[0])
            if whole and self._keys == {b""}:
                raise ValueError(f"by: got {self.by!r}, which no row has, expected a column, or a namespace of VW text")
            waiting.append(block)
            if sum(map(len, waiting)) >= min(max(FEWEST, ROWS_PER_KEY * len(self._keys)), MOST):
                yield concatenate(waiting)
                waiting = []
        if waiting:
            yield concatenate(waiting)

    def _needs_cache(self, pass_number: int) -> bool:
        """Return whether a later pass would read a cache, which has no tags and no values of columns."""
        return not self.options.tags and self.by is None and pass_number < self.number

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
