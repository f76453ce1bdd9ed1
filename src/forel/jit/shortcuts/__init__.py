"""Shortcuts in numba's compiler, applied while forel compiles; they save most of its time and change no result.

``shortcut`` is the mechanism; ``inference``, ``passes`` and ``code`` have the shortcuts of types, of intermediate code
and of LLVM code. These are private parts of numba. They are replaced under numba's lock and restored afterwards; a
shortcut is left out if any part that it replaces or uses is not as expected. Garbage collection is disabled meanwhile:
it would traverse all objects of the compiler again and again.
"""

from forel.jit.shortcuts.apply import SHORTCUTS, shortcuts, with_shortcuts

__all__ = ["SHORTCUTS", "shortcuts", "with_shortcuts"]
