"""``forel evaluate``: metrics of a model on files."""

import json
from typing import Annotated

import typer

from forel.doors.cli.errors import errors_as_messages
from forel.doors.cli.options import (
    AsJson,
    Data,
    Decimal,
    Files,
    Form,
    Header,
    Label,
    LineLimit,
    Missing,
    OnError,
    Positive,
    Separator,
    Strict,
    Threads,
    reading_options,
    source_of,
)


def evaluate(
    files: Files = None,
    model: Annotated[str, typer.Option("--model", "-i", help="A model file.")] = ...,  # type: ignore[assignment]
    data: Data = None,
    form: Form = "auto",
    label: Label = None,
    positive: Positive = None,
    separator: Separator = None,
    header: Header = None,
    missing: Missing = None,
    decimal: Decimal = None,
    like_training: Strict = False,
    on_error: OnError = "raise",
    line_limit: LineLimit = None,
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Measure a model on files: loss, normalised entropy, AUC, calibration; accuracy and confusion of classes.

    Example: forel evaluate test.vw --model m.forel
    """
    with errors_as_messages():
        from rich.console import Console
        from rich.table import Table

        from forel.doors.cli.show import confusion_table, jsonable, print_problems, report_table
        from forel.store import load
        from forel.training.scoring import evaluate

        stored = load(model)
        reading = reading_options(
            format=form, label=label, positive=positive, on_error=on_error, line_limit=line_limit, separator=separator,
            header=header, missing=missing, decimal=decimal, strict=like_training or None,
        )  # fmt: skip
        found = evaluate(stored, source_of(files, data), threads=threads, **reading)
        if as_json:
            print(json.dumps({**jsonable(found.report), "malformed": found.problems.count}))
            return
        console = Console()
        console.print(report_table({"evaluated": found.report}, stored.settings.title))
        if found.report.table:
            table = Table("weight", "predicted", "actual", title="calibration, in order of predictions")
            for bucket in found.report.table:
                table.add_row(f"{bucket.weight:,.6g}", f"{bucket.predicted:.4f}", f"{bucket.actual:.4f}")
            console.print(table)
        if found.report.confusion:
            console.print(confusion_table(found.report))
        print_problems(found.problems, Console(stderr=True))
