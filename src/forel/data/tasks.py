"""What is left to do for a block: the unit of work that a reader gives to threads."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice

from forel.data.block import Block
from forel.data.position import Position
from forel.data.problems import Problems

__all__ = ["Task", "found", "ready"]

Task = Callable[[], tuple[Block | None, Problems]]


def found(block: Block | None, problems: Problems) -> Task:
    """Return a task with nothing left to do, which takes along what was met until now."""
    mine = Problems(problems.on_error)
    mine.take(problems)
    return partial(_pair, block, mine)


def ready(blocks: Iterable[Block], problems: Problems, start: Position) -> Iterator[Task]:
    """Yield blocks that are made while they are asked for, each with the problems met on the way to it.

    Those before ``start`` are made and passed over, with their problems.
    """
    placed = (
        found(replace(block, after=Position(start.file, number)), problems) for number, block in enumerate(blocks, 1)
    )
    yield from islice(placed, start.blocks, None)
    yield found(None, problems)


def _pair(block: Block | None, problems: Problems) -> tuple[Block | None, Problems]:
    return block, problems
