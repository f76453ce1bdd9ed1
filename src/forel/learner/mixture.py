r"""No tuning: models with different settings, learned side by side and mixed by what each has lost.

Log-loss: with $p_{t,k}$ the probability that setting k gave, the mixture says $p_t = \sum_k w_{t,k} p_{t,k}$ with
$w_{t,k} \propto e^{-\ell_{1:t-1,k}}$, and has lost at most $\log K$ more than the best of K settings, in all, for ever.
Squared loss, with every prediction kept within the labels seen so far, a range of b − a: likewise with the rate
$1/(b-a)^2$, and at most $(b-a)^2 \log K$, plus what labels outside of that range cost when they came, which is kept.
Other losses: margins are mixed by AdaHedge, whose bound is known at any moment.
"""

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from forel.learner import certify
from forel.learner.certificate import Certificate, Snapshot
from forel.learner.guard import Guard, changes, reads
from forel.learner.lanes import summed
from forel.learner.linear import Linear
from forel.learner.pooling import HEAD, LARGEST, Pooling
from forel.learner.settings import Settings
from forel.losses.margin import Mixing
from forel.validation import number, refuse

if TYPE_CHECKING:
    from forel.experts import Guarantee

__all__ = ["Mixture"]

EPS = float(np.finfo(np.float64).eps)


class Mixture:
    """Linear models of several settings, and one prediction from all of them.

    Parameters
    ----------
    features, classes, dtype, certified : as in :class:`forel.learner.linear.Linear`
    settings : sequences among them are the settings that are mixed
    share : for streams that drift, how much of all weight goes to the other settings after each row, as in
        :class:`forel.experts.FixedShare`; for log-loss of two classes

    >>> model = Mixture(1, Settings(alpha=(0.01, 1.0), bias=False))
    >>> _ = model.learn(np.ones((50, 1)), [1] * 50)
    >>> model.best, model.posterior.round(3)
    (1, array([0., 1.]))
    >>> print(model.guarantee())
    within 0.014 per example of the best of 2 settings over 50 rows, which is alpha=1 (0.13... per example)

    Survey: section 3.6
    """

    def __init__(
        self,
        features: int,
        settings: Settings,
        classes: int | None = None,
        dtype: DTypeLike = np.float32,
        certified: bool = False,
        share: float | None = None,
    ) -> None:
        if share is not None:
            most = (settings.lanes - 1) / settings.lanes
            number("share", share, f"a number above 0 and at most {most:g}", low=1e-12, high=most)
            loss = settings.loss_function
            if loss.mixing is not Mixing.BAYES or loss.joint or classes is not None:
                raise refuse("share", share, "None, but for log-loss of two classes")
        self._guard = Guard()
        self.linear = Linear(features, settings, classes, dtype, certified)
        self.share = share
        self._pooling = Pooling(settings, classes, self.linear.joint, share)
        self.ledger = np.zeros(HEAD + (1 if share is None else 2) * settings.lanes)
        self.reset()

    @reads
    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "linear": copy(self.linear), "ledger": self.ledger.copy()}

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
    def weighed(self) -> int:
        """How many rows settings were weighed by: those that were learned from for the first time."""
        return int(self.ledger[5])

    @property
    def weight(self) -> float:
        """The sum of the importances of all rows that were learned from, passes included."""
        return self.linear.weight

    @property
    def lanes(self) -> int:
        """How many margins a prediction has: one, or one a class."""
        return self.linear.classes or 1

    @property
    def joint(self) -> bool:
        """Whether all classes have one loss."""
        return self.linear.joint

    @property
    def loss(self) -> float:
        """What the mixture lost in all, each row before it was learned from."""
        return float(self.ledger[0])

    @property
    @reads
    def losses(self) -> NDArray[np.float64]:
        """What each setting lost in all, its predictions clipped as the mixture clips them."""
        return self._lost.copy()

    @property
    @reads
    def averages(self) -> NDArray[np.float64]:
        """What each setting lost per unit of importance, likewise."""
        return self._lost / max(float(self.ledger[6]), EPS)

    @property
    def _lost(self) -> NDArray[np.float64]:
        return self.ledger[HEAD : HEAD + self.settings.lanes]

    @property
    def _shared(self) -> NDArray[np.float64]:
        """The weights of a mixture that shares; empty otherwise."""
        return self.ledger[HEAD + self.settings.lanes :]

    @property
    def best(self) -> int:
        """The setting that lost least."""
        return int(np.argmin(self._lost))

    @property
    @reads
    def posterior(self) -> NDArray[np.float64]:
        """The weight of each setting in the next prediction."""
        if self.share is not None:
            return self._shared.copy()
        behind = self._lost.min() - self._lost
        weights = np.exp(behind * self._rate)
        shares: NDArray[np.float64] = weights / weights.sum()
        return shares

    @property
    def _rate(self) -> float:
        mixing = self.settings.loss_function.mixing
        if mixing is Mixing.BAYES:
            return 1 / max(1.0, float(self.ledger[1]))
        if mixing is Mixing.EXP_CONCAVE:
            span = float(self.ledger[4] - self.ledger[3])
            return 1 / (max(1.0, float(self.ledger[1])) * span * span) if span > 0 else 0.0
        return float(np.log(self.settings.lanes) / self.ledger[2]) if self.ledger[2] > 0 else 0.0

    @property
    def names(self) -> tuple[str, ...]:
        """Each setting in words: what differs between them."""
        return self.settings.names

    @reads
    def only(self, setting: int | None = None) -> Linear:
        """Return one setting's model by itself, which can go on; the best one's if none is named."""
        return self.linear.only(self.best if setting is None else setting)

    def learn(self, X: Any, y: ArrayLike, importance: ArrayLike | None = None) -> NDArray[np.float64]:
        """Predict, suffer and learn from each row in turn; return the sum of the mixture's losses before learning."""
        with self._guard.lock:
            before = self.loss
            self.progress(X, y, importance)
            return np.array([self.loss - before])

    @changes
    def progress(
        self, X: Any, y: ArrayLike, importance: ArrayLike | None = None, held: NDArray[np.bool_] | None = None
    ) -> NDArray[Any]:
        """Learn from each row in turn, and return the mixture's margins from before, as :meth:`margins` does."""
        found = self.linear.progress(X, y, importance, held)
        scale = np.ones(len(found)) if importance is None else np.array(importance, np.float64)
        if held is not None:
            scale[held] = -1.0
        learned = scale[scale >= 0]
        self.ledger[5] += learned.size
        self.ledger[6] = summed(self.ledger[6], learned)
        return self._pooling.mixed(found, np.asarray(y, np.float64), scale, self.ledger)

    @changes
    def again(
        self, X: Any, y: ArrayLike, importance: ArrayLike | None = None, held: NDArray[np.bool_] | None = None
    ) -> NDArray[Any]:
        """Learn from rows that were learned from before, and return margins likewise.

        Such rows say nothing about which setting is best, because those that learn by heart lose least on them; so
        weights stay what they are.

        >>> model = Mixture(1, Settings(alpha=(0.01, 1.0), bias=False))
        >>> _ = model.learn(np.ones((50, 1)), [1] * 50)
        >>> before = model.posterior
        >>> _ = model.again(np.ones((50, 1)), [1] * 50)
        >>> model.rounds, model.weighed, bool(np.all(model.posterior == before))
        (100, 50, True)
        """
        return self._unweighed(self.linear.progress(X, y, importance, held), self.ledger.copy())

    def margins(self, X: Any) -> NDArray[Any]:
        """Return the mixture's margin of every row; of several classes the logarithm of each one's probability."""
        return self._unweighed(*self._guard.read(lambda: (self.linear.margins(X), self.ledger.copy())))

    def _unweighed(self, found: NDArray[Any], ledger: NDArray[Any]) -> NDArray[Any]:
        # A ledger of its own, because a model in read-only memory predicts as well.
        return self._pooling.mixed(found, np.zeros(len(found)), np.full(len(found), -1.0), ledger)

    @property
    @reads
    def weights(self) -> NDArray[Any]:
        """The weights of the best setting, a row a feature, exact zeros included."""
        return self.linear.weights[:, self._lanes]

    @property
    @reads
    def bias(self) -> NDArray[Any]:
        """The weight of the constant feature in the best setting."""
        return self.linear.bias[self._lanes]

    @property
    def _lanes(self) -> slice:
        return slice(self.best, None, self.settings.lanes)

    @reads
    def guarantee(self) -> "Guarantee":
        """Return how much more than the best setting the mixture lost, and the most that it can have lost."""
        from forel.experts import FixedShare, Guarantee

        count, best, rows, void = self.settings.lanes, self.best, self.weighed, ""
        mixing = self.settings.loss_function.mixing
        if self.share is not None:
            rule = FixedShare(share=self.share)
            result, limit = rule.result, rule.cost(count, self.weighed, 0)
            void = (
                "a row's importance was above 1, for which there is no bound with a share" if self.ledger[1] > 1 else ""
            )
        elif mixing is not Mixing.CONVEX:
            result = f"exponential weights, {mixing.value}"
            limit = (np.log(count) / self._rate if self._rate else 0.0) + self.ledger[2]
        else:
            result, limit = f"AdaHedge, {mixing.value}", 2 * self.ledger[2]
        if max(abs(self.loss), self._lost.max(), limit) >= LARGEST:
            void = "a loss left the range of double precision; scale the features"
        other = float(self._lost[best])
        # What adding up so many numbers may have rounded away.
        limit += EPS * (rows + 8) * (abs(self.loss) + abs(other))
        clipped = ", predictions clipped to the labels seen before," if self._pooling.clips else ""
        against = f"the best of {count} settings{clipped} over {rows:,} rows, which is {self.names[best]}"
        return Guarantee(result, against, rows, self.loss, other, float(limit), void, float(self.ledger[6]))

    @property
    def seen(self) -> NDArray[np.int64]:
        """The coordinates whose records are not zero, in order; the bias is ``features``."""
        return self.linear.seen

    @property
    @reads
    def nonzeros(self) -> int:
        """How many weights of the best setting are not zero."""
        return int(np.count_nonzero(self.weights_at(self.seen[self.seen < self.features])))

    @reads
    def weights_at(self, coordinates: NDArray[np.int64]) -> NDArray[Any]:
        """Return the best setting's weights of some coordinates."""
        return self.linear.weights_at(coordinates)[:, self._lanes]

    @reads
    def certificate(self, lane: int = 0, among: NDArray[np.int64] | None = None) -> Certificate:
        """Return what is proved against fixed models: the best setting's regret, and what mixing cost on top.

        Of several classes against the rest, ``lane`` says which; what mixing cost is then left out.
        ``among`` is as in :meth:`forel.learner.linear.Linear.certificate`. Where rows were learned from again, it is
        what is proved of the best setting alone.
        """
        proof, suffered = self.linear.certificate(self._best_lane(lane), among), self._suffered()
        if suffered is None:
            return proof
        return replace(proof, loss=suffered, constant=proof.constant + suffered - proof.loss)

    @reads
    def snapshot(self) -> Snapshot:
        """Return where the sums stand, so that :meth:`words` can speak of the rows after it alone."""
        return replace(self.linear.snapshot(), suffered=self.loss, weighed=self.weighed)

    @reads
    def words(self, lane: int = 0, since: Snapshot | None = None, suffered: float | None = None) -> str:
        """Return what the certificate says of all models no larger than the best setting's, without its tables.

        It speaks of all rows, or of those ``since`` a snapshot, on which ``suffered`` was lost if that is known.
        """
        lanes = self.linear._certified(self._best_lane(lane))
        return certify.words(self.linear._lanes, lanes, since, self._suffered(since) if suffered is None else suffered)

    def _best_lane(self, lane: int) -> int:
        return self.best + (0 if self.joint else lane * self.settings.lanes)

    def _suffered(self, since: Snapshot | None = None) -> float | None:
        """Return what the mixture lost; None where a setting speaks for itself: rows learned again, one class."""
        before = Snapshot() if since is None else since
        if self.weighed - before.weighed < self.rounds - before.rounds or not (self.classes is None or self.joint):
            return None
        return self.loss - before.suffered

    @changes
    def reset(self) -> None:
        """Forget everything."""
        self.linear.reset()
        self.ledger[:] = 0
        self._shared[:] = 1 / self.settings.lanes
