"""Commands for typer: options from the fields of a dataclass, and flags of reading."""

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar, get_type_hints

import typer

from forel.cli.reading_flags import ReadingFlags

__all__ = ["command_of", "expand_flags"]

T = TypeVar("T")


def command_of(options: Callable[..., T]) -> Callable[[Callable[[T, frozenset[str]], None]], Callable[..., None]]:
    """Decorate a function of options, and of the names of those given on the command line, as a command for typer.

    Parameters
    ----------
    options : a dataclass, whose fields have types and defaults as typer takes them
    """
    context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)

    def decorate(run: Callable[[T, frozenset[str]], None]) -> Callable[..., None]:
        def command(context: typer.Context, **values: Any) -> None:
            source = {name: getattr(context.get_parameter_source(name), "name", "") for name in values}
            run(options(**values), frozenset(name for name in values if source[name] == "COMMANDLINE"))

        return _signed(command, run, [context, *_parameters(options)])

    return decorate


def expand_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command whose parameter ``reading``, if any, is replaced by the flags that the command takes."""
    own, name = inspect.signature(command).parameters, command.__name__
    if "reading" not in own:
        return command
    flags = [
        parameter
        for flag, parameter in zip(fields(ReadingFlags), _parameters(ReadingFlags), strict=True)
        if name in flag.metadata["commands"]
    ]

    def expanded(**values: Any) -> None:
        reading = ReadingFlags(**{flag.name: values.pop(flag.name) for flag in flags})
        command(reading=reading, **values)

    parameters: list[inspect.Parameter] = []
    for parameter in own.values():
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
