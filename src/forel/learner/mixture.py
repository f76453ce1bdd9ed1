r"""Mixtures: models with different settings, learned in parallel and weighted by their losses, without tuning.

Log-loss: with $p_{t,k}$ the probability of setting k, the mixture predicts $p_t = \sum_k w_{t,k} p_{t,k}$ with
$w_{t,k} \propto e^{-\ell_{1:t-1,k}}$, and its total loss exceeds that of the best of K settings by at most $\log K$.
Squared loss, with predictions clipped to the range of labels seen so far, of length b − a: the same with a rate η, by
at most $\log K/\eta + \Delta$, with Δ the measured cost of rates above $1/(b-a)^2$ and of labels outside the range of
those before them; η is $\log K/\Delta$, or $1/(b-a)^2$ if that is more. Other losses: margins are mixed by AdaHedge.
"""

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from forel.learner.certificate import Certificate
from forel.learner.certificate_sums import CertificateSums, difference
from forel.learner.certified_lanes import bounded_lanes
from forel.learner.contributions import MixtureExplanation, explain
from forel.learner.expert_pool import ExpertPool
from forel.learner.guard import Guard, changes, reads
from forel.learner.ledger import Ledger
from forel.learner.linear import Linear
from forel.learner.loss_floor import LossFloor
from forel.learner.pooling import Pooling
from forel.learner.relevance import mixed_margins
from forel.learner.rows import Rows, rows_of, training_rows
from forel.learner.settings import Settings
from forel.learner.targets import labels_and_scale
from forel.learner.weight_table import count_nonzeros

if TYPE_CHECKING:
    from forel.experts import Guarantee

__all__ = ["Mixture"]


class Mixture:
    """Linear models of several settings, and mixers of them, mixed into one prediction.

    Parameters
    ----------
    features, classes, dtype, certified : as in :class:`forel.learner.linear.Linear`
    settings : its sequences and filters are the settings that are mixed
    share : for streams that drift, the share of its weight that each setting gives to the others after each row, as in
        :class:`forel.experts.FixedShare`; for log-loss of two classes

    >>> model = Mixture(1, Settings(alpha=(0.01, 1.0), bias=False))
    >>> _ = model.learn(np.ones((50, 1)), [1] * 50)
    >>> model.best, model.posterior.round(3)
    (1, array([0., 1.]))
    >>> print(model.guarantee())
    within 0.014 per example of the best of 2 settings over 50 rows, which is alpha=1 (0.13... per example)

    Survey: section 3.6
    """

    kind: ClassVar[str] = "mixture"
    options: ClassVar[tuple[str, ...]] = ("share",)

    def __init__(
        self,
        features: int,
        settings: Settings,
        classes: int | None = None,
        dtype: DTypeLike = np.float32,
        certified: bool = False,
        share: float | None = None,
    ) -> None:
        linear = Linear(features, settings, classes, dtype, certified)
        self._set_state(linear, ExpertPool(Pooling(settings, linear.classes, linear.joint, share)))

    def _set_state(self, linear: Linear, pool: ExpertPool) -> None:
        self._guard, self.linear, self.pool, self.share = Guard(), linear, pool, pool.pooling.share
        self.settings, self.classes, self.lanes = linear.settings, linear.classes, linear.classes or 1
        self.dtype, self.certified, self.joint = linear.dtype, linear.certified, linear.joint

    @classmethod
    def from_linear(cls, linear: Linear, ledger: Ledger, share: float | None = None) -> "Mixture":
        """Return a mixture of existing models and losses, which are shared, not copied, without full filters."""
        mixture, pool = cls.__new__(cls), ExpertPool(Pooling(linear.settings, linear.classes, linear.joint, share))
        pool.ledger, pool.full = ledger, None
        mixture._set_state(linear, pool)
        return mixture

    @reads
    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "linear": copy(self.linear), "pool": self.pool.copy()}

    @changes
    def reset(self) -> None:
        """Return to the state before the first row."""
        self.linear.reset()
        self.pool.reset()

    @staticmethod
    def stored_arrays(settings: Settings, share: float | None = None) -> dict[str, tuple[int, ...] | None]:
        """Return the names and shapes of the arrays in a model file that are not those of the linear models."""
        return ExpertPool.stored_arrays(settings, share)

    def pack(self) -> dict[str, NDArray[np.float64]]:
        """Return the arrays of :meth:`stored_arrays`."""
        return self.pool.pack()

    def unpack(self, arrays: dict[str, NDArray[np.float64]]) -> None:
        """Set the state to arrays of a model file."""
        self.pool.unpack(arrays)

    @property
    def features(self) -> int:
        """The number of features."""
        return self.linear.features

    @property
    def ledger(self) -> Ledger:
        """The losses of all experts."""
        return self.pool.ledger

    @property
    def rounds(self) -> int:
        """The number of rows learned from."""
        return self.linear.rounds

    @property
    def first_pass_rows(self) -> int:
        """The number of rows learned from for the first time, whose losses weight the settings."""
        return self.ledger.rows

    @property
    def weight(self) -> float:
        """The sum of the importances of all rows learned from, in all passes."""
        return self.linear.weight

    @property
    def softmax_margins(self) -> bool:
        """Whether the probabilities of classes are the softmax of their margins."""
        return self.classes is not None

    @property
    def loss(self) -> float:
        """The sum of the mixture's losses, each row before it was learned from."""
        return self.ledger.loss

    @property
    @reads
    def losses(self) -> NDArray[np.float64]:
        """The sum of each expert's losses, settings before mixers, with predictions clipped as in the mixture."""
        return self.ledger.losses.copy()

    @property
    @reads
    def averages(self) -> NDArray[np.float64]:
        """The losses of each expert per unit of importance."""
        return self.ledger.losses / max(self.ledger.weight, np.finfo(np.float64).eps)

    @property
    def best(self) -> int:
        """The setting with the smallest loss, filters included; mixers are not models by themselves."""
        return int(np.argmin(self.ledger.losses[: self.settings.lanes]))

    @property
    @reads
    def posterior(self) -> NDArray[np.float64]:
        """The weight of each expert in the next prediction."""
        return self.pool.pooling.weights(self.ledger)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the experts: settings by the parameters in which they differ, then the others."""
        return self.pool.names

    @reads
    def explain(self) -> MixtureExplanation:
        """Return what each expert contributes: loss, weight, and the mixture's loss without experts of its kind."""
        return explain(self.pool.pooling, self.ledger, self.names, self.pool.kinds)

    def _repr_html_(self) -> str:
        return self.explain()._repr_html_()

    @property
    def best_model(self) -> int:
        """The linear model with the smallest loss, full-covariance filters included, which follow the settings."""
        return int(np.argmin(self.ledger.losses[: self.ledger.settings]))

    @reads
    def only(self, setting: int | None = None) -> Linear:
        """Return the model of one setting, which can continue to learn; for None, that of ``best``.

        Full-covariance filters follow the settings; the model has their variances, and continues as a diagonal filter.
        """
        chosen = self.best if setting is None else setting
        if self.settings.lanes <= chosen < self.ledger.settings:
            return self.pool.diagonal_filter(chosen - self.settings.lanes, self.linear)
        return self.linear.only(chosen)

    @reads
    def model_weights_at(self, coordinates: NDArray[np.int64]) -> NDArray[Any]:
        """Return the weights of all linear models at some coordinates, a column each, full-covariance filters last."""
        return self.pool.with_full_weights(coordinates, self.linear)

    @reads
    def without_full_filters(self) -> "Mixture":
        """Return a copy that continues without full-covariance filters; the mixture itself if it has none."""
        if not self.settings.full_filters:
            return self
        lanes, pool = self.linear.copied_lanes(), self.pool.copy()
        lanes.settings = replace(self.settings, full_filters=())
        pool.drop_full_filters()
        return Mixture.from_linear(Linear.from_lanes(lanes, self.classes), pool.ledger, self.share)

    def learn(self, X: Any, y: ArrayLike, importance: ArrayLike | None = None) -> NDArray[np.float64]:
        """Predict and then learn each row in turn; return the sum of the mixture's losses before learning."""
        with self._guard.lock:
            before = self.loss
            self.progress(X, y, importance)
            return np.array([self.loss - before])

    @changes
    def progress(
        self, X: Any, y: ArrayLike, importance: ArrayLike | None = None, held_out: NDArray[np.bool_] | None = None
    ) -> NDArray[Any]:
        """Learn each row in turn, and return the margins of the mixture before each row was learned from."""
        rows = training_rows(X, self.features, self.dtype)
        margins = self.linear.progress(rows, y, importance, held_out)
        return self.pool.mix(rows, margins, *labels_and_scale(y, importance, held_out))

    @changes
    def relearn(
        self, X: Any, y: ArrayLike, importance: ArrayLike | None = None, held_out: NDArray[np.bool_] | None = None
    ) -> NDArray[Any]:
        """Learn rows of an earlier pass again, and return margins as :meth:`progress` does.

        The weights of settings do not change: on these rows, settings that overfit have the smallest loss.

        >>> model = Mixture(1, Settings(alpha=(0.01, 1.0), bias=False))
        >>> _ = model.learn(np.ones((50, 1)), [1] * 50)
        >>> before = model.posterior
        >>> _ = model.relearn(np.ones((50, 1)), [1] * 50)
        >>> model.rounds, model.first_pass_rows, bool(np.all(model.posterior == before))
        (100, 50, True)
        """
        rows = training_rows(X, self.features, self.dtype)
        margins = self.linear.progress(rows, y, importance, held_out)
        return self.pool.relearn(rows, margins, *labels_and_scale(y, importance, held_out))

    def margins(self, X: Any) -> NDArray[Any]:
        """Return the mixture's margin of every row; for several classes the log-probability of each class."""
        rows = rows_of(X, self.features, self.dtype)
        return self._guard.read(lambda: self._margins(rows))

    def _margins(self, rows: Rows) -> NDArray[Any]:
        found = mixed_margins(self.pool.pooling, self.ledger, self.linear, rows)
        return self.pool.predict(rows, self.linear.margins(rows)) if found is None else found

    @property
    @reads
    def weights(self) -> NDArray[Any]:
        """The weights of the best setting, a row for each feature, exact zeros included."""
        return self.linear.weights[:, self._best_lanes]

    @property
    @reads
    def bias(self) -> NDArray[Any]:
        """The weight of the constant feature in the best setting."""
        return self.linear.bias[self._best_lanes]

    @property
    def _best_lanes(self) -> slice:
        return slice(self.best, None, self.settings.lanes)

    @reads
    def guarantee(self) -> "Guarantee":
        """Return the mixture's regret to the best setting, and the bound on it."""
        return self.pool.pooling.guarantee(self.ledger, self.names)

    @property
    def seen(self) -> NDArray[np.int64]:
        """The coordinates with a record that is not zero, in order; the bias is ``features``."""
        return self.linear.seen

    @property
    @reads
    def nonzeros(self) -> int:
        """The number of non-zero weights of the best setting."""
        return count_nonzeros(self.linear._lanes, self._best_lanes)

    @reads
    def weights_at(self, coordinates: NDArray[np.int64]) -> NDArray[Any]:
        """Return the best setting's weights of some coordinates."""
        return self.linear.weights_at(coordinates)[:, self._best_lanes]

    @reads
    def certificate(self, lane: int = 0, among: NDArray[np.int64] | None = None) -> Certificate:
        """Return the regret to fixed models with its bound: that of the best setting, plus the cost of mixing.

        Filters have no bound, and are left out; their slopes give loss floors all the same. With filters, settings are
        those of :func:`forel.learner.certified_lanes.certified_lanes`. For several classes, each trained against the
        rest, ``lane`` is the class; the cost of mixing is not included. ``among`` is as in
        :meth:`forel.learner.linear.Linear.certificate`. After a second pass it is that of the best setting alone.
        """
        bounded = min(bounded_lanes(self.settings), key=lambda setting: float(self.ledger.losses[setting]))
        proof, loss = self.linear.certificate(self._lane(bounded, lane), among), self._loss_since()
        return proof if loss is None else replace(proof, loss=loss, constant=proof.constant + loss - proof.loss)

    @reads
    def snapshot(self) -> CertificateSums:
        """Return the sums of certificates, from which :meth:`summary` computes those of the rows after it."""
        return replace(self.linear.snapshot(), mixture_loss=self.loss, mixture_rows=self.first_pass_rows)

    @reads
    def summary(self, lane: int = 0, since: CertificateSums | None = None, loss: float | None = None) -> str:
        """Return the certificate against all models of at most the best setting's norm, in a sentence.

        It covers all rows, or those ``since`` a snapshot; ``loss`` is the total loss on them, if that is known.
        """
        return self.loss_floor(lane, since, loss).summary()

    @reads
    def loss_floor(
        self,
        lane: int = 0,
        since: CertificateSums | None = None,
        loss: float | None = None,
    ) -> LossFloor:
        """Return lower bounds on the loss of fixed models by their norm, as :meth:`Linear.loss_floor` does."""
        mixture_loss = self._loss_since(since) if loss is None else loss
        floor, setting = self.linear.loss_floor(self._lane(self.best, lane), since, mixture_loss), self.names[self.best]
        setting = f"the expert {setting}"
        return replace(floor, learner=setting if mixture_loss is None else "the mixture", setting=setting)

    def _lane(self, setting: int, lane: int) -> int:
        return setting + (0 if self.joint else lane * self.settings.lanes)

    def _loss_since(self, since: CertificateSums | None = None) -> float | None:
        """Return the mixture's loss; None where the best setting's is used: after a second pass, and for one class."""
        now = CertificateSums(self.rounds, mixture_loss=self.loss, mixture_rows=self.first_pass_rows)
        rows = now if since is None else difference(now, since)
        repeated = rows.mixture_rows < rows.rounds
        return None if repeated or not (self.classes is None or self.joint) else rows.mixture_loss
