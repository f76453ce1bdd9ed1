"""Compilation by numba, and a cache of compiled code that is executed only if this user wrote it.

Importing numba and reading a function from numba's cache takes half a second, most of a short run; linking the same
machine code takes five milliseconds. ``cache`` has the folder of code and the files in it, ``key`` names a file by
everything that its code depends on, ``linking`` turns machine code into a function, ``shipped`` has LLVM code of a
wheel, ``function`` links, or compiles by numba and caches, ``specialize`` copies modules with other constants, and
``private`` has the private names of numba. Code is compiled again if its file is missing, damaged, or owned by another
user.
"""

from forel.jit.function import CachedFunction, compile_seconds, compiled_function, disabled, njit, uncompiled
from forel.jit.key import sources

__all__ = ["CachedFunction", "compile_seconds", "compiled_function", "disabled", "njit", "sources", "uncompiled"]
