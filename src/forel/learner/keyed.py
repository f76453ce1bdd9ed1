"""A model for each key of the rows, such as a country or an advertiser, and one of all rows if wanted.

Many small models share a space of hashed features, most of which each of them never sees. Each numbers the features of
its own rows, and takes memory only for these: with the default experts, 300 features of 2^22 slots take 20 kB in place
of 250 MB. Kernels do not depend on the numbers of features, so that the state is that of a learner of all slots, bit
for bit.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from forel.data.block import Block
from forel.data.problems import Malformed
from forel.learner.learner import Learner
from forel.learner.rows import CoalescedRows
from forel.validation import refuse

__all__ = ["ONE_KEY", "CompactLearner", "KeyedModels", "in_order", "rows_by_key"]

ONE_KEY = "the model of one key: stored.of_key(...)"  # expected by what does not take those of all keys


class CompactLearner:
    """A learner with memory for the features that occurred in its rows; feature k has the slot ``slots[k]``.

    >>> from forel.learner.settings import Settings
    >>> compact = CompactLearner(Learner(1, Settings(alpha=1.0)))
    >>> rows = CoalescedRows(np.array([0, 2]), np.int32([70_000, 9]), np.float32([1, 2]))
    >>> _ = compact.learn(rows, np.float32([1]))
    >>> compact.slots, compact.expanded(1 << 17).active_coordinates
    (array([70000,     9], dtype=int32), array([     9,  70000, 131072]))
    """

    def __init__(self, learner: Learner, slots: NDArray[Any] | None = None) -> None:
        self.learner, self.slots = learner, np.zeros(0, np.int32) if slots is None else slots
        self._make_room()

    def learn(
        self, rows: CoalescedRows, labels: Any, importance: Any = None, held_out: Any = None, again: bool = False
    ) -> NDArray[Any]:
        """Learn rows, and return the margins from before: arguments are those of :meth:`Learner.progress`."""
        found, first = np.unique(rows.indices, return_index=True)
        new = np.sort(first[~np.isin(found, self.slots)])
        self.slots = np.append(self.slots, rows.indices[new])
        self._make_room()
        return self.learner.progress(self._numbered(rows), labels, importance, held_out, again)

    def margins(self, rows: CoalescedRows) -> NDArray[Any]:
        """Return the margin of every row; features that never occurred have weight 0."""
        return self.learner.margins(self._numbered(rows))

    def _make_room(self) -> None:
        """Give the learner at least one more feature than there are: the next one stands for all that are unknown."""
        if self.slots.size >= self.learner.features:
            self.learner.add_features(1 << self.slots.size.bit_length())

    def _numbered(self, rows: CoalescedRows) -> CoalescedRows:
        """Return rows with the numbers of features in place of slots."""
        unknown, order = self.slots.size, np.argsort(self.slots)
        numbers = np.append(order, unknown)[np.searchsorted(self.slots, rows.indices, sorter=order)]
        known = np.append(self.slots, -1)[numbers] == rows.indices
        return CoalescedRows(rows.indptr, np.where(known, numbers, unknown).astype(np.int32), rows.values)

    def trimmed(self) -> Learner:
        """Return a copy of the learner with one more feature than there are."""
        return self.learner.renumbered(np.arange(self.slots.size), self.slots.size + 1)

    def expanded(self, features: int) -> Learner:
        """Return a copy of the learner with a feature for every slot."""
        return self.learner.renumbered(self.slots, features)


class KeyedModels:
    """The models of all keys, which are learned together; a mapping from keys to learners.

    Parameters
    ----------
    by : the name of the column of keys, the first of the slices of blocks
    features : the number of features of each model
    untrained : a learner of any number of features, which is copied for each new key
    fallback : whether a further model learns all rows, for keys without a model
    models : the models of keys, in the order of their first rows; that of all rows has the key None

    >>> from forel.learner.settings import Settings
    >>> models = KeyedModels("country", 1 << 10, Learner(1, Settings(alpha=1.0, bias=False)))
    >>> block = Block(np.arange(4), np.int32([7, 7, 7]), np.float32([1, 1, 1]), np.float64([1, 0, 1]),
    ...               slices=np.array([[b"NO", b"IT", b"NO"]], object))
    >>> models.learn(block).ravel().round(2)
    array([0.  , 0.  , 0.33], dtype=float32)
    >>> [round(float(models[key].weights_at(np.array([7]))[0, 0]), 2) for key in models]
    [0.59, -0.33]
    """

    kind: ClassVar[str] = "keyed"

    def __init__(
        self,
        by: str,
        features: int,
        untrained: Learner,
        fallback: bool = False,
        models: Mapping[str | None, CompactLearner] | None = None,
    ) -> None:
        self.by, self.features, self.untrained = by, features, untrained
        self.settings, self.classes, self.softmax_margins = (
            untrained.settings, untrained.classes, untrained.softmax_margins,
        )  # fmt: skip
        self.models = dict(models or {})
        if fallback:
            self.models.setdefault(None, self._new())

    def _new(self) -> CompactLearner:
        return CompactLearner(self.untrained.copy())

    @property
    def keys(self) -> list[str]:
        """The keys, in the order of their first rows."""
        return [key for key in self.models if key is not None]

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys)

    def __contains__(self, key: object) -> bool:
        return key is not None and key in self.models

    def __getitem__(self, key: str) -> Learner:
        """Return the model of a key as a learner of all features, which can continue to learn alone."""
        if key not in self:
            raise refuse(self.by, key, f"one of the {len(self)} keys, such as {self.keys[0]!r}")
        return self.models[key].expanded(self.features)

    @property
    def fallback(self) -> Learner | None:
        """The model of all rows; None if there is none."""
        return self.models[None].expanded(self.features) if None in self.models else None

    @property
    def rounds(self) -> int:
        """The number of rows that the models of keys have learned from, in all."""
        return sum(self.models[key].learner.rounds for key in self)

    @property
    def nonzeros(self) -> int:
        """The number of non-zero weights of all models."""
        return sum(model.learner.nonzeros for model in self.models.values())

    @property
    def nbytes(self) -> int:
        """The memory of the records of all models, in bytes."""
        states = (model.learner.state for model in self.models.values())
        return sum(state.layout.nbytes(state.features + 1) for state in states)

    def guarantee(self) -> None:
        """Return None: each model has its own guarantee."""

    def explain(self) -> None:
        """Return None: each model has its own experts."""

    def learn(self, block: Block, again: bool = False) -> NDArray[Any]:
        """Learn each row with the model of its key, and return the margins from before.

        ``again`` is whether the rows are those of an earlier pass.
        """
        rows = rows_by_key(block)
        margins = self.learn_some(block, rows, again)
        if None in self.models:
            self.learn_some(block, {None: np.arange(len(block))}, again)
        return in_order(rows, margins)

    def begin(self, block: Block, again: bool = False) -> Callable[[], NDArray[Any]]:
        """Learn a block, and return a function that returns the margins from before."""
        margins = self.learn(block, again)
        return lambda: margins

    def collect(self) -> "KeyedModels":
        """Return the models themselves: those that learn elsewhere have to be collected."""
        return self

    def learn_some(self, block: Block, rows: Mapping[Any, NDArray[np.int64]], again: bool) -> NDArray[Any]:
        """Learn the rows of some keys, and return the margins from before, one key after the other."""
        out, margins = block.held_out, [self._nothing()]
        for key, which in rows.items():
            if key not in self.models:
                self.models[key] = self._new()
            given = block.labels[which], block.importance[which], None if out is None else out[which]
            margins.append(self.models[key].learn(_rows_of(block, which), *given, again=again))
        return np.concatenate(margins)

    def margins(self, block: Block) -> NDArray[Any]:
        """Return the margin of each row by the model of its key, or that of all rows."""
        rows, margins = rows_by_key(block), [self._nothing()]
        for key, which in rows.items():
            model = self.models.get(key, self.models.get(None))
            if model is None:
                line = block.line + which[0] if block.lines is None else block.lines[which[0]]
                expected = f"one of the {len(self)} keys that there are models of; --fallback trains one of all rows"
                raise Malformed(block.file, int(line), self.by, repr(key), expected)
            margins.append(model.margins(_rows_of(block, which)))
        return in_order(rows, np.concatenate(margins))

    def _nothing(self) -> NDArray[np.float32]:
        return np.empty((0, self.untrained.n_outputs), np.float32)


def _rows_of(block: Block, which: NDArray[np.int64]) -> CoalescedRows:
    return CoalescedRows(*CoalescedRows(*block.rows).take(which))


def rows_by_key(block: Block) -> dict[str, NDArray[np.int64]]:
    """Return the rows of each key, in the order of their first rows.

    >>> block = Block(np.arange(4), np.int32([7, 7, 7]), np.float32([1, 1, 1]), np.float64([1, 0, 1]),
    ...               slices=np.array([[b"NO", b"IT", b"NO"]], object))
    >>> rows_by_key(block)
    {'NO': array([0, 2]), 'IT': array([1])}
    """
    assert block.slices is not None
    numbers: dict[str, int] = {}
    values = (value.decode("utf-8", "backslashreplace") for value in block.slices[0])
    codes = np.array([numbers.setdefault(value, len(numbers)) for value in values], np.int64)
    order = np.argsort(codes, kind="stable")
    return dict(zip(numbers, np.split(order, np.cumsum(np.bincount(codes))[:-1]), strict=False))


def in_order(rows: Mapping[Any, NDArray[np.int64]], margins: NDArray[Any]) -> NDArray[Any]:
    """Return the margins of the rows of one key after the other in the order of the rows.

    >>> in_order({"NO": np.array([0, 2]), "IT": np.array([1])}, np.array([1.0, 3.0, 2.0]))
    array([1., 2., 3.])
    """
    ordered = np.empty_like(margins)
    if rows:
        ordered[np.concatenate(list(rows.values()))] = margins
    return ordered
