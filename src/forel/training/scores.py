"""What is said about scores: each column of a table of metrics, with the rows and the model that it is about."""

import math
from dataclasses import dataclass
from typing import Any

from forel.markup import counted, number_text
from forel.training.metrics import Report, format_auc

__all__ = ["Score", "mixture_sentence", "scores", "time_sentence", "verdict"]


MIN_ROWS, WORSE = 100, 0.2  # rows to compare two models on, and by which fraction of the loss one is worse


@dataclass(frozen=True)
class Score:
    """Metrics of some rows, and a sentence about them.

    Parameters
    ----------
    name : title of the column
    report : the metrics
    model : which model predicted the rows, and when

    >>> print(Score("held out", Report(10, 25.0, 0.5, None, weighted=True), "never learned from"))
    held out: 10 rows, never learned from; averages are per unit of importance, of which these rows have 25
    """

    name: str
    report: Report
    model: str

    def __str__(self) -> str:
        unit = ""
        if self.report.weighted:
            unit = f"; averages are per unit of importance, of which these rows have {self.report.weight:,.6g}"
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
    return tuple(found)


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
