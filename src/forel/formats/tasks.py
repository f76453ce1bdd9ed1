"""What is left to do for a block: the unit of work that a reader gives to threads."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from forel.formats.block import Block
from forel.formats.problems import Problems

__all__ = ["Task", "found", "ready"]

Task = Callable[[], tuple[Block | None, Problems]]


def found(block: Block | None, problems: Problems) -> Task:
    """Return a task with nothing left to do, which takes along what was met until now."""
    mine = Problems(problems.on_error)
    mine.take(problems)
    return partial(_pair, block, mine)


def ready(blocks: Iterable[Block], problems: Problems) -> Iterator[Task]:
    """Yield blocks that are made while they are asked for, each with the problems met on the way to it."""
    for block in blocks:
        yield found(block, problems)
    yield found(None, problems)


def _pair(block: Block | None, problems: Problems) -> tuple[Block | None, Problems]:
    return block, problems
