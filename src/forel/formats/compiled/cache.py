"""How scanners are compiled, with the code cache."""

import pathlib

from forel.jit.compiling import cached_njit

__all__ = ["fast"]

# All of them: a scanner's code changes with the scanners that it calls.
fast = cached_njit(pathlib.Path(__file__).parent)
