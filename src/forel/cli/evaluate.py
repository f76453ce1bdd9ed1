"""``forel evaluate``: metrics of a model on files."""

from typing import Annotated, Any

import typer

from forel.cli.errors import errors_as_messages, print_problems
from forel.cli.options import NO_FLAGS, AsJson, Data, Files, ReadingFlags, Threads, source_of
from forel.cli.printing import jsonable, print_json, print_statements, say_where_terms_are
from forel.markup import number_text


def evaluate(
    files: Files = None,
    model: Annotated[str, typer.Option("--model", "-i", help="A model file.")] = ...,  # type: ignore[assignment]
    data: Data = None,
    reading: ReadingFlags = NO_FLAGS,
    interval: Annotated[
        float | None,
        typer.Option(help="Level of intervals around predicted numbers, such as 0.9.", show_default=False),
    ] = None,
    threshold: Annotated[
        str | None,
        typer.Option(help="Decide: f1 for the best F1, cost:5 if a miss costs 5 false alarms, or a number."),
    ] = None,
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Measure a model on files: loss, AUC, calibration, confusion.

    Further measures are the normalized entropy and, with several classes, the
    accuracy. With --threshold, also precision and recall of decisions.

    Example: forel evaluate test.vw --model m.forel
    """
    with errors_as_messages():
        from rich.table import Table

        from forel.cli.tables import confusion_table, open_console, report_table, slice_table
        from forel.training.model import evaluate, load

        stored = load(model)
        found = evaluate(stored, source_of(files, data), interval=interval, threads=threads, **reading.options())
        decided = None if threshold is None else _decided(found.report.thresholds, threshold)
        if as_json:
            slices = {"slices": [table.to_json() for table in found.slices]} if found.slices else {}
            said = {} if found.statements is None else found.statements.to_json()
            said |= {} if decided is None else {"decisions": {**decided._asdict(), **_rates(decided)}}
            print_json({**jsonable(found.report), **slices, **said, "malformed": found.problems.count})
            return
        console = open_console()
        console.print(report_table({"evaluated": found.report}, stored.settings.title))
        if found.report.table:
            table = Table("weight", "predicted", "actual", title="calibration, in order of predictions")
            for bucket in found.report.table:
                table.add_row(number_text(bucket.weight), f"{bucket.predicted:.4f}", f"{bucket.actual:.4f}")
            console.print(table)
        if decided is not None:
            console.print(_decisions(decided))
        for by_value in found.slices:
            console.print(slice_table(by_value, stored.settings.title))
        if found.report.confusion:
            console.print(confusion_table(found.report))
        print_statements(found.statements)
        print_problems(found.problems)
        say_where_terms_are()


def _decided(found: Any, rule: str) -> Any:
    from forel.validation import refuse

    if found is None:
        raise refuse("--threshold", rule, "none: these rows do not have two classes")
    return found.best(rule)


def _rates(decided: Any) -> dict[str, float]:
    return {name: getattr(decided, name) for name in ("precision", "recall", "f1", "false_alarms")}


def _decisions(decided: Any) -> Any:
    from rich.table import Table

    table = Table("threshold", "flagged", "precision", "recall", "F1", "false alarms", title="decisions")
    rates = (f"{value:.4f}" for value in _rates(decided).values())
    table.add_row(f"{decided.value:.4g}", number_text(decided.flagged), *rates)
    return table
