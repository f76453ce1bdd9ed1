"""``forel dev survey``: recompute and check every numbered result, and related statements."""

import pathlib
from typing import Annotated

import typer


def survey(
    only: Annotated[str, typer.Option(help="A number or a name: 11, 'theorem 11', figure, …")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    plots: Annotated[pathlib.Path | None, typer.Option(help="Draw the figures into this folder.")] = None,
) -> None:
    """Recompute and check every result of the survey.

    These are its theorems, lemmas, algorithms and figures. The exit code is 1
    if a check fails.

    Examples: forel dev survey; forel dev survey --only 11; forel dev survey --plots figures
    """
    from forel.cli.survey_results import run

    if not run(only, as_json, plots):
        raise typer.Exit(1)
