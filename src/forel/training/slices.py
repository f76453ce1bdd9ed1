r"""Metrics by the values of a column, in bounded memory.

The first 500 values of a column are counted separately, and all later ones as "others".
(McMahan et al. 2013, "Ad click prediction", section 7.)
"""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.evidence import MeanSequence
from forel.evidence.alarms import LARGEST
from forel.training.metrics import LIMIT, Measures, Report, RowScores, StreamMetrics
from forel.training.run import Observer, Step

__all__ = ["Slice", "SliceMetrics", "SliceTable", "Slices", "Values", "naming_key"]

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
    mean_loss: tuple[float, float] | None = None  # the interval of the average loss; of probabilities, and one value


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
            low_high = None if one.mean_loss is None else dict(zip(("low", "high"), one.mean_loss, strict=True))
            values.append({"value": one.value, **measured, **({"mean_loss": low_high} if low_high else {})})
        return {"column": self.column, "values": values}


class Values:
    """Numbers of the first values of a column, and 0 for all later ones.

    >>> values = Values()
    >>> values.codes([b"news", b"", b"news"]), values.words
    (array([1, 2, 1]), {0: '(others)', 1: 'news', 2: '(missing)'})
    """

    def __init__(self, known: Iterable[bytes] = ()) -> None:
        self.known: dict[bytes, int] = {}
        self.codes(known)

    def codes(self, values: Iterable[bytes]) -> NDArray[np.int64]:
        """Return the number of each value."""
        keys = [value[:LONGEST] for value in values]
        for key in dict.fromkeys(keys):
            if len(self.known) < MOST:
                self.known.setdefault(key, 1 + len(self.known))
        return np.array([self.known.get(key, 0) for key in keys], np.int64)

    @property
    def words(self) -> dict[int, str]:
        """Each number with its value as text."""
        known = {code: key.decode("utf-8", "backslashreplace") or MISSING for key, code in self.known.items()}
        return {0: OTHERS, **known}


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
        self.column, self.metrics, self.values = column, metrics, Values()
        self._sums = np.zeros(
            (MOST + 1, 5)
        )  # by value, which is 0 for all others: rows, weight, loss, label, prediction
        self._bins = np.zeros((MOST + 1, 3, BINS))  # weight, label and prediction by margin
        self._means = MeanSequence(0.0, LARGEST, groups=MOST + 1)
        self.log = bool(getattr(getattr(metrics, "link", None), "probabilities", False))

    def add(self, values: Iterable[bytes], scores: RowScores) -> None:
        """Add rows: the value of each, and its scores."""
        codes = self.values.codes(values)
        margins, labels, weights, losses, predictions = scores
        columns = weights > 0, weights, weights * losses, weights * labels, weights * predictions
        # Unlike a sum by bincount, this adds row by row, so that totals do not depend on blocks.
        for k, column in enumerate(columns):
            np.add.at(self._sums[:, k], codes, column)
        if self.log:
            self._means.add(np.minimum(losses, LARGEST), codes, weights)
        place = np.clip((margins + LIMIT) * (BINS / (2 * LIMIT)), 0, BINS - 1).astype(np.int64)
        for k, column in enumerate((columns[1], columns[3], columns[4])):
            np.add.at(self._bins[:, k], (codes, place), column)

    def table(self) -> SliceTable:
        """Return the metrics of the values with the most rows, and of all others; warn if no row has a value."""
        rows, words = self._sums[:, 0], self.values.words
        if rows.any() and not any(self.values.known):
            expected = "a column or key of the rows, or a namespace of VW text"
            message = f"slices: got {self.column!r}, of which no row has a value, expected {expected}"
            warnings.warn(message, UserWarning, stacklevel=2)
        order: list[int] = sorted((np.flatnonzero(rows[1:]) + 1).tolist(), key=lambda code: (-rows[code], code))
        groups = [(words[code], [code]) for code in order[:SHOWN]]
        rest = [code for code in (0, *order[SHOWN:]) if rows[code]]
        groups += [(OTHERS, rest)] if rest else []
        return SliceTable(self.column, tuple(self._slice(value, codes) for value, codes in groups))

    def _slice(self, value: str, codes: list[int]) -> Slice:
        report = self.metrics.summary(self._sums[codes].sum(axis=0), self._bins[codes].sum(axis=0))
        if len(codes) > 1 or not self._means.sums.rows[codes[0]]:
            return Slice(value, report)
        low, high = (float(end[codes[0]]) for end in self._means.interval())
        return Slice(value, report, (low, high))

    def pack(self) -> tuple[Any, dict[str, Floats]]:
        """Return the state as JSON values and arrays."""
        filled = np.flatnonzero(self._bins)
        arrays = {
            "sums": self._sums,
            "means": self._means.state,
            "used": filled.astype(np.float64),
            "bins": self._bins.ravel()[filled],
        }
        return [key.decode("latin-1") for key in self.values.known], arrays

    def unpack(self, known: Any, arrays: Mapping[str, Floats]) -> None:
        """Replace the state by one that :meth:`pack` returned."""
        self.values = Values(value.encode("latin-1") for value in known)
        self._sums[:], self._means.state[:] = arrays["sums"], arrays["means"]
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
        return tuple(one.table() for one in self.columns)

    def pack(self) -> tuple[Any, dict[str, NDArray[Any]]]:
        """Return the state as JSON and arrays."""
        each = [one.pack() for one in self.columns]
        arrays = {f"{k}.{name}": array for k, (_, parts) in enumerate(each) for name, array in parts.items()}
        return [known for known, _ in each], arrays

    def unpack(self, known: Any, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Replace the state by one that :meth:`pack` returned."""
        for k, (one, own) in enumerate(zip(self.columns, known, strict=True)):
            one.unpack(own, {name: arrays[f"{k}.{name}"] for name in ("sums", "means", "used", "bins")})


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
