"""Compilation by numba, and a cache of compiled code that is executed only if this user wrote it.

Importing numba and reading a function from numba's cache takes half a second, most of a short run; linking the same
machine code takes five milliseconds. ``folder`` finds the cache folder and checks its owner, ``files`` signs and
verifies its files, ``eviction`` limits its size, ``key`` names a file by everything that its code depends on.
``compiling`` makes numba use this cache, ``shortcuts`` makes numba faster, ``linking`` turns machine code into a
function, ``function`` chooses between linking and compiling, ``deferred`` compiles only for enough work, ``specialize``
copies modules with other constants, ``sharing`` compiles functions that copies have in common once. ``bitcode`` and
``shipped`` replace numba where its part was done on another processor or when a wheel was built. Code is compiled again
if its file is missing, damaged, or owned by another user.
"""

from forel.jit.disabled import disabled, uncompiled
from forel.jit.function import CachedFunction, compile_seconds, compiled_function
from forel.jit.key import sources

__all__ = ["CachedFunction", "compile_seconds", "compiled_function", "disabled", "sources", "uncompiled"]
