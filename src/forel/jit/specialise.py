"""Copies of modules with other constants, from which numba compiles specialised kernels.

A kernel is written as ordinary Python modules that import everything that depends on settings from one *reference*
module. A copy executes the same source with other values for these names. Modules of one copy import each other.
"""

import ast
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from types import ModuleType
from typing import Any

__all__ = ["specialise"]


def specialise(
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

    >>> copy = specialise(["forel.jit.eviction"], "contextlib", {"suppress": None})["forel.jit.eviction"]
    >>> copy.suppress is None, copy.TEMPORARY
    (True, '.tmp')
    """
    copies: dict[str, ModuleType] = {}
    for original in modules:
        tree, path = _parsed(original)
        copy = ModuleType(original if name is None else f"{name}.{original.rpartition('.')[2]}")
        statements = []
        for node in tree.body:
            home = node.module if isinstance(node, ast.ImportFrom) else None
            home = None if home is None else (aliases or {}).get(home, home)
            if home == reference and isinstance(node, ast.ImportFrom):
                copy.__dict__.update({each.asname or each.name: bindings[each.name] for each in node.names})
            elif home in copies and isinstance(node, ast.ImportFrom):
                copy.__dict__.update(
                    {each.asname or each.name: getattr(copies[home], each.name) for each in node.names}
                )
            else:
                statements.append(node)
        if name is not None:
            sys.modules[copy.__name__] = copy
        copy.__file__ = path
        exec(compile(ast.Module(statements, []), path, "exec"), copy.__dict__)
        copies[original] = copy
    return copies


@cache
def _parsed(module: str) -> tuple[ast.Module, str]:
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise ImportError(module)
    with open(spec.origin, encoding="utf-8") as file:
        return ast.parse(file.read(), spec.origin), spec.origin
