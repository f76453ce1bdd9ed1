"""Replacing parts of numba while it compiles, and restoring them."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from numba.core.compiler_lock import global_compiler_lock

from forel.jit.shortcuts import bookkeeping, code, inference, passes

__all__ = ["SHORTCUTS", "shortcuts", "with_shortcuts"]

SHORTCUTS = (*inference.SHORTCUTS, *passes.SHORTCUTS, *code.SHORTCUTS, *bookkeeping.SHORTCUTS)
lock: Any = global_compiler_lock
COLLECTED = 16  # garbage collection follows every 16th function
active, compiled = False, 0


def with_shortcuts(dispatcher: Any) -> Any:
    """Make a dispatcher compile itself, and all functions that it calls, with shortcuts."""
    if hasattr(dispatcher, "compile"):  # not with NUMBA_DISABLE_JIT
        compile_for = dispatcher.compile

        @wraps(compile_for)
        def compile_with_shortcuts(signature: Any) -> Any:
            with shortcuts():
                return compile_for(signature)

        dispatcher.compile = compile_with_shortcuts
    return dispatcher


@contextmanager
def shortcuts() -> Iterator[None]:
    """Apply the shortcuts during the block; nested uses have no further effect."""
    global active, compiled
    with lock:
        if active:
            yield
            return
        replaced = [(method, method.original) for each in SHORTCUTS if each.usable for method in each.methods]
        collecting, active = gc.isenabled(), True
        gc.disable()
        try:
            for method, original in replaced:
                setattr(method.owner, method.name, method.replacement(original))
            yield
        finally:
            for method, original in replaced:
                setattr(method.owner, method.name, original)
            active = False
            compiled += 1
            if collecting:
                if compiled % COLLECTED and not gc.get_freeze_count():  # objects that the caller froze stay frozen
                    gc.freeze()  # both together move all objects to the oldest generation without traversing them
                    gc.unfreeze()
                gc.enable()
