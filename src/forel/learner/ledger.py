"""The ledger of a mixture: a running record of losses in one array, which compiled code updates in place."""

import numpy as np
from numpy.typing import NDArray

from forel.learner.mixers import RESIDUALS, Mixer

__all__ = ["HEAD", "LOSS_LIMIT", "UNSEEN", "Ledger"]

HEAD = 7  # numbers before those of the experts, as in forel.learner.kernels.mixing
UNSEEN = 1e300, -1e300  # smallest and largest label before the first one
LOSS_LIMIT = 1e290  # largest loss of a row, so that sums stay finite, as in forel.learner.kernels.mixing
LOSS, IMPORTANCE, GAP, LOWEST, HIGHEST, ROWS, WEIGHT = range(HEAD)

Array = NDArray[np.float64]


class Ledger:
    """Named access to the running sums of a mixture.

    Parameters
    ----------
    settings : the number of settings that are mixed
    shares : whether the weights of experts are kept as well, as fixed share needs them
    mixers : further experts, which are functions of the settings' margins
    tracker : whether fixed share over all other experts is one more expert, the last

    >>> ledger = Ledger(2, shares=True)
    >>> ledger.array.size, ledger.weights
    (11, array([0.5, 0.5]))
    """

    __slots__ = ("array", "mixers", "settings", "shares", "tracker")

    def __init__(self, settings: int, shares: bool, mixers: tuple[Mixer, ...] = (), tracker: bool = False) -> None:
        self.settings, self.shares, self.mixers, self.tracker = settings, shares, mixers, tracker
        self.array: Array = np.zeros(self.size(settings, shares, mixers, tracker))
        self.reset()

    @staticmethod
    def size(settings: int, shares: bool, mixers: tuple[Mixer, ...] = (), tracker: bool = False) -> int:
        """Return the length of the array."""
        sums = HEAD + (2 if shares or tracker else 1) * (settings + len(mixers) + tracker)
        return sums + sum(mixer.numbers(settings) for mixer in mixers)

    def reset(self) -> None:
        """Set all sums to zero, all weights equal, and mixers to their priors."""
        self.array[:] = 0
        self.weights[:] = 1 / (self.experts - self.tracker)
        for state, mixer in zip(self.mixer_states, self.mixers, strict=True):
            state[0, :-1], state[1:] = 1 / self.settings, mixer.variance * np.eye(self.settings + 1)

    def copy(self) -> "Ledger":
        """Return a copy, on which rows can be predicted without changing this ledger."""
        new = Ledger(self.settings, self.shares, self.mixers, self.tracker)
        new.array[:] = self.array
        return new

    @property
    def experts(self) -> int:
        """The number of settings, mixers, and fixed share."""
        return self.settings + len(self.mixers) + self.tracker

    @property
    def sums(self) -> Array:
        """The numbers without the states of mixers: a view."""
        return self.array[: HEAD + (2 if self.shares or self.tracker else 1) * self.experts]

    @property
    def mixer_states(self) -> Array:
        """The states of mixers: the weights of settings and of a constant, and rows of their covariances; a view."""
        shape = len(self.mixers), self.settings + 2, self.settings + 1
        start = self.sums.size
        return self.array[start : start + shape[0] * shape[1] * shape[2]].reshape(shape)

    @property
    def residuals(self) -> Array:
        """The residuals of mixers, as :mod:`forel.learner.kernels.ridge` sums them: a view, empty without them."""
        return self.array[self.sums.size + self.mixer_states.size :].reshape(-1, RESIDUALS)

    def without_last(self, count: int) -> "Ledger":
        """Return the numbers without those of the last settings, whose weight the others share in proportion.

        The weights that mixers gave to them are divided equally.
        """
        new = Ledger(self.settings - count, self.shares, self.mixers, self.tracker)
        kept = np.arange(self.settings - count)
        kept_experts = np.append(kept, np.arange(self.settings, self.experts))
        kept_inputs = np.append(kept, self.settings)  # the constant
        new.array[:HEAD], new.losses[:] = self.array[:HEAD], self.losses[kept_experts]
        if self.weights.size:
            shared = self.weights[kept_experts[: new.weights.size]]
            new.weights[:] = shared / shared.sum()
        if self.tracker:
            new.tracked_rows = self.tracked_rows
        rows = np.append(0, 1 + kept_inputs)
        new.mixer_states[:], new.residuals[:] = self.mixer_states[:, rows[:, None], kept_inputs], self.residuals
        dropped = self.mixer_states[:, 0, kept.size : self.settings].sum(axis=1, keepdims=True)
        new.mixer_states[:, 0, :-1] += dropped / kept.size
        return new

    def with_tracker(self, weights: Array) -> "Ledger":
        """Return the ledger with fixed share as one more expert, which predicted as the mixture did until now.

        The mixture of all has the same loss as before, so that the bound with one more expert holds over all rows.

        Parameters
        ----------
        weights : of the experts, which fixed share starts from
        """
        new, sums = Ledger(self.settings, self.shares, self.mixers, tracker=True), HEAD + self.experts
        new.array[:sums], new.losses[-1], new.weights[:] = self.array[:sums], self.loss, weights
        new.mixer_states[:], new.tracked_rows = self.mixer_states, self.rows
        return new

    def only(self, settings: NDArray[np.intp]) -> "Ledger":
        """Return the ledger of some settings without shares, on which rows can be predicted."""
        new = Ledger(settings.size, shares=False)
        new.array[:HEAD] = self.array[:HEAD]
        new.losses[:] = self.losses[settings]
        return new

    @property
    def loss(self) -> float:
        """The loss of the mixture, summed over all rows."""
        return float(self.array[LOSS])

    @loss.setter
    def loss(self, value: float) -> None:
        self.array[LOSS] = value

    @property
    def largest_importance(self) -> float:
        """The largest importance of a row."""
        return float(self.array[IMPORTANCE])

    @largest_importance.setter
    def largest_importance(self, value: float) -> None:
        self.array[IMPORTANCE] = value

    @property
    def gap(self) -> float:
        """The mixability gap of AdaHedge; for exponential weights, the excess over what their rate allows."""
        return float(self.array[GAP])

    @gap.setter
    def gap(self, value: float) -> None:
        self.array[GAP] = value

    @property
    def lowest(self) -> float:
        """The smallest label of all rows as a margin; above ``highest`` before the first one."""
        return float(self.array[LOWEST])

    @lowest.setter
    def lowest(self, value: float) -> None:
        self.array[LOWEST] = value

    @property
    def highest(self) -> float:
        """The largest label of all rows as a margin; where predictions are clipped on this side only, at least 0."""
        return float(self.array[HIGHEST])

    @highest.setter
    def highest(self, value: float) -> None:
        self.array[HIGHEST] = value

    @property
    def label_range(self) -> tuple[float, float]:
        """The smallest and the largest label as margins; both 0 before the first one."""
        return (self.lowest, self.highest) if self.lowest <= self.highest else (0.0, 0.0)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.array[ROWS])

    @rows.setter
    def rows(self, value: int) -> None:
        self.array[ROWS] = value

    @property
    def weight(self) -> float:
        """The sum of their importances."""
        return float(self.array[WEIGHT])

    @weight.setter
    def weight(self, value: float) -> None:
        self.array[WEIGHT] = value

    @property
    def losses(self) -> Array:
        """The loss of each expert, summed over all rows, settings first: a view."""
        return self.array[HEAD : HEAD + self.experts]

    @property
    def weights(self) -> Array:
        """The weights of experts under fixed share, itself not among them: a view, empty without fixed share."""
        return self.sums[HEAD + self.experts : None if self.shares else -1]

    @property
    def tracked_rows(self) -> float:
        """The number of rows that the tracker learned from."""
        return float(self.sums[-1])

    @tracked_rows.setter
    def tracked_rows(self, value: float) -> None:
        self.sums[-1] = value
