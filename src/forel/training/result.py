"""What a run of training, or an evaluation, measured."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data import Problems
from forel.learner.loss_floor import Frontier
from forel.notebook import card, plain
from forel.store.atomic import Path
from forel.training.label_order import LabelOrder
from forel.training.metrics import Report
from forel.training.row_sample import ColumnSpread, auc_warning, leak_warning
from forel.training.slices import SliceTable
from forel.training.statements import Statements

__all__ = [
    "Evaluation",
    "Training",
]


# Fields of a report that models do not store, so that equal runs give equal files.
NOT_STORED = ("table", "rmse", "mae", "baseline_rmse", "r2", "confusion", "classes")


@dataclass(frozen=True, eq=False, kw_only=True)
class Training:
    """The metrics of a run.

    Parameters
    ----------
    report : metrics of the first pass; each row is predicted before it is learned from
    holdout : metrics of the rows held out, in the last pass; None if no rows are
    final : metrics of the final model on at most 5,000 of them, evenly spread; None if that is ``holdout``
    passes : metrics of the rows learned from in each pass; from the second on, the model has learned them before
    rows, entries : rows and features of the first pass, including rows held out
    seconds : time from the first byte to the last row
    compiling : how much of it was spent on compiling, before the first row or beside others
    problems : malformed examples
    certificate : summary of the certificate of the rows of ``report``, against all fixed models of at most the learned
        model's norm; None without a certificate
    frontier : lower bounds on the loss of fixed models on these rows, by their norm; None where there are none
    floor : the numbers behind the certificate, as :meth:`forel.learner.loss_floor.LossFloor.to_json` returns them
    rounds : the number of rows that the model has learned from, in all passes and runs
    columns : how much each column adds to the margins of a sample of the rows, the largest first
    moments : slots of this sample, and the means of their values and of the squares of these
    statements : what holds at any moment: coverage of intervals, alarms, and the mean loss; None with ``by``
    slices : metrics of the rows of ``report`` by the values of each column of the option ``slices``
    label_order : counts of the labels of the first pass in order, which warn of sorted ones; None with ``by``
    checkpoint : the checkpoint of the run; None without one
    """

    report: Report
    holdout: Report | None
    passes: Sequence[Report]
    rows: int
    entries: int
    seconds: float
    problems: Problems
    certificate: str | None = None
    final: Report | None = None
    compiling: float = 0.0
    frontier: Frontier | None = None
    floor: dict[str, Any] | None = None
    rounds: int = 0
    columns: tuple[ColumnSpread, ...] = ()
    moments: NDArray[np.float64] | None = None
    statements: Statements | None = None
    slices: tuple[SliceTable, ...] = ()
    label_order: LabelOrder | None = None
    checkpoint: Path | None = None

    @property
    def leak(self) -> str | None:
        """The sentence on columns that may be known only after the labels; None without a sign of one."""
        sentence = leak_warning(self.columns)
        if self.label_order is not None and self.label_order.warning() is not None:
            return sentence  # where labels follow one another, the rows before tell them
        for rows, report in (("the rows held out", self.holdout), ("the rows before they were learned", self.report)):
            if sentence is None and report is not None:
                sentence = auc_warning(rows, report)
        return sentence

    @property
    def extra(self) -> dict[str, Any]:
        """Content that a model file stores: metrics, certificate and columns."""
        reports = {"report": self.report, "holdout": self.holdout, "final": self.final}
        certificate = {"rounds": self.rounds, "summary": self.certificate, "floor": self.floor}
        return {
            **({"certificate": certificate} if self.certificate else {}),
            **({"columns": [one._asdict() for one in self.columns]} if self.columns else {}),
            **({} if self.statements is None else self.statements.extra),
            **{name: None if report is None else _json(report) for name, report in reports.items()},
        }


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Metrics of predictions, malformed examples that were skipped, metrics by column, and what holds at any moment."""

    report: Report
    problems: Problems
    slices: tuple[SliceTable, ...] = ()
    statements: Statements | None = None

    def _summary(self) -> list[tuple[str, object]]:
        """Return the title and value of what is shown of an evaluation."""
        metrics = [(title, shown) for _, title, shown in self.report.lines("loss")]
        return [*metrics, ("skipped rows", self.problems.count or None)]

    def __repr__(self) -> str:
        return plain("Evaluation", self._summary())

    def _repr_html_(self) -> str:
        return card("Evaluation", self._summary())


def _json(report: Report) -> dict[str, Any]:
    """Return the metrics of a report that models store; JSON has no NaN."""
    return {name: value for name, value in report.to_json().items() if name not in NOT_STORED and value == value}
