"""From reader to learner: blocks are read and parsed on threads of their own, and come out in order.

One thread reads, others parse, and the caller's learns. Compiled parsers and kernels work without the interpreter's
lock, so that all of them do so at once. Only so many blocks are under way, whatever the size of the file, and their
order does not depend on how many threads there are.
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
WAIT = 1.0  # seconds that a reader may take to notice that nobody wants more


def default_threads() -> int:
    """Return how many threads parse unless told otherwise: one for each core but the learner's, up to four."""
    return max(1, min(4, (os.cpu_count() or 1) - 1))


def ordered_blocks(reader: Reader, threads: int | None = None) -> Iterator[Block]:
    r"""Yield a reader's blocks in order, parsed on other threads.

    Parameters
    ----------
    reader : of :func:`forel.data.read`; names are kept in order of their first use, by one thread
    threads : how many parse; 0 for all work in the caller's thread, None for what suits the machine

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
    """Run tasks ahead on so many threads, and yield their results in order.

    What goes wrong in a task, or in getting one, is raised here where its result would have come. When the caller
    stops early, so do the threads.

    >>> list(in_order((lambda k=k: k * k for k in range(4)), threads=2))
    [0, 1, 4, 9]
    """
    if threads == 0:
        for task in tasks:
            yield task()
        return
    results: Queue[Future[T] | None] = Queue(2 * threads + 2)
    stop = Event()
    # One thread alone does both: handing work from one to the other would gain nothing.
    pool = ThreadPoolExecutor(threads, "forel-parser") if threads > 1 else None
    reader = Thread(target=_feed, args=(iter(tasks), pool, results, stop), name="forel-reader", daemon=True)
    reader.start()
    try:
        while (result := results.get()) is not None:
            yield result.result()
    finally:
        stop.set()
        with suppress(Empty):
            while True:  # room for the reader, should it wait for that
                results.get_nowait()
        # A reader that waits for bytes which may never come is left behind; it is a daemon.
        reader.join(WAIT)
        if pool is not None:
            pool.shutdown(wait=not reader.is_alive(), cancel_futures=True)


def _feed(
    tasks: Iterator[Callable[[], Any]], pool: ThreadPoolExecutor | None, results: Queue[Any], stop: Event
) -> None:
    """Put the results to come of all tasks into the queue, and None at the end."""
    try:
        for task in tasks:
            results.put(_run(task) if pool is None else pool.submit(task))
            if stop.is_set():
                break
    except BaseException as wrong:  # whatever it is, the caller's thread is the place for it
        results.put(_failed(wrong))
    else:
        results.put(None)
    finally:
        if hasattr(tasks, "close"):
            tasks.close()  # files are closed by the thread that reads them


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
