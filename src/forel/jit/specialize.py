"""Copies of modules with other constants, from which numba compiles specialized kernels.

A kernel is written as ordinary Python modules that import everything that depends on settings from one *reference*
module. A copy executes the same source with other values for these names. Modules of one copy import each other.
"""

import ast
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from types import CodeType, ModuleType
from typing import Any

__all__ = ["specialize"]


def specialize(
    modules: Sequence[str],
    reference: str,
    bindings: Mapping[str, Any],
    aliases: Mapping[str, str] | None = None,
    name: str | None = None,
) -> dict[str, ModuleType]:
    """Return copies of modules, by their names, in which names of the reference module have other values.

    Parameters
    ----------
    modules : names of modules, each after those that it imports
    reference : name of the module whose names are replaced
    bindings : the new values of its names
    aliases : modules to import from in place of others
    name : prefix under which the copies are registered in ``sys.modules``, as numba's cache requires; None for none

    >>> names = {"suppress": None, "contextmanager": id}
    >>> copy = specialize(["forel.jit.cache"], "contextlib", names)["forel.jit.cache"]
    >>> copy.suppress is None, copy.PATIENCE
    (True, 60.0)
    """
    copies: dict[str, ModuleType] = {}
    for original in modules:
        homes: dict[str, Mapping[str, Any]] = {
            reference: bindings,
            **{each: vars(copy) for each, copy in copies.items()},
        }
        homes |= {each: homes[other] for each, other in (aliases or {}).items() if other in homes}
        imports, code, path = _split(original, frozenset(homes))
        copy = ModuleType(original if name is None else f"{name}.{original.rpartition('.')[2]}")
        copy.__dict__.update({own: homes[home][imported] for home, imported, own in imports})
        if name is not None:
            sys.modules[copy.__name__] = copy
        copy.__file__ = path
        exec(code, copy.__dict__)
        copies[original] = copy
    return copies


@cache
def _split(module: str, homes: frozenset[str]) -> tuple[list[tuple[str, str, str]], CodeType, str]:
    """Return the imports of a module from ``homes`` (module, name, name here), its other code, and its path."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise ImportError(module)
    with open(spec.origin, encoding="utf-8") as file:
        tree = ast.parse(file.read(), spec.origin)
    imports, statements = [], []
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module in homes:
            imports += [(node.module, each.name, each.asname or each.name) for each in node.names]
        else:
            statements.append(node)
    return imports, compile(ast.Module(statements, []), spec.origin, "exec"), spec.origin
