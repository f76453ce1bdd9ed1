"""One key for all compiled code: sources or what a user's function reaches, versions, settings of numba, processor."""

import hashlib
import importlib.util
import os
import pathlib
import platform
import sys
from collections.abc import Iterator
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

__all__ = ["PROCESSOR", "contents", "key", "numba_folder", "portable_key", "processor", "sources"]

NUMBERS = (bool, int, float, complex, str, bytes, np.generic, type(None))
LIBRARIES = frozenset({"builtins", "cmath", "math", "numba", "numpy"})  # whose versions are part of every key
PROCESSOR = frozenset({"NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"})  # variables of numba that choose a processor


def key(*parts: object) -> str:
    """Return the key of code that depends on these parts and on the environment, as 40 hexadecimal digits.

    >>> key("learn", "x + x") == key("learn", "x + x"), key("learn", "x + x") == key("learn", "x + y")
    (True, False)
    """
    settings = sorted((name, value) for name, value in os.environ.items() if name.startswith("NUMBA_"))
    return _hash(repr((*_versions(), *processor(), settings)), *parts)


def portable_key(*parts: object) -> str:
    """Return the key of LLVM code, which depends neither on the processor nor on variables of numba, nor on patches.

    numba's part of compiling depends on the bytecode and the C interface of Python, which patch releases do not change,
    and on what it knows about a minor version of numpy.

    >>> portable_key("learn", "x + x") == key("learn", "x + x")
    False
    """
    return _hash(repr(_portable_versions()), *parts)


def _hash(*parts: object) -> str:
    return hashlib.sha256(repr(tuple(map(str, parts))).encode()).hexdigest()[:40]


def sources(*paths: str | pathlib.Path) -> str:
    """Return a hash of files, and of all modules in folders: code depends on what it calls or inlines.

    >>> len(sources(__file__))
    64
    """
    digest = hashlib.sha256()
    for path in map(pathlib.Path, paths):
        for file in sorted(path.glob("*.py")) if path.is_dir() else [path]:
            text = file.read_bytes()
            digest.update(f"{file.name} {len(text)}\n".encode() + text)
    return digest.hexdigest()


def processor() -> tuple[str, str]:
    """Return name and features of the target processor: the host, unless variables of numba set another."""
    name, features = os.environ.get("NUMBA_CPU_NAME"), os.environ.get("NUMBA_CPU_FEATURES")
    host = _host()
    return host[0] if name is None else name, host[1] if features is None else features


@cache
def numba_folder() -> str:
    """Return the folder of numba without importing it."""
    spec = importlib.util.find_spec("numba")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError("numba")
    return spec.submodule_search_locations[0]


@cache
def _versions() -> tuple[str, ...]:
    import llvmlite

    numba = pathlib.Path(numba_folder(), "_version.py").read_text()
    return numba, llvmlite.__version__, np.__version__, sys.version, platform.system(), platform.machine()


@cache
def _portable_versions() -> tuple[str, ...]:
    from llvmlite import binding

    numba, llvmlite, numpy, _, *system = _versions()
    python = f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}"
    return numba, llvmlite, ".".join(numpy.split(".")[:2]), python, *system, binding.get_process_triple()


@cache
def _host() -> tuple[str, str]:
    from llvmlite import binding

    return binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()


def contents(function: Any) -> str | None:
    """Return all that a function compiled by numba depends on: bytecode and constants of what it can reach.

    None if it reaches anything else than numbers, strings, tuples, arrays, modules, and functions compiled by numba.

    >>> scale = 2.0
    >>> table = {}
    >>> contents(lambda x: scale * x) is None, contents(lambda x: table[x])
    (False, None)
    """
    try:
        return repr(list((_value if hasattr(function, "py_func") else _function)(function, set(), set())))
    except TypeError:
        return None


def _function(function: Any, _: set[str], seen: set[int]) -> Iterator[Any]:
    if not isinstance(function, FunctionType):
        raise TypeError
    if id(function) in seen:
        return
    seen.add(id(function))
    codes, names = [function.__code__], set()
    for code in codes:  # to which it appends those within it
        codes += [each for each in code.co_consts if isinstance(each, CodeType)]
        names |= set(code.co_names)
        constants = [(type(each), each) for each in code.co_consts if not isinstance(each, CodeType)]
        yield code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_exceptiontable, constants
    cells = tuple(cell.cell_contents for cell in function.__closure__ or ())
    yield from _value((function.__defaults__, tuple((function.__kwdefaults__ or {}).items()), cells), names, seen)
    yield from _members(function.__globals__, names, seen)


def _members(namespace: dict[str, Any], names: set[str], seen: set[int]) -> Iterator[Any]:
    for name in sorted(names & namespace.keys()):
        yield name
        yield from _value(namespace[name], names, seen)


def _value(value: Any, names: set[str], seen: set[int]) -> Iterator[Any]:
    """Yield what a value contributes to code; of a module only these names."""
    if isinstance(value, NUMBERS):
        yield type(value).__name__, repr(value)
    elif type(value) is tuple:
        for each in value:
            yield from _value(each, names, seen)
    elif type(value) is np.ndarray and value.dtype.hasobject is False:
        yield value.dtype.str, value.shape, value.tobytes()
    elif hasattr(value, "py_func") and hasattr(value, "targetoptions"):
        yield sorted((option, repr(each)) for option, each in value.targetoptions.items())
        yield from _function(value.py_func, names, seen)
    elif isinstance(value, ModuleType):
        yield value.__name__
        if value.__name__.partition(".")[0] not in LIBRARIES:
            yield from _members(vars(value), names, seen)
    elif (
        callable(value)
        and (getattr(value, "__module__", None) or type(value).__module__).partition(".")[0] in LIBRARIES
    ):
        yield repr(value)  # such as math.exp or np.float32
    else:
        raise TypeError
