"""The experts of a mixture other than its linear models, the losses of all, and the mixed prediction."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.learner.full_filters import FullFilters
from forel.learner.lanes import summed
from forel.learner.ledger import Ledger
from forel.learner.linear import Linear
from forel.learner.pooling import Pooling
from forel.learner.relevance import likeliest
from forel.learner.rows import Rows
from forel.learner.settings import Settings
from forel.losses.margin import Mixing
from forel.validation import refuse

__all__ = ["ExpertPool"]

Array = NDArray[np.float64]


class ExpertPool:
    """The state of a mixture other than its linear models: a ledger of losses, mixers, and full-covariance filters.

    Full-covariance filters are dropped at the first row with which there are too many features. Their weight goes to
    the other experts in proportion, and the guarantee includes what their prior weight costs.

    Parameters
    ----------
    pooling : the rule by which margins are mixed
    """

    __slots__ = ("full", "ledger", "pooling")

    def __init__(self, pooling: Pooling) -> None:
        self.pooling = pooling
        self.reset()

    def reset(self) -> None:
        """Return to the state before the first row."""
        settings = self.pooling.settings
        filters, logistic = settings.full_filters, self.pooling.mixing is Mixing.BAYES
        self.ledger = self.pooling.ledger(settings.lanes + len(filters))
        self.full = FullFilters(filters, logistic, settings.bias) if filters else None

    def copy(self) -> "ExpertPool":
        """Return a copy."""
        new = ExpertPool(self.pooling)
        new.ledger, new.full = self.ledger.copy(), None if self.full is None else self.full.copy()
        return new

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the experts: settings by the parameters in which they differ, then the others."""
        settings = self.pooling.settings
        full = () if self.full is None else tuple(one.name for one in self.full.filters)
        added = (*(mixer.name for mixer in settings.mixers), *(["fixed share"] if self.ledger.tracker else []))
        return settings.names + full + added

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of the experts, as in :attr:`Settings.expert_kinds`."""
        absent = {"full filter": self.full is None, "fixed share": not self.ledger.tracker}
        return tuple(kind for kind in self.pooling.settings.expert_kinds if not absent.get(kind))

    def mix(self, rows: Rows, margins: NDArray[Any], labels: Array, importance: Array) -> NDArray[Any]:
        """Return the mixture's margins, and let mixers and full-covariance filters learn; add losses to the ledger.

        Parameters
        ----------
        rows : of the same examples
        margins : of linear models, a column for each lane
        labels, importance : of rows; those of negative importance are predicted and not counted
        """
        learned, ledger = importance[importance >= 0], self.ledger
        ledger.rows, ledger.weight = ledger.rows + learned.size, summed(ledger.weight, learned)
        return self._learn(self.pooling.mix, rows, margins, labels, importance)

    def relearn(self, rows: Rows, margins: NDArray[Any], labels: Array, importance: Array) -> NDArray[Any]:
        """Return margins as :meth:`mix` does, of rows of an earlier pass, which only full-covariance filters learn."""

        def predict(margins: NDArray[Any], labels: Array, importance: Array, ledger: Ledger) -> NDArray[Any]:
            return self.pooling.predict(margins, ledger)

        return self._learn(predict, rows, margins, labels, importance)

    def _learn(
        self,
        mix: Callable[[NDArray[Any], Array, Array, Ledger], NDArray[Any]],
        rows: Rows,
        margins: NDArray[Any],
        labels: Array,
        importance: Array,
    ) -> NDArray[Any]:
        if self.full is None:
            return mix(margins, labels, importance, self.ledger)
        own, count = self.full.progress(rows, labels, importance)
        every = np.concatenate((margins[:count], own[:count]), axis=1)
        out = mix(every, labels[:count], importance[:count], self.ledger)
        if count == rows.number:
            return out
        self.drop_full_filters()
        return np.concatenate((out, mix(margins[count:], labels[count:], importance[count:], self.ledger)))

    def predict(self, rows: Rows, margins: NDArray[Any]) -> NDArray[Any]:
        """Return the mixture's margins; nothing changes."""
        if self.full is not None:
            margins = np.concatenate((margins, self.full.margins(rows)), axis=1)
        return self.pooling.predict(margins, self.ledger)

    def likeliest(self, linear: Linear, X: Any) -> NDArray[np.intp] | None:
        """Return the class of largest probability of each row if one setting decides it; None if it does not."""
        return likeliest(self.pooling, self.ledger, linear, X)

    def diagonal_filter(self, number: int, linear: Linear) -> Linear:
        """Return a diagonal filter with the means and variances of a full-covariance one."""
        assert self.full is not None
        own, lanes = linear.settings, linear._lanes
        variance = self.full.filters[number].variance
        alone = Settings(own.loss, "filter", alpha=variance, beta=0, bias=own.bias, seed=own.seed)
        new = self.full.diagonal(number, alone, linear.features, linear.dtype)
        new.rounds, new.weight, new.totals[0] = lanes.rounds, lanes.weight, self.ledger.losses[own.lanes + number]
        return Linear.from_lanes(new)

    def with_full_weights(self, coordinates: NDArray[np.int64], linear: Linear) -> NDArray[Any]:
        """Return the weights of linear models and of full-covariance filters at some coordinates."""
        weights = linear.weights_at(coordinates)
        if self.full is None:
            return weights
        return np.concatenate((weights, self.full.weights_at(coordinates, linear.features)), axis=1)

    def drop_full_filters(self) -> None:
        """Continue without full-covariance filters."""
        if self.full is not None:
            self.ledger, self.full = self.pooling.without_last(self.ledger, len(self.full.filters)), None

    def restore(self, ledger: Array, full: FullFilters | None) -> None:
        """Set the state to copies of a ledger's array and of full-covariance filters, which may have been dropped."""
        if self.full is None and full is not None:
            self.reset()
        elif full is None:
            self.drop_full_filters()
        self.ledger.array[:], self.full = ledger, None if full is None else full.copy()

    @staticmethod
    def stored_arrays(settings: Settings, share: float | None) -> dict[str, tuple[int, ...] | None]:
        """Return the names and shapes of the arrays in a model file; None for a shape that depends on the state."""
        if settings.filters:
            return {"ledger": None, **({"full_filters": None} if settings.full_filters else {})}
        return {"ledger": (Ledger.size(settings.lanes, share is not None, settings.mixers),)}

    def pack(self) -> dict[str, Array]:
        """Return the arrays of :meth:`stored_arrays`."""
        arrays = {"ledger": self.ledger.array}
        if self.pooling.settings.full_filters:
            arrays["full_filters"] = np.zeros(0) if self.full is None else self.full.pack()
        return arrays

    def unpack(self, arrays: dict[str, Array]) -> None:
        """Set the state to arrays of a model file."""
        self.reset()
        if self.full is not None and arrays["full_filters"].size:
            self.full.unpack(arrays["full_filters"])
        else:
            self.drop_full_filters()
        own, array = self.ledger, arrays["ledger"]
        former = Ledger(own.settings, own.shares, own.mixers)  # of files written before there was fixed share
        stored = former if own.tracker and array.size == former.array.size else own
        if array.size != stored.array.size:
            raise refuse("ledger", array.size, f"{own.array.size} numbers")
        stored.array[:] = array
        if stored is former:
            self.ledger = former.with_tracker(self.pooling.weights(former))
