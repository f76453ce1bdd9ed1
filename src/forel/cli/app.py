"""The application: a table of commands, whose modules are imported when they run."""

import importlib
import io
import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

import forel
from forel.cli.vowpal import suggest_train, translate_name

__all__ = ["COMMANDS", "TOOLS", "app", "load_command", "main"]

# The one-line help of each command, which is a function of the module of the same name.
COMMANDS = {
    "peek": "Show the columns of a file, and the command to train on it.",
    "train": "Train a model on files, in one pass by default.",
    "predict": "Write a prediction for each example.",
    "evaluate": "Measure a model on files: loss, AUC, calibration, confusion.",
    "explain": "Show the contribution of each feature to a prediction.",
    "inspect": "Show the settings, experts, weights and certificate of a model.",
    "convert": "Convert data to another format, or a model to a smaller one.",
}
TOOLS = {
    "generate": "Write synthetic examples, and report the best possible loss.",
    "cache": "Write parsed files to a cache, or show the content of a cache.",
    "warm": "Compile and cache code of train, predict, evaluate and convert.",
    "methods": "Show how each argmin is solved: in closed form, or by a solver.",
    "survey": "Recompute and check every result of the survey.",
}


def load_command(name: str) -> Any:
    """Return a command with its options, for which its module is imported."""
    from forel.cli.commands import expand_flags, shorten_help

    module = importlib.import_module(f"forel.cli.{name}")
    alone = typer.Typer(add_completion=False)  # the application of one command is the command
    alone.command(name, context_settings=getattr(module, "CONTEXT_SETTINGS", None))(expand_flags(vars(module)[name]))
    return shorten_help(get_command(alone), getattr(module, "COMMON_OPTIONS", None))


class LazyGroup(TyperGroup):
    """A group whose commands have only a name and a one-line help until one of them is invoked or completed."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options before the command; an error for options and files without one names it."""
        known = [*COMMANDS, *TOOLS, *(option for param in self.get_params(ctx) for option in param.opts)]
        if args and not ctx.resilient_parsing and (command := suggest_train(args, known)) is not None:
            ctx.fail(f"No command before {args[0]!r}. Did you mean: {command}")
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands that people use every day before the others."""
        for title, commands in (("Commands", COMMANDS), ("Tools", TOOLS)):
            with formatter.section(title):
                formatter.write_dl(list(commands.items()))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the arguments name, with its options."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name is None else load_command(name), rest


app = typer.Typer(
    cls=LazyGroup,
    name="forel",
    help="Adaptive online learning: every learner carries its proof.",
    no_args_is_help=True,
    rich_markup_mode=None,  # for the list of commands and errors of usage; the help of a command uses rich
    context_settings={
        "help_option_names": ["-h", "--help"],
        "token_normalize_func": translate_name,
    },
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"forel {forel.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    pass


for _name, _help in (COMMANDS | TOOLS).items():
    app.command(_name, help=_help)(lambda: None)


def _replace_unencodable() -> None:
    """Print a question mark for each character that the terminal's encoding lacks, instead of raising an error."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="replace")


def main() -> None:
    """Run the command; an error is a message on stderr and exit code 1, not a traceback."""
    # Arrow's default allocator returns memory after each batch of a table, and then has to request it again.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    _replace_unencodable()
    try:
        app(prog_name="forel")  # also as python -m forel, for usage lines and completion
    except ValueError as error:
        typer.echo(f"forel: {error}", err=True)
        sys.exit(1)
