"""A compiled function: linked from cached or shipped machine code, or compiled by numba and cached."""

import importlib
import importlib.util
import json
import os
import pathlib
import pickle
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from threading import RLock
from time import perf_counter
from typing import Any

import numpy as np

from forel.jit import linking, shipped
from forel.jit.cache import NOT_CACHED, announce, compile_lock, path_of, read, write
from forel.jit.key import key, processor, sources
from forel.jit.private import private

__all__ = ["LOCK", "CachedFunction", "compile_seconds", "compiled_function", "disabled", "njit", "uncompiled"]

LOCK = RLock()  # parsers and learners link and compile on several threads


def disabled() -> bool:
    """Return whether NUMBA_DISABLE_JIT is set, without importing numba.

    >>> disabled()
    False
    """
    # A module that another thread imports stands in sys.modules before its code has run.
    found = getattr(sys.modules.get("numba.core.config"), "DISABLE_JIT", None)
    if found is not None:
        return bool(found)
    try:
        return bool(int(os.environ.get("NUMBA_DISABLE_JIT", "0")))
    except ValueError:  # numba warns and compiles
        return False


def njit(inner: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return numba's decorator; functions that are ``inner``, which only compiled ones call, cost less."""
    import numba

    common: Any = {"error_model": "numpy", "no_cfunc_wrapper": True, "nogil": True, "no_cpython_wrapper": inner}
    decorator: Callable[[Callable[..., Any]], Any] = numba.njit(**{**common, **options})
    return decorator


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
    slow : whether compiling takes seconds, before which a notice is printed

    >>> import numba
    >>> twice = CachedFunction("twice", "x + x", lambda: numba.njit(lambda x: x + x))
    >>> twice(np.ones(2)), twice(3)
    (array([2., 2.]), 6)
    """

    seconds = 0.0  # spent by all functions of this process on linking and compiling

    def __init__(self, name: str, source: str, compiled: Callable[[], Any], slow: bool = False) -> None:
        self.name, self._source, self._compiled, self._slow = name, source, compiled, slow
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
        parts, links = (self.name, self._source, types), linking.possible()
        name = key("machine code" if links else "numba", *parts)
        path = path_of(self.name, name)
        linked = _linked(path, name) if links else None
        if linked is not None:
            return linked
        with compile_lock(None if path is None else path.parent, name):
            # Another process may have compiled it while this one waited.
            linked = (_linked(path, name) or _linked(path, name, parts)) if links else None
            return linked or self._compile(path, name, parts, arguments)

    def _compile(self, path: pathlib.Path | None, name: str, parts: tuple[Any, ...], arguments: tuple[Any, ...]) -> Any:
        compiled: Any = self._compiled()
        if path is None or not hasattr(compiled, "compile") or _restored(compiled, path, name):
            return compiled
        if self._slow:
            announce(f"compiling a kernel, once; it is kept in {path.parent}")
        import numba

        type_of: Any = numba.typeof
        types = tuple(type_of(argument) for argument in arguments)
        with suppress(Exception):  # of compilation, which the call raises
            compiled.compile(types)
        # Access to machine code is not part of numba's public interface: if it fails, nothing is cached.
        try:
            result = compiled.overloads.get(types)
            if result is not None and shipped.UNOPTIMIZED in os.environ:  # a wheel is being built
                shipped.export(parts, _names(result), compiled.inspect_llvm(types))
            if result is None or result.library.has_dynamic_globals or result.lifted:
                return compiled  # or it contains addresses of this process
            content = _machine_code(result) if linking.possible() else private("dumps")(private("reduce")(result))
            if content is not None:
                write(path, name, content)
        except Exception as error:
            announce(f"{NOT_CACHED}: numba {numba.__version__} raised {error!r}; install a version that forel supports")
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


def _linked(path: pathlib.Path | None, name: str, parts: tuple[Any, ...] | None = None) -> Callable[..., Any] | None:
    """Return the function linked from cached machine code, or from LLVM code of the package if ``parts`` are given.

    None if there is none or linking fails. Machine code from the package is cached.
    """
    try:
        content = read(path, name) if parts is None else shipped.machine_code(*parts)
        if content is None:
            return None
        names, code = content.split(b"\n", 1)
        linked = linking.link(code, **json.loads(names))
        if linked is not None and parts is not None:
            write(path, name, content)
        return linked
    except Exception:  # other private parts of numba, or a damaged file; compiling always works
        return None


def _restored(compiled: Any, path: pathlib.Path, name: str) -> bool:
    """Give numba's function the code that it compiled in another process, where machine code cannot be linked."""
    try:
        content = None if linking.possible() else read(path, name)
        if content is None:
            return False
        target = compiled.targetctx
        target.refresh()
        # Unpickling runs code, which ``read`` trusts.
        compiled.add_overload(private("rebuild")(target, *pickle.loads(content)))
        return True
    except Exception:  # another version of numba
        return False


def _machine_code(result: Any) -> bytes | None:
    """Return names of a compile result, and its machine code; None if that cannot be relocated."""
    code = result.library.serialize_using_object_code()[2][0]
    if private("using_svml") or result.codegen.magic_tuple()[1:] != processor() or result.reload_init:
        return None
    if result.environment.consts:  # objects of Python, such as the type of an array that is returned
        return None
    return _names(result) + b"\n" + bytes(code)


def _names(result: Any) -> bytes:
    """Return the names of wrapper and environment of a compile result."""
    names = {"wrapper": result.fndesc.llvm_cpython_wrapper_name, "environment": result.fndesc.env_name}
    return json.dumps(names).encode()
