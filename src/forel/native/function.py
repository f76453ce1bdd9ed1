"""One compiled function: that of an earlier process, or else numba's, which is then kept for later ones."""

import hashlib
from collections.abc import Callable
from contextlib import suppress
from threading import RLock
from typing import Any

import numpy as np

from forel.native import keeping, linking

__all__ = ["Native"]

LOCK = RLock()  # linking and compiling happen on the threads of parsers and of learners


class Native:
    """A function for arrays and numbers, compiled for the types it is called with.

    Parameters
    ----------
    name : of the function, which no other function of the same source has
    source : everything that it is compiled from
    compiled : returns numba's function; called only where no machine code was kept

    >>> import numba
    >>> twice = Native("twice", "x + x", lambda: numba.njit(lambda x: x + x))
    >>> twice(np.ones(2)), twice(3)
    (array([2., 2.]), 6)
    """

    def __init__(self, name: str, source: str, compiled: Callable[[], Any]) -> None:
        self.name, self._source, self._compiled = name, source, compiled
        self._known: dict[Any, Callable[..., Any]] = {}

    def __call__(self, *arguments: Any) -> Any:
        """Call it."""
        kinds = tuple([_kind(one) for one in arguments])
        function = self._known.get(kinds)
        if function is None:
            with LOCK:
                function = self._known[kinds] = self._found(kinds, arguments)
        return function(*arguments)

    def _found(self, kinds: tuple[Any, ...], arguments: tuple[Any, ...]) -> Callable[..., Any]:
        if not linking.possible():
            compiled: Callable[..., Any] = self._compiled()
            return compiled
        key = hashlib.sha256(repr((self._source, linking.surroundings(), kinds)).encode()).hexdigest()[:20]
        path = keeping.home() / "native" / f"{self.name}-{key}.o"
        kept = keeping.read(path)
        linked = None if kept is None else linking.link(kept[0], **kept[1])
        if linked is not None:
            return linked
        compiled = self._compiled()
        # What numba's cache has in store is none of its promises: where it is different, nothing is kept.
        with suppress(AttributeError, IndexError, KeyError, TypeError, ValueError):
            keeping.write(path, *_machine_code(compiled, arguments))
        return compiled


def _kind(argument: Any) -> Any:
    """Return what numba would compile for: the type, and of arrays also how they lie in memory."""
    if type(argument) is np.ndarray:
        flags = argument.flags
        return argument.dtype.str, argument.ndim, flags.c_contiguous, flags.aligned, flags.writeable
    return type(argument).__name__


def _machine_code(compiled: Any, arguments: tuple[Any, ...]) -> tuple[bytes, dict[str, str]]:
    """Return a function as numba's cache keeps it: its machine code, and the names of its wrapper and environment."""
    from numba.core import config
    from numba.core.typing.typeof import typeof

    settings: Any = config
    kind_of: Any = typeof
    types = tuple(kind_of(one) for one in arguments)
    compiled.compile(types)
    cache, result = compiled._cache, compiled.overloads[types]
    held = cache._cache_file.load(cache._index_key(types, result.codegen))
    (_, form, (code, _)), facts, reloading = held[0], held[1], held[7]
    if form != "object" or reloading or settings.USING_SVML:
        raise ValueError("not machine code alone")
    return code, {"wrapper": facts.llvm_cpython_wrapper_name, "environment": facts.env_name}
