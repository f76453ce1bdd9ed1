"""Reports and certificates in words and tables."""

import math
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from forel.certificate import Certificate
from forel.formats import Problems
from forel.progressive import Report

__all__ = ["certificate_words", "jsonable", "print_problems", "report_lines", "report_table"]

TOP = 5


def report_lines(report: Report, loss: str) -> list[tuple[str, str]]:
    """Return a report as names and values, without what is not known."""
    name = "log-loss" if loss == "logistic" else f"{loss} loss"
    lines = [("rows", f"{report.rows:,}"), (name, f"{report.loss:.6f}")]
    if report.entropy is not None:
        lines.append(("normalised entropy", f"{report.entropy:.4f}"))
    if report.auc is not None:
        lines.append(("AUC", f"{report.auc:.4f} ± {report.auc_error:.1g}"))
    if report.calibration is not None:
        lines.append(("calibration ratio", f"{report.calibration:.4f}"))
    return [*lines, ("mean label", f"{report.mean_label:.6g}"), ("mean prediction", f"{report.mean_prediction:.6g}")]


def report_table(columns: dict[str, Report], loss: str) -> Table:
    """Return reports side by side."""
    table = Table("", *columns)
    for column in table.columns[1:]:
        column.justify = "right"
    each = [dict(report_lines(report, loss)) for report in columns.values()]
    for name in each[0]:
        table.add_row(name, *(lines.get(name, "") for lines in each))
    return table


def certificate_words(proof: Certificate, weights: Any) -> str:
    """Return what a certificate says of all models no larger than the learned one.

    >>> import numpy as np
    >>> from forel.linear import Linear, Settings
    >>> model = Linear(1, Settings(alpha=1.0, bias=False), certified=True)
    >>> _ = model.learn(np.ones((100, 1)), [1] * 60 + [0] * 40)
    >>> certificate_words(model.certificate(), model.weights)
    'no fixed model of norm at most 1.642 could have had an average loss below 0.1951 on these rows; this one had 0...'
    """
    norm = math.sqrt(float((weights.astype(float) ** 2).sum()))
    floor, mine = proof.loss_floor(l2=norm), proof.loss / max(proof.rounds, 1)
    if floor <= 0:
        return (
            f"so far no average loss is ruled out for fixed models of norm at most {norm:.4g}; this one had {mine:.4f}"
        )
    return (
        f"no fixed model of norm at most {norm:.4g} could have had an average loss below {floor:.4f} on these rows; "
        f"this one had {mine:.4f}"
    )


def print_problems(problems: Problems, console: Console) -> None:
    """Say what was left out."""
    if problems.count:
        console.print(f"{problems.count:,} malformed examples were left out, such as:", style="yellow")
        for message in problems.messages[:TOP]:
            console.print(f"  {message}", markup=False, highlight=False)


def jsonable(report: Report | None) -> Any:
    """Return a report as JSON has room for it."""
    if report is None:
        return None
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in asdict(report).items()}
