"""The ledger of a mixture: a running record of losses in one array, which compiled code updates in place."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["HEAD", "LARGEST", "Ledger"]

HEAD = 7  # numbers before those of the settings, as in forel.learner.kernels.mixing
LARGEST = 1e290  # the largest loss of a row, so that sums stay finite, as in forel.learner.kernels.mixing
LOSS, IMPORTANCE, GAP, LOWEST, HIGHEST, ROWS, WEIGHT = range(HEAD)

Array = NDArray[np.float64]


class Ledger:
    """Named access to the numbers of a mixture.

    Parameters
    ----------
    settings : the number of settings that are mixed
    shares : whether the weights of settings are kept as well, as fixed share needs them

    >>> ledger = Ledger(2, shares=True)
    >>> ledger.array.size, ledger.weights
    (11, array([0.5, 0.5]))
    """

    __slots__ = ("array", "settings")

    def __init__(self, settings: int, shares: bool) -> None:
        self.settings = settings
        self.array: Array = np.zeros(self.size(settings, shares))
        self.reset()

    @staticmethod
    def size(settings: int, shares: bool) -> int:
        """Return the length of the array."""
        return HEAD + (2 if shares else 1) * settings

    def reset(self) -> None:
        """Set all sums to zero and all weights equal."""
        self.array[:] = 0
        self.weights[:] = 1 / self.settings

    def copy(self) -> "Ledger":
        """Return a copy, on which rows can be predicted without counting them."""
        new = Ledger(self.settings, self.weights.size > 0)
        new.array[:] = self.array
        return new

    def only(self, settings: NDArray[np.intp]) -> "Ledger":
        """Return the numbers of some settings without shares, on which rows can be predicted."""
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
        """The smallest label of all rows as a margin, at most 0."""
        return float(self.array[LOWEST])

    @lowest.setter
    def lowest(self, value: float) -> None:
        self.array[LOWEST] = value

    @property
    def highest(self) -> float:
        """The largest label of all rows as a margin, at least 0."""
        return float(self.array[HIGHEST])

    @highest.setter
    def highest(self, value: float) -> None:
        self.array[HIGHEST] = value

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
        """The loss of each setting, summed over all rows: a view."""
        return self.array[HEAD : HEAD + self.settings]

    @property
    def weights(self) -> Array:
        """The weights of settings under fixed share: a view, empty without fixed share."""
        return self.array[HEAD + self.settings :]
