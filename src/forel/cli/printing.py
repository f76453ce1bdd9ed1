"""What commands print: messages, JSON and tables, in which text from files has no terminal escapes."""

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from forel.markup import clean, counted, number_text

if TYPE_CHECKING:
    from rich.console import Console

    from forel.learner.contributions import MixtureExplanation
    from forel.learner.learner import Learner
    from forel.training.metrics import Report
    from forel.training.slices import SliceTable
    from forel.training.statements import Statements

__all__ = [
    "jsonable",
    "mixture_summary",
    "open_console",
    "print_confusion",
    "print_experts",
    "print_json",
    "print_mixture",
    "print_reports",
    "print_slices",
    "print_statements",
    "print_table",
    "say",
    "say_where_terms_are",
    "signed",
]

TOP = 3  # settings of a mixture
MAX_CLASSES = 12  # of a confusion table; with more, the commonest confusions are listed
SLICE_COLUMNS = {
    "rows": "rows", "loss": "", "auc": "AUC", "calibration": "calibration", "accuracy": "accuracy",
    "mean_label": "mean label", "mean_prediction": "mean prediction",
}  # fmt: skip


def say(text: str, err: bool = True) -> None:
    """Print a message, on stderr by default, with a replacement for terminal escapes and marks of direction."""
    typer.echo(clean(text), err=err)


def say_where_terms_are(stderr: bool = False) -> None:
    """Name the page that explains what was printed."""
    say("What do these mean? docs/guide/glossary.md", stderr)


def print_json(value: Any, stderr: bool = False) -> None:
    """Print a value as one line of JSON; numbers that are not finite are null."""
    print(json.dumps(_finite(value), allow_nan=False), file=sys.stderr if stderr else sys.stdout)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    value = value.item() if hasattr(value, "item") else value  # a number of numpy
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_statements(found: "Statements | None", stderr: bool = False) -> None:
    """Print a line for the coverage of intervals, and one for alarms, if there are any."""
    for sentence in () if found is None else found.sentences():
        say(f"{sentence[:1].upper()}{sentence[1:]}.", stderr)


def signed(number: float) -> str:
    """Return a number with its sign and five decimals, or six digits of a large one; zero has no sign.

    >>> signed(0.25), signed(-0.25), signed(-1e-9), signed(111988.55991)
    ('+0.25000', '-0.25000', '0.00000', '+111,989')
    """
    text = f"{number:+.5f}" if abs(number) < 1000 else "+" * (number > 0) + number_text(number)
    return text[1:] if not text.strip("+-0.") else text


def mixture_summary(model: "Learner") -> dict[str, Any] | None:
    """Return the guarantee, the experts, the best first, and the kinds of a mixture as JSON; None for one model."""
    found = model.explain()
    if found is None:
        return None
    settings = [
        {"setting": s.name, "kind": s.kind, "loss": s.loss, "behind": s.behind, "posterior": s.weight}
        for s in sorted(found.experts, key=lambda one: one.loss)
    ]
    kinds = {"kinds": [asdict(one) for one in found.kinds], "exact": found.exact}
    return {"guarantee": found.guarantee, "settings": settings, **kinds}


def jsonable(report: "Report | None") -> Any:
    """Return a report as a JSON value."""
    return None if report is None else report.to_json()


def open_console(stderr: bool = False) -> "Console":
    """Return a console for standard output or stderr; it replaces no codes of emoji, such as :heart: in a name."""
    from rich.console import Console  # slow to import

    return Console(stderr=stderr, emoji=False)


def print_table(
    columns: Iterable[str],
    rows: Iterable[Sequence[str]],
    title: str | None = None,
    left: int = 1,
    stderr: bool = False,
    fold: bool = True,
) -> None:
    """Print rows of text; columns after the first ``left`` are numbers, and by default no cell is cut."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=None if title is None else Text(clean(title), style="table.title"))
    for k, name in enumerate(columns):
        justify: Any = "left" if k < left else "right"
        table.add_column(Text(clean(name)), justify=justify, overflow="fold" if fold else "ellipsis")
    for row in rows:
        table.add_row(*(Text(clean(" ".join(cell.splitlines()))) for cell in row))
    open_console(stderr).print(table)


def print_reports(reports: "Mapping[str, Report]", loss: str, stderr: bool = False) -> None:
    """Print reports side by side."""
    each = [{name: text for _, name, text in report.lines(loss)} for report in reports.values()]
    rows = ([name, *(lines.get(name, "") for lines in each)] for name in each[0])
    print_table(["", *reports], rows, stderr=stderr)


def print_confusion(report: "Report") -> None:
    """Print the rows by actual and predicted class; with many classes, the commonest confusions."""
    from forel.data.sources.files import natural_key

    counts, names = report.confusion, report.classes
    order = sorted(range(len(names)), key=lambda k: natural_key(names[k]))
    if len(order) <= MAX_CLASSES:
        rows = ([names[k], *(number_text(counts[k][j]) for j in order)] for k in order)
        print_table(["actual \\ predicted", *(names[k] for k in order)], rows, "confusion")
        return
    pairs = sorted(((counts[k][j], k, j) for k in order for j in order if k != j), key=lambda pair: -pair[0])
    commonest = ([names[k], names[j], number_text(n)] for n, k, j in pairs[:MAX_CLASSES] if n)
    print_table(["actual", "predicted", "weight"], commonest, "commonest confusions", left=2)


def print_experts(found: "MixtureExplanation") -> None:
    """Print the experts of a mixture, and their kinds."""
    from forel.learner.contributions import EXPERT_COLUMNS

    print_table(EXPERT_COLUMNS, found.expert_rows(), left=2)
    print_table(found.kind_columns, found.kind_rows())


def print_mixture(mixture: dict[str, Any], stderr: bool = False) -> None:
    """Print the best settings of a mixture, with their weights."""
    best, others = mixture["settings"][:TOP], mixture["settings"][TOP:]
    rows = [[one["setting"], number_text(one["loss"], decimals=6), f"{one['posterior']:.4f}"] for one in best]
    if others:
        least, posterior = number_text(others[0]["loss"], decimals=6), sum(one["posterior"] for one in others)
        rows.append([counted(len(others), "other"), f"≥ {least}", f"{posterior:.4f}"])
    print_table(["setting", "average loss", "weight"], rows, stderr=stderr)


def print_slices(found: "SliceTable", loss: str, title: str | None = None, stderr: bool = False) -> None:
    """Print the metrics of each value; ``loss`` is the title of the loss."""
    reports = [{field: text for field, _, text in one.report.lines(loss)} for one in found.slices]
    fields = [field for field in SLICE_COLUMNS if any(field in report for report in reports)]
    rows = (
        [one.value, *(report.get(field, "") for field in fields)]
        for one, report in zip(found.slices, reports, strict=True)
    )
    print_table([found.column, *(SLICE_COLUMNS[field] or loss for field in fields)], rows, title, stderr=stderr)
