"""Tables of the terminal, and the console that prints them."""

from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from forel.data.sources.files import natural_key
from forel.learner.contributions import EXPERT_COLUMNS, MixtureExplanation
from forel.markup import clean, counted, number_text
from forel.training.metrics import Report
from forel.training.slices import SliceTable

__all__ = [
    "align_numbers",
    "confusion_table",
    "expert_tables",
    "mixture_table",
    "open_console",
    "report_table",
    "slice_table",
]

TOP = 5
MISSING = "(missing)"
MAX_CLASSES = 12  # of a confusion table; with more, the commonest confusions are listed
COLUMNS = {"auc": "AUC", "calibration": "calibration", "accuracy": "accuracy"}


class _Console(Console):
    """A console that shows text from files without terminal escapes and marks of direction."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(clean(text), **options)


def open_console(stderr: bool = False) -> Console:
    """Return a console for standard output or stderr; it replaces no codes of emoji, such as :heart: in a name."""
    return _Console(stderr=stderr, emoji=False)


def align_numbers(table: Table, first: int = 1) -> None:
    """Align the columns from ``first`` on to the right, and wrap cells that do not fit the terminal: none is cut."""
    for k, column in enumerate(table.columns):
        column.overflow = "fold"
        if k >= first:
            column.justify = "right"


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
            table.add_row(escape(report.classes[k]), *(number_text(report.confusion[k][j]) for j in order))
    else:
        pairs = [(report.confusion[k][j], k, j) for k in order for j in order if k != j and report.confusion[k][j]]
        table = Table("actual", "predicted", "weight", title="commonest confusions")
        for weight, k, j in sorted(pairs, key=lambda pair: -pair[0])[:MAX_CLASSES]:
            table.add_row(escape(report.classes[k]), escape(report.classes[j]), number_text(weight))
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
        table.add_row(escape(one["setting"]), number_text(one["loss"], decimals=6), f"{one['posterior']:.4f}")
    others = mixture["settings"][TOP:]
    if others:
        least, posterior = number_text(others[0]["loss"], decimals=6), sum(one["posterior"] for one in others)
        table.add_row(counted(len(others), "other"), f"≥ {least}", f"{posterior:.4f}")
    return table


def slice_table(found: SliceTable, loss: str, title: str | None = None) -> Table:
    """Return the metrics of each value; ``loss`` is the title of the loss."""
    reports = [{field: text for field, _, text in one.report.lines(loss)} for one in found.slices]
    titles = {"rows": "rows", "loss": loss, **COLUMNS, "mean_label": "mean label", "mean_prediction": "mean prediction"}
    fields = [field for field in titles if any(field in report for report in reports)]
    table = Table(escape(found.column), *(titles[field] for field in fields), title=title)
    align_numbers(table)
    for one, report in zip(found.slices, reports, strict=True):
        table.add_row(escape(one.value), *(report.get(field, "") for field in fields))
    return table
