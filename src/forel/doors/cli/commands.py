"""Commands whose options are the fields of a dataclass."""

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar, get_type_hints

import typer

__all__ = ["command_of"]

T = TypeVar("T")


def command_of(options: Callable[..., T], run: Callable[[T, frozenset[str]], None]) -> Callable[..., None]:
    """Return a command for typer: ``run`` gets the options, and the names of those given on the command line.

    Parameters
    ----------
    options : a dataclass, whose fields have types and defaults as typer takes them
    run : the function to call; its docstring is the help text
    """

    def command(context: typer.Context, **values: Any) -> None:
        given = {name for name in values if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"}
        run(options(**values), frozenset(given))

    kind, hints = inspect.Parameter.KEYWORD_ONLY, get_type_hints(options, include_extras=True)
    parameters = [
        inspect.Parameter(field.name, kind, default=field.default, annotation=hints[field.name])
        for field in fields(options)  # type: ignore[arg-type]
    ]
    context = inspect.Parameter("context", kind, annotation=typer.Context)
    command.__signature__ = inspect.Signature([context, *parameters])  # type: ignore[attr-defined]
    command.__annotations__ = {"context": typer.Context, **hints}
    command.__name__, command.__doc__ = run.__name__, run.__doc__
    return command
