r"""The fast learner: linear models that learn online from sparse rows, in compiled code, and their mixture.

Models change in place, one call at a time, from any thread. Their updates are those of ``forel.theory.algorithms``,
coordinate by coordinate, and touch only the features of a row; parity tests compare both.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from forel.data.features.curves import Curves
from forel.learner import certify
from forel.learner.certificate import Certificate, bounded_lanes, certified_lanes
from forel.learner.certify import CertificateSums
from forel.learner.class_experts import ClassExperts
from forel.learner.contributions import MixtureExplanation, explain
from forel.learner.locking import SeqLock, reads
from forel.learner.loss_floor import LossFloor
from forel.learner.mixture import Mixture
from forel.learner.polish import SampledRows
from forel.learner.rows import Examples, Rows, examples_of, rows_of
from forel.learner.settings import Settings
from forel.learner.state import BLOCK, LabelCoding, State, place_classes, renumber, resize, split_binary
from forel.losses import Classes
from forel.losses.margin import Mixing
from forel.validation import refuse, whole

if TYPE_CHECKING:
    from forel.experts import Guarantee

__all__ = ["Learner", "number_of_classes", "without_filter_lanes"]


class Learner:
    """Linear models learned one row at a time: one for each setting and class, mixed if there are several settings.

    Parameters
    ----------
    features : the number of features
    settings : loss, algorithm, rate and penalty; each entry of a sequence, and each filter, is a separate setting
    classes : the number of classes, with labels 0, 1, …, classes − 1; each class has a model, which is trained against
        the rest, or jointly with the others for the softmax loss; with K settings, models 0 to K − 1 are class 0, etc.
    dtype : float32, or float64 for twice the memory and more digits
    certified : whether to keep the sums that :meth:`certificate` needs: one more number for each feature and model
        where regularizers are proximal, two for mirror descent; with filters three for each feature
    share : for streams that drift, the share of its weight that each expert gives to the others after each row, as in
        :class:`forel.experts.FixedShare`; for log-loss of two classes
    mixed : whether the models of several settings are mixed into one prediction, as :mod:`forel.learner.mixture`
        describes, or each predicts alone; None for a mixture if there are several settings
    curves : curves and pairs of columns, which further experts of a mixture with filters learn; None for none

    >>> model = Learner(2, Settings(alpha=1.0, bias=False), dtype=np.float64)
    >>> float(model.learn([[1.0, 0.0], [0.0, 1.0]], [1, 0])[0])  # progressive log-loss: predicted before learning
    1.386...
    >>> model.weights.ravel().round(3)
    array([ 0.333, -0.333])

    >>> model = Learner(1, Settings(alpha=(0.01, 1.0), bias=False))
    >>> _ = model.learn(np.ones((50, 1)), [1] * 50)
    >>> model.best, model.posterior.round(3)
    (1, array([0., 1.]))
    >>> print(model.guarantee())
    within 0.014 per example of the best of 2 settings over 50 rows, which is alpha=1 (0.13... per example)

    Survey: sections 3.4 and 3.6
    """

    def __init__(
        self,
        features: int,
        settings: Settings,
        classes: int | None = None,
        dtype: DTypeLike = np.float32,
        certified: bool = False,
        share: float | None = None,
        mixed: bool | None = None,
        curves: Curves | None = None,
    ) -> None:
        classes, joint = number_of_classes(settings, classes), settings.loss_function.joint
        if certified and settings.algorithm == "filter":
            raise refuse("certified", True, "False where algorithm='filter', whose steps have no certificate")
        mixed = settings.n_settings > 1 if mixed is None else mixed
        if share is not None and not mixed:
            raise refuse("share", share, "None for one model")
        binary = settings.loss_function.mixing is Mixing.BAYES and not joint
        if curves is not None and not (mixed and (settings.filters if classes is None else binary)):
            raise refuse("curves", "curves", "None but for a mixture with filters, as by default")
        further = None if curves is None or classes is None else (curves, classes, settings, features, dtype)
        more = None if further is None else partial(ClassExperts, *further)
        mixture = Mixture(settings, classes, share, curves, dtype, more) if mixed else None
        coding: LabelCoding = "shared" if classes is None or joint else "signs" if settings.signed else "classes"
        state = State(features, settings, (classes or 1) * settings.n_settings, dtype, certified, coding)
        self._assemble(state, mixture, classes, SeqLock())

    def _assemble(self, state: State, mixture: Mixture | None, classes: int | None, lock: SeqLock) -> None:
        self._lock, self.state, self.mixture, self.classes = lock, state, mixture, classes
        self.settings, self.dtype, self.certified = state.settings, state.dtype, state.certified
        self.joint = self.settings.loss_function.joint
        self.lane_margins: NDArray[Any] | None = None  # of the certified lanes, for the last block that was finished
        self.n_outputs = state.n_lanes if mixture is None else classes or 1

    @classmethod
    def of(cls, state: State, mixture: Mixture | None = None, classes: int | None = None) -> "Learner":
        """Return a learner with an existing state and mixture, which are shared, not copied."""
        learner = cls.__new__(cls)
        learner._assemble(state, mixture, classes, SeqLock())
        return learner

    @property
    def unmixed(self) -> "Learner":
        """The models of all settings and classes, each of which predicts alone; they share this learner's state."""
        if self.mixture is None:
            return self
        alone = Learner.__new__(Learner)
        alone._assemble(self.state, None, self.classes, self._lock)
        return alone

    @reads
    def copy(self, whole: bool = False) -> "Learner":
        """Return a copy; memory of features that never occurred is not committed, unless ``whole``, which is faster."""
        state = self.state.cloned() if whole else self.state.copied()
        return Learner.of(state, None if self.mixture is None else self.mixture.copy(), self.classes)

    @reads
    def __getstate__(self) -> dict[str, Any]:
        mixture = None if self.mixture is None else self.mixture.copy()
        return {**self.__dict__, "state": self.state.copied(), "mixture": mixture}

    def reset(self) -> None:
        """Return to the state before the first row."""
        with self._lock.writing():
            self.state.reset()
            if self.mixture is not None:
                self.mixture.reset()

    @property
    def kind(self) -> Literal["linear", "mixture"]:
        """The kind of learner in model files."""
        return "linear" if self.mixture is None else "mixture"

    @property
    def features(self) -> int:
        """The number of features."""
        return self.state.features

    @property
    def share(self) -> float | None:
        """The share of a mixture by fixed share; None without it."""
        return None if self.mixture is None else self.mixture.share

    @property
    def rounds(self) -> int:
        """The number of rows learned from, in all passes."""
        return self.state.rounds

    @property
    def first_pass_rows(self) -> int:
        """The number of rows learned from for the first time, whose losses weight the experts of a mixture."""
        return self.rounds if self.mixture is None else self.mixture.ledger.rows

    @property
    def total_importance(self) -> float:
        """The sum of the importances of all rows learned from, in all passes."""
        return self.state.total_importance

    @property
    def loss(self) -> Any:
        """The sum of losses, each row before it was learned from; without a mixture one sum for each model.

        The classes of a joint loss are one model.
        """
        if self.mixture is not None:
            return self.mixture.ledger.loss
        return self.state.totals[: self.settings.n_settings if self.joint else self.n_outputs].copy()

    @property
    def softmax_margins(self) -> bool:
        """Whether the probabilities of classes are the softmax of their margins."""
        return self.joint if self.mixture is None else self.classes is not None

    def learn(self, X: Any, y: ArrayLike | None = None, importance: ArrayLike | None = None) -> NDArray[np.float64]:
        """Predict and then learn each row in turn; return the sum of losses before learning, as :attr:`loss` does.

        ``X`` is an array, a sparse matrix, or a block of :func:`forel.read`, which has labels and importances.
        ``importance`` multiplies a row's loss, and so its gradient. A row of importance 2 is not the same as the row
        twice: the second time, the model has already learned from the first. A row of importance 0 is not learned from,
        and does not count.
        """
        with self._lock.lock:
            before = self.loss
            if self.mixture is None:
                given = self._examples(X, y, importance, None)
                with self._lock.writing():
                    self.state.progress(given, written=False)
            else:
                self.progress(X, y, importance)
            return np.atleast_1d(self.loss - before)

    def progress(
        self,
        X: Any,
        y: ArrayLike | None = None,
        importance: ArrayLike | None = None,
        held_out: NDArray[np.bool_] | None = None,
        again: bool = False,
    ) -> NDArray[Any]:
        """Learn each row in turn, and return the margins from before the row was learned from.

        Rows in the mask ``held_out`` are predicted in turn and do not change the model. With ``again``, rows are those
        of an earlier pass, and the weights of experts do not change: on these rows, settings that overfit have the
        smallest loss.

        >>> Learner(1, Settings("squared", alpha=1.0, bias=False)).progress([[1.0], [1.0]], [2.0, 2.0]).ravel().round(2)
        array([0.  , 0.67], dtype=float32)

        >>> model = Learner(1, Settings(alpha=(0.01, 1.0), bias=False))
        >>> _ = model.learn(np.ones((50, 1)), [1] * 50)
        >>> before = model.posterior
        >>> _ = model.progress(np.ones((50, 1)), [1] * 50, again=True)
        >>> model.rounds, model.first_pass_rows, bool(np.all(model.posterior == before))
        (100, 50, True)
        """
        with self._lock.lock:  # all experts learn in one change, so that other threads see the state before or after it
            given = self._examples(X, y, importance, held_out)
            with self._lock.writing():
                margins = self.state.progress(given)
                return margins if self.mixture is None else self.mixture.learn(given, margins, again)

    def begin(
        self,
        X: Any,
        y: ArrayLike | None = None,
        importance: ArrayLike | None = None,
        held_out: NDArray[np.bool_] | None = None,
        again: bool = False,
    ) -> Callable[[], NDArray[Any]]:
        """Let the models of settings learn rows; return a function that lets the other experts of a mixture learn them.

        The function returns margins as :meth:`progress` does. Functions of several calls have to be called in their
        order, on any thread; the learner is complete after the last one. The other experts learn from the margins of
        settings, which do not depend on them.

        >>> model = Learner(1, Settings(alpha=(0.1, 1.0)))
        >>> finish = model.begin(np.ones((2, 1)), [1, 1])
        >>> model.rounds, model.first_pass_rows
        (2, 0)
        >>> finish().ravel().round(2), model.first_pass_rows
        (array([0.  , 0.36]), 2)
        """
        given, mixture = self._examples(X, y, importance, held_out), self.mixture
        with self._lock.writing():
            margins = self.state.progress(given)
        certified = list(self.state.layout.certified_lanes)
        if mixture is None:
            self.lane_margins = margins[:, certified] if self.certified else None
            return lambda: margins

        def finish() -> NDArray[Any]:
            if self.certified:
                self.lane_margins = margins[:, certified]
            with self._lock.writing():
                return mixture.learn(given, margins, again)

        return finish

    def _examples(
        self, X: Any, y: ArrayLike | None, importance: ArrayLike | None, held_out: NDArray[np.bool_] | None
    ) -> Examples:
        domain = self.settings.labels if self.classes is None else Classes(self.classes)
        return examples_of(X, y, importance, held_out, self.features, self.dtype, domain)

    def margins(self, X: Any) -> NDArray[Any]:
        """Return the margins of every row; for a mixture of several classes the log-probability of each class."""
        rows = rows_of(X, self.features, self.dtype)
        return self._lock.read(lambda: self._margins(rows))

    def _margins(self, rows: Rows) -> NDArray[Any]:
        margins = self.state.predict(rows)
        return margins if self.mixture is None else self.mixture.predict(rows, margins)

    @property
    def best(self) -> int:
        """The setting of a mixture with the smallest loss, filters included; 0 for one model."""
        return 0 if self.mixture is None else int(np.argmin(self.mixture.ledger.losses[: self.settings.n_settings]))

    @property
    def best_model(self) -> int:
        """The linear model with the smallest loss, full-covariance filters included, which follow the settings."""
        if self.classes is not None:
            return self.best
        return 0 if self.mixture is None else int(np.argmin(self.mixture.ledger.losses[: self.mixture.ledger.inputs]))

    @property
    @reads
    def losses(self) -> NDArray[np.float64]:
        """The sum of each expert's losses, with predictions clipped as in the mixture."""
        losses: NDArray[np.float64] = self._experts.ledger.losses.copy()
        return losses

    @property
    @reads
    def averages(self) -> NDArray[np.float64]:
        """The losses of each expert per unit of importance."""
        ledger = self._experts.ledger
        averages: NDArray[np.float64] = ledger.losses / max(ledger.total_importance, np.finfo(np.float64).eps)
        return averages

    @property
    @reads
    def posterior(self) -> NDArray[np.float64]:
        """The weight of each expert in the next prediction."""
        return self._experts.weights()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the experts: settings by the parameters in which they differ, then the others."""
        return self.settings.names if self.mixture is None else self.mixture.names

    @property
    def _experts(self) -> Mixture:
        if self.mixture is None:
            raise AttributeError("got a learner of one model, expected a mixture of several settings")
        return self.mixture

    @reads
    def guarantee(self) -> "Guarantee | None":
        """Return the regret of a mixture to its best expert, and the bound on it; None for one model."""
        return None if self.mixture is None else self.mixture.guarantee()

    @reads
    def explain(self) -> MixtureExplanation | None:
        """Return what each expert contributes: loss, weight, and the mixture's loss without experts of its kind.

        None for one model.
        """
        return None if self.mixture is None else explain(self.mixture)

    def _repr_html_(self) -> str | None:
        explanation = self.explain()
        return None if explanation is None else explanation._repr_html_()

    @property
    def _reported(self) -> slice:
        """The models whose weights are reported: all, or those of the best setting of a mixture."""
        return slice(None) if self.mixture is None else slice(self.best, None, self.settings.n_settings)

    @property
    @reads
    def weights(self) -> NDArray[Any]:
        """The weights, a row for each feature and a column for each model, exact zeros included.

        For a mixture those of the best setting.
        """
        return self.state.weights(0, self.features)[:, self._reported]

    @property
    @reads
    def bias(self) -> NDArray[Any]:
        """The weight of the constant feature in each model, or in the best setting of a mixture; 0 without one."""
        constant: NDArray[Any] = self.state.weights(self.features, 1)[0, self._reported]
        return constant

    @reads
    def weights_at(self, coordinates: NDArray[np.int64]) -> NDArray[Any]:
        """Return the weights of some coordinates, of the models of :attr:`weights`; the bias is ``features``.

        >>> model = Learner(1 << 20, Settings(alpha=1.0), certified=True)
        >>> _ = model.learn(Rows(np.array([0, 2]), np.int32([7, 99]), np.float32([1, 2])), [1])
        >>> model.active_coordinates, model.weights_at(model.active_coordinates).ravel().round(3)
        (array([      7,      99, 1048576]), array([0.333, 0.5  , 0.333], dtype=float32))
        """
        return self.state.weights_at(coordinates)[:, self._reported]

    @reads
    def model_weights_at(self, coordinates: NDArray[np.int64]) -> NDArray[Any]:
        """Return the weights of all linear models at some coordinates, a column each, full-covariance filters last."""
        plain, own = self._places(coordinates)
        weights = [self.state.weights_at(plain)]
        mixture = self.mixture
        if mixture is not None and mixture.full_filters is not None:
            weights.append(mixture.full_filters.weights_at(plain, self.features))
        if mixture is None or mixture.curve_experts is None:
            own_weights = weights[0] if len(weights) == 1 else np.hstack(weights)
            return own_weights if self.curves is None else np.where((own < 0)[:, None], own_weights, 0)
        experts = mixture.curve_experts
        curves = experts.weights_at(np.where(own < 0, experts.curves.features, own))  # which is their bias
        curves[coordinates < self.features] = 0
        return np.hstack([*(np.where((own < 0)[:, None], one, 0.0) for one in weights), curves])

    def _places(self, coordinates: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return coordinates of plain features, the bias for others, and features of curves, −1 for others."""
        return np.minimum(coordinates, self.features), np.maximum(coordinates - self.features - 1, -1)

    @property
    def of_classes(self) -> list["Learner"]:
        """The mixtures of each class against the rest, whose margins are those of an expert; none without it."""
        experts = self.class_experts
        return [] if experts is None else [Learner.of(state, mixture) for state, mixture in experts.parts]

    @property
    def class_experts(self) -> ClassExperts | None:
        """The expert of several classes that is a mixture for each; None if there is none."""
        groups = [] if self.mixture is None else self.mixture.groups
        return next((group for group in groups if isinstance(group, ClassExperts)), None)

    @property
    def curves(self) -> Curves | None:
        """The curves and pairs that further experts learn; None for none."""
        return None if self.mixture is None else self.mixture.curves

    def all_features(self, X: Any) -> Rows:
        """Return rows with their features of curves, whose coordinates follow that of the bias.

        >>> Learner(2, Settings()).all_features([[0.0, 3.0]]).indices
        array([1], dtype=int32)
        """
        rows = rows_of(X, self.features, self.dtype)
        return rows if self.curves is None else Rows(*self.curves.joined(rows, self.features + 1))

    @reads
    def row_weights(self, coordinates: NDArray[np.int64], values: NDArray[Any]) -> NDArray[np.float64]:
        r"""Return weights $w_i$ for features of values $v_i$, as :meth:`model_weights_at` does: margins are Σ w_i v_i.

        With a scale-free rate, predictions clip values to the scales of their features, the largest |value| learned
        from, so that weights of larger values are smaller. Full-covariance filters always clip.

        >>> model = Learner(1, Settings(alpha=1.0, rate="scale_free"))
        >>> _ = model.learn(np.ones((5, 1)), [1] * 5)
        >>> weight = model.row_weights(np.array([0]), np.array([100.0]))
        >>> np.isclose(weight * 100 + model.bias, model.margins([[100.0]])), np.isclose(100 * weight, model.weights)
        (array([[ True]]), array([[ True]]))
        """
        weights = self.model_weights_at(coordinates).astype(np.float64) * self.row_clipping(coordinates, values)
        return np.hstack([weights, *(one.row_weights(coordinates, values) for one in self.of_classes)])

    def row_clipping(self, coordinates: NDArray[np.int64], values: NDArray[Any]) -> NDArray[np.float64]:
        """Return the factors by which each model of :meth:`model_weights_at` clips values, a column each."""
        state, sizes = self.state, np.abs(values).astype(np.float64)
        plain, _ = self._places(coordinates)
        full, more = (None, None) if self.mixture is None else (self.mixture.full_filters, self.mixture.curve_experts)
        free = self.settings.rate == "scale_free"
        factors = [
            np.ones((sizes.size, state.n_lanes)) * (_clipping(sizes, self.scales_at(coordinates)) if free else 1.0)
        ]
        if full is not None:
            scales = full.scales_at(np.where(plain == self.features, -1, plain))
            factors.append(np.tile(_clipping(sizes, scales), len(full.names)))
        if more is not None:
            factors += [factors[0][:, :1]] * len(more.names)
        return np.hstack(factors)

    def scales_at(self, coordinates: NDArray[np.int64]) -> NDArray[Any]:
        """Return the scales of coordinates with a scale-free rate, the largest |values| learned from."""
        plain, own = self._places(coordinates)
        experts = None if self.mixture is None else self.mixture.curve_experts
        scales: NDArray[Any] = self.state.scales[plain]
        return scales if experts is None else np.where(own < 0, scales, experts.state.scales[np.maximum(own, 0)])

    def settings_of(self, expert: int) -> Settings:
        """Return the settings of one linear model of a mixture, as model files for serving have them."""
        settings, experts = self.settings, self._experts.curve_experts
        lane = expert if experts is None else expert - (self._experts.ledger.inputs - len(experts.names))
        if lane < 0 or experts is None:
            return settings.only(expert) if expert < settings.n_settings else self.select_setting(expert).settings
        if lane < settings.n_settings:
            return settings.only(lane)
        variance = experts.filters[lane - settings.n_settings].curves or 1.0  # a base rate has none
        return Settings(settings.loss, "filter", alpha=variance, beta=0, bias=settings.bias, seed=settings.seed)

    @property
    @reads
    def active_coordinates(self) -> NDArray[np.int64]:
        """The coordinates with a record that is not zero, in order; the bias is ``features``."""
        return self.state.active_coordinates

    @property
    def used_slots(self) -> int:
        """The number of features with a record that is not zero.

        >>> Learner(1 << 10, Settings()).used_slots
        0
        """
        return int(np.searchsorted(self.active_coordinates, self.features))

    @property
    @reads
    def nonzeros(self) -> int:
        """The number of non-zero weights of features, in all models or in the best setting of a mixture.

        >>> Learner(1 << 10, Settings()).nonzeros
        0
        """
        state, active = self.state, self.state.active_coordinates
        active = active[: np.searchsorted(active, self.features)]  # without the bias
        blocks = (active[start : start + BLOCK] for start in range(0, active.size, BLOCK))
        return sum(int(np.count_nonzero(state.weights_at(block)[:, self._reported])) for block in blocks)

    @reads
    def select_setting(self, setting: int | None = None) -> "Learner":
        """Return the model of one setting, which can continue to learn; for None the best one, or a model itself.

        Full-covariance filters follow the settings; the model has their variances, and continues as a diagonal filter.

        >>> both = Learner(2, Settings(alpha=(0.1, 1.0)), mixed=False)
        >>> _ = both.learn(np.eye(2), [1, 0])
        >>> np.array_equal(both.select_setting(1).weights[:, 0], both.weights[:, 1])
        True
        """
        if setting is None and self.mixture is None:
            return self
        state, count, chosen = self.state, self.settings.n_settings, self.best if setting is None else setting
        full = None if self.mixture is None else self.mixture.full_filters
        if full is not None and self.mixture is not None and count <= chosen < count + len(full.names):
            diagonal = full.diagonal(chosen - count, self.settings, self.features, self.dtype)
            diagonal.rounds, diagonal.total_importance = state.rounds, state.total_importance
            diagonal.totals[0] = self.mixture.ledger.losses[chosen]
            return Learner.of(diagonal)
        if not 0 <= chosen < count:
            raise refuse("setting", setting, f"0 to {count - 1}, as experts on curves do not learn alone")
        certified = self.certified and (not self.settings.filters or chosen in bounded_lanes(self.settings))
        alone = Learner(self.features, self.settings.only(chosen), self.classes, self.dtype, certified)
        alone.state.copy_lanes_from(state, slice(chosen, None, count))
        return alone

    @reads
    def without_full_filters(self) -> "Learner":
        """Return a copy that continues without full-covariance filters and curves; the learner itself without both."""
        if not self.settings.full_filters and self.curves is None:
            return self
        state, mixture = self.state.copied(), self._experts.copy()
        state.settings = replace(self.settings, full_filters=())
        mixture.drop_full_filters()
        mixture.settings = state.settings
        return Learner.of(state, mixture, self.classes)

    def add_features(self, features: int) -> None:
        """Give the learner more features, in place; new ones are in the initial state.

        >>> model = Learner(2, Settings())
        >>> model.add_features(3)
        >>> model.weights.shape
        (3, 1)
        """
        with self._lock.writing():
            self.state = resize(self.state, features, self.state.n_lanes, self.state.labels)
            if (experts := self.class_experts) is not None:
                experts.add_features(features)

    @reads
    def renumbered(self, places: NDArray[Any], features: int) -> "Learner":
        """Return a copy with other numbers of features: the first features have the given places among ``features``.

        Features with a place beyond these are left out, and must be in the initial state.

        >>> model = Learner(2, Settings(alpha=1.0, bias=False))
        >>> _ = model.learn(np.eye(2), [1, 0])
        >>> model.renumbered(np.array([3, 0]), 4).weights.ravel().round(2)
        array([-0.33,  0.  ,  0.  ,  0.33], dtype=float32)
        """
        mixture = None if self.mixture is None else self.mixture.copy()
        if mixture is not None and mixture.full_filters is not None:
            mixture.full_filters.renumber(places)
        return Learner.of(renumber(self.state, places, features), mixture, self.classes)

    def with_classes(self, count: int, places: Sequence[int]) -> "Learner":
        """Return a learner of ``count`` classes, in which those of this one have the given places.

        Two classes are one model, which becomes one for each class against the rest. Filters, which are for one margin,
        are left out. New classes start from the initial state.

        >>> two = Learner(2, Settings(alpha=1.0, bias=False))
        >>> _ = two.learn(np.eye(2), [0, 1])
        >>> three = two.with_classes(3, [0, 2])
        >>> three.classes, three.weights.round(2).tolist()
        (3, [[0.33..., 0.0, -0.33...], [-0.33..., 0.0, 0.33...]])
        """
        if self.certified:
            raise refuse("certified", True, "False where classes are added: the rounds of a new class begin later")
        if self.share is not None:
            raise refuse("share", self.share, "None where classes are added")
        before = self.copy()
        state, mixture = before.state, before.mixture
        coding: LabelCoding = "shared" if self.joint else "signs" if self.settings.signed else "classes"
        if self.classes is None:
            state = without_filter_lanes(state)
            state = resize(state, state.features, 2 * state.n_lanes, coding)
            split_binary(state, state.settings.n_settings)
        state = place_classes(state, count, places, coding)
        return Learner.of(state, None if mixture is None else mixture.with_classes(count), count)

    @reads
    def certificate(self, lane: int = 0, among: NDArray[np.int64] | None = None) -> Certificate:
        """Return the regret of a model to fixed models, its bound, and lower bounds on the loss of fixed models.

        For a mixture it is that of the best setting with a bound, plus the cost of mixing: filters have none, and are
        left out, but their slopes give loss floors all the same. After a second pass, and for one of several classes,
        it is that of the setting alone.

        Parameters
        ----------
        lane : the model; for a mixture of several classes, each trained against the rest, the class. The classes of a
            joint loss are one model, whose weights are those of the first class, then the second, and so on
        among : the coordinates of comparators, which are 0 elsewhere; None for all. The ``active_coordinates`` give the
            same loss floors as all coordinates, in less time
        """
        settings, bounded = self.settings, bounded_lanes(self.settings)
        if self.mixture is not None:
            best = min(bounded, key=lambda setting: float(self._experts.ledger.losses[setting]))
            lane = self._lane(best, lane)
        elif settings.filters and lane not in bounded:
            expected = " or ".join(map(str, bounded))
            raise refuse("lane", lane, f"{expected}: filters have no bound, and gradients of other lanes are not kept")
        proof = certify.certificate(self.state, self.certified_lanes(lane), among, self._candidates(lane))
        loss = None if self.mixture is None else self._loss_since()
        return proof if loss is None else replace(proof, loss=loss, constant=proof.constant + loss - proof.loss)

    @reads
    def snapshot(self) -> CertificateSums:
        """Return the sums of certificates, from which :meth:`summary` computes those of the rows after it."""
        sums = certify.snapshot(self.state)
        if self.mixture is None:
            return sums
        return replace(sums, mixture_loss=self.loss, mixture_rows=self.first_pass_rows)

    @reads
    def summary(self, lane: int = 0, since: CertificateSums | None = None, loss: float | None = None) -> str:
        """Return the certificate against all models of at most the norm of the learned one, in a sentence.

        It covers all rows, or those ``since`` a snapshot; ``loss`` is the total loss on them, None for the learner's.
        No array of all coordinates is needed.

        >>> model = Learner(1, Settings(alpha=1.0, bias=False), certified=True)
        >>> _ = model.learn(np.ones((100, 1)), [1] * 60 + [0] * 40)
        >>> model.summary() == model.certificate().summary(model.weights)
        True
        """
        return self.loss_floor(lane, since, loss).summary()

    @reads
    def loss_floor(
        self,
        lane: int = 0,
        since: CertificateSums | None = None,
        loss: float | None = None,
        sample: SampledRows | None = None,
    ) -> LossFloor:
        """Return lower bounds on the loss of fixed models by their norm; arguments are those of :meth:`summary`.

        The slopes of every setting give a bound; the largest one is used. Those of a ``sample`` of rows are polished.
        """
        if self.mixture is not None:
            loss, lane = self._loss_since(since) if loss is None else loss, self._lane(self.best, lane)
        floor = certify.loss_floor(self.state, self.certified_lanes(lane), self._candidates(lane), since, loss, sample)
        if self.mixture is None:
            return floor
        setting = f"the expert {self.names[self.best]}"
        return replace(floor, learner=setting if loss is None else "the mixture", setting=setting)

    def _lane(self, setting: int, lane: int) -> int:
        return setting + (0 if self.joint else lane * self.settings.n_settings)

    def _loss_since(self, since: CertificateSums | None = None) -> float | None:
        """Return the mixture's loss; None where the best setting's is used: after a second pass, and for one class."""
        before = since or CertificateSums()
        repeated = self.first_pass_rows - before.mixture_rows < self.rounds - before.rounds
        return None if repeated or not (self.classes is None or self.joint) else self.loss - before.mixture_loss

    def _candidates(self, lane: int) -> list[slice]:
        """Return the lanes of every setting that learns from the same labels and has sums of certificates."""
        count = self.settings.n_settings
        first = 0 if self.joint else lane // count * count
        return [self.certified_lanes(first + setting) for setting in certified_lanes(self.settings)]

    def certified_lanes(self, lane: int) -> slice:
        """Return the lanes of one model that a certificate covers: one, or all classes of a joint loss."""
        if not self.certified:
            raise ValueError("certified: got False, expected a model made with certified=True")
        last = (self.settings.n_settings if self.joint else self.state.n_lanes) - 1
        if not 0 <= lane <= last:
            raise refuse("lane", lane, f"0 to {last}")
        return slice(lane, None, last + 1) if self.joint else slice(lane, lane + 1)


def number_of_classes(settings: Settings, classes: int | None) -> int | None:
    """Return the number of classes, that of the loss if it has one; None for one margin.

    >>> number_of_classes(Settings("softmax"), 3)
    3
    """
    loss = settings.loss_function
    loss_classes = loss.labels.count if isinstance(loss.labels, Classes) else None
    classes = loss_classes if classes is None else classes
    if classes is None and loss.joint:
        raise refuse("classes", classes, f"the number of classes, for the loss {loss.name!r}")
    if loss_classes not in (None, classes):
        raise refuse("classes", classes, f"{loss_classes}, as the loss has")
    if classes is not None and settings.filters:
        raise refuse("classes", classes, "None with filters, which are for one margin")
    return None if classes is None else whole("classes", classes, low=2)


def without_filter_lanes(state: State) -> State:
    """Return the lanes of settings alone, as filters are for one margin; the same state if there are no filters."""
    if not state.settings.filters:
        return state
    settings: Settings = replace(state.settings, filters=(), full_filters=())
    new = State(state.features, settings, settings.n_settings, state.dtype, state.certified, state.labels)
    new.copy_lanes_from(state, slice(0, settings.n_settings))
    return new


def _clipping(sizes: NDArray[np.float64], scales: NDArray[Any]) -> NDArray[np.float64]:
    """Return the factors by which clipping to scales reduces values of these sizes, as a column."""
    factors: NDArray[np.float64] = np.divide(scales, sizes, out=np.ones(sizes.size), where=sizes > scales)
    return factors[:, None]
