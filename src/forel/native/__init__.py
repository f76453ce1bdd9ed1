"""Compiled functions of an earlier process, called without importing the compiler.

Importing numba and reading a function from its cache takes half a second, which is most of a short run; linking the
same machine code takes five milliseconds. ``function`` decides, ``keeping`` has the files, ``linking`` makes a function
of the bytes. Where anything is not as expected, numba compiles as it always does.
"""

from forel.native.function import Native
from forel.native.keeping import home

__all__ = ["Native", "home"]
