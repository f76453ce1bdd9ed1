"""Metrics by the values of a column, as tables of the terminal."""

from rich.markup import escape
from rich.table import Table

from forel.training.slices import SliceTable

__all__ = ["period_table", "slice_table"]

COLUMNS = {"auc": "AUC", "calibration": "calibration", "accuracy": "accuracy"}


def slice_table(found: SliceTable, loss: str, title: str | None = None) -> Table:
    """Return the metrics of each value; ``loss`` is the title of the loss."""
    reports = [{field: text for field, _, text in one.report.lines(loss)} for one in found.slices]
    titles = {"rows": "rows", "loss": loss, **COLUMNS, "mean_label": "mean label", "mean_prediction": "mean prediction"}
    fields = [field for field in titles if any(field in report for report in reports)]
    table = Table(escape(found.column), *(titles[field] for field in fields), title=title)
    for column in table.columns[1:]:
        column.justify = "right"
    for one, report in zip(found.slices, reports, strict=True):
        table.add_row(escape(one.value), *(report.get(field, "") for field in fields))
    return table


def period_table(found: SliceTable, loss: str) -> Table:
    """Return the loss, and the calibration ratio where there is one, of each value over time."""
    calibrated = any(one.report.calibration is not None for one in found.slices)
    title = f"{loss}{' / calibration ratio' if calibrated else ''} over time, up to row"
    table = Table(escape(found.column), *(f"{end:,}" for end in found.ends), title=title)
    for column in table.columns[1:]:
        column.justify = "right"
    for one in found.slices:
        cells = ("" if p.loss is None else f"{p.loss:.4f}" for p in one.periods)
        ratios = ("" if p.calibration is None else f" / {p.calibration:.2f}" for p in one.periods)
        table.add_row(escape(one.value), *(cell + ratio for cell, ratio in zip(cells, ratios, strict=True)))
    return table
