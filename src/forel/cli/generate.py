"""``forel dev generate``: synthetic examples of a known distribution."""

import gzip
import sys
from typing import Annotated, Literal

import typer

from forel.cli.errors import errors_as_messages
from forel.cli.printing import say
from forel.markup import counted


def generate(
    kind: Annotated[Literal["ctr"], typer.Argument(help="ctr: clicks on rows of 39 categories, most of them rare.")],
    rows: Annotated[int, typer.Option(help="Number of rows.")] = 100_000,
    output: Annotated[str, typer.Option("--output", "-o", help="Output file; - for standard output.")] = "-",
    output_format: Annotated[str, typer.Option("--format", help="vw or csv; auto detects it from the name.")] = "auto",
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.")] = 0,
) -> None:
    """Write synthetic examples, and report the best possible loss.

    Example: forel dev generate ctr --rows 1000000 --output clicks.vw
    """
    from forel.data.clicks import write_clicks

    with errors_as_messages():
        chosen = _format(output) if output_format == "auto" else output_format
        if output == "-":
            truth = write_clicks(sys.stdout.buffer, rows, chosen, seed)
        elif output.endswith(".gz"):
            # Without a name and a time in it, the same seed gives the same bytes.
            with open(output, "wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed:
                truth = write_clicks(packed, rows, chosen, seed)
        else:
            with open(output, "wb") as file:
                truth = write_clicks(file, rows, chosen, seed)
    counts = f"{counted(truth.rows, 'row')}, {counted(truth.clicks, 'click')}"
    say(f"{counts}; the true probabilities have a log-loss of {truth.loss:.4f}")


def _format(output: str) -> str:
    """Return the format of a file by its suffix; VW text by default."""
    from forel.data.sources.detect import SUFFIXES
    from forel.validation import refuse

    suffix = output.lower().removesuffix(".gz").rpartition(".")[2]
    found = "zstd" if suffix in ("zst", "zstd") else SUFFIXES.get(suffix, "vw")
    if found not in ("vw", "csv"):
        raise refuse("--output", output, "a name that ends in .vw or .csv, or --format vw or csv")
    return found
