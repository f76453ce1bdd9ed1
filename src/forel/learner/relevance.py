"""Predictions of mixtures without the settings that change probabilities by less than rounding does."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.learner.ledger import Ledger
from forel.learner.linear import Linear
from forel.learner.pooling import Pooling
from forel.learner.rows import Rows, rows_of
from forel.losses.margin import Mixing

__all__ = ["Groups", "group_settings", "likeliest", "mixed_margins"]

# Smallest log-probabilities of classes: that of most rows, and that of nearly all rows.
SMALLEST = (-16.0, -64.0)


@dataclass(frozen=True)
class Groups:
    """Settings in groups of decreasing weight; those of negligible weight are in none.

    Parameters
    ----------
    settings : the settings of each group
    smallest : the log-probability from which on a group and those before it are enough
    """

    settings: tuple[NDArray[np.intp], ...]
    smallest: tuple[float, ...]


def group_settings(pooling: Pooling, ledger: Ledger, dtype: np.dtype[Any]) -> Groups:
    r"""Return the settings that matter for most rows, and the further ones that matter for others.

    Without settings of total weight $W$, relative to that of the best setting, a probability $p$ changes by less than
    the fraction $W/p$, which is below the rounding unit $u$ of the model's numbers if $p > W/u$. The settings of least
    weight are left out while $\log(W/u)$ is at most one of ``SMALLEST``. There is no group if all are needed.

    >>> from forel.learner.settings import Settings
    >>> pooling = Pooling(Settings(alpha=(0.1, 0.2, 0.5, 1.0)), 3, False, None)
    >>> ledger = pooling.ledger(4)
    >>> ledger.losses[:] = 500, 0, 60, 10
    >>> group_settings(pooling, ledger, np.dtype(np.float32))
    Groups(settings=(array([1, 3]), array([2])), smallest=(-43.36..., -483.36...))
    """
    if pooling.mixing is not Mixing.BAYES or pooling.share is not None or ledger.experts > pooling.settings.lanes:
        return Groups((), ())
    logs = (ledger.losses.min() - ledger.losses) * pooling.rate(ledger)
    order = np.argsort(logs, kind="stable")
    ignored = np.logaddexp.accumulate(logs[order])[:-1] - np.log(np.finfo(dtype).eps / 2)
    counts = sorted({int(np.count_nonzero(ignored <= bound)) for bound in SMALLEST} - {0}, reverse=True)
    return Groups(
        tuple(np.sort(order[start:end]) for end, start in pairwise([logs.size, *counts])),
        tuple(float(ignored[count - 1]) for count in counts),
    )


def mixed_margins(pooling: Pooling, ledger: Ledger, linear: Linear, rows: Rows) -> NDArray[Any] | None:
    """Return the mixture's margins of rows, computed from few settings where that is enough; None if all are needed.

    Rows with a class of such small probability that other settings could matter are computed again with more of them.
    """
    groups = group_settings(pooling, ledger, linear.dtype)
    if not groups.settings:
        return None
    classes = pooling.classes or 1
    found = np.empty((rows.number, classes))
    kept, left, known = groups.settings[0][:0], np.arange(rows.number), np.empty((*found.shape, 0), linear.dtype)
    for number, smallest in enumerate(groups.smallest):
        part = rows if left.size == rows.number else rows.take(left)
        kept = np.append(kept, groups.settings[number])
        own = linear.group_margins(part, groups.settings[number]).reshape(*known.shape[:2], kept.size - known.shape[2])
        known = np.concatenate((known, own), axis=2)
        mixed = pooling.predict(known.reshape(left.size, classes * kept.size), ledger.only(kept))
        found[left] = mixed
        again = _smallest_logs(mixed) < smallest
        if not again.any():
            return found
        left, known = left[again], known[again]
    found[left] = pooling.predict(linear.margins(rows.take(left)), ledger)
    return found


def likeliest(pooling: Pooling, ledger: Ledger, linear: Linear, X: Any) -> NDArray[np.intp] | None:
    """Return the class of largest probability of each row from the margins of one setting; None if it needs more.

    The other settings change each probability by less than rounding does, so that only ties could be decided by them.
    """
    groups = group_settings(pooling, ledger, linear.dtype)
    if pooling.classes is None or not groups.settings or groups.settings[0].size > 1:
        return None
    rows = rows_of(X, linear.features, linear.dtype)
    classes: NDArray[np.intp] = linear.group_margins(rows, groups.settings[0]).argmax(axis=1)
    return classes


def _smallest_logs(margins: NDArray[Any]) -> NDArray[Any]:
    """Return the log-probability of the rarest class of each row, or a lower bound of it for two classes."""
    logs: NDArray[Any] = -np.abs(margins[:, 0]) - np.log(2) if margins.shape[1] == 1 else margins.min(axis=1)
    return logs
