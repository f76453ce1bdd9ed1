"""Shortcuts in numba's generation of LLVM code.

- A function without a wrapper is called only by compiled code. It is optimized where it is linked, not before, and no
  machine code is generated for it alone, nor a wrapper for C.
- A module is optimized as a whole once it is linked, and not function by function before.
- The size of an LLVM type is computed once, and whether an implementation takes a location.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from llvmlite.ir import types as llvm_types
from numba.core import base, codegen, cpu, targetconfig

from forel.jit import bitcode
from forel.jit.shortcuts.shortcut import Method, Shortcut

__all__ = ["SHORTCUTS"]

library: Any = codegen.CPUCodeLibrary
stack: Any = targetconfig.ConfigStack
sizes: dict[Any, tuple[Any, int]] = {}  # of LLVM types, by their text and the target, which is kept alive


def _without_wrapper() -> bool:
    """Return whether the function that numba compiles now is called only by compiled code."""
    flags = stack.top_or_none()
    return flags is not None and bool(flags.no_cpython_wrapper)


def _optimize_callable(optimize: Callable[..., Any]) -> Callable[..., Any]:
    def optimize_callable(library: Any) -> None:
        if not _without_wrapper():
            bitcode.keep(library)
            optimize(library)

    return optimize_callable


def _finalize_callable(finalize: Callable[..., Any]) -> Callable[..., Any]:
    def finalize_callable(library: Any) -> None:
        if _without_wrapper():
            library._finalize_dynamic_globals()
            library._finalized = True
        else:
            finalize(library)

    return finalize_callable


def _executable_if_callable(executable: Callable[..., Any]) -> Callable[..., Any]:
    def executable_if_callable(context: Any, library: Any, fndesc: Any, env: Any) -> Any:
        if not _without_wrapper():
            return executable(context, library, fndesc, env)
        library._ensure_finalized()
        # numba identifies the function by this object, whose address is 0, as that of any function without a wrapper.
        return cpu._dynfunc.make_function(  # type: ignore[attr-defined]
            fndesc.lookup_module(), fndesc.qualname.split(".")[-1], "", 0, env, (library,)
        )

    return executable_if_callable


def _wrapper_if_callable(wrap: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper_if_callable(context: Any, library: Any, fndesc: Any, env: Any, call_helper: Any) -> None:
        if not _without_wrapper():
            wrap(context, library, fndesc, env, call_helper)

    return wrapper_if_callable


def _no_functions_alone(optimize_functions: Callable[..., Any]) -> Callable[..., Any]:
    def no_functions_alone(library: Any, module: Any) -> None:
        if hasattr(library._codegen, "_data_layout"):
            module.data_layout = library._codegen._data_layout
        else:
            optimize_functions(library, module)

    return no_functions_alone


def _cached_size(size: Callable[..., Any]) -> Callable[..., Any]:
    def cached_size(kind: Any, target: Any, context: Any = None) -> int:
        text = str(kind)
        if context is not None or "%" in text:  # named types depend on the context
            return size(kind, target, context)  # type: ignore[no-any-return]
        key = text, id(target)
        if key not in sizes:
            sizes[key] = target, size(kind, target)
        return sizes[key][1]

    return cached_size


def _cached_location(takes_location: Callable[..., Any]) -> Callable[..., Any]:
    return lru_cache(maxsize=None)(takes_location)


SHORTCUTS = (
    Shortcut(
        (
            Method(library, "_optimize_final_module", ("self",), _optimize_callable),
            Method(library, "_finalize_final_module", ("self",), _finalize_callable),
            Method(cpu.CPUContext, "get_executable", ("self", "library", "fndesc", "env"), _executable_if_callable),
            Method(
                cpu.CPUContext, "create_cfunc_wrapper", ("self", "library", "fndesc", "env", "call_helper"),
                _wrapper_if_callable,
            ),
        ),
        ((library, "_finalize_dynamic_globals"), (library, "_ensure_finalized"), (cpu, "_dynfunc")),
    ),
    Shortcut((Method(library, "_optimize_functions", ("self", "ll_module"), _no_functions_alone),)),
    Shortcut((Method(llvm_types.Type, "get_abi_size", ("self", "target_data", "context"), _cached_size),)),
    Shortcut((Method(base, "_has_loc", ("fn",), _cached_location),)),
)  # fmt: skip
