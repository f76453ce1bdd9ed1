"""Shortcuts in numba's type inference.

- The signature of an operator is cached by argument types: numba tries dozens of overloads each time.
- Registries of types and implementations are loaded only if anything was registered since the last time.
- scipy, which numba imports to see whether there is a BLAS, is imported by the first function that uses one.
- Error messages of overloads that do not match are not coloured.
"""

import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any
from weakref import WeakKeyDictionary

from numba import types
from numba.core import base, errors, imputils
from numba.core.types.functions import BaseFunction
from numba.np import linalg

from forel.jit.shortcuts.shortcut import Method, Shortcut

__all__ = ["SHORTCUTS"]

SIMPLE: Any = (types.Number, types.Boolean, types.Literal, types.Array)
signatures: dict[Any, Any] = {}  # of operators, by function, context and argument types
registered: WeakKeyDictionary[Any, int] = WeakKeyDictionary()  # number of registrations by context


def _cached_call_type(call_type: Callable[..., Any]) -> Callable[..., Any]:
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

    return cached_call_type


def _registrations(context: Any) -> int:
    """Return the number of registrations in all registries of a context and of its typing context."""
    registries = (*context._registries.items(), *context.typing_context._registries.items())
    return sum(len(getattr(registry, item)) for registry, loader in registries for item in loader.registry_items)


def _refresh_if_registered(refresh: Callable[..., Any]) -> Callable[..., Any]:
    def refresh_if_registered(context: Any) -> None:
        if registered.get(context) != _registrations(context):
            refresh(context)
            registered[context] = _registrations(context)

    return refresh_if_registered


def _blas_when_used(ensure: Callable[..., Any]) -> Callable[..., Any]:
    def ensure_when_used() -> None:
        if hasattr(sys.modules.get("numba.np.arraymath"), "_HAVE_BLAS") or find_spec("scipy") is None:
            ensure()

    return ensure_when_used


def _without_colour(markup: Callable[..., Any]) -> Callable[..., Any]:
    return lambda scheme, message, *style: message


SHORTCUTS: tuple[Shortcut, ...] = (
    Shortcut((Method(BaseFunction, "get_call_type", ("self", "context", "args", "kws"), _cached_call_type),)),
    Shortcut((Method(linalg, "ensure_blas", (), _blas_when_used),)),
    Shortcut(
        (Method(base.BaseContext, "refresh", ("self",), _refresh_if_registered),),
        ((imputils.RegistryLoader, "registry_items"),),
    ),
)
if hasattr(errors, "HighlightColorScheme"):  # if colorama is installed
    scheme = errors.HighlightColorScheme
    SHORTCUTS += (Shortcut((Method(scheme, "_markup", ("self", "msg", "color", "style"), _without_colour),)),)
