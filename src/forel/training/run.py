"""A run of training: blocks are read, transformed, predicted and learned from, and observers see each of them.

What is optional is a :class:`Transform`, which changes blocks before they are learned, or an :class:`Observer`, which
sees them afterwards with their predictions. A run knows none of them. A checkpoint stores the state of each.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from forel.data import Block, Position
from forel.data.block import BEGINNING, take_rows
from forel.jit import compile_seconds

__all__ = [
    "Learn",
    "Observer",
    "Part",
    "Place",
    "Run",
    "Source",
    "Step",
    "Transform",
    "available_cores",
    "overlapped",
]

FIRST_ENDS = tuple(1 << k for k in range(6, 14))  # rows after which a block is cut
# From a block, and whether an earlier pass has learned it, to a function that returns the margins of its rows.
Learn = Callable[[Block, bool], Callable[[], NDArray[Any]]]


@dataclass(frozen=True)
class Place:
    """How far a run has come.

    Parameters
    ----------
    pass_number : the current pass, from 1
    rows, entries, bytes : rows, features and bytes of text of this pass, without rows that transforms leave out
    read : rows of this pass that were read from the source
    position : in the source, after the last block
    first_pass : rows and entries of the first pass, once it has ended
    seconds, compiling : time spent so far, and how much of it on compiling
    """

    pass_number: int = 1
    rows: int = 0
    entries: int = 0
    bytes: int = 0
    read: int = 0
    position: Position | None = BEGINNING
    first_pass: tuple[int, int] = (0, 0)
    seconds: float = 0.0
    compiling: float = 0.0

    def after(self, block: Block, read: int) -> "Place":
        """Return the place after a block of which ``read`` rows were read."""
        return replace(
            self,
            rows=self.rows + len(block),
            entries=self.entries + block.indices.size,
            bytes=self.bytes + block.size,
            read=self.read + read,
            position=block.after,
        )

    def next_pass(self) -> "Place":
        """Return the beginning of the next pass."""
        first = (self.rows, self.entries) if self.pass_number == 1 else self.first_pass
        return Place(self.pass_number + 1, first_pass=first, seconds=self.seconds, compiling=self.compiling)


class Step(NamedTuple):
    """A block that was learned: the place after it, and the margins of its rows from before."""

    place: Place
    block: Block
    margins: NDArray[Any]

    @property
    def learned(self) -> Any:
        """Which rows were learned from, as an index of arrays."""
        return slice(None) if self.block.held_out is None else ~self.block.held_out


class Part:
    """What transforms and observers have in common.

    ``name`` names the state in a checkpoint; ``begin`` is called before the first block of a pass, also of one that is
    resumed, and ``end`` after its last one.
    """

    name = ""

    def begin(self, pass_number: int) -> None:
        """Prepare for the blocks of a pass."""

    def end(self, pass_number: int, last: bool) -> None:
        """Finish a pass."""

    def extra(self) -> dict[str, Any]:
        """Return content that is stored with the model, as JSON."""
        return {}

    def pack(self) -> tuple[Any, Mapping[str, NDArray[Any]]]:
        """Return the state as JSON and as arrays; None and no arrays without one."""
        return None, {}

    def unpack(self, known: Any, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Replace the state by one that :meth:`pack` returned; arrays are of float64."""


class Transform(Part):
    """Changes blocks before they are learned."""

    def __call__(self, block: Block) -> Block:
        """Return a block in place of another one."""
        raise NotImplementedError


class Observer(Part):
    """Sees each block that was learned, with its margins; ``beside`` is whether it may do so on another thread."""

    beside = True

    def reads_model(self, place: Place) -> bool:
        """Return whether it needs the model as it is at a place, before the next block is learned."""
        return False

    def after_block(self, step: Step) -> None:
        """See a block."""
        raise NotImplementedError


class Source(Protocol):
    """Passes over the same blocks."""

    number: int

    def blocks(self, pass_number: int, start: Position | None, before: int) -> Iterator[Block]:
        """Yield the blocks of a pass from a position on, which ``before`` rows precede."""
        ...

    def check(self, rows: int) -> None:
        """Raise if there were no rows."""
        ...


@dataclass
class Run:
    """A run of training.

    Parameters
    ----------
    source : passes over blocks
    learn : learns a block in two parts: the second, a function that returns margins, may run beside the next block
    transforms, observers : applied to each block, in their order
    concurrent : whether second parts run on another thread
    place : where the run starts, or is resumed
    begun : the blocks of the first pass, if it has begun
    """

    source: Source
    learn: Learn
    transforms: Sequence[Transform]
    observers: Sequence[Observer]
    concurrent: bool = False
    place: Place = field(default_factory=Place)
    begun: Iterator[Block] | None = None

    @property
    def parts(self) -> tuple[Part, ...]:
        """All transforms and observers."""
        return *self.transforms, *self.observers

    def finish(self) -> Place:
        """Learn all remaining blocks, and return the place at the end."""
        started = time.perf_counter() - self.place.seconds
        compiled = compile_seconds() - self.place.compiling
        while (number := self.place.pass_number) <= self.source.number:
            for part in self.parts:
                part.begin(number)
            for step in self._steps():
                seconds, compiling = time.perf_counter() - started, compile_seconds() - compiled
                self.place = replace(self.place, seconds=seconds, compiling=compiling)
                for observer in self.observers:
                    if not observer.beside:
                        observer.after_block(step)
            self.source.check(self.place.rows)
            for part in self.parts:
                part.end(number, number == self.source.number)
            self.place = self.place.next_pass()
        return replace(self.place, seconds=time.perf_counter() - started, compiling=compile_seconds() - compiled)

    def _steps(self) -> Iterator[Step]:
        """Learn the blocks of a pass; with two threads, the second part of each beside the first of the next."""
        finishes = map(self._start, self._blocks())
        if self.concurrent:
            return overlapped(finishes, lambda: any(one.reads_model(self.place) for one in self.observers))
        return (finish() for finish in finishes)

    def _blocks(self) -> Iterator[tuple[Block, int]]:
        """Yield the transformed blocks of a pass, and how many rows were read for each."""
        begun, self.begun = self.begun, None
        place = self.place
        for block in begun or self.source.blocks(place.pass_number, place.position, place.read):
            read = len(block)
            for transform in self.transforms:
                block = transform(block)
            yield from _first_rows_apart(block, read, place)
            place = place.after(block, read)

    def _start(self, given: tuple[Block, int]) -> Callable[[], Step]:
        """Learn a block; return a function that predicts it and shows it to observers."""
        block, read = given
        margins = self.learn(block, self.place.pass_number > 1)
        self.place = self.place.after(block, read)
        return partial(self._show, self.place, block, margins)

    def _show(self, place: Place, block: Block, margins: Callable[[], NDArray[Any]]) -> Step:
        step = Step(place, block, np.asarray(margins()))
        for observer in self.observers:
            if observer.beside:
                observer.after_block(step)
        return step


def _first_rows_apart(block: Block, read: int, place: Place) -> Iterator[tuple[Block, int]]:
    """Yield a block that follows a place, cut after 64, 128, ..., 8,192 rows of the first pass.

    Learning curves of small sources would have a point or two otherwise. Parts but the last have no position.
    """
    ends = [end - place.rows for end in FIRST_ENDS if 0 < end - place.rows < len(block)]
    if place.pass_number > 1 or not ends:
        yield block, read
        return
    for start, end in pairwise((0, *ends)):
        yield replace(take_rows(block, np.arange(start, end)), size=0, after=None), 0
    yield take_rows(block, np.arange(ends[-1], len(block))), read


T = TypeVar("T")


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on every system
    return os.cpu_count() or 1 if affinity is None else len(affinity(0))


def overlapped(steps: Iterator[Callable[[], T]], exact: Callable[[], bool]) -> Iterator[T]:
    """Yield the results of steps in order; errors are raised after the results of the steps before them.

    Parameters
    ----------
    steps : does the first part of a step when it is advanced, and yields a function for the second part; the second
        part of a step is called after that of the step before, and while its result is used no second part runs
    exact : called after the first part of a step; True if its result has to be used before the next step begins

    Second parts of steps whose first part is done are called also where the caller stops, so that both have processed
    the same.

    >>> done = []
    >>> def step(k):
    ...     done.append(f"first {k}")
    ...     return lambda: done.append(f"second {k}") or k
    >>> [(k, len(done)) for k in overlapped(map(step, range(3)), exact=lambda: False)]
    [(0, 3), (1, 5), (2, 6)]
    >>> [(k, len(done)) for k in overlapped(map(step, range(3)), exact=lambda: True)]
    [(0, 8), (1, 10), (2, 12)]
    """
    before: Future[T] | None = None
    finish: Callable[[], T] | None = None
    pool = ThreadPoolExecutor(1, "forel-mixer")
    try:
        while True:
            try:
                finish = next(steps, None)
            except BaseException:
                if before is not None:
                    yield before.result()
                raise
            if before is not None:
                yield before.result()
            if finish is None:
                return
            if exact():
                before, second, finish = None, finish, None
                yield second()
            else:
                before, finish = pool.submit(finish), None
    finally:
        pool.shutdown()
        if finish is not None and (before is None or before.exception() is None):
            with suppress(Exception):
                finish()
