"""A compiled function: linked from cached or shipped machine code, or compiled by numba and cached."""

import importlib
import importlib.util
import json
import os
import pathlib
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from threading import RLock
from time import perf_counter
from typing import Any

import numpy as np

from forel.jit import files, linking, shipped
from forel.jit.key import key, processor, sources
from forel.jit.lock import compile_lock
from forel.jit.private import private

__all__ = ["LOCK", "CachedFunction", "compile_seconds", "compiled_function", "disabled", "uncompiled"]

LOCK = RLock()  # parsers and learners link and compile on several threads


def disabled() -> bool:
    """Return whether NUMBA_DISABLE_JIT is set, without importing numba.

    >>> disabled()
    False
    """
    config = sys.modules.get("numba.core.config")
    if config is not None:
        return bool(config.DISABLE_JIT)
    try:
        return bool(int(os.environ.get("NUMBA_DISABLE_JIT", "0")))
    except ValueError:  # numba warns and compiles
        return False


def uncompiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a Python function in which integers wrap and division by zero is silent, as in compiled code.

    >>> uncompiled(lambda x: x * x)(np.uint64(1 << 33))
    np.uint64(0)
    """

    def wrapper(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*arguments)

    return wrapper


class CachedFunction:
    """A function for arrays and numbers, compiled for the types it is called with.

    Parameters
    ----------
    name : name of the function, unique among the functions of the same source
    source : everything that the function is compiled from, or a hash of it
    compiled : returns numba's function; called only if no machine code is cached

    >>> import numba
    >>> twice = CachedFunction("twice", "x + x", lambda: numba.njit(lambda x: x + x))
    >>> twice(np.ones(2)), twice(3)
    (array([2., 2.]), 6)
    """

    seconds = 0.0  # spent by all functions of this process on linking and compiling

    def __init__(self, name: str, source: str, compiled: Callable[[], Any]) -> None:
        self.name, self._source, self._compiled = name, source, compiled
        self._by_types: dict[Any, Callable[..., Any]] = {}

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

    def prepared(self, *arguments: Any) -> Callable[..., Any]:
        """Call the function, and return its code for the types of these arguments, without the lookup of types."""
        self(*arguments)
        return self._by_types[tuple([_type_key(argument) for argument in arguments])]

    def _link_or_compile(self, types: tuple[Any, ...], arguments: tuple[Any, ...]) -> Callable[..., Any]:
        if disabled():
            return uncompiled(self._compiled())
        parts = self.name, self._source, types
        name = key("machine code", *parts)
        path = files.path_of(self.name, name)
        linked = _linked(path, name)
        if linked is not None:
            return linked
        with compile_lock(None if path is None else path.parent, name):
            # Another process may have compiled it while this one waited.
            return _linked(path, name) or _shipped(path, name, parts) or self._compile(path, name, parts, arguments)

    def _compile(
        self, path: pathlib.Path | None, name: str, parts: tuple[Any, ...], arguments: tuple[Any, ...]
    ) -> Callable[..., Any]:
        compiled: Callable[..., Any] = self._compiled()
        if path is not None and hasattr(compiled, "compile"):
            # Access to machine code is not part of numba's public interface: if it fails, nothing is cached. Errors of
            # compilation are raised by the call.
            with suppress(Exception):
                content = _code(compiled, arguments, parts)
                if content is not None:
                    files.write(path, name, content)
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
    source = _folder_sources(module.rpartition(".")[0])
    return CachedFunction(short, source, lambda: getattr(importlib.import_module(module), name))


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


def _linked(path: pathlib.Path | None, name: str) -> Callable[..., Any] | None:
    """Return the function linked from cached machine code, or None if there is none or linking fails."""
    try:
        content = files.read(path, name) if linking.possible() else None
        if content is None:
            return None
        names, code = content.split(b"\n", 1)
        return linking.link(code, **json.loads(names))
    except Exception:  # linking uses private parts of numba; compiling always works
        return None


def _shipped(path: pathlib.Path | None, name: str, parts: tuple[Any, ...]) -> Callable[..., Any] | None:
    """Return the function from LLVM code of the package, and cache its machine code; None if that is not possible."""
    try:
        found = shipped.machine_code(*parts) if linking.possible() else None
        if found is None:
            return None
        names, code = found
        linked = linking.link(code, **json.loads(names))
        if linked is not None:
            files.write(path, name, names + b"\n" + code)
        return linked
    except Exception:  # another interface of llvmlite, or a damaged file; compiling always works
        return None


def _code(compiled: Any, arguments: tuple[Any, ...], parts: tuple[Any, ...]) -> bytes | None:
    """Return the names of wrapper and environment, and machine code; None if it cannot be relocated."""
    import numba

    type_of: Any = numba.typeof
    types = tuple(type_of(argument) for argument in arguments)
    compiled.compile(types)
    result = compiled.overloads[types]
    if shipped.UNOPTIMIZED in os.environ and not compiled.stats.cache_hits:  # a wheel is being built
        shipped.export(parts, _names(result.fndesc), compiled.inspect_llvm(types))
    codegen = result.codegen
    cached = compiled._cache.parts(types, codegen)
    if cached is None or private("using_svml") or codegen.magic_tuple()[1:] != processor():
        return None
    (_, form, (code, _)), descriptor, reload_init = cached[0], cached[1], cached[7]
    if form != "object" or reload_init:
        return None
    return _names(descriptor) + b"\n" + bytes(code) if linking.possible() else None


def _names(descriptor: Any) -> bytes:
    return json.dumps({"wrapper": descriptor.llvm_cpython_wrapper_name, "environment": descriptor.env_name}).encode()
