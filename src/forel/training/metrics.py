r"""Streaming metrics of predictions: loss, normalized entropy, AUC and calibration, in constant memory.

Sums are accumulated row by row, so that they do not depend on how rows are divided into blocks. Margins are counted in
a histogram of 65,536 equal bins over [−16, 16]; the outermost bins also hold all margins beyond. The histogram yields
the area under the ROC curve and the calibration table. A pair of rows in the same bin counts half in the area, so the
area is off by at most half the fraction of such pairs. This bound is reported as ``auc_error``, usually about 0.0001,
and limits the digits that are printed. How much the area would vary between samples of as many rows is ``auc_se``.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forel.losses import MarginLoss
from forel.losses.margin import Mixing
from forel.markup import number_text
from forel.training.thresholds import Thresholds

__all__ = [
    "LIMIT",
    "CalibrationBin",
    "Metrics",
    "Report",
    "RowScores",
    "RunningTotals",
    "StreamMetrics",
    "Totals",
    "auc_standard_error",
    "format_auc",
    "roc_auc",
]

Floats = NDArray[np.float64]


def roc_auc(negative: Floats, positive: Floats) -> tuple[float | None, float | None]:
    """Return the area under the ROC curve of a histogram by increasing score, and its largest possible error.

    >>> roc_auc(np.array([2.0, 1.0, 0.0]), np.array([0.0, 1.0, 1.0]))
    (0.916..., 0.083...)
    """
    pairs = float(negative.sum()) * float(positive.sum())
    if pairs <= 0:
        return None, None
    below = np.cumsum(negative) - negative
    # Not the @ operator, for which BLAS starts threads on arrays of this length.
    tied = 0.5 * float(np.sum(positive * negative)) / pairs
    return float(np.sum(positive * below)) / pairs + tied, tied


def format_auc(auc: float, error: float) -> str:
    """Return the area with as many digits, up to four, as its largest possible error leaves right to two units.

    >>> format_auc(0.71234, 0.00001), format_auc(0.71234, 0.004)
    ('0.7123', '0.71')
    """
    digits = 4
    while digits > 1 and error > 1.5 * 10.0**-digits:
        digits -= 1
    return f"{auc:.{digits}f}"


def auc_standard_error(negative: Floats, positive: Floats) -> float | None:
    r"""Return DeLong's standard error of the area for rows that each count once.

    The area is a mean over pairs of a positive and a negative row. With the mean $V_i$ of a positive row over all
    negative ones, and $W_j$ of a negative row over all positive ones, the variance is estimated by $S_V^2/n + S_W^2/m$,
    where $S^2$ are the sample variances of V and W.

    None with fewer than two rows of a class, and where the estimate is 0: if the classes do not overlap in a sample, it
    says nothing about others.

    >>> round(auc_standard_error(np.array([2.0, 1.0, 0.0]), np.array([0.0, 1.0, 1.0])), 3)
    0.118
    """
    positives, negatives = float(positive.sum()), float(negative.sum())
    if min(positives, negatives) < 2:
        return None
    ranks_of_positive = (np.cumsum(negative) - negative / 2) / negatives
    ranks_of_negative = (positives - np.cumsum(positive) + positive / 2) / positives
    variance = 0.0
    for counts, ranks, count in ((positive, ranks_of_positive, positives), (negative, ranks_of_negative, negatives)):
        mean = float(np.sum(counts * ranks)) / count
        variance += float(np.sum(counts * (ranks - mean) ** 2)) / (count - 1) / count
    return math.sqrt(variance) or None


class Totals(NamedTuple):
    """Rows, the sum of their importances, and the sum of their losses.

    >>> Totals.of([3, 3.0, 1.5]).mean
    0.5
    """

    rows: int
    weight: float
    loss: float

    @classmethod
    def of(cls, sums: Sequence[float] | Floats) -> "Totals":
        """Return the totals of sums, of which these are the first."""
        return cls(int(sums[0]), float(sums[1]), float(sums[2]))

    @property
    def mean(self) -> float:
        """The mean loss; NaN without rows."""
        return self.loss / self.weight if self.weight else math.nan


class RunningTotals:
    """The first sums of metrics, without a report, which takes milliseconds.

    Parameters
    ----------
    sums : rows, importance, loss, and others; an array that its owner changes in place

    >>> sums = np.array([2.0, 2.0, 1.0])
    >>> running = RunningTotals(sums)
    >>> sums += 3, 3.0, 1.5
    >>> running.total.mean, running.recent().mean
    (0.5, 0.5)
    """

    def __init__(self, sums: Floats) -> None:
        self._sums, self._before = sums, sums.copy()

    @property
    def total(self) -> Totals:
        """The sums of all rows."""
        return Totals.of(self._sums)

    def recent(self) -> Totals:
        """Return the sums of the rows added since the previous call."""
        before, self._before = self._before, self._sums.copy()
        return Totals.of(self._sums - before)


BINS, LIMIT = 1 << 16, 16.0
TABLES = ("table", "confusion", "thresholds")  # not in the representation of a report


@dataclass(frozen=True)
class CalibrationBin:
    """Rows with similar predictions: their total weight, mean prediction and mean label."""

    weight: float
    predicted: float
    actual: float


@dataclass(frozen=True, repr=False)
class Report:
    """Metrics of a set of rows; each row is weighted by its importance.

    Parameters
    ----------
    rows : number of rows of positive importance
    weight : sum of importances
    loss : mean loss, per unit of importance
    entropy : mean log-loss divided by that of always predicting the mean label, or the shares of several classes; None
        without probabilities
    auc, auc_error : area under the ROC curve, and the largest possible error of it; None without two classes
    auc_se : DeLong's standard error of ``auc``, for independent rows; None if labels are between 0 and 1, if a row's
        importance is not 1, or if it is estimated as 0, as where all positive rows have larger margins than all others
    calibration : sum of predictions over sum of labels; None without probabilities
    mean_label, mean_prediction : weighted means; None for several classes
    table : calibration by deciles of the prediction; empty without probabilities
    rmse, mae : root of the mean squared error, and mean absolute error, of regression; None for classes
    baseline_rmse : ``rmse`` of always predicting the mean label
    r2 : share of the labels' variance that predictions explain; None if labels are equal
    deviance : mean Poisson deviance, twice the loss above that of predicting each label; None for other losses, and
        where a label is beyond the margins of the loss
    weighted : whether the importance of one of these rows is not 1
    accuracy : share of rows whose class is the predicted one of several classes
    baseline_accuracy : accuracy of always predicting the commonest class
    classes : names of several classes
    confusion : total weight by actual class, a row each, and predicted class
    thresholds : precision, recall and false alarms at each threshold; None without two classes
    """

    rows: int
    weight: float
    loss: float
    entropy: float | None
    auc: float | None = None
    auc_error: float | None = None
    calibration: float | None = None
    mean_label: float | None = None
    mean_prediction: float | None = None
    table: tuple[CalibrationBin, ...] = ()
    rmse: float | None = None
    mae: float | None = None
    baseline_rmse: float | None = None
    r2: float | None = None
    accuracy: float | None = None
    baseline_accuracy: float | None = None
    classes: tuple[str, ...] = ()
    confusion: tuple[tuple[float, ...], ...] = ()
    auc_se: float | None = None
    deviance: float | None = None
    weighted: bool = False
    thresholds: Thresholds | None = field(default=None, repr=False, compare=False)

    def to_json(self) -> dict[str, Any]:
        """Return the metrics as JSON, without those of thresholds."""
        found = asdict(replace(self, thresholds=None))
        del found["thresholds"]
        return found

    def __repr__(self) -> str:
        known = ((one.name, getattr(self, one.name)) for one in fields(self) if one.name not in TABLES)
        shown = ((name, value) for name, value in known if value not in (None, ()) and value == value)
        return f"Report({', '.join(f'{name}={value!r}' for name, value in shown)})"

    def lines(self, loss_name: str) -> list[tuple[str, str, str]]:
        """Return (field, title, formatted value) of each metric that is defined; ``loss_name`` is the loss's title."""
        loss = (loss_name, self.loss) if self.deviance is None else ("Poisson deviance", self.deviance)
        lines = [("rows", "rows", f"{self.rows:,}")]
        if self.weighted:
            lines.append(("weight", "sum of importances", number_text(self.weight)))
        # The loss is not a number without rows, or if none has a positive importance.
        lines.append(("loss", loss[0], number_text(loss[1], decimals=6)))
        if self.entropy is not None:
            lines.append(("entropy", "normalized entropy", f"{self.entropy:.4f}"))
        if self.auc is not None:
            lines.append(("auc", "AUC", format_auc(self.auc, self.auc_error or 0.0)))
        if self.auc_se is not None:
            lines.append(("auc_se", "AUC, std. error", f"{self.auc_se:.2g}"))
        if self.calibration is not None:
            lines.append(("calibration", "calibration ratio", f"{self.calibration:.4f}"))
        if self.accuracy is not None:
            lines.append(("accuracy", "accuracy", f"{self.accuracy:.4f}"))
        if self.baseline_accuracy is not None:
            lines.append(("baseline_accuracy", "accuracy of the commonest class", f"{self.baseline_accuracy:.4f}"))
        if self.rmse is not None and self.mae is not None:
            lines += [("rmse", "RMSE", number_text(self.rmse)), ("mae", "MAE", number_text(self.mae))]
        if self.baseline_rmse is not None:
            lines.append(("baseline_rmse", "RMSE of the mean label", number_text(self.baseline_rmse)))
        if self.r2 is not None:
            lines.append(("r2", "R²", f"{self.r2:.4f}" if self.r2 > -1000 else f"{self.r2:.4g}"))
        means = (("mean_label", self.mean_label), ("mean_prediction", self.mean_prediction))
        known = ((field, value) for field, value in means if value is not None and not math.isnan(value))
        return [*lines, *((field, field.replace("_", " "), number_text(value)) for field, value in known)]


class RowScores(NamedTuple):
    """What each row adds to metrics; of several classes, a prediction is 1 where it is right, and margins are 0."""

    margins: NDArray[Any]
    labels: NDArray[Any]
    weights: NDArray[Any]
    losses: NDArray[Any]
    predictions: NDArray[Any]


class StreamMetrics(Protocol):
    """Metrics that are accumulated over a stream of predictions: :class:`Metrics`, or those of several classes."""

    running: RunningTotals

    def add(self, margins: ArrayLike, labels: ArrayLike, importance: ArrayLike | None = None) -> RowScores:
        """Add rows, and return what each of them adds."""
        ...

    def report(self) -> Report:
        """Return the metrics of all rows."""
        ...

    def summary(self, sums: Floats, bins: Floats) -> Report:
        """Return the report of sums over rows, and of a histogram of margins."""
        ...

    def pack(self) -> dict[str, Floats]:
        """Return the totals as arrays."""
        ...

    def unpack(self, arrays: Mapping[str, Floats]) -> None:
        """Replace the totals by those that :meth:`pack` returned."""
        ...


class Metrics:
    """Accumulated metrics of predictions.

    Parameters
    ----------
    loss : a loss of ``forel.losses``, or a function of margins and labels; its ``link``, if it has one, maps margins to
        predictions
    kind : "probability" for labels in [0, 1], "sign" for labels −1 and 1, "number" for other labels

    >>> from forel.losses import Logistic
    >>> metrics = Metrics(Logistic(), "probability")
    >>> _ = metrics.add([-1.0, 2.0, 0.5, 0.0], [0, 1, 1, 0])
    >>> total = metrics.report()
    >>> round(total.loss, 4), round(total.entropy, 4), total.auc, round(total.calibration, 3)
    (0.4019, 0.5798, 1.0, 1.136)
    >>> metrics.running.recent().rows
    4
    >>> _ = metrics.add([1.0], [0])
    >>> metrics.running.recent().rows, metrics.running.total.rows
    (1, 5)
    """

    def __init__(self, loss: MarginLoss | Any, kind: str = "probability") -> None:
        self.loss, self.kind = loss, kind
        self.link = getattr(loss, "link", np.asarray) if kind != "sign" else np.asarray
        self._sums = np.zeros(5)  # rows, weight, loss, label, prediction
        # Weight, label and prediction of a bin are adjacent in memory: a row updates all three.
        self._bins = np.zeros((BINS if kind != "number" else 1, 3)).T
        # Of regression: squared and absolute errors, labels and their squares after subtracting the first label, that
        # label, and least losses. Of classes: how far labels are from 0 and 1. Last, how far importances are from 1.
        self._errors = np.zeros(7)
        self.running = RunningTotals(self._sums)

    def add(self, margins: ArrayLike, labels: ArrayLike, importance: ArrayLike | None = None) -> RowScores:
        """Add rows, and return what each of them adds."""
        from forel.learner.kernels.kernel import routine

        # Labels of regression may have more digits than float32.
        m, y = (_floats(values, single=self.kind != "number") for values in (margins, labels))
        w = np.ones(y.size) if importance is None else _floats(importance)
        _check_lengths(y.size, labels=y, margins=m, importance=w)
        if self.kind != "sign" and getattr(self.loss, "mixing", None) is Mixing.BAYES:
            losses, predictions = np.empty((2, y.size))
            routine("counting", "log_losses")(m, y, losses, predictions)
        else:
            losses, predictions = (np.ascontiguousarray(a, np.float64) for a in (self.loss(m, y), self.link(m)))
            _check_lengths(y.size, loss=losses, link=predictions)  # both may be user-defined
        positive = (1 + y) / 2 if self.kind == "sign" else y
        if self.kind == "number":
            self._add_errors(y, predictions, w)
        else:
            self._errors[0] += np.minimum(positive, 1 - positive)[w > 0].sum()
        self._errors[6] += np.abs(w - 1)[w > 0].sum()
        routine("counting", "tally")(m, y, positive, w, losses, predictions, self._sums, self._bins.T, LIMIT)
        return RowScores(m, positive, w, losses, predictions)

    def summary(self, sums: Floats, bins: Floats) -> Report:
        """Return the report of sums of rows, weight, loss, label and prediction, and of a histogram of margins."""
        return _report(self.kind, sums, bins)

    def _add_errors(self, labels: Floats, predictions: Floats, weights: Floats) -> None:
        """Add the errors of predictions, row by row."""
        if not self._sums[0] and labels.size:
            self._errors[4] = labels[0]
        errors, centered = predictions - labels, labels.astype(np.float64) - self._errors[4]
        saturated = getattr(self.loss, "saturated", np.zeros_like)(labels)
        terms = errors**2, np.abs(errors), centered, centered**2, saturated
        for k, parts in zip((0, 1, 2, 3, 5), terms, strict=True):
            # A cumulative sum adds in order, so that the total does not depend on blocks.
            self._errors[k] = np.cumsum(np.append(self._errors[k], weights * parts))[-1]

    def pack(self) -> dict[str, Floats]:
        """Return the totals as arrays; empty bins are left out."""
        used = np.flatnonzero(self._bins.any(axis=0))
        sums = {"sums": self._sums.copy(), "errors": self._errors.copy()}
        return {**sums, "used": used.astype(np.float64), "bins": self._bins[:, used]}

    def unpack(self, arrays: Mapping[str, Floats]) -> None:
        """Replace the totals by those that :meth:`pack` returned."""
        self._sums[:] = arrays["sums"]
        self._bins[:] = 0
        self._bins[:, arrays["used"].astype(np.int64)] = arrays["bins"]
        self._errors[:] = arrays["errors"]
        self.running = RunningTotals(self._sums)  # recent rows are those after these

    def report(self) -> Report:
        """Return the metrics of all rows."""
        sums, bins, errors = self._sums, self._bins, self._errors
        report = replace(_report(self.kind, sums, bins), weighted=bool(errors[6]))
        if self.kind != "number":
            report = replace(report, thresholds=Thresholds.of_margins(bins, LIMIT, self.link))
            once = not report.weighted and not errors[0]
            return replace(report, auc_se=auc_standard_error(bins[0] - bins[1], bins[1])) if once else report
        if not report.weight > 0 or np.isnan(errors[:5]).any():
            return report
        least = float(errors[5] / sums[1]) if hasattr(self.loss, "saturated") else math.nan
        deviance = max(2 * (report.loss - least), 0.0) if math.isfinite(least) else None
        return replace(report, **_errors(errors[:5], sums[1]), deviance=deviance)


def _floats(values: ArrayLike, single: bool = True) -> NDArray[Any]:
    """Return a contiguous array of float64, or of float32 if it already has that type and ``single`` allows it."""
    array = np.ascontiguousarray(values)
    return array if single and array.dtype == np.float32 else array.astype(np.float64, copy=False)


def _check_lengths(rows: int, **columns: Floats) -> None:
    """Raise unless each column has one number per row: compiled code does not check bounds."""
    for name, column in columns.items():
        if column.shape != (rows,):
            raise ValueError(f"{name}: got shape {column.shape}, expected one number for each of {rows} labels")


def _errors(sums: Floats, weight: float) -> dict[str, Any]:
    """Return the metrics of regression."""
    squared, absolute, label, label_squared, _ = (sums / weight).tolist()
    variance = max(label_squared - label**2, 0.0)
    return {
        "rmse": math.sqrt(max(squared, 0.0)),
        "mae": absolute,
        "baseline_rmse": math.sqrt(variance),
        "r2": 1 - squared / variance if variance > 0 else None,
    }


def _report(kind: str, sums: Floats, bins: Floats) -> Report:
    rows, weight, loss, label, prediction = sums.tolist()
    mean = (lambda total: total / weight) if weight else (lambda total: math.nan)
    mean_label = mean(label)
    probability = kind == "probability" and weight > 0
    base_entropy = -_xlogx(mean_label) - _xlogx(1 - mean_label) if probability else 0.0
    auc, auc_error = roc_auc(bins[0] - bins[1], bins[1]) if kind != "number" else (None, None)
    return Report(
        rows=int(rows),
        weight=weight,
        loss=mean(loss),
        entropy=mean(loss) / base_entropy if base_entropy > 0 else None,
        auc=auc,
        auc_error=auc_error,
        calibration=prediction / label if probability and label else None,
        mean_label=mean_label,
        mean_prediction=mean(prediction),
        table=_calibration_table(bins) if probability else (),
    )


def _calibration_table(bins: Floats, parts: int = 10) -> tuple[CalibrationBin, ...]:
    weight, label, prediction = bins
    cumulative = np.cumsum(weight)
    # The midpoint of a bin decides its part, so that a bin with much of the weight is a part by itself.
    part = np.minimum(((cumulative - weight / 2) / cumulative[-1] * parts).astype(np.int64), parts - 1)
    sums = [np.bincount(part, values, parts).tolist() for values in (weight, prediction, label)]
    return tuple(CalibrationBin(w, p / w, y / w) for w, p, y in zip(*sums, strict=True) if w > 0)


def _xlogx(x: float) -> float:
    return x * math.log(x) if x > 0 else 0.0
