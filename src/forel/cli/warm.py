"""``forel dev warm``: compile what other commands need before they run, such as for the image of a container."""

import csv
import json
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Annotated

import typer

from forel.cli.errors import errors_as_messages
from forel.cli.printing import say
from forel.markup import counted

ROWS = 300
FORMATS = ("vw", "csv", "jsonl")
CONTEXT_SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True}  # options of forel train


def warm(
    context: typer.Context,
    formats: Annotated[str, typer.Option(help="Formats to compile readers for.")] = ",".join(FORMATS),
) -> None:
    """Compile and cache code of train, predict, evaluate and convert.

    Of forel convert that of --serving. Options of forel train select what is compiled.

    \b
    Examples:
      forel dev warm
      forel dev warm --certificate
      forel dev warm --formats csv --loss squared
    """
    with errors_as_messages():
        from forel.jit.folder import folder
        from forel.validation import refuse

        chosen = [name.strip() for name in formats.split(",")]
        if unknown := sorted(set(chosen) - set(FORMATS)):
            raise refuse("formats", ", ".join(unknown), f"some of {', '.join(FORMATS)}")
        cache_folder = folder()
        if cache_folder is None:
            raise refuse(
                "FOREL_CACHE", "no folder for compiled code", "a folder that you own and only you can write to"
            )
        with tempfile.TemporaryDirectory() as name:
            for format in chosen:
                for command in _commands(pathlib.Path(name), format, context.args):
                    start = time.perf_counter()
                    done = subprocess.run([sys.executable, "-m", "forel", *command], capture_output=True, text=True)
                    if done.returncode:
                        say(done.stderr.rstrip())
                        raise typer.Exit(done.returncode)
                    say(f"forel {command[0]} {format}: {time.perf_counter() - start:.1f} s", err=False)
        files = [file.stat().st_size for file in cache_folder.iterdir()]
        say(f"{counted(len(files), 'file')} of compiled code, {sum(files) / 1e6:.1f} MB, in {cache_folder}", err=False)


def _commands(folder: pathlib.Path, format: str, options: list[str]) -> Iterator[list[str]]:
    """Yield commands that compile all that such commands need."""
    data, model = folder / f"rows.{format}", folder / f"{format}.forel"
    _write_rows(data, format)
    label = [] if format == "vw" else ["--label", "click"]
    yield ["train", str(data), "--model", str(model), *label, *options]
    yield ["predict", str(data), "--model", str(model), "--output", str(folder / "predictions.txt")]
    yield ["evaluate", str(data), "--model", str(model), *label]
    yield ["convert", str(model), "--serving", "--output", str(folder / "serving.forel")]


def _write_rows(path: pathlib.Path, format: str) -> None:
    """Write a few rows: generated clicks, or tables of so few features that full-covariance filters are kept."""
    from forel.data.clicks import write_clicks

    if format == "vw":
        with path.open("wb") as file:
            write_clicks(file, ROWS)
        return
    rows = [{"click": k % 3 % 2, "word": f"w{k % 7}", "other": f"w{k % 5}", "number": k / 7} for k in range(ROWS)]
    with path.open("w", encoding="utf-8", newline="") as file:
        if format == "csv":
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        else:
            file.writelines(json.dumps(row) + "\n" for row in rows)
