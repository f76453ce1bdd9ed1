"""One model for each key of the rows, such as a country or an advertiser, and one of all rows if wanted."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from forel.learner.compact import CompactLearner, Lookup
from forel.learner.learner import Learner
from forel.learner.rows import CoalescedRows
from forel.learner.settings import Settings
from forel.validation import refuse

__all__ = ["ALL", "UNSEEN", "KeyedLearner", "KeyedModels", "KeyedRows", "LearnerOptions", "key_text", "take_rows"]

ALL = -1  # the code of the model of all rows
UNSEEN = -2  # the code of a key without a model
ONE_KEY = "the model of one key: stored.of_key(...)"  # expected by what does not take those of all keys


@dataclass(frozen=True)
class LearnerOptions:
    """The arguments of the learner of each key: those of :func:`forel.learner.learner.Learner`."""

    features: int
    settings: Settings
    classes: int | None = None
    dtype: DTypeLike = np.float32
    certified: bool = False
    share: float | None = None

    def learner(self, features: int) -> Learner:
        """Return an untrained learner with another number of features."""
        return Learner(features, self.settings, self.classes, self.dtype, self.certified, self.share)


@dataclass(frozen=True, eq=False)
class KeyedRows:
    """Rows with the code of the key of each.

    Parameters
    ----------
    codes : of keys
    rows, labels, importance, held_out : as in :meth:`forel.learner.learner.Learner.progress`
    again : whether the rows are those of an earlier pass
    """

    codes: NDArray[np.int64]
    rows: CoalescedRows
    labels: NDArray[Any]
    importance: NDArray[Any]
    held_out: NDArray[np.bool_] | None = None
    again: bool = False

    def take(self, which: NDArray[np.int64]) -> "KeyedRows":
        """Return some rows by their numbers."""
        held_out = None if self.held_out is None else self.held_out[which]
        rows = take_rows(self.rows, which)
        return KeyedRows(self.codes[which], rows, self.labels[which], self.importance[which], held_out, self.again)


@dataclass
class KeyedLearner:
    """Models of some keys by their codes, which are learned together; rows of different keys are independent.

    Parameters
    ----------
    options : of each learner
    models : the models

    >>> options = LearnerOptions(1 << 10, Settings(alpha=1.0, bias=False))
    >>> keyed = KeyedLearner(options)
    >>> rows = CoalescedRows(np.arange(4), np.int32([7, 7, 7]), np.float32([1, 1, 1]))
    >>> given = KeyedRows(np.array([0, 1, 0]), rows, np.float32([1, 0, 1]), np.ones(3, np.float32))
    >>> keyed.learn(given).ravel().round(2)
    array([0.  , 0.  , 0.33], dtype=float32)
    """

    options: LearnerOptions
    models: dict[int, CompactLearner] = field(default_factory=dict)
    _lookup: Lookup | None = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lookup": None}

    @property
    def lookup(self) -> Lookup:
        """The scratch table of slots."""
        self._lookup = self._lookup or Lookup(self.options.features)
        return self._lookup

    def learn(self, given: KeyedRows) -> NDArray[Any]:
        """Learn each row with the model of its key, and return the margins from before, in the order of the rows."""

        def progress(model: CompactLearner, some: KeyedRows) -> NDArray[Any]:
            return model.progress(self.lookup, some.rows, some.labels, some.importance, some.held_out, some.again)

        return self._by_key(given, progress, create=True)

    def margins(self, codes: NDArray[np.int64], rows: CoalescedRows) -> NDArray[Any]:
        """Return the margin of each row by the model of its key."""
        nothing = np.zeros(rows.number, np.float32)
        given = KeyedRows(codes, rows, nothing, nothing)
        return self._by_key(given, lambda model, some: model.margins(self.lookup, some.rows), create=False)

    def _by_key(
        self, given: KeyedRows, apply: Callable[[CompactLearner, KeyedRows], NDArray[Any]], create: bool
    ) -> NDArray[Any]:
        """Apply a function to the rows of each key, and return its results in the order of the rows."""
        order = np.argsort(given.codes, kind="stable")
        ordered = given.take(order)
        starts = np.flatnonzero(np.diff(ordered.codes, prepend=np.int64(UNSEEN - 1)))
        parts = []
        for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), order.size], strict=True):
            code = int(ordered.codes[start])
            if create and code not in self.models:
                self.models[code] = CompactLearner(self.options.learner)
            parts.append(apply(self.models[code], _slice(ordered, start, stop)))
        if not parts:
            return np.zeros((0, self.options.classes or 1), self.options.dtype)
        found = np.concatenate(parts)
        margins = np.empty_like(found)
        margins[order] = found
        return margins


class KeyedModels:
    """The models of all keys, after training; a mapping from keys to learners.

    Parameters
    ----------
    by : the name of the column of keys
    keys : the keys, in the order of their first rows
    learner : their models, by the number of the key, and that of all rows as :data:`ALL`
    calibrations : slope, offset and precision of the calibration of margins, of the model of all rows, then of each
        key; None if predictions are not calibrated

    >>> options = LearnerOptions(1 << 10, Settings(alpha=1.0, bias=False))
    >>> models = KeyedModels("country", ["NO", "IT"], KeyedLearner(options))
    >>> rows = CoalescedRows(np.arange(3), np.int32([7, 7]), np.float32([1, 1]))
    >>> _ = models.learner.learn(KeyedRows(np.array([0, 1]), rows, np.float32([1, 0]), np.ones(2, np.float32)))
    >>> [round(float(models[key].weights_at(np.array([7]))[0, 0]), 2) for key in models]
    [0.33, -0.33]
    """

    kind: ClassVar[str] = "keyed"

    def __init__(
        self, by: str, keys: Sequence[str], learner: KeyedLearner, calibrations: NDArray[np.float64] | None = None
    ) -> None:
        self.by, self.keys, self.learner, self.calibrations = by, list(keys), learner, calibrations
        options = learner.options
        self.settings, self.features, self.classes = options.settings, options.features, options.classes
        self.certified, self.share, self.dtype = options.certified, options.share, np.dtype(options.dtype)
        self.joint = self.settings.loss_function.joint
        self._codes = {key: code for code, key in enumerate(self.keys)}

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys)

    def __contains__(self, key: object) -> bool:
        return key in self._codes

    def __getitem__(self, key: str) -> Learner:
        """Return the model of a key as a learner of all features, which can continue to learn alone."""
        if key not in self._codes:
            raise KeyError(f"{self.by}: got {key!r}, expected one of {len(self)} keys, such as {self.keys[0]!r}")
        return self.learner.models[self._codes[key]].expanded(self.features)

    @property
    def fallback(self) -> Learner | None:
        """The model of all rows; None if there is none."""
        model = self.learner.models.get(ALL)
        return None if model is None else model.expanded(self.features)

    @property
    def softmax_margins(self) -> bool:
        """Whether the probabilities of classes are the softmax of their margins."""
        several = self.settings.n_settings > 1 and self.classes is not None
        return self.joint or several

    @property
    def rounds(self) -> int:
        """The number of rows that the models of keys have learned from, in all."""
        return sum(self.learner.models[code].learner.rounds for code in range(len(self)))

    @property
    def nonzeros(self) -> int:
        """The number of non-zero weights of all models."""
        return sum(model.learner.nonzeros for model in self.learner.models.values())

    @property
    def nbytes(self) -> int:
        """The memory of the records of all models, in bytes."""
        lanes = (model.learner.state for model in self.learner.models.values())
        return sum(each.layout.nbytes(each.features + 1) for each in lanes)

    def guarantee(self) -> None:
        """Return None: each model has its own guarantee."""

    def explain(self) -> None:
        """Return None: each model has its own experts."""

    def codes(self, values: Sequence[bytes]) -> NDArray[np.int64]:
        """Return the codes of keys: that of all rows for keys without a model, or :data:`UNSEEN` without that."""
        other = ALL if ALL in self.learner.models else UNSEEN
        return np.array([self._codes.get(key_text(value), other) for value in values], np.int64)

    def calibration(self, key: str) -> NDArray[np.float64] | None:
        """Return the numbers of the calibration of a key; None if predictions are not calibrated."""
        return None if self.calibrations is None else self.calibrations[self._codes[key] - ALL]

    def margins(self, values: Sequence[bytes], rows: CoalescedRows) -> NDArray[Any]:
        """Return the margin of each row by the model of its key, calibrated if predictions are.

        Parameters
        ----------
        values : the value of the column of keys in each row, as readers return it
        rows : the rows
        """
        codes = self.codes(values)
        if (codes == UNSEEN).any():
            row = int(np.argmax(codes == UNSEEN))
            raise refuse(self.by, key_text(values[row]), f"one of the {len(self)} keys of the model")
        margins = self.learner.margins(codes, rows)
        if self.calibrations is None:
            return margins
        slopes, offsets = self.calibrations[codes - ALL, :2].T[:, :, None].astype(margins.dtype)
        return np.asarray(slopes * margins + offsets)


def key_text(value: bytes) -> str:
    """Return the key of a value of a column."""
    return value.decode("utf-8", "backslashreplace")


def take_rows(rows: CoalescedRows, which: NDArray[np.int64]) -> CoalescedRows:
    """Return some rows by their numbers.

    >>> rows = CoalescedRows(np.array([0, 2, 3]), np.int32([4, 1, 5]), np.float32([1, 2, 3]))
    >>> take_rows(rows, np.array([1, 0])).indices
    array([5, 4, 1], dtype=int32)
    """
    lengths = np.diff(rows.indptr)[which]
    indptr = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
    entries = np.repeat(rows.indptr[:-1][which] - indptr[:-1], lengths) + np.arange(indptr[-1])
    return CoalescedRows(indptr, rows.indices[entries], rows.values[entries])


def _slice(given: KeyedRows, start: int, stop: int) -> KeyedRows:
    """Return consecutive rows, without a copy of their features."""
    first, last = given.rows.indptr[start], given.rows.indptr[stop]
    rows = CoalescedRows(
        given.rows.indptr[start : stop + 1] - first, given.rows.indices[first:last], given.rows.values[first:last]
    )
    held_out = None if given.held_out is None else given.held_out[start:stop]
    some = slice(start, stop)
    return KeyedRows(given.codes[some], rows, given.labels[some], given.importance[some], held_out, given.again)
