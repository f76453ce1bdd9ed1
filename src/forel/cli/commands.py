"""Commands for typer: options from the fields of a dataclass, and flags of reading."""

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from forel.cli.options import ReadingFlags, option_of

__all__ = ["command_of", "expand_flags", "shorten_help"]

T = TypeVar("T")
ALL_OPTIONS = "forel.all_options"


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


def expand_flags(command: Callable[..., None], name: str) -> Callable[..., None]:
    """Return a command whose parameter ``reading``, if any, is replaced by the flags of the command ``name``."""
    own = inspect.signature(command).parameters
    if "reading" not in own:
        return command
    flags = [
        parameter
        for flag, parameter in zip(fields(ReadingFlags), _parameters(ReadingFlags), strict=True)
        if name in flag.metadata["option"].commands
    ]

    def expanded(**values: Any) -> None:
        reading = ReadingFlags(**{flag.name: values.pop(flag.name) for flag in flags})
        command(reading=reading, **values)

    parameters: list[inspect.Parameter] = []
    for parameter in own.values():
        parameters += flags if parameter.name == "reading" else [parameter]
    return _signed(expanded, command, parameters)


def shorten_help(command: Any, common: frozenset[str] | None) -> Any:
    """Let ``--help`` show only the ``common`` options of a command, and ``--help-all`` all; unchanged for None."""
    if common is None:
        return command
    format_help = command.format_help

    def format_common(context: Any, formatter: Any) -> None:
        shown = {parameter: parameter.hidden for parameter in command.params if hasattr(parameter, "hidden")}
        for parameter in shown:
            parameter.hidden = shown[parameter] or not (parameter.name in common or context.meta.get(ALL_OPTIONS))
        format_help(context, formatter)
        for parameter, hidden in shown.items():
            parameter.hidden = hidden

    def show_all(context: Any, option: Any, wanted: bool) -> None:
        if wanted and not context.resilient_parsing:
            context.meta[ALL_OPTIONS] = True
            typer.echo(context.get_help())
            raise typer.Exit

    def help_all(
        help_all: Annotated[bool, typer.Option("--help-all", help="Show all options and exit.")] = False,
    ) -> None:
        pass

    alone = typer.Typer(add_completion=False)
    alone.command()(help_all)
    option = next(parameter for parameter in typer.main.get_command(alone).params if parameter.name == "help_all")
    option.is_eager, option.expose_value, option.callback = True, False, show_all
    command.params.append(option)
    command.format_help = format_common
    return command


def _parameters(options: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the fields of a dataclass as parameters, with their options."""
    kind, hints = inspect.Parameter.KEYWORD_ONLY, get_type_hints(options, include_extras=True)
    parameters = []
    for field in fields(options):  # type: ignore[arg-type]
        annotation = hints[field.name]
        if (found := option_of(field)) is not None:
            shown = field.default is not None and not isinstance(field.default, bool)
            option = typer.Option(*found.names, help=found.help, rich_help_panel=found.panel, show_default=shown)
            annotation = Annotated[annotation, option]
        parameters.append(inspect.Parameter(field.name, kind, default=field.default, annotation=annotation))
    return parameters


def _signed(
    command: Callable[..., None], original: Callable[..., None], parameters: list[inspect.Parameter]
) -> Callable[..., None]:
    """Give a command a signature, and the name and help text of the original."""
    keyword = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    command.__signature__ = inspect.Signature(keyword)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in keyword}
    command.__name__, command.__doc__ = original.__name__, original.__doc__
    return command
