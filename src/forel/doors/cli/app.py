"""The application: one function for each subcommand."""

import os
import pathlib
import sys
from typing import Annotated

import typer

import forel
from forel.doors.cli.cache import cache
from forel.doors.cli.commands import command_of, expand_flags
from forel.doors.cli.convert import convert
from forel.doors.cli.evaluate import evaluate
from forel.doors.cli.explain import explain
from forel.doors.cli.generate import generate
from forel.doors.cli.inspect import inspect
from forel.doors.cli.peek import peek
from forel.doors.cli.predict import predict
from forel.doors.cli.train import train
from forel.doors.cli.train_options import TrainOptions
from forel.doors.cli.vowpal import translate_name
from forel.doors.cli.warm import warm

app = typer.Typer(
    name="forel",
    help="Adaptive online learning: every learner carries its proof.",
    no_args_is_help=True,
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


app.command()(expand_flags(command_of(TrainOptions, train)))
app.command()(expand_flags(peek))
app.command()(expand_flags(predict))
app.command()(expand_flags(evaluate))
app.command()(expand_flags(explain))
app.command()(inspect)
app.command()(expand_flags(convert))
app.command()(generate)
app.command()(expand_flags(cache))
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(warm)


@app.command()
def methods(
    geometry: Annotated[str, typer.Argument(help="Part of a geometry's name, such as diag; all when left out.")] = "",
) -> None:
    """Show how each argmin is solved: in closed form, by a solver, or not at all.

    Example: forel methods entropy
    """
    from forel.doors.cli.methods import show

    show(geometry)


@app.command()
def survey(
    only: Annotated[str, typer.Option(help="A number or a name: 11, 'theorem 11', figure, …")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    plots: Annotated[pathlib.Path | None, typer.Option(help="Draw the figures into this folder.")] = None,
) -> None:
    """Recompute every result, algorithm and figure of the survey, and check it.

    Exit code 1 if one fails.

    Examples: forel survey; forel survey --only 11; forel survey --plots figures
    """
    from forel.doors.cli.survey import run

    if not run(only, as_json, plots):
        raise typer.Exit(1)


def main() -> None:
    """Run the command; an error is a message on stderr and exit code 1, not a traceback."""
    # Arrow's default allocator returns memory after each batch of a table, and then has to request it again.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    try:
        app(prog_name="forel")  # also as python -m forel, for usage lines and completion
    except ValueError as error:
        typer.echo(f"forel: {error}", err=True)
        sys.exit(1)
