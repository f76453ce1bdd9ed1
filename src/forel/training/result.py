"""What a run of training, or an evaluation, measured, and what is said about it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data import Problems
from forel.learner.loss_floor import Frontier
from forel.markup import counted, number_text
from forel.notebook import card, plain
from forel.store.atomic import Path
from forel.training.label_order import LabelOrder
from forel.training.metrics import Report, format_auc
from forel.training.row_sample import ColumnSpread, auc_warning, leak_warning
from forel.training.slices import SliceTable
from forel.training.statements import Statements

__all__ = ["Evaluation", "Score", "Training", "best_sentence", "mixture_sentence", "scores", "time_sentence", "verdict"]


MIN_ROWS, WORSE = 100, 0.2  # rows to compare two models on, and by which fraction of the loss one is worse
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
    class_weight : the rule by which classes are weighted; importances of reports are multiplied by these weights
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
    class_weight: str | None = None

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
            **({} if self.statements is None else self.statements.extra()),
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


@dataclass(frozen=True)
class Score:
    """Metrics of some rows, and a sentence about them.

    Parameters
    ----------
    name : title of the column
    report : the metrics
    model : which model predicted the rows, and when
    unit : what averages are per unit of, where not all rows count once

    >>> print(Score("held out", Report(10, 25.0, 0.5, None, weighted=True), "never learned from"))
    held out: 10 rows, never learned from; averages are per unit of importance, of which these rows have 25
    """

    name: str
    report: Report
    model: str
    unit: str = "importance"

    def __str__(self) -> str:
        unit = ""
        if self.report.weighted:
            unit = f"; averages are per unit of {self.unit}, of which these rows have {self.report.weight:,.6g}"
        return f"{self.name}: {counted(self.report.rows, 'row')}, {self.model}{unit}"


def scores(trained: Any) -> tuple[Score, ...]:
    """Return the scores of a result of training, in the order in which they are shown."""
    run = trained.training
    order = run.label_order
    ordered = order is not None and order.warning(trained.learner.classes) is not None
    why = "labels are in order" if ordered else "the final model is worse" if _final_is_worse(run) else ""
    stream = f"; {why}, so this says how well the stream is followed" if why else ""
    found = [Score("progressive", trained.report, f"each predicted before the model learned from it{stream}")]
    if len(run.passes) > 1:
        name = f"pass {len(run.passes)}, seen before"
        found.append(Score(name, run.passes[-1], "the same ones, after earlier passes learned from them"))
    if run.holdout is not None:
        when = "predicted by the final model" if run.final is None else f"each predicted when it came{stream}"
        found.append(Score("held out", run.holdout, f"never learned from, {when}"))
    if run.final is not None:
        some = "" if run.final.rows == run.holdout.rows else ", evenly spread"
        found.append(Score("held out, final model", run.final, f"held out{some}, predicted by the final model"))
    unit = "importance" if run.class_weight is None else f"importance times {run.class_weight} class weight"
    return tuple(replace(one, unit=unit) for one in found)


def _final_is_worse(run: Any) -> bool:
    """Return whether the final model's loss on held-out rows is much larger than when they came."""
    if run.final is None or run.final.rows != run.holdout.rows or run.final.rows < MIN_ROWS:
        return False
    return bool(run.final.loss - run.holdout.loss > WORSE * abs(run.holdout.loss))


def mixture_sentence(trained: Any) -> str | None:
    """Return the guarantee of a mixture, and which of its rows the scores are about; None for one model."""
    proved = trained.learner.guarantee()
    if proved is None:
        return None
    # A model that was trained before has learned from other rows too.
    fewer = f"; the scores above are about the {counted(trained.report.rows, 'row')} of this run"
    return f"{proved}{fewer if proved.rounds != trained.report.rows else ''}"


def best_sentence(trained: Any) -> str | None:
    """Return what :meth:`forel.training.model.Model.best` chooses, and what that costs; None for one setting."""
    learner = trained.learner
    if learner.guarantee() is None:
        return None
    names, averages, chosen = learner.names, learner.averages, learner.best
    whole = learner.loss / (learner.mixture.ledger.total_importance or 1.0)
    own, mixed, least = (number_text(loss, decimals=6) for loss in (averages[chosen], whole, averages.min()))
    said = f"{names[chosen]} alone, whose progressive loss was {own}; that of the mixture was {mixed}"
    first = int(np.argmin(averages))
    return said if first == chosen else f"{said}, and of its best expert, {names[first]}, which is not written, {least}"


def verdict(report: Report) -> str | None:
    """Return how good predictions are, against those that know the mean label alone; None where that says nothing.

    Percentages are rounded down.

    >>> verdict(Report(100, 100.0, 0.3, 0.6, auc=0.91234))
    'Predictions remove 40% of the loss of always predicting the mean label, 0.3000 instead of 0.5000; AUC 0.9123'
    >>> verdict(Report(100, 100.0, 0.6, 1.2))
    'Predictions are no better than always predicting the mean label, whose loss is 0.5000 rather than 0.6000'
    >>> verdict(Report(9, 9.0, 2.0, None, rmse=2.0, baseline_rmse=4.0, r2=0.75))
    'Predictions explain 75% of the variance of labels: RMSE 2, and 4 for the mean label'
    >>> verdict(Report(9, 9.0, 0.5, None, accuracy=0.808, baseline_accuracy=0.5))
    'The predicted class is right in 80% of rows, and the commonest class in 50%'
    """
    if report.accuracy is not None and report.baseline_accuracy is not None:
        common = _percent(report.baseline_accuracy)
        return (
            f"The predicted class is right in {_percent(report.accuracy)} of rows, and the commonest class in {common}"
        )
    if report.r2 is not None and report.rmse is not None and report.baseline_rmse is not None:
        errors = f"RMSE {number_text(report.rmse)}, and {number_text(report.baseline_rmse)} for the mean label"
        if report.r2 <= 0:
            return f"Predictions are no better than the mean label: {errors}"
        return f"Predictions explain {_percent(report.r2)} of the variance of labels: {errors}"
    if report.entropy is None or not report.entropy > 0:
        return None
    base = report.loss / report.entropy
    if report.entropy >= 1:
        known = f"whose loss is {base:.4f} rather than {report.loss:.4f}"
        return f"Predictions are no better than always predicting the mean label, {known}"
    removed = f"{_percent(1 - report.entropy)} of the loss of always predicting the mean label"
    auc = "" if report.auc is None else f"; AUC {format_auc(report.auc, report.auc_error or 0.0)}"
    return f"Predictions remove {removed}, {report.loss:.4f} instead of {base:.4f}{auc}"


def _percent(part: float) -> str:
    return f"{math.floor(100 * part + 1e-9)}%"


def time_sentence(seconds: float, compiling: float, rows: int) -> str:
    """Return the time of a run, apart from that of compiling, and the rows per second.

    >>> time_sentence(12.3, 11.8, 180_000)
    '0.50 seconds, 360,000 rows per second, after 11.8 seconds of compiling'
    """
    learning = max(seconds - compiling, 0.0)
    speed = f"{learning:.2f} seconds, {rows / max(learning, 1e-9):,.0f} rows per second"
    return f"{speed}, after {compiling:.1f} seconds of compiling" if compiling >= 0.05 else speed
