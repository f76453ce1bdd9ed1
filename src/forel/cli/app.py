"""The application: one function a subcommand."""

import sys
from typing import Annotated

import typer

import forel

app = typer.Typer(
    name="forel",
    help="Adaptive online learning: every learner carries its proof.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
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


@app.command()
def methods(
    geometry: Annotated[str, typer.Argument(help="Part of a geometry's name, such as diag; all when left out.")] = "",
) -> None:
    """Show how each argmin is solved: in closed form, by the solver, or not at all.

    Example: forel methods entropy
    """
    from forel.cli.methods import show

    show(geometry)


def main() -> None:
    """Run the command; an error is a sentence on stderr and exit code 1, not a traceback."""
    try:
        app()
    except ValueError as error:
        typer.echo(f"forel: {error}", err=True)
        sys.exit(1)
