"""One prediction from those of several settings: which rule suits a loss, and what it writes into the ledger."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.learner.lanes import summed
from forel.learner.settings import Settings
from forel.losses.margin import Mixing

__all__ = ["HEAD", "LARGEST", "Pooling"]

HEAD = 7  # numbers of a ledger before those of the experts, as in forel.learner.kernels.mixing
LARGEST = 1e290  # likewise: the largest loss of a row that sums have room for


@dataclass(frozen=True)
class Pooling:
    """How margins of several settings, by row, class and setting, are mixed.

    Parameters
    ----------
    settings : what is mixed
    classes : how many, None for one margin
    joint : whether all classes have one loss
    share : of fixed share, None for weights that are never given back

    >>> Pooling(Settings("absolute"), None, False, None).clips
    True
    """

    settings: Settings
    classes: int | None
    joint: bool
    share: float | None

    @property
    def probable(self) -> bool:
        """Whether probabilities are mixed, by Bayes' rule."""
        return self.settings.loss_function.mixing is Mixing.BAYES

    @property
    def clips(self) -> bool:
        """Whether predictions are clipped to the range of labels seen before: overshooting is no better."""
        return any(self.settings.loss_function.link.clipping)

    def mixed(
        self, found: NDArray[Any], labels: NDArray[Any], scale: NDArray[Any], ledger: NDArray[Any]
    ) -> NDArray[Any]:
        """Return what the mixture makes of all margins, and count what rows of positive importance cost."""
        from forel.learner.kernels.kernel import routine

        out = np.empty((len(found), self.classes or 1))
        if self.share is not None:
            routine("mixing", "shifting")(found, labels, scale, self.share, ledger, out[:, 0])
            return out
        if self.probable and self.classes is None:
            routine("mixing", "probability")(found, labels, scale, ledger, out[:, 0])
            return out
        if self.probable:
            routine("mixing", "log_mixed")(self._logs(found), labels, scale, ledger, out)
            return out
        each = found.astype(np.float64).reshape(len(found), self.classes or 1, self.settings.lanes)
        if self.clips:
            low, high = self._range(labels, scale, ledger)
            each = np.clip(each, low[:, None, None], high[:, None, None])
            if self.settings.loss_function.mixing is Mixing.EXP_CONCAVE:
                routine("mixing", "squared")(each[:, 0], labels, scale, high - low, ledger, out[:, 0])
                return out
        routine("mixing", "hedged")(each, self._values(each, labels), scale, ledger, out)
        suffered = np.maximum(scale, 0.0) * self._values(out[:, :, None], labels)[:, 0]
        ledger[0] = summed(ledger[0], suffered)
        return out

    def _range(
        self, labels: NDArray[Any], scale: NDArray[Any], ledger: NDArray[Any]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the smallest and the largest prediction that labels before each row suggest, 0 among them."""
        link = self.settings.loss_function.link
        learned = np.where(scale >= 0, link.inverse(labels), 0.0)
        high = np.maximum.accumulate(np.concatenate(([ledger[4]], learned)))
        ledger[4] = high[-1]
        if not link.clipping.below:
            return np.full(len(labels), -np.inf), high[:-1]
        low = np.minimum.accumulate(np.concatenate(([ledger[3]], learned)))
        ledger[3] = low[-1]
        return low[:-1], high[:-1]

    def _logs(self, found: NDArray[Any]) -> NDArray[np.float64]:
        """Return the logarithms of probabilities by row, class and setting."""
        from scipy.special import log_expit, log_softmax

        each = found.astype(np.float64).reshape(len(found), self.classes or 1, self.settings.lanes)
        logs: NDArray[np.float64] = log_softmax(each if self.joint else log_expit(each), axis=1)
        return np.ascontiguousarray(logs)

    def _values(self, each: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.float64]:
        """Return losses by row and setting, those of all classes summed, from margins by row, class and setting."""
        loss, targets = self.settings.loss_function, labels[:, None, None]
        if self.classes is not None:
            hit = targets == np.arange(self.classes)[None, :, None]
            targets = np.where(hit, 1.0, -1.0 if self.settings.signed else 0.0)
        with np.errstate(over="ignore"):
            values: NDArray[np.float64] = np.asarray(loss(each.astype(np.float64), targets), np.float64)
        return np.ascontiguousarray(np.minimum(values.sum(axis=1), LARGEST))
