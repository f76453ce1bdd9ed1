"""Thread safety of models: one change at a time, and reads that see a consistent state."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import wraps
from threading import RLock
from typing import Any, Concatenate, ParamSpec, TypeVar

__all__ = ["Guard", "changes", "changing", "reads", "unchanged"]

S = TypeVar("S")
T = TypeVar("T")
P = ParamSpec("P")


class Guard:
    """A lock for changes, and a version that is odd during a change.

    Reads are optimistic: without the lock first, and again with it if the version was odd or changed meanwhile. A copy
    of a model has its own guard, and a pickle holds no lock.

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

    # Generators, so that an interrupt between acquiring the lock and entering the block still releases it.
    @contextmanager
    def changing(self) -> Iterator[None]:
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
        """Raise if called from inside a change, in the thread that holds the lock."""
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


@contextmanager
def changing(*guards: Guard) -> Iterator[None]:
    """Exclude other changes of several objects, in the order of their guards; a guard may be repeated.

    >>> guard = Guard()
    >>> with changing(guard, guard):
    ...     guard.version
    1
    """
    with ExitStack() as stack:
        for guard in dict.fromkeys(guards):
            stack.enter_context(guard.changing())
        yield


def unchanged(thing: Any) -> AbstractContextManager[None]:
    """Exclude changes of an object that has a guard."""
    guard: Guard | None = getattr(thing, "_guard", None)
    return nullcontext() if guard is None else guard.reading()


def changes(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Decorate a method that changes an object with a ``_guard``, one call at a time."""

    @wraps(method)
    def guarded(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        guard: Guard = self._guard  # type: ignore[attr-defined]
        with guard.changing():
            return method(self, *args, **kwargs)

    return guarded


def reads(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Decorate a method that reads an object with a ``_guard`` while nothing changes it."""

    @wraps(method)
    def guarded(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        guard: Guard = self._guard  # type: ignore[attr-defined]
        with guard.reading():
            return method(self, *args, **kwargs)

    return guarded
