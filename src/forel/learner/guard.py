"""Models under threads: one change at a time, and answers of whole states beside it."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from threading import RLock
from typing import Any, Concatenate, ParamSpec, TypeVar

__all__ = ["Guard", "changes", "reads", "unchanged"]

S = TypeVar("S")
T = TypeVar("T")
P = ParamSpec("P")


class Guard:
    """A lock for changes, and a version that is odd while a change is under way.

    Reading does not take the lock: what was read is used if the version stayed the same even number, and read once more
    under the lock otherwise. A copy of a model gets a guard of its own, and a pickle holds no lock.

    >>> guard, numbers = Guard(), [0, 0]
    >>> with guard.changing():
    ...     numbers[:] = 1, 1
    >>> guard.read(lambda: tuple(numbers)), guard.version
    ((1, 1), 2)
    """

    __slots__ = ("lock", "version")

    def __init__(self) -> None:
        self.lock = RLock()
        self.version = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return Guard, ()

    # As generators, since an interrupt between taking a lock and entering the block then still releases it.
    @contextmanager
    def changing(self) -> Iterator[None]:
        """Keep other changes out, and let readers know."""
        with self.lock:
            self.check()
            self.version += 1
            try:
                yield
            finally:
                self.version += 1

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Keep changes out, for reading more than an instant's worth."""
        with self.lock:
            self.check()
            yield

    def check(self) -> None:
        """Refuse to go on in a thread that is in the middle of a change itself; the lock is held."""
        if self.version & 1:
            raise RuntimeError(
                "model: got a call from code that ran inside learning (such as __eq__ of a name, a conversion, a "
                "finalizer or a signal handler), expected one after learning has returned"
            )

    def read(self, function: Callable[[], T]) -> T:
        """Return what a function reads from a whole state; it may be called twice, and must change nothing."""
        before = self.version
        if not before & 1:
            try:
                found = function()
            except Exception:
                if self.version == before:
                    raise
            else:
                if self.version == before:
                    return found
        with self.reading():
            return function()


def unchanged(thing: Any) -> AbstractContextManager[None]:
    """Keep changes out of anything, if it is something that has a guard."""
    guard: Guard | None = getattr(thing, "_guard", None)
    return nullcontext() if guard is None else guard.reading()


def changes(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Let a method of an object with a ``_guard`` change it, one call at a time."""

    @wraps(method)
    def guarded(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        guard: Guard = self._guard  # type: ignore[attr-defined]
        with guard.changing():
            return method(self, *args, **kwargs)

    return guarded


def reads(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Let a method of an object with a ``_guard`` read it while nothing changes it."""

    @wraps(method)
    def guarded(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        guard: Guard = self._guard  # type: ignore[attr-defined]
        with guard.reading():
            return method(self, *args, **kwargs)

    return guarded
