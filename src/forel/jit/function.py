"""A compiled function: linked from cached machine code, or compiled by numba and cached."""

import importlib
import importlib.util
import json
import pathlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from threading import RLock
from time import perf_counter
from typing import Any

import numpy as np

from forel.jit import bitcode, files, linking, shipped
from forel.jit.disabled import disabled, uncompiled
from forel.jit.key import key, portable_key, processor, sources
from forel.jit.lock import compile_lock

__all__ = ["CachedFunction", "compile_seconds", "compiled_function"]

LOCK = RLock()  # parsers and learners link and compile on several threads


class CachedFunction:
    """A function for arrays and numbers, compiled for the types it is called with.

    Parameters
    ----------
    name : name of the function, unique among the functions of the same source
    source : everything that the function is compiled from, or a hash of it
    compiled : returns numba's function; called only if no machine code is cached
    instead : returns a function with the same results for given arguments, or None; called before compiling

    >>> import numba
    >>> twice = CachedFunction("twice", "x + x", lambda: numba.njit(lambda x: x + x))
    >>> twice(np.ones(2)), twice(3)
    (array([2., 2.]), 6)
    """

    seconds = 0.0  # spent by all functions of this process on linking and compiling

    def __init__(
        self,
        name: str,
        source: str,
        compiled: Callable[[], Any],
        instead: Callable[..., Callable[..., Any] | None] = lambda *arguments: None,
    ) -> None:
        self.name, self._source, self._compiled, self._instead = name, source, compiled, instead
        self._by_types: dict[Any, Callable[..., Any]] = {}
        self._absent: set[Any] = set()  # types for which there was no code on disk

    def __call__(self, *arguments: Any) -> Any:
        """Call the function, compiled for the types of the arguments."""
        types = tuple([_type_key(argument) for argument in arguments])
        function = self._by_types.get(types)
        if function is None:
            with LOCK:
                started = perf_counter()
                function = self._by_types[types] = self._link_or_compile(types, arguments)
                CachedFunction.seconds += perf_counter() - started
        return function(*arguments)

    def cached(self, *arguments: Any) -> bool:
        """Return whether the function was compiled for the types of the arguments, in any process.

        Files of other processes are looked for at the first call with these types only: that takes longer than a few
        items do.

        >>> CachedFunction("new", "x + x", lambda: None).cached(1.0)
        False
        """
        types = tuple([_type_key(argument) for argument in arguments])
        if types in self._by_types:
            return True
        if types in self._absent:
            return False
        path = files.path_of(self.name, key("machine code", self.name, self._source, types))
        portable = portable_key("bitcode", self.name, self._source, types)
        paths = path, _bitcode_path(self.name, portable), shipped.path_of(self.name, portable)
        found = any(each is not None and each.is_file() for each in paths)
        if not found:
            self._absent.add(types)
        return found

    def _link_or_compile(self, types: tuple[Any, ...], arguments: tuple[Any, ...]) -> Callable[..., Any]:
        if disabled():
            return uncompiled(self._compiled())
        name = key("machine code", self.name, self._source, types)
        path = files.path_of(self.name, name)
        linked = _linked(path, name)
        if linked is not None:
            return linked
        portable = portable_key("bitcode", self.name, self._source, types)
        with compile_lock(None if path is None else path.parent, name):
            # Another process may have compiled it while this one waited.
            found = _linked(path, name) or self._without_numba(path, name, portable) or self._instead(*arguments)
            return self._compile(path, name, portable, arguments) if found is None else found

    def _without_numba(self, path: pathlib.Path | None, name: str, portable: str) -> Callable[..., Any] | None:
        """Return the function from bitcode cached for another processor, or from the package; None if there is none."""
        if not linking.possible():
            return None
        try:
            found = _bitcode(self.name, portable) or shipped.read(self.name, portable)
            if found is None:
                return None
            names, module = found
            code = bitcode.machine_code(module)
            files.write(path, name, names + b"\n" + code)
            return linking.link(code, **json.loads(names))
        except Exception:  # code of other versions of llvmlite, or damaged; compiling always works
            return None

    def _compile(
        self, path: pathlib.Path | None, name: str, portable: str, arguments: tuple[Any, ...]
    ) -> Callable[..., Any]:
        compiled: Callable[..., Any] = self._compiled()
        if path is not None and hasattr(compiled, "compile"):
            # Access to machine code is not part of numba's public interface: if it fails, nothing is cached. Errors of
            # compilation are raised by the call.
            with suppress(Exception):
                content = _code(compiled, arguments)
                if content is not None:
                    names, machine_code, unoptimized = content
                    files.write(path, name, names + b"\n" + machine_code)
                    if unoptimized is not None:
                        files.write(_bitcode_path(self.name, portable), portable, names + b"\n" + unoptimized)
        return compiled


def compile_seconds() -> float:
    """Return the seconds that this process has spent on linking and compiling."""
    return CachedFunction.seconds


@cache
def compiled_function(module: str, name: str) -> CachedFunction:
    """Return a compiled function of a module, which is imported only if no machine code is cached.

    The key includes the sources of the whole folder, so that the function may call any other function there.

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


def _type_key(argument: Any) -> Any:
    """Return the properties that numba specializes for: the type and, for arrays, the memory layout."""
    if type(argument) is np.ndarray:
        flags = argument.flags
        return argument.dtype.str, argument.ndim, flags.c_contiguous, flags.aligned, flags.writeable
    return type(argument).__name__


def _bitcode_path(name: str, key: str) -> pathlib.Path | None:
    return files.path_of(f"{name}{shipped.BITCODE}", key)


def _bitcode(name: str, key: str) -> tuple[bytes, Any] | None:
    """Return the names of wrapper and environment, and the LLVM module of cached bitcode, or None."""
    content = files.read(_bitcode_path(name, key), key)
    if content is None:
        return None
    names, code = content.split(b"\n", 1)
    return names, bitcode.parsed(code)


def _linked(path: pathlib.Path | None, name: str) -> Callable[..., Any] | None:
    """Return the function linked from cached machine code, or None if there is none or linking fails."""
    try:
        content = files.read(path, name) if linking.possible() else None
        if content is None:
            return None
        names, code = content.split(b"\n", 1)
        return linking.link(code, **json.loads(names))
    except Exception:  # linking uses private parts of numba and llvmlite; compiling always works
        return None


def _code(compiled: Any, arguments: tuple[Any, ...]) -> tuple[bytes, bytes, bytes | None] | None:
    """Return the names of wrapper and environment, machine code, and bitcode; None if it cannot be relocated."""
    from numba.core import config
    from numba.core.typing.typeof import typeof

    settings: Any = config
    type_of: Any = typeof
    types = tuple(type_of(argument) for argument in arguments)
    compiled.compile(types)
    result = compiled.overloads[types]
    codegen = result.codegen
    parts = compiled._cache.parts(types, codegen)
    if parts is None or not linking.possible() or settings.USING_SVML or codegen.magic_tuple()[1:] != processor():
        return None
    (_, form, (code, _)), descriptor, reload_init = parts[0], parts[1], parts[7]
    if form != "object" or reload_init:
        return None
    names = {"wrapper": descriptor.llvm_cpython_wrapper_name, "environment": descriptor.env_name}
    return json.dumps(names).encode(), bytes(code), bitcode.unoptimized(result.library)
