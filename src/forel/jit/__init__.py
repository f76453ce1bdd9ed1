"""Compilation by numba, and a cache of compiled code that is executed only if this user wrote it.

Importing numba and reading a function from numba's cache takes half a second, most of a short run; linking the same
machine code takes five milliseconds. ``folder`` finds the cache folder and checks its owner, ``files`` signs, verifies
and evicts its files, ``lock`` lets one process compile while others wait, ``key`` names a file by everything that its
code depends on. ``compiling`` makes numba use this cache, ``linking`` turns machine code into a function, ``shipped``
has LLVM code of a wheel, ``function`` chooses between linking and compiling, ``specialize`` copies modules with other
constants. ``private`` has the private names of numba, ``reachable`` what a
user's function depends on. Code is compiled again if its file is missing, damaged, or owned
by another user.
"""

from forel.jit.function import CachedFunction, compile_seconds, compiled_function, disabled, uncompiled
from forel.jit.key import sources

__all__ = ["CachedFunction", "compile_seconds", "compiled_function", "disabled", "sources", "uncompiled"]
