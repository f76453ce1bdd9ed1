r"""Streaming metrics of predictions: loss, normalized entropy, AUC and calibration, in constant memory.

Sums are accumulated row by row, so that they do not depend on how rows are divided into blocks. Margins are counted in
a histogram of 65,536 equal bins over [−16, 16]; the outermost bins also hold all margins beyond. The histogram yields
the area under the ROC curve and the calibration table. A pair of rows in the same bin counts half in the area, so the
area is off by at most half the fraction of such pairs. This bound is reported as ``auc_error``, usually about 0.0001,
and limits the digits that are printed. How much the area would vary between samples of as many rows is ``auc_se``.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forel.data.labels import padded_names
from forel.learner.settings import Settings
from forel.losses import MarginLoss
from forel.losses.links import Link, Normalized
from forel.losses.margin import Mixing
from forel.losses.sigmoid import log_normalized
from forel.markup import number_text
from forel.store.serving import class_link, number_of_classes
from forel.training.run import Observer, Step
from forel.training.thresholds import Thresholds

__all__ = [
    "LIMIT",
    "CalibrationBin",
    "ClassMetrics",
    "Measures",
    "Metrics",
    "Report",
    "RowScores",
    "StreamMetrics",
    "Totals",
    "auc_standard_error",
    "format_auc",
    "label_kind",
    "metrics_for",
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

    >>> totals = Totals.of([3, 3.0, 1.5])
    >>> totals.mean, totals.since(Totals(1, 2.0, 1.0)).mean
    (0.5, 0.5)
    """

    rows: int
    weight: float
    loss: float

    @classmethod
    def of(cls, sums: Sequence[float] | Floats) -> "Totals":
        """Return the totals of sums, of which these are the first."""
        return cls(int(sums[0]), float(sums[1]), float(sums[2]))

    def since(self, before: "Totals") -> "Totals":
        """Return the totals of the rows that were added to others."""
        return Totals.of([now - then for now, then in zip(self, before, strict=True)])

    @property
    def mean(self) -> float:
        """The mean loss; NaN without rows."""
        return self.loss / self.weight if self.weight else math.nan


BINS, LIMIT = 1 << 16, 16.0
TABLES = ("table", "confusion", "histogram")  # not in the representation of a report


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
    histogram : of two classes the predictions at the lower edges of bins, their weights, and the positive ones
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
    histogram: tuple[Floats, Floats, Floats] | None = field(default=None, repr=False, compare=False)

    @cached_property
    def thresholds(self) -> Thresholds | None:
        """Precision, recall and false alarms at each threshold; None without two classes."""
        return None if self.histogram is None else Thresholds(*self.histogram)

    def to_json(self) -> dict[str, Any]:
        """Return the metrics as JSON, without the histogram."""
        found = asdict(replace(self, histogram=None))
        del found["histogram"]
        return found

    def __repr__(self) -> str:
        known = ((one.name, getattr(self, one.name)) for one in fields(self) if one.name not in TABLES)
        shown = ((name, value) for name, value in known if value not in (None, ()) and value == value)
        return f"Report({', '.join(f'{name}={value!r}' for name, value in shown)})"

    def lines(self, loss_name: str) -> list[tuple[str, str, str]]:
        """Return (field, title, formatted value) of each metric that is defined; ``loss_name`` is the loss's title."""
        loss = (loss_name, self.loss) if self.deviance is None else ("Poisson deviance", self.deviance)
        four = "{:.4f}".format
        shown: dict[str, tuple[str, Callable[[Any], str]]] = {
            "rows": ("rows", "{:,}".format),
            "weight": ("sum of importances", number_text),
            "loss": (loss[0], lambda _: number_text(loss[1], decimals=6)),
            "entropy": ("normalized entropy", four),
            "auc": ("AUC", lambda auc: format_auc(auc, self.auc_error or 0.0)),
            "auc_se": ("AUC, std. error", "{:.2g}".format),
            "calibration": ("calibration ratio", four),
            "accuracy": ("accuracy", four),
            "baseline_accuracy": ("accuracy of the commonest class", four),
            "rmse": ("RMSE", number_text),
            "mae": ("MAE", number_text),
            "baseline_rmse": ("RMSE of the mean label", number_text),
            "r2": ("R²", lambda r2: f"{r2:.4f}" if r2 > -1000 else f"{r2:.4g}"),
            "mean_label": ("mean label", number_text),
            "mean_prediction": ("mean prediction", number_text),
        }
        if not self.weighted:
            del shown["weight"]
        # The loss is not a number without rows, or if none has a positive importance.
        known = {name: value for name in shown if (value := getattr(self, name)) == value or name == "loss"}
        return [(name, shown[name][0], shown[name][1](value)) for name, value in known.items() if value is not None]


class RowScores(NamedTuple):
    """What each row adds to metrics; of several classes, a prediction is 1 where it is right, and margins are 0."""

    margins: NDArray[Any]
    labels: NDArray[Any]
    weights: NDArray[Any]
    losses: NDArray[Any]
    predictions: NDArray[Any]


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
    >>> metrics.total.rows
    4
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

    @property
    def total(self) -> Totals:
        """The first sums, without a report, which takes milliseconds."""
        return Totals.of(self._sums)

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

    def _histogram(self) -> tuple[Floats, Floats, Floats] | None:
        """Return the predictions at edges of bins, and their rows; the first bin has all margins below it as well."""
        weights, positives = self._bins[0], self._bins[1]
        if not 0 < float(positives.sum()) < float(weights.sum()):
            return None
        used, margins = weights > 0, np.linspace(-LIMIT, LIMIT, weights.size, endpoint=False)
        margins[0] = -np.inf
        return np.asarray(self.link(margins[used]), np.float64), weights[used], positives[used]

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

    def report(self) -> Report:
        """Return the metrics of all rows."""
        sums, bins, errors = self._sums, self._bins, self._errors
        report = replace(_report(self.kind, sums, bins), weighted=bool(errors[6]))
        if self.kind != "number":
            report = replace(report, histogram=self._histogram())
            once = not report.weighted and not errors[0]
            return replace(report, auc_se=auc_standard_error(bins[0] - bins[1], bins[1])) if once else report
        if not report.weight > 0 or np.isnan(errors[:5]).any():
            return report
        squared, absolute, label, label_squared, _, least, _ = (errors / sums[1]).tolist()
        known = hasattr(self.loss, "saturated") and math.isfinite(least)
        variance = max(label_squared - label**2, 0.0)
        return replace(
            report,
            rmse=math.sqrt(max(squared, 0.0)),
            mae=absolute,
            baseline_rmse=math.sqrt(variance),
            r2=1 - squared / variance if variance > 0 else None,
            deviance=max(2 * (report.loss - least), 0.0) if known else None,
        )


class ClassMetrics:
    """Accumulated metrics of several classes.

    Parameters
    ----------
    settings : settings of the model, with its loss
    link : from margins to probabilities of classes, or to the class
    count : number of classes
    names : names of the classes; a list may grow to this number

    >>> from forel.losses.links import SoftmaxLink
    >>> metrics = ClassMetrics(Settings("softmax"), SoftmaxLink(), 2, ["cat", "dog"])
    >>> _ = metrics.add([[2.0, 0.0], [0.0, 1.0], [1.0, 0.0]], [0, 1, 1])
    >>> found = metrics.report()
    >>> round(found.loss, 3), round(found.accuracy, 3), found.confusion
    (0.584, 0.667, ((1.0, 0.0), (1.0, 1.0)))
    """

    def __init__(self, settings: Settings, link: Link, count: int, names: Sequence[str]) -> None:
        self.settings, self.link, self.count, self.names = settings, link, count, names
        self._sums = np.zeros(4)  # rows, weight, loss, and how far importances are from 1
        self._confusion = np.zeros((count, count))

    @property
    def total(self) -> Totals:
        """The first sums."""
        return Totals.of(self._sums)

    def add(self, margins: ArrayLike, labels: ArrayLike, importance: ArrayLike | None = None) -> RowScores:
        """Add rows, a margin for each class and the number of the class, and return what each of them adds."""
        m, y = np.asarray(margins, np.float64), np.asarray(labels).astype(np.int64)
        w = np.ones(y.size) if importance is None else np.asarray(importance, np.float64)
        if m.shape != (y.size, self.count) or w.shape != y.shape:
            raise ValueError(f"margins: got shape {m.shape}, expected {(y.size, self.count)}, a number for each class")
        predicted, losses = m.argmax(axis=1), self._losses(m, y)
        np.add.at(self._confusion, (y, predicted), w)
        for k, parts in enumerate((w > 0, w, w * losses, np.abs(w - 1) * (w > 0))):
            # A cumulative sum adds in order, so that the total does not depend on blocks.
            self._sums[k] = np.cumsum(np.append(self._sums[k], parts))[-1]
        return RowScores(np.zeros(y.size), y, w, losses, (predicted == y).astype(np.float64))

    def summary(self, sums: Floats, bins: Floats) -> Report:
        """Return the report of sums of rows, weight, loss, label and right predictions."""
        rows, weight, loss, _, right = sums.tolist()
        mean: Any = (lambda total: total / weight) if weight > 0 else (lambda total: math.nan)
        return Report(int(rows), weight, mean(loss), None, accuracy=mean(right))

    def _losses(self, margins: Floats, labels: NDArray[np.int64]) -> Floats:
        from scipy.special import log_expit

        if self.link.probabilities:
            logs = log_normalized(log_expit(margins) if isinstance(self.link, Normalized) else margins)
            return np.asarray(-logs[np.arange(labels.size), labels])
        is_class = labels[:, None] == np.arange(self.count)
        targets = np.where(is_class, 1.0, -1.0 if self.settings.signed else 0.0)
        losses: Floats = np.sum(self.settings.loss_function(margins, targets), axis=1)
        return losses

    def pack(self) -> dict[str, Floats]:
        """Return the totals as arrays."""
        return {"sums": self._sums.copy(), "confusion": self._confusion.ravel()}

    def unpack(self, arrays: Mapping[str, Floats]) -> None:
        """Replace the totals by the result of :meth:`pack`."""
        self._sums[:], self._confusion[:] = arrays["sums"], arrays["confusion"].reshape(self._confusion.shape)

    def report(self) -> Report:
        """Return the metrics of all rows."""
        sums, confusion = self._sums, self._confusion
        rows, weight, loss, weighted = sums.tolist()
        mean: Any = (lambda total: float(total) / weight) if weight > 0 else (lambda total: math.nan)
        shares = confusion.sum(axis=1) / weight if weight > 0 else np.zeros(self.count)
        base = -float(np.sum(shares[shares > 0] * np.log(shares[shares > 0])))
        return Report(
            rows=int(rows),
            weight=weight,
            loss=mean(loss),
            entropy=mean(loss) / base if base > 0 and self.link.probabilities else None,
            accuracy=mean(np.trace(confusion)),
            baseline_accuracy=mean(weight * shares.max()),
            classes=padded_names(self.names, self.count),
            confusion=tuple(map(tuple, confusion.tolist())),
            weighted=weighted > 0,
        )


StreamMetrics = Metrics | ClassMetrics


def label_kind(settings: Settings) -> str:
    """Return the kind of labels of a loss: "probability", "sign" or "number".

    >>> label_kind(Settings("hinge"))
    'sign'
    """
    probabilities = settings.loss_function.link.probabilities
    return "sign" if settings.signed else "probability" if probabilities else "number"


def metrics_for(settings: Settings, model: Any, names: Sequence[str] = ()) -> StreamMetrics:
    """Return empty metrics for predictions of a model.

    >>> from forel.learner.learner import Learner
    >>> metrics_for(Settings("hinge"), Learner(4, Settings("hinge"))).kind
    'sign'
    """
    link, count = class_link(model), number_of_classes(model)
    if link is None or count is None:
        return Metrics(settings.loss_function, label_kind(settings))
    return ClassMetrics(settings, link, count, names)


def _floats(values: ArrayLike, single: bool = True) -> NDArray[Any]:
    """Return a contiguous array of float64, or of float32 if it already has that type and ``single`` allows it."""
    array = np.ascontiguousarray(values)
    return array if single and array.dtype == np.float32 else array.astype(np.float64, copy=False)


def _check_lengths(rows: int, **columns: Floats) -> None:
    """Raise unless each column has one number per row: compiled code does not check bounds."""
    for name, column in columns.items():
        if column.shape != (rows,):
            raise ValueError(f"{name}: got shape {column.shape}, expected one number for each of {rows} labels")


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


class Measures(Observer):
    """Metrics of the rows learned from in each pass, and of the rows held out in the last one.

    Parameters
    ----------
    new_metrics : returns empty metrics
    """

    name = "metrics"

    def __init__(self, new_metrics: Callable[[], StreamMetrics]) -> None:
        self._new = new_metrics
        self.progressive, self.holdout = new_metrics(), new_metrics()
        self.finished: list[StreamMetrics] = []  # of the rows learned from, in earlier passes
        self.last_holdout = self.holdout
        # Of the last block: the rows learned from, and those held out.
        self.scores: RowScores | None = None
        self.held_out_scores: RowScores | None = None

    def after_block(self, step: Step) -> None:
        """Add the rows of a block."""
        block, some = step.block, step.learned
        self.scores = self.progressive.add(step.margins[some], block.labels[some], block.importance[some])
        if (out := block.held_out) is not None:
            self.held_out_scores = self.holdout.add(step.margins[out], block.labels[out], block.importance[out])

    def end(self, pass_number: int, last: bool) -> None:
        """Keep the metrics of a pass, and start those of the next one."""
        self.finished.append(self.progressive)
        self.last_holdout = self.holdout
        self.progressive, self.holdout = self._new(), self._new()

    @property
    def first(self) -> StreamMetrics:
        """The metrics of the rows learned from in the first pass."""
        return self.finished[0] if self.finished else self.progressive

    def reports(self) -> tuple[Report, ...]:
        """Return the metrics of the rows learned from in each pass that has ended."""
        return tuple(one.report() for one in self.finished)

    def pack(self) -> tuple[Any, dict[str, Floats]]:
        """Return the state as JSON and arrays."""
        each = [*self.finished, self.progressive, self.holdout]
        arrays = {f"{k}.{name}": array for k, one in enumerate(each) for name, array in one.pack().items()}
        return len(self.finished), arrays

    def unpack(self, known: Any, arrays: Mapping[str, Floats]) -> None:
        """Replace the state by one that :meth:`pack` returned."""
        each = [self._new() for _ in range(known + 2)]
        for k, one in enumerate(each):
            one.unpack({name: arrays[f"{k}.{name}"] for name in one.pack()})
        *self.finished, self.progressive, self.holdout = each
