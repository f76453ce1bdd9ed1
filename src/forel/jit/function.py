"""A compiled function: machine code of an earlier process, or compiled by numba and kept for later ones."""

import importlib
import importlib.util
import json
import pathlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from threading import RLock
from typing import Any

import numpy as np

from forel.jit import files, linking
from forel.jit.disabled import disabled, uncompiled
from forel.jit.key import key, processor, sources
from forel.jit.lock import alone

__all__ = ["CachedFunction", "compiled_function"]

LOCK = RLock()  # parsers and learners link and compile on several threads


class CachedFunction:
    """A function for arrays and numbers, compiled for the types it is called with.

    Parameters
    ----------
    name : of the function, which no other function of the same source has
    source : everything that it is compiled from, or a hash of that
    compiled : returns numba's function; called only where no machine code was kept

    >>> import numba
    >>> twice = CachedFunction("twice", "x + x", lambda: numba.njit(lambda x: x + x))
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
        if disabled():
            return uncompiled(self._compiled())
        name = key("machine code", self.name, self._source, kinds)
        path = files.path_of(self.name, name)
        linked = _linked(path, name)
        if linked is not None:
            return linked
        with alone(None if path is None else path.parent, name):
            linked = _linked(path, name)  # by the process that was waited for
            return self._made(path, name, arguments) if linked is None else linked

    def _made(self, path: pathlib.Path | None, name: str, arguments: tuple[Any, ...]) -> Callable[..., Any]:
        compiled: Callable[..., Any] = self._compiled()
        if path is not None and hasattr(compiled, "compile"):
            # Access to machine code is not part of numba's public interface: if it fails, nothing is kept. Errors of
            # compilation are raised by the call.
            with suppress(Exception):
                content = _machine_code(compiled, arguments)
                if content is not None:
                    files.write(path, name, content)
        return compiled


@cache
def compiled_function(module: str, name: str) -> CachedFunction:
    """Return a compiled function of a module, which is imported only if no machine code was kept.

    Its key has the sources of the whole folder, so that it may call any function there.

    >>> compiled_function("forel.learner.kernels.mixing", "adahedge").name
    'mixing.adahedge'
    """
    short = f"{module.rpartition('.')[2]}.{name}"
    return CachedFunction(short, _folder_sources(module.rpartition(".")[0]), lambda: _imported(module, name))


def _imported(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)


@cache
def _folder_sources(package: str) -> str:
    spec = importlib.util.find_spec(package)
    folders = [] if spec is None else list(spec.submodule_search_locations or [])
    return sources(*folders)


def _kind(argument: Any) -> Any:
    """Return what numba specialises for: the type, and for arrays also their layout in memory."""
    if type(argument) is np.ndarray:
        flags = argument.flags
        return argument.dtype.str, argument.ndim, flags.c_contiguous, flags.aligned, flags.writeable
    return type(argument).__name__


def _linked(path: pathlib.Path | None, name: str) -> Callable[..., Any] | None:
    """Return the function of an earlier process, or None if there is none or if linking it fails."""
    try:
        content = files.read(path, name) if linking.possible() else None
        if content is None:
            return None
        facts, code = content.split(b"\n", 1)
        return linking.link(code, **json.loads(facts))
    except Exception:  # numba's and llvmlite's inner parts: compiling always works
        return None


def _machine_code(compiled: Any, arguments: tuple[Any, ...]) -> bytes | None:
    """Return machine code, preceded by the names of its wrapper and environment; None if it cannot be relocated."""
    from numba.core import config
    from numba.core.typing.typeof import typeof

    settings: Any = config
    kind_of: Any = typeof
    types = tuple(kind_of(one) for one in arguments)
    compiled.compile(types)
    codegen = compiled.overloads[types].codegen
    parts = compiled._cache.parts(types, codegen)
    if parts is None or not linking.possible() or settings.USING_SVML or codegen.magic_tuple()[1:] != processor():
        return None
    (_, form, (code, _)), described, reloading = parts[0], parts[1], parts[7]
    if form != "object" or reloading:
        return None
    facts = {"wrapper": described.llvm_cpython_wrapper_name, "environment": described.env_name}
    return json.dumps(facts).encode() + b"\n" + bytes(code)
