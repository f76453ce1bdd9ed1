"""Reading ahead: blocks are read and parsed on other threads, and yielded in order.

One thread reads, others parse, and the caller's learns. Compiled parsers and kernels release the global interpreter
lock. The number of blocks in flight is bounded, and their order does not depend on the number of threads.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from queue import Empty, Queue
from threading import Event, Thread
from typing import Any, TypeVar

from forel.data import Block, Reader
from forel.validation import whole

__all__ = ["default_threads", "in_order", "ordered_blocks"]

T = TypeVar("T")
WAIT = 1.0  # seconds to wait for the reading thread to stop


def default_threads() -> int:
    """Return the default number of parsing threads: one per core except the learner's, at most four."""
    return max(1, min(4, (os.cpu_count() or 1) - 1))


def ordered_blocks(reader: Reader, threads: int | None = None) -> Iterator[Block]:
    r"""Yield a reader's blocks in order, parsed on other threads.

    Parameters
    ----------
    reader : from :func:`forel.data.read`; with names, one thread parses, because their order counts
    threads : number of parsing threads; 0 for all work in the caller's thread, None for the default

    >>> import io
    >>> from forel.data import read
    >>> reader = read(io.BytesIO(b"1 |a x\n-1 |a y\n"), block_bytes=8)
    >>> [block.labels.tolist() for block in ordered_blocks(reader, threads=2)]
    [[1.0], [-1.0]]
    """
    number = default_threads() if threads is None else whole("threads", threads)
    for found in in_order(reader.tasks(), number if reader.names is None else min(number, 1)):
        yield from reader.finish(*found)


def in_order(tasks: Iterable[Callable[[], T]], threads: int) -> Iterator[T]:
    """Run tasks ahead on threads, and yield their results in order.

    An exception in a task, or in the iterable, is raised in place of its result. The threads stop when the caller does.

    >>> list(in_order((lambda k=k: k * k for k in range(4)), threads=2))
    [0, 1, 4, 9]
    """
    if threads == 0:
        for task in tasks:
            yield task()
        return
    results: Queue[Future[T] | None] = Queue(2 * threads + 2)
    stop = Event()
    # A single thread both reads and parses: handing over work would gain nothing.
    pool = ThreadPoolExecutor(threads, "forel-parser") if threads > 1 else None
    reader = Thread(target=_feed, args=(iter(tasks), pool, results, stop), name="forel-reader", daemon=True)
    reader.start()
    try:
        while (result := results.get()) is not None:
            yield result.result()
    finally:
        stop.set()
        with suppress(Empty):
            while True:  # unblocks the reader if the queue is full
                results.get_nowait()
        # A reader that waits for input may never stop; it is a daemon thread.
        reader.join(WAIT)
        if pool is not None:
            pool.shutdown(wait=not reader.is_alive(), cancel_futures=True)


def _feed(
    tasks: Iterator[Callable[[], Any]], pool: ThreadPoolExecutor | None, results: Queue[Any], stop: Event
) -> None:
    """Put the futures of all tasks into the queue, and None at the end."""
    try:
        for task in tasks:
            results.put(_run(task) if pool is None else pool.submit(task))
            if stop.is_set():
                break
    except BaseException as wrong:  # raised in the caller's thread
        results.put(_failed(wrong))
    else:
        results.put(None)
    finally:
        if hasattr(tasks, "close"):
            tasks.close()  # closes files in the thread that reads them


def _run(task: Callable[[], T]) -> Future[T]:
    result: Future[T] = Future()
    try:
        result.set_result(task())
    except BaseException as wrong:
        return _failed(wrong)
    return result


def _failed(wrong: BaseException) -> Future[Any]:
    result: Future[Any] = Future()
    result.set_exception(wrong)
    return result
