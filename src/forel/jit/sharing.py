"""Functions that copies of a module have in common: compiled once in a process, and called by all of them.

Two copies of a function are the same if their code is, the options they are compiled with, and everything they find
under the names that they use: constants of the same type and value, and functions that are the same in turn.
"""

from collections.abc import MutableMapping
from types import CodeType, FunctionType
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

__all__ = ["share"]

# numba's functions by what they are compiled from. Keys contain ids of objects that the function's module refers to,
# and are removed with the function.
known: WeakValueDictionary[Any, Any] = WeakValueDictionary()


def share(names: MutableMapping[str, Any]) -> None:
    """Replace numba's functions among the names of a module by equal ones of other copies of it.

    Functions with a code cache are kept: they are the entries from Python, and their files depend on their module.
    """
    own = {name for name, value in names.items() if _shareable(value) and value.py_func.__globals__ is names}

    def visit(name: str) -> None:
        own.remove(name)
        function = names[name]
        used = sorted(_used(function.py_func.__code__).intersection(names))
        for each in used:  # a function is equal to another only if those that it calls are
            if each in own:
                visit(each)
        options = tuple(sorted((option, repr(value)) for option, value in function.targetoptions.items()))
        values = tuple((each, _identity(names[each])) for each in used)
        names[name] = known.setdefault((function.py_func.__code__, options, values), function)

    while own:
        visit(min(own))


def _shareable(value: Any) -> bool:
    function = getattr(value, "py_func", None)
    plain = isinstance(function, FunctionType) and not function.__closure__ and not function.__defaults__
    return plain and type(getattr(value, "_cache", None)).__name__ == "NullCache"  # without importing numba


def _used(code: CodeType) -> set[str]:
    """Return the names that code looks up, those of functions within it included."""
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    return set(code.co_names).union(*map(_used, inner))


def _identity(value: Any) -> Any:
    """Return what two values have in common only if numba compiles the same code for both."""
    if isinstance(value, tuple):
        return type(value), *map(_identity, value)
    if isinstance(value, bool | int | float | str | np.generic):
        return type(value), repr(value)  # 1 == 1.0, and 0.0 == -0.0
    return id(value)
