"""Shortcuts in what numba records about its own work.

- Events without listeners are not created, and the time of compiling is not measured.
- The values of a function's options are read from their dictionary.
"""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from numba.core import event, targetconfig

from forel.jit.shortcuts.shortcut import Method, Shortcut

__all__ = ["SHORTCUTS"]

config: Any = targetconfig.TargetConfig
listeners: Any = getattr(event, "_registered", {})


def _if_heard(trigger: Callable[..., Any]) -> Callable[..., Any]:
    def trigger_if_heard(kind: str, data: Any = None, **details: Any) -> None:
        if listeners.get(kind):
            trigger(kind, data, **details)

    return trigger_if_heard


def _no_timer(install: Callable[..., Any]) -> Callable[..., Any]:
    return lambda kind, callback: nullcontext()


def _values_of_options(values: Callable[..., Any]) -> Callable[..., Any]:
    def values_of_options(own: Any) -> dict[str, Any]:
        given = own._values
        return {name: given.get(name, option.default) for name, option in own.options.items()}

    return values_of_options


SHORTCUTS = (
    Shortcut(
        (
            Method(event, "start_event", ("kind", "data"), _if_heard),
            Method(event, "end_event", ("kind", "data", "exc_details"), _if_heard),
            Method(event, "install_timer", ("kind", "callback"), _no_timer),
        ),
        ((event, "_registered"),),
    ),
    Shortcut((Method(config, "values", ("self",), _values_of_options),), ((config, "options"),)),
)
