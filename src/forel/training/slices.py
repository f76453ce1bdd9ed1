r"""Metrics by the values of a column, in total and over time, in bounded memory.

The first 500 values of a column are counted separately, and all later ones as "others". Time is divided into at most
eight periods with equal numbers of rows; when all are full, adjacent ones are merged. So neither memory nor the periods
depend on how rows are divided into blocks. (McMahan et al. 2013, "Ad click prediction", section 7.)
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.training.metrics import LIMIT, Report, RowScores, StreamMetrics
from forel.training.ranking import roc_auc

__all__ = ["Period", "Slice", "SliceMetrics", "SliceTable", "slice_tables"]

MOST = 500  # values that are counted separately
SHOWN = 20  # values of a report: those with the most rows
PERIODS = 8
BINS = 1 << 11  # of the histogram of margins of each value
PERIOD_BINS = 1 << 9  # of that of each value and period
LONGEST = 100  # bytes of a value; values that begin with the same bytes are one
MISSING, OTHERS = "(missing)", "(others)"
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Period:
    """Metrics of consecutive rows: their number, mean loss, sum of predictions over sum of labels, and AUC.

    ``auc_error`` is the largest possible error of the AUC, which is that of a histogram.
    """

    rows: int
    loss: float | None
    calibration: float | None
    auc: float | None = None
    auc_error: float | None = None


@dataclass(frozen=True)
class Slice:
    """Metrics of the rows with one value of a column, in total and by period."""

    value: str
    report: Report
    periods: tuple[Period, ...]


@dataclass(frozen=True)
class SliceTable:
    """Metrics by the values of a column, of which those with the most rows come first and all others last.

    Parameters
    ----------
    column : its name
    ends : the number of the last row of each period, among all rows that were measured
    slices : the values, and their metrics
    """

    column: str
    ends: tuple[int, ...]
    slices: tuple[Slice, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the table as JSON values; None where a metric is not defined."""
        values = []
        for one in self.slices:
            measured = {name: v for name, v in asdict(one.report).items() if v == v and v not in (None, ())}
            measured.pop("table", None)
            values.append({"value": one.value, **measured, "periods": [asdict(period) for period in one.periods]})
        return {"column": self.column, "ends": list(self.ends), "values": values}


class SliceMetrics:
    """Accumulated metrics by the values of a column.

    Parameters
    ----------
    column : its name
    metrics : summarizes the rows of each value

    >>> from forel.losses import Logistic
    >>> from forel.training.metrics import Metrics
    >>> metrics = Metrics(Logistic())
    >>> slices = SliceMetrics("city", metrics)
    >>> slices.add([b"Rome", b"Oslo", b"Rome"], metrics.add([1.0, -1.0, 0.0], [1, 0, 1]))
    >>> [(one.value, one.report.rows, round(one.report.loss, 3)) for one in slices.table().slices]
    [('Rome', 2, 0.503), ('Oslo', 1, 0.313)]
    """

    def __init__(self, column: str, metrics: StreamMetrics) -> None:
        self.column, self.metrics = column, metrics
        self._codes: dict[bytes, int] = {}
        self._width, self._rows = 1, 0  # rows of a period, and rows so far
        # Value, period, and rows, weight, loss, label, prediction; the first value is all others.
        self._sums = np.zeros((8, PERIODS, 5))
        self._bins = np.zeros((8, 3, BINS))  # weight, label and prediction by margin
        self._period_bins = np.zeros((8, PERIODS, 2, PERIOD_BINS))  # weight and label by margin

    def add(self, values: Sequence[bytes], scores: RowScores) -> None:
        """Add rows: the value of each, and its scores."""
        codes = np.array([self._code(value) for value in values], np.int64)
        start = 0
        while start < codes.size:
            stop = min(codes.size, start + PERIODS * self._width - self._rows)
            self._add(codes[start:stop], RowScores(*(part[start:stop] for part in scores)))
            start = stop
            if self._rows == PERIODS * self._width:
                for sums in (self._sums, self._period_bins):
                    sums[:, : PERIODS // 2] = sums[:, ::2] + sums[:, 1::2]
                    sums[:, PERIODS // 2 :] = 0
                self._width *= 2

    def _code(self, value: bytes) -> int:
        """Return the number of a value; 0 for those beyond the first."""
        key = value[:LONGEST]
        if key not in self._codes and len(self._codes) < MOST:
            self._codes[key] = 1 + len(self._codes)
            if len(self._codes) >= len(self._sums):
                more = min(len(self._sums), MOST + 1 - len(self._sums))
                self._sums, self._bins, self._period_bins = (
                    np.concatenate([array, np.zeros((more, *array.shape[1:]))])
                    for array in (self._sums, self._bins, self._period_bins)
                )
        return self._codes.get(key, 0)

    def _add(self, codes: NDArray[np.int64], scores: RowScores) -> None:
        period = np.arange(self._rows, self._rows + codes.size) // self._width
        self._rows += codes.size
        margins, labels, weights, losses, predictions = scores
        columns = np.ones(codes.size), weights, weights * losses, weights * labels, weights * predictions
        # Unlike a sum by bincount, this adds row by row, so that totals do not depend on blocks.
        for k, column in enumerate(columns):
            np.add.at(self._sums[:, :, k], (codes, period), column)
        place = np.clip((margins + LIMIT) * (BINS / (2 * LIMIT)), 0, BINS - 1).astype(np.int64)
        for k, column in enumerate((columns[1], columns[3], columns[4])):
            np.add.at(self._bins[:, k], (codes, place), column)
        for k, column in enumerate((columns[1], columns[3])):
            np.add.at(self._period_bins[:, :, k], (codes, period, place * PERIOD_BINS // BINS), column)

    @property
    def absent(self) -> bool:
        """Whether there were rows, and none of them had a value."""
        return self._rows > 0 and not any(self._codes)

    def table(self) -> SliceTable:
        """Return the metrics of the values with the most rows, and of all others."""
        rows = self._sums[:, :, 0].sum(axis=1)
        words = {code: key.decode("utf-8", "backslashreplace") or MISSING for key, code in self._codes.items()}
        order = sorted((code for code in words if rows[code]), key=lambda code: (-rows[code], code))
        groups = [(words[code], [code]) for code in order[:SHOWN]]
        rest = [code for code in (0, *order[SHOWN:]) if rows[code]]
        if rest:
            groups.append((OTHERS, rest))
        ends = np.minimum(np.arange(1, PERIODS + 1) * self._width, self._rows)
        ends = ends[: -(-self._rows // self._width)]
        slices = tuple(self._slice(value, codes, ends.size) for value, codes in groups)
        return SliceTable(self.column, tuple(ends.tolist()), slices)

    def _slice(self, value: str, codes: list[int], count: int) -> Slice:
        sums = self._sums[codes].sum(axis=0)
        report = self.metrics.summary(sums.sum(axis=0), self._bins[codes].sum(axis=0))
        calibrated, bins = report.calibration is not None, self._period_bins[codes, :count].sum(axis=0)
        areas = [(None, None) if report.auc is None else roc_auc(weight - label, label) for weight, label in bins]
        parts = zip(sums[:count].tolist(), areas, strict=True)
        return Slice(value, report, tuple(_period(one, calibrated, *area) for one, area in parts))

    def pack(self) -> tuple[dict[str, Any], dict[str, Floats]]:
        """Return the state as JSON values and arrays."""
        values = [key.decode("latin-1") for key in self._codes]
        used = np.flatnonzero(self._bins.any(axis=1))
        count, bins = len(values) + 1, np.moveaxis(self._bins, 1, 0).reshape(3, -1)[:, used]
        known = {"column": self.column, "values": values, "width": self._width, "rows": self._rows}
        arrays = {"sums": self._sums[:count], "used": used.astype(np.float64), "bins": bins}
        periods = self._period_bins.ravel()
        filled = np.flatnonzero(periods)
        return known, {**arrays, "period_used": filled.astype(np.float64), "period_bins": periods[filled]}

    def unpack(self, known: Mapping[str, Any], arrays: Mapping[str, Floats]) -> None:
        """Replace the state by one that :meth:`pack` returned."""
        for value in known["values"]:
            self._code(value.encode("latin-1"))
        self._width, self._rows = known["width"], known["rows"]
        self._sums[: len(self._codes) + 1] = arrays["sums"]
        by_part = np.zeros((3, len(self._bins) * BINS))
        by_part[:, arrays["used"].astype(np.int64)] = arrays["bins"]
        self._bins = np.ascontiguousarray(np.moveaxis(by_part.reshape(3, -1, BINS), 0, 1))
        self._period_bins.ravel()[arrays["period_used"].astype(np.int64)] = arrays["period_bins"]


def _period(sums: list[float], calibrated: bool, auc: float | None, auc_error: float | None) -> Period:
    rows, weight, loss, label, prediction = sums
    ratio = prediction / label if calibrated and label else None
    area = (auc, auc_error) if auc == auc else (None, None)
    return Period(int(rows), loss / weight if weight else None, ratio, *area)


def slice_tables(slices: Sequence[SliceMetrics], warn: bool = False) -> tuple[SliceTable, ...]:
    """Return the table of each column; ``warn`` of those of which no row has a value, after the last row."""
    for one in slices if warn else ():
        if one.absent:
            expected = "a column or key of the rows, or a namespace of VW text"
            message = f"slices: got {one.column!r}, of which no row has a value, expected {expected}"
            warnings.warn(message, UserWarning, stacklevel=2)
    return tuple(one.table() for one in slices)
