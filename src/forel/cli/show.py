"""Reports as tables and text."""

from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from forel.cli.console import align_numbers
from forel.cli.errors import all_options, name_options
from forel.data import Problems
from forel.data.sources.streams import natural_key
from forel.learner.contributions import EXPERT_COLUMNS, MixtureExplanation
from forel.training.metrics import Report

__all__ = [
    "confusion_table",
    "expert_tables",
    "mixture_table",
    "print_problems",
    "report_table",
]

TOP = 5
MAX_CLASSES = 12  # of a confusion table; with more, the commonest confusions are listed


def report_table(columns: dict[str, Report], loss: str) -> Table:
    """Return reports side by side."""
    table = Table("", *columns)
    align_numbers(table)
    each = [{name: text for _, name, text in report.lines(loss)} for report in columns.values()]
    for name in each[0]:
        table.add_row(escape(name), *(lines.get(name, "") for lines in each))
    return table


def confusion_table(report: Report) -> Table:
    """Return the rows by actual and predicted class; with many classes, the commonest confusions."""
    order = sorted(range(len(report.classes)), key=lambda k: natural_key(report.classes[k]))
    if len(order) <= MAX_CLASSES:
        table = Table("actual \\ predicted", *(escape(report.classes[k]) for k in order), title="confusion")
        for k in order:
            table.add_row(escape(report.classes[k]), *(f"{report.confusion[k][j]:,.6g}" for j in order))
    else:
        pairs = [(report.confusion[k][j], k, j) for k in order for j in order if k != j and report.confusion[k][j]]
        table = Table("actual", "predicted", "weight", title="commonest confusions")
        for weight, k, j in sorted(pairs, key=lambda pair: -pair[0])[:MAX_CLASSES]:
            table.add_row(escape(report.classes[k]), escape(report.classes[j]), f"{weight:,.6g}")
    align_numbers(table, 1 if len(order) <= MAX_CLASSES else 2)
    return table


def expert_tables(found: MixtureExplanation) -> tuple[Table, Table]:
    """Return the tables of the experts and of their kinds."""
    experts, kinds = Table(*EXPERT_COLUMNS), Table(*found.kind_columns)
    for table, rows, left in ((experts, found.expert_rows(), 2), (kinds, found.kind_rows(), 1)):
        align_numbers(table, left)
        for row in rows:
            table.add_row(*map(escape, row))
    return experts, kinds


def mixture_table(mixture: dict[str, Any]) -> Table:
    """Return the table of the best settings of a mixture, with their weights."""
    table = Table("setting", "average loss", "weight")
    align_numbers(table)
    for one in mixture["settings"][:TOP]:
        table.add_row(escape(one["setting"]), f"{one['loss']:.6f}", f"{one['posterior']:.4f}")
    others = mixture["settings"][TOP:]
    if others:
        table.add_row(
            f"{len(others)} others", f"≥ {others[0]['loss']:.6f}", f"{sum(m['posterior'] for m in others):.4f}"
        )
    return table


def print_problems(problems: Problems, console: Console) -> None:
    """Print the first malformed examples, and their number."""
    if problems.count:
        console.print(f"{problems.count:,} malformed examples were skipped, such as:", style="yellow")
        for message in problems.messages[:TOP]:
            console.print(f"  {name_options(message, all_options())}", markup=False, highlight=False)
