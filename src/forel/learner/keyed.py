"""One model for each key of the rows, such as a country or an advertiser, and one of all rows if wanted.

Many small models share a space of hashed features, most of which each of them never sees: each numbers the features
that occurred in its rows, and only these take memory. Kernels do not depend on the numbers of features, so the state is
that of a learner of all slots, bit for bit.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from forel.learner.learner import Learner
from forel.learner.rows import CoalescedRows
from forel.learner.settings import Settings
from forel.validation import refuse

__all__ = [
    "ALL", "NO_MODEL", "ONE_KEY", "CompactLearner", "KeyedLearner", "KeyedModels", "KeyedRows", "LearnerOptions",
    "key_text",
]  # fmt: skip

ALL = -1  # the code of the model of all rows
NO_MODEL = -2  # the code of a key without a model
ONE_KEY = "the model of one key: stored.of_key(...)"  # expected by what does not take those of all keys
FEWEST = 32  # features of a new model


@dataclass(frozen=True)
class LearnerOptions:
    """The arguments of the learner of each key: those of :class:`forel.learner.learner.Learner`."""

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
        rows = CoalescedRows(*self.rows.take(which))
        return KeyedRows(self.codes[which], rows, self.labels[which], self.importance[which], held_out, self.again)


class CompactLearner:
    """A learner with memory for the features that occurred in its rows; feature k has the slot ``slots[k]``.

    >>> compact = CompactLearner(LearnerOptions(1 << 17, Settings(alpha=1.0)).learner(32))
    >>> rows = CoalescedRows(np.array([0, 2]), np.int32([70_000, 9]), np.float32([1, 2]))
    >>> _ = compact.learn(KeyedRows(np.zeros(1, np.int64), rows, np.float32([1]), np.float32([1])))
    >>> compact.slots, compact.expanded(1 << 17).active_coordinates
    (array([    9, 70000], dtype=int32), array([     9,  70000, 131072]))
    """

    def __init__(self, learner: Learner, slots: NDArray[Any] | None = None) -> None:
        self.learner, self.slots = learner, np.zeros(0, np.int32) if slots is None else slots.astype(np.int32)

    def learn(self, given: KeyedRows) -> NDArray[Any]:
        """Learn rows, and return the margins from before."""
        new = np.setdiff1d(given.rows.indices, self.slots)
        self.slots = np.concatenate((self.slots, new)).astype(np.int32, copy=False)
        if self.slots.size > self.learner.features:
            self.learner.add_features(max(2 * self.learner.features, self.slots.size))
        learn = self.learner.relearn if given.again else self.learner.progress
        return learn(self._numbered(given.rows), given.labels, given.importance, given.held_out)

    def margins(self, rows: CoalescedRows) -> NDArray[Any]:
        """Return the margin of every row; features that never occurred have weight 0."""
        if self.slots.size == self.learner.features:  # one more, for those
            self.learner.add_features(self.learner.features + 1)
        return self.learner.margins(self._numbered(rows))

    def _numbered(self, rows: CoalescedRows) -> CoalescedRows:
        """Return rows with the numbers of features in place of slots; ``slots.size`` for those that never occurred."""
        count, order = self.slots.size, np.argsort(self.slots)
        places = np.append(order, count)[np.searchsorted(self.slots, rows.indices, sorter=order)]
        known = np.append(self.slots, -1)[places] == rows.indices
        return CoalescedRows(rows.indptr, np.where(known, places, count).astype(np.int32), rows.values)

    def sorted(self) -> "CompactLearner":
        """Return a copy whose features are in the order of their slots, without those that were only predicted."""
        kept = self.learner.state.nonzero_rows()
        full = None if self.learner.mixture is None else self.learner.mixture.full_filters
        if full is not None:
            kept = np.union1d(kept, full.slots)  # also features whose values are all 0
        kept = kept[kept < self.slots.size]
        kept = kept[np.argsort(self.slots[kept])]
        places = np.full(self.slots.size, kept.size)  # others are left out
        places[kept] = np.arange(kept.size)
        return CompactLearner(self.learner.renumbered(places, max(kept.size, 1)), self.slots[kept])

    def expanded(self, features: int) -> Learner:
        """Return a learner with a feature for every slot."""
        return self.learner.renumbered(self.slots, features)


@dataclass
class KeyedLearner:
    """Models of some keys by their codes, which are learned together; rows of different keys are independent.

    >>> keyed = KeyedLearner(LearnerOptions(1 << 10, Settings(alpha=1.0, bias=False)))
    >>> rows = CoalescedRows(np.arange(4), np.int32([7, 7, 7]), np.float32([1, 1, 1]))
    >>> given = KeyedRows(np.array([0, 1, 0]), rows, np.float32([1, 0, 1]), np.ones(3, np.float32))
    >>> keyed.learn(given).ravel().round(2)
    array([0.  , 0.  , 0.33], dtype=float32)
    """

    options: LearnerOptions
    models: dict[int, CompactLearner] = field(default_factory=dict)

    def learn(self, given: KeyedRows) -> NDArray[Any]:
        """Learn each row with the model of its key, and return the margins from before, in the order of the rows."""
        for code in np.unique(given.codes).tolist():
            if code not in self.models:
                self.models[code] = CompactLearner(self.options.learner(FEWEST))
        return self._by_key(given, CompactLearner.learn)

    def margins(self, codes: NDArray[np.int64], rows: CoalescedRows) -> NDArray[Any]:
        """Return the margin of each row by the model of its key."""
        nothing = np.zeros(rows.number, np.float32)
        return self._by_key(KeyedRows(codes, rows, nothing, nothing), lambda model, some: model.margins(some.rows))

    def _by_key(self, given: KeyedRows, apply: Callable[[CompactLearner, KeyedRows], NDArray[Any]]) -> NDArray[Any]:
        """Apply a function to the rows of each key, and return its results in the order of the rows."""
        order = np.argsort(given.codes, kind="stable")
        codes, starts = np.unique(given.codes[order], return_index=True)
        margins = np.zeros((0, self.options.classes or 1), self.options.dtype)
        for code, which in zip(codes.tolist(), np.split(order, starts[1:]), strict=True):
            found = apply(self.models[code], given.take(which))
            if not margins.size:
                margins = np.empty((given.codes.size, found.shape[1]), found.dtype)
            margins[which] = found
        return margins


class KeyedModels:
    """The models of all keys, after training; a mapping from keys to learners.

    Parameters
    ----------
    by : the name of the column of keys
    keys : the keys, in the order of their first rows
    learner : their models, by the number of the key, and that of all rows as :data:`ALL`

    >>> models = KeyedModels("country", ["NO", "IT"], KeyedLearner(LearnerOptions(1 << 10, Settings(bias=False))))
    >>> rows = CoalescedRows(np.arange(3), np.int32([7, 7]), np.float32([1, 1]))
    >>> _ = models.learner.learn(KeyedRows(np.array([0, 1]), rows, np.float32([1, 0]), np.ones(2, np.float32)))
    >>> [round(float(models[key].weights_at(np.array([7]))[0, 0]), 3) for key in models]
    [0.033, -0.033]
    """

    kind: ClassVar[str] = "keyed"

    def __init__(self, by: str, keys: Sequence[str], learner: KeyedLearner) -> None:
        self.by, self.keys, self.learner = by, list(keys), learner
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
        states = (model.learner.state for model in self.learner.models.values())
        return sum(state.layout.nbytes(state.features + 1) for state in states)

    def guarantee(self) -> None:
        """Return None: each model has its own guarantee."""

    def explain(self) -> None:
        """Return None: each model has its own experts."""

    def codes(self, values: Sequence[bytes]) -> NDArray[np.int64]:
        """Return the codes of keys: that of all rows for keys without a model, or :data:`NO_MODEL` without that."""
        other = ALL if ALL in self.learner.models else NO_MODEL
        return np.array([self._codes.get(key_text(value), other) for value in values], np.int64)

    def margins(self, values: Sequence[bytes], rows: CoalescedRows) -> NDArray[Any]:
        """Return the margin of each row by the model of its key.

        Parameters
        ----------
        values : the value of the column of keys in each row, as readers return it
        rows : the rows
        """
        codes = self.codes(values)
        if (codes == NO_MODEL).any():
            row = int(np.argmax(codes == NO_MODEL))
            raise refuse(self.by, key_text(values[row]), f"one of the {len(self)} keys of the model")
        return self.learner.margins(codes, rows)


def key_text(value: bytes) -> str:
    """Return the key of a value of a column."""
    return value.decode("utf-8", "backslashreplace")
