"""Reading ahead: blocks are read and parsed on other threads, and yielded in order.

One thread reads, others parse, and the caller's learns; where it would wait for a block, it parses a later one.
Compiled parsers and kernels release the global interpreter lock. The number of blocks in flight is bounded, and their
order does not depend on the number of threads.
"""

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext, suppress
from functools import partial
from queue import Empty, SimpleQueue
from threading import Event, Lock, Semaphore, Thread, get_native_id
from typing import Any, Generic, TypeVar

from forel.data import Block, Reader
from forel.data.sources.arriving import ended_by_signals
from forel.validation import whole

__all__ = ["default_threads", "in_order", "lower_priority", "ordered_blocks"]

T = TypeVar("T")
WAIT = 1.0  # seconds to wait for the reading thread to stop
NICENESS = 5  # by how much the priority of parsing threads is lower; others get three times the time then


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
    with ended_by_signals(reader.ended) if reader.options.follow else nullcontext():
        for result in in_order(reader.tasks(), number, sequential=reader.names is not None):
            yield from reader.finish(*result)
    reader.check_keys()


def in_order(tasks: Iterable[Callable[[], T]], threads: int, sequential: bool = False) -> Iterator[T]:
    """Run tasks ahead on threads, and yield their results in order.

    An exception in a task, or in the iterable, is raised in place of its result. The threads stop when the caller does.

    Parameters
    ----------
    tasks : functions without arguments
    threads : number of threads in addition to the caller's, which helps instead of waiting; 0 for the caller's alone
    sequential : run tasks one after the other, on one thread

    >>> list(in_order((lambda k=k: k * k for k in range(4)), threads=2))
    [0, 1, 4, 9]
    """
    if threads == 0:
        for task in tasks:
            yield task()
        return
    queue: SimpleQueue[_Job[T] | None] = SimpleQueue()
    ahead: deque[_Job[T] | None] = deque()  # taken from the queue before their turn
    room, stop = Semaphore(2 * threads + 2), Event()
    pool = None if sequential else ThreadPoolExecutor(threads, "forel-parser", lower_priority)
    reader = Thread(target=_feed, args=(iter(tasks), pool, queue, room, stop), name="forel-reader", daemon=True)
    reader.start()
    try:
        while (job := ahead.popleft() if ahead else queue.get()) is not None:
            while not job.done:
                with suppress(Empty):
                    while True:
                        ahead.append(queue.get_nowait())
                if not any(other.run() for other in (job, *ahead) if other is not None):
                    break
            room.release()
            yield job.result()
    finally:
        stop.set()
        room.release()
        # A reader that waits for input may never stop; it is a daemon thread.
        reader.join(WAIT)
        if pool is not None:
            pool.shutdown(wait=not reader.is_alive(), cancel_futures=True)


def lower_priority() -> None:
    """Lower the priority of this thread, which reads ahead, below that of the caller's.

    Where there are fewer cores than threads, the caller's would otherwise wait for its turn after every short wait. On
    Linux, threads have priorities of their own.
    """
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, get_native_id(), os.getpriority(os.PRIO_PROCESS, 0) + NICENESS)


class _Job(Generic[T]):
    """A task that runs once, on the first thread that claims it."""

    def __init__(self, task: Callable[[], T]) -> None:
        self._task, self._claim = task, Lock()
        self._future: Future[T] = Future()

    def run(self) -> bool:
        """Run the task; return False if a thread did or does so already."""
        if not self._claim.acquire(blocking=False):
            return False
        try:
            self._future.set_result(self._task())
        except KeyboardInterrupt:
            raise
        except BaseException as wrong:
            self._future.set_exception(wrong)
        return True

    @property
    def done(self) -> bool:
        """Whether the task has run."""
        return self._future.done()

    def result(self) -> T:
        """Wait for the task, and return its result or raise its exception."""
        return self._future.result()


def _raise(wrong: BaseException) -> None:
    raise wrong


def _feed(
    tasks: Iterator[Callable[[], Any]],
    pool: ThreadPoolExecutor | None,
    queue: "SimpleQueue[_Job[Any] | None]",
    room: Semaphore,
    stop: Event,
) -> None:
    """Put all tasks into the queue as jobs, and None at the end; without a pool, run them first."""
    try:
        for task in tasks:
            job = _Job(task)
            if pool is None:
                job.run()
            else:
                pool.submit(job.run)
            queue.put(job)
            room.acquire()
            if stop.is_set():
                break
    except BaseException as wrong:
        queue.put(_Job(partial(_raise, wrong)))  # in the caller's thread
    else:
        queue.put(None)
    finally:
        if hasattr(tasks, "close"):
            tasks.close()  # closes files in the thread that reads them
