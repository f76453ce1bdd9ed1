"""Compact learners: hashed features that occurred are numbered, and only these take memory.

Many small models share a space of hashed features, most of which each of them never sees. Kernels do not depend on the
numbers of features, so the state is that of a learner of all slots, bit for bit.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.learner.learner import Learner
from forel.learner.rows import CoalescedRows

__all__ = ["CompactLearner", "Lookup", "renumbered"]

FEWEST = 32  # features of the first table


class Lookup:
    """A scratch table from slots to the numbers of features, which all compact learners of a process share.

    Parameters
    ----------
    slots : the number of slots; memory is committed for those that occur
    """

    __slots__ = ("_numbers",)

    def __init__(self, slots: int) -> None:
        self._numbers = np.zeros(slots, np.int32)  # 0 for none, otherwise number + 1

    def find(self, known: NDArray[Any], slots: NDArray[Any]) -> NDArray[np.int32]:
        """Return the numbers of some slots among the ``known`` ones; ``known.size`` for others."""
        table = self._numbers
        table[known] = np.arange(1, known.size + 1)
        found = table[slots]
        table[known] = 0
        return np.where(found == 0, known.size, found - 1).astype(np.int32, copy=False)


class CompactLearner:
    """A learner with memory for the features that occurred in its rows.

    Parameters
    ----------
    new : returns an untrained learner for a number of features

    >>> from forel.learner.settings import Settings
    >>> compact = CompactLearner(lambda features: Learner(features, Settings(alpha=1.0)))
    >>> rows = CoalescedRows(np.array([0, 2]), np.int32([70_000, 9]), np.float32([1, 2]))
    >>> _ = compact.progress(Lookup(1 << 17), rows, [1], [1.0])
    >>> compact.slots, compact.expanded(1 << 17).active_coordinates
    (array([    9, 70000], dtype=int32), array([     9,  70000, 131072]))
    """

    __slots__ = ("learner", "slots")

    def __init__(self, new: Callable[[int], Learner] | None = None) -> None:
        if new is not None:
            self.learner = new(FEWEST)
            self.slots = np.zeros(0, np.int32)

    @classmethod
    def of(cls, learner: Learner, slots: NDArray[Any]) -> "CompactLearner":
        """Return an existing learner, whose features are the given slots in this order."""
        compact = cls()
        compact.learner, compact.slots = learner, slots.astype(np.int32, copy=False)
        return compact

    def progress(
        self,
        lookup: Lookup,
        rows: CoalescedRows,
        labels: Any,
        importance: Any,
        held_out: NDArray[np.bool_] | None = None,
        again: bool = False,
    ) -> NDArray[Any]:
        """Learn rows as :meth:`forel.learner.learner.Learner.progress` does, or ``relearn`` if ``again``."""
        found = lookup.find(self.slots, rows.indices)
        new = np.unique(rows.indices[found == self.slots.size])
        if new.size:
            self.slots = np.concatenate((self.slots, new))
            found = lookup.find(self.slots, rows.indices)
            if self.slots.size > self.learner.features:
                self.learner.add_features(max(2 * self.learner.features, self.slots.size))
        learn = self.learner.relearn if again else self.learner.progress
        return learn(CoalescedRows(rows.indptr, found, rows.values), labels, importance, held_out)

    def margins(self, lookup: Lookup, rows: CoalescedRows) -> NDArray[Any]:
        """Return the margins of every row; features that never occurred have weight 0."""
        if self.slots.size == self.learner.features:  # one more, for those
            self.learner.add_features(self.learner.features + 1)
        return self.learner.margins(CoalescedRows(rows.indptr, lookup.find(self.slots, rows.indices), rows.values))

    def sorted(self) -> "CompactLearner":
        """Return a copy whose features are in the order of their slots, without those that were only predicted."""
        kept = self.learner.state.nonzero_rows()
        mixture = self.learner.mixture
        full = None if mixture is None else mixture.full_filters
        if full is not None:
            kept = np.union1d(kept, full.slots)  # also features whose values are all 0
        kept = kept[kept < self.slots.size]
        kept = kept[np.argsort(self.slots[kept])]
        places = np.full(self.slots.size, kept.size)  # others are left out
        places[kept] = np.arange(kept.size)
        return CompactLearner.of(renumbered(self.learner, places, max(kept.size, 1)), self.slots[kept])

    def expanded(self, features: int) -> Learner:
        """Return a learner with a feature for every slot."""
        return renumbered(self.learner, self.slots, features)


def renumbered(learner: Learner, places: NDArray[Any], features: int) -> Learner:
    """Return a copy with other numbers of features: the first features have the given places among ``features``.

    Features with a place beyond these are left out, and must be in the initial state.

    >>> from forel.learner.settings import Settings
    >>> model = Learner(2, Settings(alpha=1.0, bias=False))
    >>> _ = model.learn(np.eye(2), [1, 0])
    >>> renumbered(model, np.array([3, 0]), 4).weights.ravel().round(2)
    array([-0.33,  0.  ,  0.  ,  0.33], dtype=float32)
    """
    old = learner.state
    lanes = old.empty_like(features)
    kept = np.flatnonzero(places < features)
    for name, table in lanes.tables.items():
        before = old.tables[name]
        table[places[kept]], table[-1] = before[kept], before[-1]
    lanes.all_sums[:] = old.all_sums
    lanes.rounds, lanes.total_importance = old.rounds, old.total_importance
    mixture = None if learner.mixture is None else learner.mixture.copy()
    if mixture is not None and mixture.full_filters is not None:
        mixture.full_filters.renumber(places)
    return Learner.of(lanes, mixture, learner.classes)
