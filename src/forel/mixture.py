r"""No tuning: models with different settings, learned side by side and mixed by what each has lost.

Log-loss: with $p_{t,k}$ the probability that setting k gave, the mixture says $p_t = \sum_k w_{t,k} p_{t,k}$ with
$w_{t,k} \propto e^{-\ell_{1:t-1,k}}$, and has lost at most $\log K$ more than the best of K settings, in all, for ever.
Other losses: margins are mixed by AdaHedge, whose bound is known at any moment.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from forel.certificate import Certificate
from forel.checks import refuse
from forel.linear import Linear
from forel.rows import rows_of
from forel.settings import LOSSES, Settings

if TYPE_CHECKING:
    from forel.experts import Guarantee

__all__ = ["Mixture"]

HEAD = 4  # numbers of a ledger before those of the experts, as in forel.kernels.mixing


class Mixture:
    """Linear models of several settings, and one prediction from all of them.

    Parameters
    ----------
    features, classes, dtype, certified : as in :class:`forel.linear.Linear`
    settings : sequences among them are the settings that are mixed

    >>> model = Mixture(1, Settings(alpha=(0.01, 1.0), bias=False))
    >>> _ = model.learn(np.ones((50, 1)), [1] * 50)
    >>> model.best, model.posterior.round(3)
    (1, array([0., 1.]))
    >>> print(model.guarantee())
    within 0.014 per example of the best of 2 settings, which is alpha=1 (0.13... per example)

    Survey: section 3.6
    """

    def __init__(
        self,
        features: int,
        settings: Settings,
        classes: int | None = None,
        dtype: DTypeLike = np.float32,
        certified: bool = False,
    ) -> None:
        if classes is not None and settings.loss not in ("logistic", "softmax"):
            expected = "'logistic' or 'softmax', whose probabilities can be mixed; or one alpha"
            raise refuse("loss", settings.loss, f"of several classes {expected}")
        self.linear = Linear(features, settings, classes, dtype, certified)
        self.ledger = np.zeros(HEAD + settings.lanes)

    @property
    def settings(self) -> Settings:
        """What is learned, and how."""
        return self.linear.settings

    @property
    def features(self) -> int:
        """The number of features."""
        return self.linear.features

    @property
    def classes(self) -> int | None:
        """The number of classes, None for one margin."""
        return self.linear.classes

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of number that is learned in."""
        return self.linear.dtype

    @property
    def certified(self) -> bool:
        """Whether what a certificate needs is kept."""
        return self.linear.certified

    @property
    def rounds(self) -> int:
        """How many rows were learned from."""
        return self.linear.rounds

    @property
    def joint(self) -> bool:
        """Whether all classes have one loss."""
        return self.linear.joint

    @property
    def loss(self) -> float:
        """What the mixture lost in all, each row before it was learned from."""
        return float(self.ledger[0])

    @property
    def losses(self) -> NDArray[np.float64]:
        """What each setting lost in all."""
        return self.ledger[HEAD:].copy()

    @property
    def best(self) -> int:
        """The setting that lost least."""
        return int(np.argmin(self.ledger[HEAD:]))

    @property
    def posterior(self) -> NDArray[np.float64]:
        """The weight of each setting in the next prediction."""
        behind = self.ledger[HEAD:].min() - self.ledger[HEAD:]
        weights = np.exp(behind * self._rate)
        shares: NDArray[np.float64] = weights / weights.sum()
        return shares

    @property
    def _rate(self) -> float:
        if self._probable:
            return 1 / max(1.0, float(self.ledger[1]))
        return float(np.log(self.settings.lanes) / self.ledger[2]) if self.ledger[2] > 0 else 0.0

    @property
    def _probable(self) -> bool:
        return self.settings.loss in ("logistic", "softmax") or self.settings.piece == "logistic"

    @property
    def names(self) -> tuple[str, ...]:
        """Each setting in words: what differs between them."""
        return self.settings.names

    def only(self, setting: int | None = None) -> Linear:
        """Return one setting's model by itself, which can go on; the best one's if none is named."""
        return self.linear.only(self.best if setting is None else setting)

    def learn(self, X: Any, y: ArrayLike, importance: ArrayLike | None = None) -> NDArray[np.float64]:
        """Predict, suffer and learn from each row in turn; return the sum of the mixture's losses before learning."""
        before = self.loss
        self.progress(X, y, importance)
        return np.array([self.loss - before])

    def progress(
        self, X: Any, y: ArrayLike, importance: ArrayLike | None = None, held: NDArray[np.bool_] | None = None
    ) -> NDArray[Any]:
        """Learn from each row in turn, and return the mixture's margins from before, as :meth:`margins` does."""
        rows = rows_of(X, self.features, self.dtype)
        found = self.linear.progress(rows, y, importance, held)
        scale = np.ones(len(found)) if importance is None else np.array(importance, np.float64)
        if held is not None:
            scale[held] = -1.0
        return self._mixed(found, np.asarray(y, np.float64), scale)

    def margins(self, X: Any) -> NDArray[Any]:
        """Return the mixture's margin of every row; of several classes the logarithm of each one's probability."""
        found = self.linear.margins(X)
        return self._mixed(found, np.zeros(len(found)), np.full(len(found), -1.0))

    def _mixed(self, found: NDArray[Any], labels: NDArray[Any], scale: NDArray[Any]) -> NDArray[Any]:
        """Return what the mixture makes of all margins, and count what rows of positive importance cost."""
        from forel.kernels import mixing

        if self.classes is not None:
            logs = self._logs(found)
            out = np.empty(logs.shape[:2])
            mixing.log_mixed(logs, labels, scale, self.ledger, out)
            return out
        mixed = np.empty(len(found))
        if self._probable:
            mixing.probability(found, labels, scale, self.ledger, mixed)
        else:
            losses = self._value(found.astype(np.float64), labels[:, None])
            mixing.hedged(found, losses, scale, self.ledger, mixed)
            suffered = np.maximum(scale, 0.0) * self._value(mixed, labels)
            # One after the other, so that sums do not depend on how rows come in blocks.
            self.ledger[0] = np.add.accumulate(np.concatenate(([self.ledger[0]], suffered)))[-1]
        return mixed[:, None]

    @property
    def weights(self) -> NDArray[Any]:
        """The weights of the best setting, a row a feature, exact zeros included."""
        return self.linear.weights[:, self._lanes]

    @property
    def bias(self) -> NDArray[Any]:
        """The weight of the constant feature in the best setting."""
        return self.linear.bias[self._lanes]

    @property
    def _lanes(self) -> slice:
        return slice(self.best, None, self.settings.lanes)

    def guarantee(self) -> "Guarantee":
        """Return how much more than the best setting the mixture lost, and the most that it can have lost."""
        from forel.experts import Guarantee

        count, best = self.settings.lanes, self.best
        limit = np.log(count) / self._rate if self._probable else 2 * self.ledger[2]
        result = "exponential weights, log K" if self._probable else "AdaHedge, twice the mixability gap"
        against = f"the best of {count} settings, which is {self.names[best]}"
        return Guarantee(result, against, self.rounds, self.loss, float(self.losses[best]), float(limit))

    def certificate(self, lane: int = 0) -> Certificate:
        """Return what is proved against fixed models: the best setting's regret, and what mixing cost on top.

        Of several classes against the rest, ``lane`` says which; what mixing cost is then not divided among them.
        """
        best, count = self.best, self.settings.lanes
        proof = self.linear.certificate(best + (0 if self.joint else lane * count))
        more = self.loss - float(self.losses[best]) if self.classes is None or self.joint else 0.0
        return replace(proof, loss=proof.loss + more, played=proof.played + more, constant=proof.constant + more)

    def reset(self) -> None:
        """Forget everything."""
        self.linear.reset()
        self.ledger[:] = 0

    def _logs(self, found: NDArray[Any]) -> NDArray[np.float64]:
        """Return the logarithms of probabilities by row, class and setting."""
        from scipy.special import log_expit, log_softmax

        each = found.astype(np.float64).reshape(len(found), self.classes or 1, self.settings.lanes)
        logs: NDArray[np.float64] = log_softmax(each if self.joint else log_expit(each), axis=1)
        return np.ascontiguousarray(logs)

    @property
    def _value(self) -> Callable[[Any, Any], NDArray[np.float64]]:
        """The loss of margins and labels, element by element."""
        loss: Any = self.settings.loss
        known: Any = LOSSES.get(loss) if isinstance(loss, str) else loss
        if hasattr(known, "link"):
            return lambda m, y: np.asarray(known(m, y), np.float64)
        return np.vectorize(lambda m, y: loss(m, y)[0], otypes=[float])
