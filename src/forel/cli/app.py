"""The application: tables of commands, whose modules are imported when they run."""

import importlib
import io
import os
import shlex
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

import forel
from forel.cli.vowpal import suggest_command, translate_name

__all__ = ["COMMANDS", "DEV", "app", "load_command", "main"]

# The one-line help of each command, which is a function of the module of the same name.
COMMANDS = {
    "peek": "Show the columns of a file, and the command to train on it.",
    "train": "Train a model on files, in one pass by default.",
    "predict": "Write a prediction for each example.",
    "evaluate": "Measure a model on files: loss, AUC, calibration, confusion.",
    "compare": "Say which of two models is better on some rows.",
    "explain": "Show the contribution of each feature to a prediction.",
    "serve": "Serve predictions, and learn from their outcomes.",
    "challengers": "List or change the models of a running server.",
    "log": "List what a server recorded, in its order.",
    "replay": "Learn the events of a server again.",
    "inspect": "Show the settings, experts, weights and certificate of a model.",
    "convert": "Convert a model to a smaller one, or write that of one key.",
    "lab": "Open a page for teaching: play against online learners.",
}
# The commands of ``forel dev``.
DEV = {
    "generate": "Write synthetic examples, and report the best possible loss.",
    "sample": "Write a small real table as two CSV files.",
    "warm": "Compile and cache code of train, predict, evaluate and convert.",
    "survey": "Recompute and check every result of the survey.",
}


def load_command(name: str) -> Any:
    """Return a command with its options, for which its module is imported."""
    from forel.cli.commands import Command, command_of

    module = importlib.import_module(f"forel.cli.{'dev' if name in DEV else name}")
    # The application of one command is the command.
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    settings = {"allow_extra_args": True, "ignore_unknown_options": True} if name == "warm" else None
    alone.command(name, cls=Command, context_settings=settings)(
        command_of(vars(module)[name], name)
    )  # warm takes options of train
    made: Any = get_command(alone)
    made.add_help_all()
    return made


class LazyGroup(TyperGroup):
    """A group whose commands have only a name and a one-line help until one of them is invoked or completed."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the arguments name, with its options."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, load_command(name) if name in COMMANDS | DEV else command, rest

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands with their whole one-line help."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.help) for name, command in self.commands.items()])


class MainGroup(LazyGroup):
    """The commands of ``forel``, with a suggestion for the command line of Vowpal Wabbit, which has no commands."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options before the command; an error for options and files without one names it."""
        known = [*self.commands, *(option for param in self.get_params(ctx) for option in param.opts)]
        if args and args[0] in DEV and not ctx.resilient_parsing:
            ctx.fail(f"No such command {args[0]!r}. Did you mean: {shlex.join(['forel', 'dev', *args])}")
        if args and not ctx.resilient_parsing and (command := suggest_command(args, known)) is not None:
            ctx.fail(f"No command before {args[0]!r}. Did you mean: {command}")
        return super().parse_args(ctx, args)


SETTINGS: dict[str, Any] = {
    "no_args_is_help": True,
    "rich_markup_mode": None,  # for the list of commands and errors of usage; the help of a command uses rich
    "context_settings": {"help_option_names": ["-h", "--help"], "token_normalize_func": translate_name},
}
app = typer.Typer(
    cls=MainGroup, name="forel", help="Adaptive online learning: every learner carries its proof.", **SETTINGS
)
dev = typer.Typer(cls=LazyGroup, **SETTINGS)


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


for _group, _commands in ((app, COMMANDS), (dev, DEV)):
    for _name, _help in _commands.items():
        _group.command(_name, help=_help)(lambda: None)
app.add_typer(dev, name="dev", help="Tools: synthetic and sample data, compiling ahead, and the survey.")


def _replace_unencodable() -> None:
    """Print a question mark for each character that the terminal's encoding lacks, instead of raising an error."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="replace")


def main() -> None:
    """Run the command."""
    # Arrow's default allocator returns memory after each batch of a table, and then has to request it again.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    _replace_unencodable()
    app(prog_name="forel")  # also as python -m forel, for usage lines and completion
