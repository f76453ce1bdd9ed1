"""How scanners are compiled, and where what was compiled is kept for the next process."""

import pathlib

from forel.native.compiling import kept

__all__ = ["fast"]

# All of them: numba looks only at the file a function is in, not at those it calls.
fast = kept("formats", *(str(path) for path in sorted(pathlib.Path(__file__).parent.glob("*.py"))))
