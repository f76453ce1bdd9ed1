"""Metrics by the values of a column, as tables of the terminal."""

from rich.markup import escape
from rich.table import Table

from forel.cli.console import align_numbers
from forel.training.ranking import format_auc
from forel.training.slices import Period, SliceTable

__all__ = ["period_table", "slice_table"]

COLUMNS = {"auc": "AUC", "calibration": "calibration", "accuracy": "accuracy"}


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


def period_table(found: SliceTable, loss: str) -> Table:
    """Return the loss of each value over time, and where they are defined, the calibration ratio and the AUC."""
    calibrated = any(one.report.calibration is not None for one in found.slices)
    ranked = any(one.report.auc is not None for one in found.slices)
    title = f"{loss}{' / calibration ratio' * calibrated}{' / AUC' * ranked} over time, up to row"
    table = Table(escape(found.column), *(f"{end:,}" for end in found.ends), title=title)
    align_numbers(table)
    for one in found.slices:
        table.add_row(escape(one.value), *(_cell(period, calibrated, ranked) for period in one.periods))
    return table


def _cell(period: Period, calibrated: bool, ranked: bool) -> str:
    """Return the metrics of a period, with a dash for those that are not defined."""
    if period.loss is None:
        return ""
    ratio = "–" if period.calibration is None else f"{period.calibration:.2f}"
    area = "–" if period.auc is None else format_auc(period.auc, max(period.auc_error or 0.0, 1e-3))
    return " / ".join([f"{period.loss:.4f}", *([ratio] if calibrated else []), *([area] if ranked else [])])
