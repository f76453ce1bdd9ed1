"""Overlapping the two parts of each step: the second part runs on a thread, beside the first part of the next step."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

__all__ = ["available_cores", "overlapped"]

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
