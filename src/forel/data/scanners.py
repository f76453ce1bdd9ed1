"""The compiled scanners by name, for callers that need not import numba."""

from forel.jit import CachedFunction, compiled_function

__all__ = ["scanner"]


def scanner(module: str, name: str) -> CachedFunction:
    """Return a function of a module of ``forel.data.compiled``.

    >>> scanner("merge", "merge_rows").name
    'merge.merge_rows'
    """
    return compiled_function(f"forel.data.compiled.{module}", name)
