"""The compiled scanners by name, for callers that should not have to import numba."""

import importlib
import pathlib
from functools import cache

from forel.jit import CachedFunction, sources

__all__ = ["scanner"]


@cache
def scanner(module: str, name: str) -> CachedFunction:
    """Return a function of ``forel.data.compiled``; its module is imported where no machine code was kept.

    >>> scanner("merge", "merge_rows").name
    'merge.merge_rows'
    """
    home = f"forel.data.compiled.{module}"
    return CachedFunction(f"{module}.{name}", _sources(), lambda: getattr(importlib.import_module(home), name))


@cache
def _sources() -> str:
    return sources(pathlib.Path(__file__).parent / "compiled")
