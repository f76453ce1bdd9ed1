"""Tasks: the unit of work that a reader gives to threads."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice

from forel.data.block import Block, Position
from forel.data.problems import Problems

__all__ = ["Task", "completed_task", "completed_tasks"]

Task = Callable[[], tuple[Block | None, Problems]]


def completed_task(block: Block | None, problems: Problems) -> Task:
    """Return a task that returns an existing block, and the problems recorded until then."""
    taken = Problems(problems.on_error)
    taken.absorb(problems)
    return partial(_pair, block, taken)


def completed_tasks(blocks: Iterable[Block], problems: Problems, start: Position) -> Iterator[Task]:
    """Yield a task for each block, with the problems recorded since the previous one.

    Blocks before ``start`` are read and dropped, with their problems.
    """
    tasks = (
        completed_task(replace(block, after=Position(start.file, number)), problems)
        for number, block in enumerate(blocks, 1)
    )
    yield from islice(tasks, start.blocks, None)
    yield completed_task(None, problems)


def _pair(block: Block | None, problems: Problems) -> tuple[Block | None, Problems]:
    return block, problems
