"""Compiling by numba, and a cache of compiled code that is executed only if this user wrote it.

Importing numba and reading a function from a cache of its own takes half a second, which is most of a short run;
linking the same machine code takes five milliseconds. ``folder`` finds the cache folder and checks its owner, ``files``
signs and verifies what is in it, ``eviction`` limits its size, ``key`` names a file by everything that its code depends
on. ``compiling`` is numba with this cache, ``linking`` makes a function of machine code, ``function`` chooses between
both. Whatever is missing, damaged, foreign or unexpected is compiled anew.
"""

from forel.jit.disabled import disabled
from forel.jit.function import CachedFunction
from forel.jit.key import sources

__all__ = ["CachedFunction", "disabled", "sources"]
