r"""Progressive validation: how good predictions were before each row was learned from, in constant memory.

Losses are summed row by row, so that sums do not depend on how rows come in blocks. Margins are counted in a histogram
of 65,536 equal bins over [−16, 16], with all beyond in the outermost. From it come the area under the ROC curve and the
calibration table. Pairs of rows that share a bin count half in the area, which is then wrong by at most half of their
share of all pairs; that bound is computed as ``auc_error``, usually about 0.0001, and only digits that it leaves right
to two units are shown. It is no standard error: how far another sample's area may be is another question.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forel.losses import MarginLoss
from forel.losses.margin import Mixing

__all__ = ["Bucket", "Progressive", "Report"]

BINS, REACH = 1 << 16, 16.0
Sums = NDArray[np.float64]


@dataclass(frozen=True)
class Bucket:
    """Rows with similar predictions: their weight, the mean prediction and the mean label."""

    weight: float
    predicted: float
    actual: float


@dataclass(frozen=True)
class Report:
    """What is known of some rows; each row counts by its importance.

    Parameters
    ----------
    rows : how many, whatever their importance
    weight : the sum of their importances
    loss : the average loss
    entropy : the average log-loss relative to that of always predicting the mean label; None without probabilities
    auc, auc_error : the area under the ROC curve, and by how much it may be wrong; None without two classes
    calibration : sum of predictions over sum of labels; None without probabilities
    mean_label, mean_prediction : averages
    table : rows in order of their predictions in ten parts of about the same weight; empty without probabilities
    """

    rows: int
    weight: float
    loss: float
    entropy: float | None
    auc: float | None
    auc_error: float | None
    calibration: float | None
    mean_label: float
    mean_prediction: float
    table: tuple[Bucket, ...] = ()

    def lines(self, loss: str) -> list[tuple[str, str, str]]:
        """Return what is known in words: a field, its name and its value; ``loss`` is the name of an average loss."""
        lines = [("rows", "rows", f"{self.rows:,}"), ("loss", loss, f"{self.loss:.6f}")]
        if self.entropy is not None:
            lines.append(("entropy", "normalised entropy", f"{self.entropy:.4f}"))
        if self.auc is not None:
            lines.append(("auc", "AUC", self._area()))
        if self.calibration is not None:
            lines.append(("calibration", "calibration ratio", f"{self.calibration:.4f}"))
        means = (("mean_label", self.mean_label), ("mean_prediction", self.mean_prediction))
        return [*lines, *((field, field.replace("_", " "), f"{value:.6g}") for field, value in means)]

    def _area(self) -> str:
        """Return the area with those digits that are right to two units, whatever bins leave open."""
        assert self.auc is not None
        assert self.auc_error is not None
        digits = 4
        while digits > 1 and self.auc_error > 1.5 * 10.0**-digits:
            digits -= 1
        return f"{self.auc:.{digits}f}"


class Progressive:
    """Sums over predictions, since the start and since the last report.

    Parameters
    ----------
    loss : a loss of ``forel.losses``, or any function of margins and labels; its ``link``, if it has one, turns margins
        into predictions
    kind : "probability" for labels of 0 to 1, "sign" for −1 and 1, "number" for others

    >>> from forel.losses import Logistic
    >>> seen = Progressive(Logistic(), "probability")
    >>> seen.add([-1.0, 2.0, 0.5, 0.0], [0, 1, 1, 0])
    >>> total = seen.report()
    >>> round(total.loss, 4), round(total.entropy, 4), total.auc, round(total.calibration, 3)
    (0.4019, 0.5798, 1.0, 1.136)
    >>> seen.report(recent=True).rows
    4
    >>> seen.add([1.0], [0])
    >>> seen.report(recent=True).rows, seen.report().rows
    (1, 5)
    """

    def __init__(self, loss: MarginLoss | Any, kind: str = "probability") -> None:
        self.loss, self.kind = loss, kind
        self.link = getattr(loss, "link", np.asarray) if kind != "sign" else np.asarray
        self._sums = np.zeros(5)  # rows, weight, loss, label, prediction
        # Weight, label, prediction: those of a bin lie together, where one row finds them.
        self._bins = np.zeros((BINS if kind != "number" else 1, 3)).T
        self._mark = self._sums.copy(), self._bins.copy()  # at the last report

    def add(self, margins: ArrayLike, labels: ArrayLike, importance: ArrayLike | None = None) -> None:
        """Count some rows."""
        from forel.learner.kernels.kernel import routine

        m, y = _floats(margins), _floats(labels)
        w = np.ones(y.size) if importance is None else _floats(importance)
        _even(y.size, labels=y, margins=m, importance=w)
        if self.kind != "sign" and getattr(self.loss, "mixing", None) is Mixing.BAYES:
            losses, predictions = np.empty((2, y.size))
            routine("counting", "log_losses")(m, y, losses, predictions)
        else:
            losses, predictions = (np.ascontiguousarray(a, np.float64) for a in (self.loss(m, y), self.link(m)))
            _even(y.size, loss=losses, link=predictions)  # which may be anybody's
        shares = (1 + y) / 2 if self.kind == "sign" else y
        routine("counting", "tally")(m, y, shares, w, losses, predictions, self._sums, self._bins.T, REACH)

    def packed(self) -> dict[str, Sums]:
        """Return the sums since the start as arrays; most bins are empty, and left out."""
        used = np.flatnonzero(self._bins.any(axis=0))
        return {"sums": self._sums.copy(), "used": used.astype(np.float64), "bins": self._bins[:, used]}

    def unpack(self, arrays: Mapping[str, Sums]) -> None:
        """Go on from the sums of another, as :meth:`packed` returned them."""
        self._sums[:] = arrays["sums"]
        self._bins[:] = 0
        self._bins[:, arrays["used"].astype(np.int64)] = arrays["bins"]
        self._mark = self._sums.copy(), self._bins.copy()

    def report(self, recent: bool = False) -> Report:
        """Return what is known since the start, or since the last ``recent`` report."""
        sums, bins = self._sums, self._bins
        if recent:
            before, self._mark = self._mark, (sums.copy(), bins.copy())
            # What was added since is a difference, which rounding may leave a little below 0.
            sums, bins = sums - before[0], np.maximum(bins - before[1], 0)
        return _report(self.kind, sums, bins)


def _floats(values: ArrayLike) -> NDArray[Any]:
    """Return numbers as compiled code takes them: float32 as it is, all else as doubles."""
    array = np.ascontiguousarray(values)
    return array if array.dtype == np.float32 else array.astype(np.float64, copy=False)


def _even(rows: int, **columns: Sums) -> None:
    """Refuse columns that do not have a number for each row: compiled code would read on after their end."""
    for name, column in columns.items():
        if column.shape != (rows,):
            raise ValueError(f"{name}: got shape {column.shape}, expected one number for each of {rows} labels")


def _report(kind: str, sums: Sums, bins: Sums) -> Report:
    rows, weight, loss, label, prediction = sums.tolist()
    share = (lambda value: value / weight) if weight else (lambda value: math.nan)
    mean = share(label)
    probability = kind == "probability" and weight > 0
    spread = -_xlogx(mean) - _xlogx(1 - mean) if probability else 0.0
    auc, error = area(bins[0] - bins[1], bins[1]) if kind != "number" else (None, None)
    return Report(
        rows=int(rows),
        weight=weight,
        loss=share(loss),
        entropy=share(loss) / spread if spread > 0 else None,
        auc=auc,
        auc_error=error,
        calibration=prediction / label if probability and label else None,
        mean_label=mean,
        mean_prediction=share(prediction),
        table=_table(bins) if probability else (),
    )


def area(negative: Sums, positive: Sums) -> tuple[float | None, float | None]:
    """Return the area under the ROC curve from weights in bins that rise, and by how much it may be wrong.

    >>> area(np.array([2.0, 1.0, 0.0]), np.array([0.0, 1.0, 1.0]))
    (0.916..., 0.083...)
    """
    pairs = float(negative.sum()) * float(positive.sum())
    if pairs <= 0:
        return None, None
    below = np.cumsum(negative) - negative
    # Not @, which would start threads on arrays this long.
    tied = 0.5 * float(np.sum(positive * negative)) / pairs
    return float(np.sum(positive * below)) / pairs + tied, tied


def _table(bins: Sums, parts: int = 10) -> tuple[Bucket, ...]:
    weight, label, prediction = bins
    reached = np.cumsum(weight)
    # Which tenth the middle of a bin falls into: one with much of the weight is a part of its own.
    part = np.minimum(((reached - weight / 2) / reached[-1] * parts).astype(np.int64), parts - 1)
    sums = [np.bincount(part, values, parts).tolist() for values in (weight, prediction, label)]
    return tuple(Bucket(w, p / w, y / w) for w, p, y in zip(*sums, strict=True) if w > 0)


def _xlogx(x: float) -> float:
    return x * math.log(x) if x > 0 else 0.0
