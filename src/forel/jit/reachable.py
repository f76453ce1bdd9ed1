"""What the code of a user's function depends on: a key for the code cache, or none if that cannot be told."""

from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

__all__ = ["contents"]

NUMBERS = (bool, int, float, complex, str, bytes, np.generic, type(None))
LIBRARIES = frozenset({"builtins", "cmath", "math", "numba", "numpy"})  # whose versions are part of every key


def contents(function: Any) -> str | None:
    """Return all that a function compiled by numba depends on: bytecode and constants of what it can reach.

    None if it reaches anything else than numbers, strings, tuples, arrays, modules, and functions compiled by numba.

    >>> scale = 2.0
    >>> table = {}
    >>> contents(lambda x: scale * x) is None, contents(lambda x: table[x])
    (False, None)
    """
    try:
        return repr(list((_value if hasattr(function, "py_func") else _function)(function, frozenset(), set())))
    except _UnknownError:
        return None


class _UnknownError(Exception):
    """A value of which numba may compile anything."""


def _function(function: Any, _: frozenset[str], seen: set[int]) -> Iterator[Any]:
    if not isinstance(function, FunctionType):
        raise _UnknownError
    if id(function) in seen:
        return
    seen.add(id(function))
    names = _names(function.__code__)
    yield from _code(function.__code__)
    yield from _value((function.__defaults__, tuple((function.__kwdefaults__ or {}).items())), names, seen)
    for cell in function.__closure__ or ():
        yield from _value(cell.cell_contents, names, seen)
    for name in sorted(names & function.__globals__.keys()):
        yield name
        yield from _value(function.__globals__[name], names, seen)


def _code(code: CodeType) -> Iterator[Any]:
    yield code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_exceptiontable
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _code(each)
        else:
            yield type(each).__name__, repr(each)


def _names(code: CodeType) -> frozenset[str]:
    """Return the names of globals and attributes in code, and in functions within it."""
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    return frozenset(code.co_names).union(*map(_names, inner))


def _value(value: Any, names: frozenset[str], seen: set[int]) -> Iterator[Any]:
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
            for name in sorted(names & vars(value).keys()):
                yield name
                yield from _value(vars(value)[name], names, seen)
    elif _of_library(value):
        yield repr(value)
    else:
        raise _UnknownError


def _of_library(value: Any) -> bool:
    """Return whether a value is a function or a type of a library, such as ``math.exp`` or ``np.float32``."""
    module = getattr(value, "__module__", None) or type(value).__module__
    return callable(value) and str(module).partition(".")[0] in LIBRARIES
