"""The sums that loss floors are computed from, for the rows of one learner or of several.

Loss floors need only convexity, so that sums of different rows add up, whichever learner predicted each row.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["CertificateSums", "difference", "merge"]

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

    >>> from forel.learner.linear import Linear, Settings
    >>> first, second = (Linear(2, Settings(alpha=1.0), certified=True) for _ in range(2))
    >>> _ = first.learn([[1.0, 0.0]] * 30, [1, 0, 0] * 10)
    >>> _ = second.learn([[0.0, 3.0]] * 20, [1, 0] * 10)
    >>> both = merge(first.snapshot(), second.snapshot())
    >>> both.rounds, first.loss_floor(rows=both).rows
    (50, 50)
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


def difference(after: CertificateSums, before: CertificateSums) -> CertificateSums:
    """Return the sums of the rows between two snapshots of a learner; scales are those of all rows until ``after``."""
    slots, gradients = after.slots, after.gradients
    if after.slots is not None and before.slots is not None:
        slots, gradients = _added((after, 1.0), (before, -1.0))
    return CertificateSums(
        after.rounds - before.rounds,
        after.weight - before.weight,
        after.sums if after.sums is None or before.sums is None else after.sums - before.sums,
        slots,
        gradients,
        None if slots is None or after.scales is None else _largest(slots, after),
        after.rounding_rounds,
        after.rounding_weight,
        after.rounding_sums,
        after.mixture_loss - before.mixture_loss,
        after.mixture_rows - before.mixture_rows,
    )


def merge(*parts: CertificateSums) -> CertificateSums:
    """Return the sums of the rows of all parts together, of learners with the same settings and features.

    Parts must have no row in common: for a learner that continued the state of another, use the :func:`difference` to
    the state it started from.

    >>> merge(CertificateSums(3, 3.0), CertificateSums()).rounds
    3
    """
    filled: list[Any] = [part for part in parts if part.rounds]
    if len({None if part.sums is None else part.sums.shape for part in filled}) > 1:
        raise ValueError("parts: got sums of different shapes, expected those of learners with the same settings")
    totals: dict[str, Any] = {
        name: sum(getattr(part, name) for part in filled)
        for name in ("rounds", "weight", "mixture_loss", "mixture_rows")
    }
    if not filled or filled[0].sums is None:
        return CertificateSums(**totals)
    slots, gradients = _added(*((part, 1.0) for part in filled))
    return CertificateSums(
        **totals,
        sums=np.sum([part.sums for part in filled], axis=0),
        slots=slots,
        gradients=gradients,
        scales=None if filled[0].scales is None else _largest(slots, *filled),
        all_rounds=sum(part.rounding_rounds for part in filled),
        all_weight=sum(part.rounding_weight for part in filled),
        all_sums=np.sum([part.rounding_sums for part in filled], axis=0),
    )


def _added(*terms: tuple[Any, float]) -> tuple[NDArray[np.int64], Array]:
    """Return the union of slots, in order, and the sum of gradients there, each term times its factor."""
    slots = np.unique(np.concatenate([part.slots for part, _ in terms]))
    total = np.zeros((slots.size, terms[0][0].gradients.shape[1]))
    for part, factor in terms:
        total[np.searchsorted(slots, part.slots)] += factor * part.gradients
    return slots, total


def _largest(slots: NDArray[np.int64], *parts: Any) -> Array:
    """Return the largest scale of each slot in any part."""
    scales = np.zeros(slots.size)
    for part in parts:
        at = np.searchsorted(slots, part.slots)
        scales[at] = np.maximum(scales[at], part.scales)
    return scales
