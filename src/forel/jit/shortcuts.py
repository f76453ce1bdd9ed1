"""Shortcuts of numba's compiler, taken while forel compiles; they save a third of the time and change no result.

- The type of an operator is resolved once for the same argument types: numba tries dozens of overloads each time.
- A function without a wrapper is called by compiled code only. It is optimised where it is linked, not before, and no
  machine code is generated for it alone.
- The garbage collector waits: it would walk through all objects of the compiler again and again.

These are private parts of numba. They are replaced under numba's lock and restored afterwards; if they are not as
expected, numba compiles as usual.
"""

import gc
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from typing import Any

from numba import types
from numba.core import codegen, cpu, targetconfig
from numba.core.compiler_lock import global_compiler_lock
from numba.core.types.functions import BaseFunction

__all__ = ["shortcuts", "with_shortcuts"]

# What is replaced: the class, the name, and the parameters that it is expected to have.
CALL_TYPE = (BaseFunction, "get_call_type", ("self", "context", "args", "kws"))
OPTIMIZE = (codegen.CPUCodeLibrary, "_optimize_final_module", ("self",))
FINALIZE = (codegen.CPUCodeLibrary, "_finalize_final_module", ("self",))
EXECUTABLE = (cpu.CPUContext, "get_executable", ("self", "library", "fndesc", "env"))
PLACES: tuple[tuple[Any, str, tuple[str, ...]], ...] = (CALL_TYPE, OPTIMIZE, FINALIZE, EXECUTABLE)
SIMPLE: Any = (types.Number, types.Boolean, types.Literal, types.Array)
lock: Any = global_compiler_lock
stack: Any = targetconfig.ConfigStack
known: dict[Any, Any] = {}  # signatures of operators


def with_shortcuts(dispatcher: Any) -> Any:
    """Let a dispatcher compile with shortcuts, and with it all functions that it calls."""
    if hasattr(dispatcher, "compile"):  # not with NUMBA_DISABLE_JIT
        compile_for = dispatcher.compile

        @wraps(compile_for)
        def compiled(signature: Any) -> Any:
            with shortcuts():
                return compile_for(signature)

        dispatcher.compile = compiled
    return dispatcher


@contextmanager
def shortcuts() -> Iterator[None]:
    """Take the shortcuts; nested uses change nothing more."""
    with lock:
        originals = [getattr(owner, name, None) for owner, name, _ in PLACES]
        collecting = gc.isenabled()
        gc.disable()
        try:
            if all(map(_as_expected, PLACES, originals)):
                for (owner, name, _), short in zip(PLACES, _replacements(*originals), strict=True):
                    setattr(owner, name, short)
            yield
        finally:
            for (owner, name, _), original in zip(PLACES, originals, strict=True):
                if original is not None:
                    setattr(owner, name, original)
            if collecting:
                gc.enable()


def _as_expected(place: tuple[Any, str, tuple[str, ...]], original: Any) -> bool:
    """Whether a function of numba has the expected parameters and is not replaced yet."""
    return inspect.isfunction(original) and tuple(inspect.signature(original).parameters) == place[2]


def _for_compiled_code_only() -> bool:
    flags = stack.top_or_none()
    return flags is not None and bool(flags.no_cpython_wrapper)


@cache
def _replacements(
    call_type: Callable[..., Any],
    optimize: Callable[..., Any],
    finalize: Callable[..., Any],
    executable: Callable[..., Any],
) -> tuple[Callable[..., Any], ...]:
    def remembered_call_type(function: Any, context: Any, args: Any, kws: Any) -> Any:
        if kws or not all(isinstance(each, SIMPLE) for each in args):
            return call_type(function, context, args, kws)
        place = (function, context, tuple(args))
        signature = known.get(place)
        if signature is None or signature.args not in function._impl_keys:
            signature = call_type(function, context, args, kws)
            # The implementation of an overload depends on the flags of its caller; that of an operator does not.
            if signature is not None and function._impl_keys.get(signature.args) is function.typing_key:
                known[place] = signature
        return signature

    def optimize_callable(library: Any) -> None:
        if not _for_compiled_code_only():
            optimize(library)

    def finalize_callable(library: Any) -> None:
        if _for_compiled_code_only():
            library._finalize_dynamic_globals()
            library._finalized = True
        else:
            finalize(library)

    def executable_if_callable(context: Any, library: Any, fndesc: Any, env: Any) -> Any:
        if not _for_compiled_code_only():
            return executable(context, library, fndesc, env)
        library._ensure_finalized()
        # numba identifies the function by this object, which has no address, as that of a function without wrapper.
        return cpu._dynfunc.make_function(  # type: ignore[attr-defined]
            fndesc.lookup_module(), fndesc.qualname.split(".")[-1], "", 0, env, (library,)
        )

    return remembered_call_type, optimize_callable, finalize_callable, executable_if_callable
