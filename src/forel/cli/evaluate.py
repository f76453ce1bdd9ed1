"""``forel evaluate``: metrics of a model on files."""

from typing import Any

from forel.cli.errors import errors_as_messages, print_problems
from forel.cli.options import NO_FLAGS, ReadingFlags, source_of
from forel.cli.printing import (
    jsonable,
    print_confusion,
    print_json,
    print_reports,
    print_slices,
    print_statements,
    print_table,
    say_where_terms_are,
)
from forel.markup import number_text


def evaluate(
    files: list[str] | None = None,
    *,
    model: str,
    reading: ReadingFlags = NO_FLAGS,
    interval: float | None = None,
    threshold: str | None = None,
    as_json: bool = False,
) -> None:
    """Measure a model on files: loss, AUC, calibration, confusion.

    Further measures are the normalized entropy and, with several classes, the
    accuracy. With --threshold, also precision and recall of decisions.

    Example: forel evaluate test.vw --model m.forel

    Arguments
    ---------
    files : Files, patterns, or - for standard input.

    Options
    -------
    model (-i) : A model file.
    interval : Level of intervals of predicted numbers; such as 0.9.
    threshold : f1, cost:5 or a number to decide by; f1 for the best F1, cost:5 if a miss costs 5 false alarms.
    as_json (--json) : Print JSON instead of text.
    """
    with errors_as_messages():
        from forel.training.model import evaluate, load

        stored = load(model)
        found = evaluate(stored, source_of(files, reading), interval=interval, **reading.options())
        decided = None if threshold is None else _decided(found.report.thresholds, threshold)
        if as_json:
            slices = {"slices": [table.to_json() for table in found.slices]} if found.slices else {}
            said = {} if found.statements is None else found.statements.to_json()
            said |= {} if decided is None else {"decisions": {**decided._asdict(), **_rates(decided)}}
            print_json({**jsonable(found.report), **slices, **said, "malformed": found.problems.count})
            return
        print_reports({"evaluated": found.report}, stored.settings.title)
        if found.report.table:
            title = "calibration, in order of predictions"
            rows = ([number_text(b.weight), f"{b.predicted:.4f}", f"{b.actual:.4f}"] for b in found.report.table)
            print_table(["weight", "predicted", "actual"], rows, title, left=0)
        if decided is not None:
            names = ["threshold", "flagged", "precision", "recall", "F1", "false alarms"]
            rates = (f"{value:.4f}" for value in _rates(decided).values())
            print_table(names, [[f"{decided.value:.4g}", number_text(decided.flagged), *rates]], "decisions", left=0)
        for by_value in found.slices:
            print_slices(by_value, stored.settings.title)
        if found.report.confusion:
            print_confusion(found.report)
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
