"""``forel generate``: examples with known truth, to try things on."""

import pathlib
import sys
from typing import Annotated, Literal

import typer

from forel.cli.sentences import sentences


def generate(
    kind: Annotated[Literal["ctr"], typer.Argument(help="ctr: clicks on rows of 39 categories, most of them rare.")],
    rows: Annotated[int, typer.Option(help="How many.")] = 100_000,
    output: Annotated[str, typer.Option("--output", "-o", help="The file; - for standard output.")] = "-",
    form: Annotated[str, typer.Option("--format", help="vw or csv; auto looks at the name.")] = "auto",
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.")] = 0,
) -> None:
    """Write examples whose truth is known, and say how good a model could be.

    Example: forel generate ctr --rows 1000000 --output clicks.vw
    """
    from forel.clicks import write_clicks

    chosen = form if form != "auto" else "csv" if output.endswith(".csv") else "vw"
    with sentences():
        if output == "-":
            truth = write_clicks(sys.stdout.buffer, rows, chosen, seed)
        else:
            with pathlib.Path(output).open("wb") as file:
                truth = write_clicks(file, rows, chosen, seed)
    typer.echo(
        f"{truth.rows:,} rows, {truth.clicks:,} clicks; the true chances have a log-loss of {truth.loss:.4f}", err=True
    )
