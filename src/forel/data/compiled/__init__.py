"""Compiled scanners: from bytes to arrays, by numba, without the global interpreter lock.

``cache`` compiles; ``words`` loads eight bytes at once; ``numbers`` parses numbers; ``hashing`` hashes and records
names; ``merge`` sums equal slots of a row, and finds the smallest and largest values of columns; ``layout`` has
constants; ``vw`` and ``svmlight`` parse lines; ``csv_rows`` parses CSV; ``json_rows`` parses JSON lines; ``text``
splits text into words; ``crosses`` multiplies features. Arguments are not checked: ``forel.data.parsers`` ends the
text with a line end and padding, and allocates arrays that are long enough.

:func:`scanner` returns a compiled function by name, for callers that need not import numba.
"""

from forel.jit import CachedFunction, compiled_function

__all__ = ["scanner"]


def scanner(module: str, name: str) -> CachedFunction:
    """Return a function of a module of this package.

    >>> scanner("merge", "merge_rows").name
    'merge.merge_rows'
    """
    return compiled_function(f"forel.data.compiled.{module}", name)
