"""Thread safety of models: one change at a time, and reads that see a consistent state."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from threading import RLock
from typing import Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakSet

__all__ = ["SeqLock", "reading", "reads"]

S = TypeVar("S")
T = TypeVar("T")
P = ParamSpec("P")


class SeqLock:
    """A lock for changes, and a version that is odd during a change.

    Reads are optimistic: without the lock first, and again with it if the version was odd or changed meanwhile. A copy
    of a model has its own lock, and a pickle holds no lock.

    >>> lock, numbers = SeqLock(), [0, 0]
    >>> with lock.writing():
    ...     numbers[:] = 1, 1
    >>> lock.read(lambda: tuple(numbers)), lock.version
    ((1, 1), 2)
    """

    __slots__ = ("__weakref__", "lock", "torn", "version")

    def __init__(self) -> None:
        self.lock = RLock()
        self.version = 0
        self.torn = False  # whether this process was forked in the middle of a change
        _locks.add(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return SeqLock, ()

    # Generators, so that an interrupt between acquiring the lock and entering the block still releases it.
    @contextmanager
    def writing(self) -> Iterator[None]:
        """Exclude other changes, and mark the version as odd."""
        with self.lock:
            self.check()
            self.version += 1
            try:
                yield
            finally:
                self.version += 1

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Exclude changes, for long or repeated reads."""
        with self.lock:
            self.check()
            yield

    def check(self) -> None:
        """Raise if called from inside a change, in the thread that holds the lock, or if the state is half changed."""
        if self.torn:
            raise RuntimeError(
                "model: got a process that was forked while another thread of its parent was learning, expected a fork "
                "between two calls that learn; load the model from a file, or start processes by spawn"
            )
        if self.version & 1:
            raise RuntimeError(
                "model: got a call from code that ran inside learning (such as __eq__ of a name, a conversion, a "
                "finalizer or a signal handler), expected one after learning has returned"
            )

    def read(self, function: Callable[[], T]) -> T:
        """Return the result of a function on a consistent state; it may be called twice and must change nothing."""
        before = self.version
        if not before & 1:
            try:
                result = function()
            except Exception:
                if self.version == before:
                    raise
            else:
                if self.version == before:
                    return result
        with self.reading():
            return function()


_locks: WeakSet[SeqLock] = WeakSet()


def _in_child() -> None:
    """Replace the locks of threads that the child does not have; models they were changing cannot be used."""
    for lock in list(_locks):
        if lock.lock.acquire(blocking=False):
            lock.lock.release()
        else:
            lock.lock, lock.torn = RLock(), bool(lock.version & 1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def reading(thing: Any) -> AbstractContextManager[None]:
    """Exclude changes of an object that has a lock."""
    lock: SeqLock | None = getattr(thing, "_lock", None)
    return nullcontext() if lock is None else lock.reading()


def reads(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Decorate a method that reads an object with a ``_lock`` while nothing changes it."""

    @wraps(method)
    def locked(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        lock: SeqLock = self._lock  # type: ignore[attr-defined]
        with lock.reading():
            return method(self, *args, **kwargs)

    return locked
