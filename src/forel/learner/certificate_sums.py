"""The sums that loss floors are computed from, of all rows of a learner or of those since a snapshot."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["CertificateSums", "difference"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CertificateSums:
    """The sums that loss floors are computed from: of all rows of a learner, or of those since a snapshot.

    Parameters
    ----------
    rounds, weight : the number of rows learned from, and the sum of their importances
    sums : running sums, in the order of :class:`forel.learner.layout.Layout`, a column for each lane; None without a
        certificate
    slots, gradients : the coordinates of the rows, in order, and the sum of gradients there, a column for each lane
        with sums of certificates, in the units of the features
    scales : the largest absolute value of each of these coordinates, for rates that keep it
    all_rounds, all_weight, all_sums : the same for all rows whose rounding errors are in the sums, if there are more
    mixture_loss, mixture_rows : the loss of a mixture, and the number of rows of its first pass

    >>> from forel.learner.learner import Learner
    >>> from forel.learner.settings import Settings
    >>> model = Learner(2, Settings(alpha=1.0), certified=True)
    >>> _ = model.learn([[1.0, 0.0]] * 30, [1, 0, 0] * 10)
    >>> before = model.snapshot()
    >>> _ = model.learn([[0.0, 3.0]] * 20, [1, 0] * 10)
    >>> difference(model.snapshot(), before).rounds, model.loss_floor(since=before).rows
    (20, 20)
    """

    rounds: int = 0
    weight: float = 0.0
    sums: Array | None = None
    slots: NDArray[np.int64] | None = None
    gradients: Array | None = None
    scales: Array | None = None
    all_rounds: int = 0
    all_weight: float = 0.0
    all_sums: Array | None = None
    mixture_loss: float = 0.0
    mixture_rows: int = 0

    @property
    def rounding_rounds(self) -> int:
        """The number of rounded additions in each sum."""
        return max(self.rounds, self.all_rounds)

    @property
    def rounding_weight(self) -> float:
        """The sum of the importances of the rows of these additions."""
        return max(self.weight, self.all_weight)

    @property
    def rounding_sums(self) -> Array | None:
        """The sums of all rows whose rounding errors are in these sums."""
        return self.sums if self.all_sums is None else self.all_sums


def difference(after: Any, before: Any) -> CertificateSums:
    """Return the sums of the rows between two snapshots of a learner; scales are those of all rows until ``after``."""
    slots, gradients = after.slots, after.gradients
    if after.slots is not None and before.slots is not None:
        slots = np.union1d(after.slots, before.slots)
        gradients = np.zeros((slots.size, after.gradients.shape[1]))
        gradients[np.searchsorted(slots, after.slots)] += after.gradients
        gradients[np.searchsorted(slots, before.slots)] -= before.gradients
    return CertificateSums(
        after.rounds - before.rounds,
        after.weight - before.weight,
        after.sums if after.sums is None or before.sums is None else after.sums - before.sums,
        slots,
        gradients,
        None if slots is None or after.scales is None else _scales(slots, after),
        after.rounding_rounds,
        after.rounding_weight,
        after.rounding_sums,
        after.mixture_loss - before.mixture_loss,
        after.mixture_rows - before.mixture_rows,
    )


def _scales(slots: NDArray[np.int64], known: Any) -> Array:
    """Return the scale of each slot; 0 for slots that have none."""
    scales = np.zeros(slots.size)
    scales[np.searchsorted(slots, known.slots)] = known.scales
    return scales
