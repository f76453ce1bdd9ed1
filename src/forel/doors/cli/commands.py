"""Commands for typer: options from the fields of a dataclass, and flags of reading."""

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar, get_type_hints

import typer

from forel.doors.cli.reading_flags import ReadingFlags

__all__ = ["command_of", "expand_flags"]

T = TypeVar("T")


def command_of(options: Callable[..., T], run: Callable[[T, frozenset[str]], None]) -> Callable[..., None]:
    """Return a command for typer: ``run`` gets the options, and the names of those given on the command line.

    Parameters
    ----------
    options : a dataclass, whose fields have types and defaults as typer takes them
    run : the function to call; its docstring is the help text
    """

    def command(context: typer.Context, **values: Any) -> None:
        explicit = {name for name in values if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"}
        run(options(**values), frozenset(explicit))

    context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    return _signed(command, run, [context, *_parameters(options)])


def expand_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command in which the parameter ``reading`` is replaced by the flags that the command takes."""
    name = command.__name__
    flags = [
        parameter
        for flag, parameter in zip(fields(ReadingFlags), _parameters(ReadingFlags), strict=True)
        if name in flag.metadata["commands"]
    ]

    def expanded(**values: Any) -> None:
        reading = ReadingFlags(**{flag.name: values.pop(flag.name) for flag in flags})
        command(reading=reading, **values)

    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        parameters += flags if parameter.name == "reading" else [parameter]
    return _signed(expanded, command, parameters)


def _parameters(options: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the fields of a dataclass as parameters."""
    kind, hints = inspect.Parameter.KEYWORD_ONLY, get_type_hints(options, include_extras=True)
    return [
        inspect.Parameter(field.name, kind, default=field.default, annotation=hints[field.name])
        for field in fields(options)  # type: ignore[arg-type]
    ]


def _signed(
    command: Callable[..., None], original: Callable[..., None], parameters: list[inspect.Parameter]
) -> Callable[..., None]:
    """Give a command a signature, and the name and help text of the original."""
    keyword = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    command.__signature__ = inspect.Signature(keyword)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in keyword}
    command.__name__, command.__doc__ = original.__name__, original.__doc__
    return command
