"""Shortcuts in numba's compiler, applied while forel compiles; they save nearly half of the time and change no result.

- The signature of an operator is cached by argument types: numba tries dozens of overloads each time.
- A function without a wrapper is called only by compiled code. It is optimized where it is linked, not before, and no
  machine code is generated for it alone.
- A module is optimized as a whole once it is linked, and not function by function before.
- The intermediate code of a function that is inlined is not copied: numba has just made it for this one call.
- Garbage collection is disabled: it would traverse all objects of the compiler again and again.

These are private parts of numba. They are replaced under numba's lock and restored afterwards; if any of them, or of
those that the replacements use, is not as expected, numba compiles as usual.
"""

import copy
import gc
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from types import SimpleNamespace
from typing import Any

from numba import types
from numba.core import codegen, cpu, errors, inline_closurecall, postproc, targetconfig, transforms
from numba.core.compiler_lock import global_compiler_lock
from numba.core.types.functions import BaseFunction

from forel.jit import bitcode

__all__ = ["shortcuts", "with_shortcuts"]

# Replaced methods: the class, the name, and the expected parameters.
CALL_TYPE = (BaseFunction, "get_call_type", ("self", "context", "args", "kws"))
OPTIMIZE = (codegen.CPUCodeLibrary, "_optimize_final_module", ("self",))
FINALIZE = (codegen.CPUCodeLibrary, "_finalize_final_module", ("self",))
EXECUTABLE = (cpu.CPUContext, "get_executable", ("self", "library", "fndesc", "env"))
FUNCTIONS = (codegen.CPUCodeLibrary, "_optimize_functions", ("self", "ll_module"))
LIFETIMES = (postproc.PostProcessor, "run", ("self", "emit_dels", "extend_lifetimes"))
INLINE = (
    inline_closurecall.InlineWorker, "inline_function", ("self", "caller_ir", "block", "i", "function", "arg_typs"),
)  # fmt: skip
REPLACED: tuple[tuple[Any, str, tuple[str, ...]], ...] = (
    CALL_TYPE, OPTIMIZE, FINALIZE, EXECUTABLE, FUNCTIONS, LIFETIMES, INLINE,
)  # fmt: skip
if hasattr(errors, "HighlightColorScheme"):  # if colorama is installed
    REPLACED += ((errors.HighlightColorScheme, "_markup", ("self", "msg", "color", "style")),)
# Other private parts that the replacements use.
REQUIRED: tuple[tuple[Any, str], ...] = (
    (codegen.CPUCodeLibrary, "_finalize_dynamic_globals"),
    (codegen.CPUCodeLibrary, "_ensure_finalized"),
    (cpu, "_dynfunc"),
    (inline_closurecall, "copy"),
    (inline_closurecall.InlineWorker, "inline_ir"),
    (inline_closurecall.InlineWorker, "run_untyped_passes"),
    (postproc, "VariableLifetime"),
    (transforms, "canonicalize_cfg"),
)
SIMPLE: Any = (types.Number, types.Boolean, types.Literal, types.Array)
lock: Any = global_compiler_lock
canonicalize: Any = getattr(transforms, "canonicalize_cfg", None)
lifetime: Any = getattr(postproc, "VariableLifetime", None)
stack: Any = targetconfig.ConfigStack
inlining: Any = inline_closurecall
NO_COPIES = SimpleNamespace(copy=copy.copy, deepcopy=lambda block: block)
signatures: dict[Any, Any] = {}  # of operators, by function, context and argument types


def with_shortcuts(dispatcher: Any) -> Any:
    """Make a dispatcher compile itself, and all functions that it calls, with shortcuts."""
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
    """Apply the shortcuts during the block; nested uses have no further effect."""
    with lock:
        originals = [getattr(owner, name, None) for owner, name, _ in REPLACED]
        collecting = gc.isenabled()
        gc.disable()
        try:
            if all(map(_as_expected, REPLACED, originals)) and all(hasattr(*part) for part in REQUIRED):
                for (owner, name, _), replacement in zip(REPLACED, _replacements(*originals), strict=True):
                    setattr(owner, name, replacement)
            yield
        finally:
            for (owner, name, _), original in zip(REPLACED, originals, strict=True):
                if original is not None:
                    setattr(owner, name, original)
            if collecting:
                gc.enable()


def _as_expected(method: tuple[Any, str, tuple[str, ...]], original: Any) -> bool:
    """Return whether a method of numba has the expected parameters and is not replaced yet."""
    return inspect.isfunction(original) and tuple(inspect.signature(original).parameters) == method[2]


def _without_wrapper() -> bool:
    """Return whether the function that numba compiles now is called only by compiled code."""
    flags = stack.top_or_none()
    return flags is not None and bool(flags.no_cpython_wrapper)


@cache
def _replacements(
    call_type: Callable[..., Any],
    optimize: Callable[..., Any],
    finalize: Callable[..., Any],
    executable: Callable[..., Any],
    optimize_functions: Callable[..., Any],
    post_process: Callable[..., Any],
    inline: Callable[..., Any],
    *markup: Callable[..., Any],
) -> tuple[Callable[..., Any], ...]:
    def cached_call_type(function: Any, context: Any, args: Any, kws: Any) -> Any:
        if kws or not all(isinstance(each, SIMPLE) for each in args):
            return call_type(function, context, args, kws)
        key = (function, context, tuple(args))
        signature = signatures.get(key)
        if signature is None or signature.args not in function._impl_keys:
            signature = call_type(function, context, args, kws)
            # The implementation of an overload depends on the flags of its caller; that of an operator does not.
            if signature is not None and function._impl_keys.get(signature.args) is function.typing_key:
                signatures[key] = signature
        return signature

    def optimize_callable(library: Any) -> None:
        if not _without_wrapper():
            bitcode.keep(library)
            optimize(library)

    def finalize_callable(library: Any) -> None:
        if _without_wrapper():
            library._finalize_dynamic_globals()
            library._finalized = True
        else:
            finalize(library)

    def executable_if_callable(context: Any, library: Any, fndesc: Any, env: Any) -> Any:
        if not _without_wrapper():
            return executable(context, library, fndesc, env)
        library._ensure_finalized()
        # numba identifies the function by this object, whose address is 0, as that of any function without a wrapper.
        return cpu._dynfunc.make_function(  # type: ignore[attr-defined]
            fndesc.lookup_module(), fndesc.qualname.split(".")[-1], "", 0, env, (library,)
        )

    def no_functions_alone(library: Any, module: Any) -> None:
        if hasattr(library._codegen, "_data_layout"):
            module.data_layout = library._codegen._data_layout
        else:
            optimize_functions(library, module)

    def lifetimes_where_needed(processor: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
        function = processor.func_ir
        if emit_dels or function.is_generator:
            post_process(processor, emit_dels, extend_lifetimes)
            return
        function.blocks = canonicalize(function.blocks)
        function.variable_lifetime = lifetime(function.blocks)  # computed when it is used
        function.generator_info = None

    def inline_without_copies(worker: Any, caller: Any, block: Any, i: int, function: Any, args: Any = None) -> Any:
        code, copying = worker.run_untyped_passes(function), inlining.copy
        inlining.copy = NO_COPIES
        try:
            return worker.inline_ir(caller, block, i, code, function.__code__.co_freevars, arg_typs=args)
        finally:
            inlining.copy = copying

    def without_colour(scheme: Any, message: str, *style: Any) -> str:
        return message

    return (
        cached_call_type, optimize_callable, finalize_callable, executable_if_callable, no_functions_alone,
        lifetimes_where_needed, inline_without_copies, *(without_colour for _ in markup),
    )  # fmt: skip
