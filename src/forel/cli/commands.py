"""Commands for typer from plain functions: options from their parameters and docstrings, and help that fits a screen.

The docstring of a command ends with sections of parameters, whose titles are those of ``--help``:

    Output
    ------
    model (-f) : Write the model to this file.

Parameters of the section ``Arguments`` are arguments, all others options. A name in parentheses that begins with two
hyphens replaces the name of the parameter, others are added, and one in capitals is how help shows an argument. A
parameter whose type is a dataclass stands for the fields of the dataclass.
"""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import is_dataclass
from typing import Annotated, Any, NamedTuple, get_type_hints

import typer
from typer.core import TyperCommand, TyperOption

from forel.cli.options import FLAGS, ReadingFlags

__all__ = ["Command", "command_of", "documented"]

ARGUMENTS, OTHERS = "Arguments", "Options"  # sections; options of the second are shown last
MORE = "More "  # begins the title of options that --help-all alone shows
WIDEST = 25  # names of options on a line with their help
FIRST_CLAUSE = re.compile(r"[;.](?= |$)")
HEADING = re.compile(r"^(.+)\n-+$", re.MULTILINE)
ENTRY = re.compile(r"^(\w+)(?: \((.+?)\))? : ((?:.|\n(?= ))+)", re.MULTILINE)


class Command(TyperCommand):
    """A command whose ``--help`` has a line for each common option; ``--help-all`` shows all options and examples."""

    show_all = False

    def add_help_all(self) -> None:
        """Add the option ``--help-all``, if there are options that ``--help`` leaves out."""
        if any(map(_is_rare, self.params)):
            self.params.append(
                TyperOption(
                    param_decls=["--help-all"],
                    is_flag=True,
                    is_eager=True,
                    expose_value=False,
                    callback=self._print_all,
                    help="Show all options and examples.",
                )
            )

    def _print_all(self, context: Any, option: Any, wanted: bool) -> None:
        if wanted and not context.resilient_parsing:
            self.show_all = True
            typer.echo(context.get_help())
            raise typer.Exit

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write usage, text and options."""
        self.format_usage(ctx, formatter)
        formatter.write_paragraph()
        text = inspect.cleandoc(self.help or "").replace("\b\n", "")
        everything = self.show_all or not any(map(_is_rare, self.params))
        for line in text.splitlines() if everything else _first_lines(text):
            formatter.write(f"  {line}".rstrip() + "\n")
        formatter.write_paragraph()
        panels: dict[str, list[tuple[str, str]]] = {}
        parameters: list[Any] = self.get_params(ctx)
        for parameter in parameters:
            record = parameter.get_help_record(ctx)
            if record is not None and (everything or not _is_rare(parameter)):
                help = record[1] if everything else f"{FIRST_CLAUSE.split(parameter.help or '')[0]}."
                panels.setdefault(parameter.rich_help_panel or OTHERS, []).append((record[0], help))
        width = max(len(names) for records in panels.values() for names, _ in records)
        for panel, records in sorted(panels.items(), key=lambda item: item[0] == OTHERS):
            formatter.write_heading(panel)
            with formatter.indentation():
                formatter.write_dl([(names.ljust(min(width, WIDEST)), help) for names, help in records])


def _first_lines(text: str) -> list[str]:
    """Return what a command does, in a line, and the first example."""
    example = re.search(r"^Examples?:\s*(.*)", text, re.MULTILINE)
    return [text.partition("\n")[0], *([] if example is None else ["", f"Example: {example[1]}"])]


def _is_rare(parameter: Any) -> bool:
    return (parameter.rich_help_panel or "").startswith(MORE)


class Documented(NamedTuple):
    """The section, the names in parentheses and the help of a parameter."""

    section: str
    names: list[str]
    help: str


def documented(owner: Any) -> tuple[str, dict[str, Documented]]:
    """Return the text of a docstring before its sections, and the parameters in these."""
    text, *sections = HEADING.split(inspect.cleandoc(owner.__doc__ or ""))
    found = {
        name: Documented(title, names.split(", ") if names else [], " ".join(help.split()))
        for title, body in zip(sections[::2], sections[1::2], strict=True)
        for name, names, help in ENTRY.findall(body)
    }
    return text.rstrip(), found


def command_of(function: Callable[..., None], name: str) -> Callable[..., None]:
    """Return a function as typer takes it, with the options of the command of this name."""

    def command(**values: Any) -> None:
        function(**_arguments(function, values))

    parameters = list(_parameters(function, name))
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    command.__name__, command.__doc__ = function.__name__, documented(function)[0]
    return command


def _parameters(owner: Callable[..., Any], command: str) -> Iterator[inspect.Parameter]:
    """Yield the parameters of a function or dataclass with their options, those of dataclasses in their place."""
    hints, (_, docs) = _types(owner), documented(owner)
    for parameter in inspect.signature(owner).parameters.values():
        kind: Any = hints[parameter.name]
        if is_dataclass(kind):
            yield from _parameters(kind, command)  # type: ignore[arg-type]
        elif owner is not ReadingFlags or parameter.name in FLAGS[command]:
            if kind is not typer.Context:
                kind = Annotated[kind, _option(parameter, docs[parameter.name])]
            yield parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=kind)


def _option(parameter: inspect.Parameter, doc: Documented) -> Any:
    shown = not isinstance(parameter.default, bool | None)
    if doc.section == ARGUMENTS:
        return typer.Argument(help=doc.help, metavar=next(iter(doc.names), None), show_default=shown)
    renamed = any(name.startswith("--") for name in doc.names)
    names = [] if renamed else [f"--{parameter.name.replace('_', '-')}"]
    panel = None if doc.section == OTHERS else doc.section
    return typer.Option(*names, *doc.names, help=doc.help, rich_help_panel=panel, show_default=shown)


def _arguments(owner: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a function or dataclass among the values of all options."""
    groups: dict[str, Any] = {name: kind for name, kind in _types(owner).items() if is_dataclass(kind)}
    made = {name: kind(**_arguments(kind, values)) for name, kind in groups.items()}
    return {**{name: values[name] for name in inspect.signature(owner).parameters if name in values}, **made}


def _types(owner: Any) -> dict[str, Any]:
    return {name: kind for name, kind in get_type_hints(owner).items() if name != "return"}
