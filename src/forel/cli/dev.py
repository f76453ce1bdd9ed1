"""``forel dev``: synthetic and sample data, compiling ahead, and the survey."""

import csv
import gzip
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Literal

import typer

from forel.cli.errors import errors_as_messages
from forel.cli.printing import print_json, print_table, say
from forel.markup import counted

__all__ = ["generate", "sample", "survey", "warm"]

EVERY = 5  # rows of a sample, of which one is for testing
ROWS = 300  # of the files with which code is compiled
FORMATS = ("vw", "csv", "jsonl")


def generate(kind: Literal["ctr"], *, rows: int = 100_000, output: str = "-", seed: int = 0) -> None:
    """Write synthetic examples, and report the best possible loss.

    Example: forel dev generate ctr --rows 1000000 --output clicks.vw

    Arguments
    ---------
    kind : ctr: clicks on rows of 39 categories, most of them rare.

    Options
    -------
    rows : Number of rows.
    output (-o) : Output file, .csv for CSV; - for standard output.
    seed : The same seed gives the same bytes.
    """
    with errors_as_messages(), ExitStack() as stack:
        from forel.data.clicks import write_clicks
        from forel.validation import refuse

        suffix = pathlib.Path(output.removesuffix(".gz")).suffix
        if suffix not in ("", ".vw", ".txt", ".csv"):
            raise refuse("output", output, "a name that ends in .vw or .csv, or in .gz after these")
        file: Any = sys.stdout.buffer if output == "-" else stack.enter_context(open(output, "wb"))
        if output.endswith(".gz"):
            # Without a name and a time in it, the same seed gives the same bytes.
            file = stack.enter_context(gzip.GzipFile("", "wb", fileobj=file, mtime=0))
        truth = write_clicks(file, rows, "csv" if suffix == ".csv" else "vw", seed)
    counts = f"{counted(truth.rows, 'row')}, {counted(truth.clicks, 'click')}"
    say(f"{counts}; the true probabilities have a log-loss of {truth.loss:.4f}")


def sample(name: Literal["tumours"], *, folder: str = ".") -> None:
    """Write a small real table as two CSV files.

    The rows are 569 tumours from Wisconsin, a part of scikit-learn. Every
    fifth one is in the second file.

    Example: forel dev sample tumours

    Arguments
    ---------
    name : tumours: 30 measurements of each, and its diagnosis.

    Options
    -------
    folder : The folder to write to.
    """
    with errors_as_messages():
        from sklearn.datasets import load_breast_cancer

        data = load_breast_cancer()
        columns = [*(str(one).replace(" ", "_") for one in data.feature_names), "diagnosis"]
        words = (str(data.target_names[label]) for label in data.target)
        rows = [[*values, word] for values, word in zip(data.data.tolist(), words, strict=True)]
        test = rows[EVERY - 1 :: EVERY]
        train = [row for k, row in enumerate(rows, 1) if k % EVERY]
        for file, part in ((f"{name}.csv", train), (f"{name}_test.csv", test)):
            path = pathlib.Path(folder, file)
            _write_csv(path, [columns, *part])
            say(f"{path}: {len(part)} rows, {len(columns)} columns", err=False)


def _write_csv(path: pathlib.Path, rows: list[list[Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as out:
        csv.writer(out, lineterminator="\n").writerows(rows)


def warm(context: typer.Context, *, formats: str = ",".join(FORMATS)) -> None:
    """Compile and cache code of train, predict, evaluate and convert.

    Of forel convert that of --serving. Options of forel train select what is
    compiled.

    \b
    Examples:
      forel dev warm
      forel dev warm --certificate
      forel dev warm --formats csv --loss squared

    Options
    -------
    formats : Formats to compile readers for.
    """
    with errors_as_messages():
        from forel.jit.cache import folder
        from forel.validation import refuse

        chosen = [name.strip() for name in formats.split(",")]
        if unknown := sorted(set(chosen) - set(FORMATS)):
            raise refuse("formats", ", ".join(unknown), f"some of {', '.join(FORMATS)}")
        cache_folder = folder()
        if cache_folder is None:
            expected = "a folder that you own and only you can write to"
            raise refuse("FOREL_CACHE", "no folder for compiled code", expected)
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
    """Yield commands that compile all that such commands need, and write the rows that they read.

    These are generated clicks, or tables of so few features that full-covariance filters are kept.
    """
    data, model = folder / f"rows.{format}", folder / f"{format}.forel"
    names = ["click", "word", "other", "number"]
    rows = [[k % 3 % 2, f"w{k % 7}", f"w{k % 5}", k / 7] for k in range(ROWS)]
    if format == "vw":
        from forel.data.clicks import write_clicks

        with data.open("wb") as file:
            write_clicks(file, ROWS)
    elif format == "csv":
        _write_csv(data, [names, *rows])
    else:
        data.write_text("".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows))
    label = [] if format == "vw" else ["--label", "click"]
    yield ["train", str(data), "--model", str(model), *label, *options]
    yield ["predict", str(data), "--model", str(model), "--output", str(folder / "predictions.txt")]
    yield ["evaluate", str(data), "--model", str(model), *label]
    yield ["convert", str(model), "--serving", "--output", str(folder / "serving.forel")]


def survey(*, only: str = "", as_json: bool = False) -> None:
    """Recompute and check every result of the survey.

    These are its theorems, lemmas, algorithms and figures, and in a second
    table statements beyond it: hints, delay, curvature, and others. The exit
    code is 1 if a check fails.

    \b
    Examples:
      forel dev survey
      forel dev survey --only 11
      forel dev survey --only delay

    Options
    -------
    only : A number or a name: 11, 'theorem 11', figure, delay, …
    as_json (--json) : Print JSON instead of text.
    """
    with errors_as_messages():
        from forel.theory.survey import EXTENSIONS, RESULTS
        from forel.validation import refuse

        name, known = only.strip().lower(), (*RESULTS, *EXTENSIONS)
        chosen = [r for r in known if name in (r.key.lower(), r.key.split()[1]) or r.key.lower().startswith(name)]
        if not chosen:
            raise refuse("only", only, "a number or a name such as 11, 'theorem 11' or 'figure 4'")
        rows = [_recomputed(result) for result in chosen]
        failed = [row["result"] for row in rows if not row["holds"]]
        if as_json:
            print_json(rows)
        else:
            beyond = {result.key for result in EXTENSIONS}
            for title, further in (("The survey", False), ("Beyond the survey", True)):
                if shown := [_cells(row) for row in rows if (row["result"] in beyond) == further]:
                    header = ["result", "statement", "tight", "verdict", "measured", "", "bound", "slack"]
                    print_table(header, shown, title, left=4)
            verdict = f"{', '.join(failed)} failed" if failed else "all hold"
            total = sum(row["seconds"] for row in rows)
            say(f"{counted(len(rows), 'result')} recomputed in {total:.1f} s: {verdict}", err=False)
    if failed:
        raise typer.Exit(1)


def _recomputed(result: Any) -> dict[str, Any]:
    """Recompute a result of the survey, and return it as JSON."""
    start = time.perf_counter()
    outcome = result.run()
    numbers = {"measured": outcome.measured, "bound": outcome.bound, "slack": outcome.bound - outcome.measured}
    finite = {name: float(value) if math.isfinite(value) else None for name, value in numbers.items()}
    return {
        "result": result.key,
        "title": result.title,
        "measured": finite["measured"],
        "relation": result.relation,
        "bound": finite["bound"],
        "slack": finite["slack"],
        "tight": bool(result.tight(outcome)),
        "holds": bool(result.holds(outcome)),
        "case": outcome.case,
        "seconds": round(time.perf_counter() - start, 3),
    }


def _cells(row: dict[str, Any]) -> list[str]:
    """Return a row of the table; a slack that rounding left is 0."""
    slack = row["slack"]
    if row["holds"] and slack is not None and abs(slack) < 1e-12 * row["bound"]:
        slack = 0.0
    measured, *others = ("–" if one is None else f"{one:.4g}" for one in (row["measured"], row["bound"], slack))
    verdict = "tight" if row["tight"] else "", "holds" if row["holds"] else "FAILS"
    return [row["result"], row["title"], *verdict, measured, row["relation"], *others]
