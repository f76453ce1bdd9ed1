r"""Metrics by the values of a column, in bounded memory.

The first 500 values of a column are counted separately, and all later ones as "others".
(McMahan et al. 2013, "Ad click prediction", section 7.)
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.training.measures import Measures
from forel.training.metrics import LIMIT, Report, RowScores, StreamMetrics
from forel.training.run import Observer, Step

__all__ = ["Slice", "SliceMetrics", "SliceTable", "Slices", "naming_key", "slice_tables"]

MOST = 500  # values that are counted separately
SHOWN = 20  # values of a report: those with the most rows
BINS = 1 << 11  # of the histogram of margins of each value
LONGEST = 100  # bytes of a value; values that begin with the same bytes are one
MISSING, OTHERS = "(missing)", "(others)"
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Slice:
    """Metrics of the rows with one value of a column."""

    value: str
    report: Report


@dataclass(frozen=True)
class SliceTable:
    """Metrics by the values of a column, of which those with the most rows come first and all others last."""

    column: str
    slices: tuple[Slice, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the table as JSON values; None where a metric is not defined."""
        values = []
        for one in self.slices:
            measured = {name: v for name, v in one.report.to_json().items() if v == v and v not in (None, ())}
            measured.pop("table", None)
            values.append({"value": one.value, **measured})
        return {"column": self.column, "values": values}


class SliceMetrics:
    """Accumulated metrics by the values of a column.

    Parameters
    ----------
    column : its name
    metrics : of the same rows; they define the report of a value

    >>> from forel.losses import Logistic
    >>> from forel.training.metrics import Metrics
    >>> metrics = Metrics(Logistic())
    >>> slices = SliceMetrics("site", metrics)
    >>> slices.add([b"news", b"shop", b"news"], metrics.add([1.0, 0.0, -1.0], [1, 0, 0]))
    >>> [(one.value, one.report.rows, one.report.auc) for one in slices.table().slices]
    [('news', 2, 1.0), ('shop', 1, None)]
    """

    def __init__(self, column: str, metrics: StreamMetrics) -> None:
        self.column, self.metrics = column, metrics
        self._codes: dict[bytes, int] = {}
        self._sums = np.zeros((8, 5))  # by value, which is 0 for all others: rows, weight, loss, label, prediction
        self._bins = np.zeros((8, 3, BINS))  # weight, label and prediction by margin

    def add(self, values: Sequence[bytes], scores: RowScores) -> None:
        """Add rows: the value of each, and its scores."""
        codes = np.array([self._code(value) for value in values], np.int64)
        margins, labels, weights, losses, predictions = scores
        columns = weights > 0, weights, weights * losses, weights * labels, weights * predictions
        # Unlike a sum by bincount, this adds row by row, so that totals do not depend on blocks.
        for k, column in enumerate(columns):
            np.add.at(self._sums[:, k], codes, column)
        place = np.clip((margins + LIMIT) * (BINS / (2 * LIMIT)), 0, BINS - 1).astype(np.int64)
        for k, column in enumerate((columns[1], columns[3], columns[4])):
            np.add.at(self._bins[:, k], (codes, place), column)

    def _code(self, value: bytes) -> int:
        """Return the number of a value; 0 for those beyond the first."""
        key = value[:LONGEST]
        if key not in self._codes and len(self._codes) < MOST:
            self._codes[key] = 1 + len(self._codes)
            if len(self._codes) >= len(self._sums):
                more = min(len(self._sums), MOST + 1 - len(self._sums))
                self._sums, self._bins = (
                    np.concatenate([array, np.zeros((more, *array.shape[1:]))]) for array in (self._sums, self._bins)
                )
        return self._codes.get(key, 0)

    @property
    def absent(self) -> bool:
        """Whether there were rows, and none of them had a value."""
        return bool(self._sums[:, 0].any()) and not any(self._codes)

    def table(self) -> SliceTable:
        """Return the metrics of the values with the most rows, and of all others."""
        rows = self._sums[:, 0]
        words = {code: key.decode("utf-8", "backslashreplace") or MISSING for key, code in self._codes.items()}
        order = sorted((code for code in words if rows[code]), key=lambda code: (-rows[code], code))
        groups = [(words[code], [code]) for code in order[:SHOWN]]
        rest = [code for code in (0, *order[SHOWN:]) if rows[code]]
        groups += [(OTHERS, rest)] if rest else []
        return SliceTable(self.column, tuple(self._slice(value, codes) for value, codes in groups))

    def _slice(self, value: str, codes: list[int]) -> Slice:
        return Slice(value, self.metrics.summary(self._sums[codes].sum(axis=0), self._bins[codes].sum(axis=0)))

    def pack(self) -> tuple[Any, dict[str, Floats]]:
        """Return the state as JSON values and arrays."""
        values = [key.decode("latin-1") for key in self._codes]
        filled = np.flatnonzero(self._bins)
        return values, {"sums": self._sums, "used": filled.astype(np.float64), "bins": self._bins.ravel()[filled]}

    def unpack(self, known: Any, arrays: Mapping[str, Floats]) -> None:
        """Replace the state by one that :meth:`pack` returned."""
        for value in known:
            self._code(value.encode("latin-1"))
        self._sums[:] = arrays["sums"]
        self._bins.ravel()[arrays["used"].astype(np.int64)] = arrays["bins"]


class Slices(Observer):
    """Metrics of the rows learned from in the first pass, by the values of columns.

    Parameters
    ----------
    columns : the last ones of the option ``slices``, in their order
    measures : an observer before this one, whose scores are counted
    """

    name = "slices"

    def __init__(self, columns: Sequence[str], measures: Measures) -> None:
        self._measures = measures
        self.columns = [SliceMetrics(column, measures.progressive) for column in columns]

    def after_block(self, step: Step) -> None:
        """Add the rows of a block."""
        if self.columns and step.place.pass_number == 1 and step.block.slices is not None and self._measures.scores:
            for values, metrics in zip(step.block.slices[-len(self.columns) :], self.columns, strict=True):
                metrics.add(values[step.learned], self._measures.scores)

    def tables(self) -> tuple[SliceTable, ...]:
        """Return the table of each column, and warn of columns without values."""
        return slice_tables(self.columns)

    def pack(self) -> tuple[Any, dict[str, NDArray[Any]]]:
        """Return the state as JSON and arrays."""
        each = [one.pack() for one in self.columns]
        arrays = {f"{k}.{name}": array for k, (_, parts) in enumerate(each) for name, array in parts.items()}
        return [known for known, _ in each], arrays

    def unpack(self, known: Any, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Replace the state by one that :meth:`pack` returned."""
        for k, (one, own) in enumerate(zip(self.columns, known, strict=True)):
            one.unpack(own, {name: arrays[f"{k}.{name}"] for name in ("sums", "used", "bins")})


@contextmanager
def naming_key(option: str, column: str) -> Iterator[None]:
    """Name an option in the error of a missing column of keys, which is read as one of slices."""
    try:
        yield
    except ValueError as error:
        before, found, rest = str(error).partition(f"slices: got {column!r}, ")
        if before or not found:
            raise
        raise ValueError(f"{option}: got {column!r}, {rest}") from None


def slice_tables(slices: Sequence[SliceMetrics]) -> tuple[SliceTable, ...]:
    """Return the table of each column; warn of those of which no row has a value."""
    for one in slices:
        if one.absent:
            expected = "a column or key of the rows, or a namespace of VW text"
            message = f"slices: got {one.column!r}, of which no row has a value, expected {expected}"
            warnings.warn(message, UserWarning, stacklevel=2)
    return tuple(one.table() for one in slices)
