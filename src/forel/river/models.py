"""The river models, and what they have in common: parameters, and access to the learner behind them."""

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray
from river import base
from river.conf import Interval
from river.utils import dataframe
from scipy.special import log_expit, log_softmax

from forel.evidence import Coverage
from forel.learner.certificate import Certificate
from forel.learner.grid import default_grid
from forel.learner.locking import SeqLock
from forel.learner.rows import Rows
from forel.learner.settings import LANE_PARAMETERS, Settings
from forel.losses import MarginLoss
from forel.losses.links import Identity, Probability, Sign
from forel.losses.sigmoid import sigmoid_of_float
from forel.losses.vocabulary import VOCABULARY
from forel.markup import counted
from forel.river.dict_learner import DictLearner, Target
from forel.river.rows import FrameRows, frame_rows, importance, importances, targets
from forel.training.model import Model
from forel.validation import refuse

if TYPE_CHECKING:
    from forel.experts import Guarantee

__all__ = ["LinearClassifier", "LinearRegressor"]

T = TypeVar("T")
CLASSIFICATION = tuple(name for name, loss in VOCABULARY.items() if isinstance(loss.link, Probability | Sign))
REGRESSION = tuple(name for name, loss in VOCABULARY.items() if isinstance(loss.link, Identity))


@dataclass(eq=False, repr=False)
class RiverModel:
    """A model of river: its parameters are fields, from which the constructor is made."""

    _losses: ClassVar[tuple[str, ...]]  # the first one is the default
    _intervals: ClassVar[bool] = False

    alpha: float | None = None
    beta: float | None = None
    l1: float | None = None
    l2: float = 0.0
    algorithm: str = "proximal"
    rate: str | None = None
    loss: str | MarginLoss | None = None
    penalty_weight: str = "once"
    radius: float | None = None
    bias: bool = True
    bits: int | None = None
    dtype: str = "float64"
    certified: bool = False
    seed: int = 0
    memory: float = 1.0
    interval: float | None = None

    def __post_init__(self) -> None:
        if self.interval is not None and not self._intervals:
            raise refuse("interval", self.interval, "None: intervals are those of predicted numbers")
        self.loss = self._losses[0] if self.loss is None else self.loss
        self._learner = DictLearner(_settings_of(self, self._losses), self.dtype, self.bits, self.certified)
        self._coverage = None if self.interval is None else Coverage(self.interval)
        self._y_name: str | None = None

    @property
    def weights(self) -> dict[Any, Any]:
        """The weight of each name; with more than two classes, a dict of weights for each class.

        The weights of two classes are those of the second against the first, and those of a mixture are its best
        setting's. With ``bits``, keys are slots.
        """
        return self._each(self._learner.weights)

    @property
    def intercept(self) -> Any:
        """The weight of the constant feature, for each class if there are more than two; 0 without ``bias``."""
        return self._each(self._learner.bias)

    def guarantee(self) -> "Guarantee | None":
        """Return the regret of the mixture to its best expert, and the bound on it; None for one setting."""
        with self._lock.reading():
            return self._learner.learner.guarantee()

    def _each(self, found: Callable[[int], T]) -> T | dict[Any, T]:
        """Return what is found for the first model, or for each of more than two classes."""
        with self._lock.reading():
            codes = self._learner.codes
            return found(0) if len(codes) <= 2 else {label: found(k) for k, label in enumerate(codes)}

    def _rows(self, X: Any) -> FrameRows:
        return frame_rows(X, self._learner.reader, self._learner.learner.dtype)

    @property
    def _lock(self) -> SeqLock:
        return self._learner.guard

    def __model__(self) -> Model:
        from forel.river.files import pack  # which restores models, too

        return pack(self)


def _settings_of(model: Any, losses: tuple[str, ...]) -> Settings:
    """Return a model's parameters as settings: of one lane with ``alpha``, else those of a mixture."""
    given = {f.name: getattr(model, f.name) for f in fields(Settings) if hasattr(model, f.name)}
    if any(np.ndim(given[name]) for name in LANE_PARAMETERS):
        raise ValueError(
            f"{', '.join(LANE_PARAMETERS)}: got a sequence, expected one number each; forel.Learner learns "
            "several models side by side"
        )
    settings = replace(default_grid(**given), full_filters=())  # rows arrive one at a time, with new names
    if settings.loss_function.kernel not in losses:
        raise refuse("loss", model.loss, f"one of {', '.join(losses)}")
    return settings


class LinearClassifier(RiverModel, base.MiniBatchClassifier):
    r"""A linear classifier for river: by default a mixture of settings, which needs neither tuning nor scaled features.

    With ``alpha`` it is one model with the rates $\eta_{t,i} = \alpha/(\beta + \sqrt{\sum g_{s,i}^2})$, which learns
    several times as fast.

    Parameters
    ----------
    alpha, beta : parameters of the rate; without alpha, settings are mixed as by :func:`forel.train`
    l1, l2 : weights of the penalty λ1‖x‖₁ + (λ2/2)‖x‖²
    algorithm : "proximal" (FTRL-Proximal), "centered" (dual averaging), "mirror" (gradient descent, FOBOS), or
        "filter" (a Gaussian filter with prior variance alpha and shrinkage beta)
    rate : "adagrad" (the default with alpha) or "scale_free" (scale-invariant, the default of a mixture)
    loss : "logistic" (the default), "hinge" or "squared_hinge"; only the first has probabilities
    penalty_weight : "once" (as in the ad-click paper) or "every" round (the survey's composite objective)
    radius : weights stay in [−radius, radius]; None for no bound
    bias : whether to add a constant feature, which is not penalized
    bits : None for a slot for each name, in a state that grows; 22 hashes names to 2**22 slots, the same as
        :func:`forel.read` does, and keeps no names; strings are then categories
    dtype : "float64", or "float32" for half the memory
    certified : whether to keep the sums that :meth:`certificate` needs
    seed : seed of the noise with which float32 sums are rounded
    memory : for algorithm="filter", below 1 for streams that drift

    Two classes share one model, of the second against the first; True is always the second. From the third class on,
    each class has a model against the rest, which starts with the first row of the class; the first two continue from
    the model that they shared. The experts of two classes include filters and mixers, which the third class drops.

    >>> model = LinearClassifier()
    >>> for _ in range(20):
    ...     model.learn_one({"viagra": 1, "offer": 1}, "spam")
    ...     model.learn_one({"meeting": 1, "offer": 1}, "ham")
    >>> model.predict_one({"viagra": 1})
    'spam'
    >>> {label: round(p, 1) for label, p in model.predict_proba_one({"meeting": 1, "never seen": 1}).items()}
    {'spam': 0.0, 'ham': 1.0}
    >>> list(model.weights)
    ['viagra', 'offer', 'meeting']

    Survey: section 3.4
    """

    _losses = CLASSIFICATION

    @property
    def _multiclass(self) -> bool:
        return True

    @property
    def classes(self) -> list[Any]:
        """The classes so far, in the order in which they occurred; False and True together."""
        return list(self._learner.codes)

    def learn_one(self, x: dict[Hashable, Any], y: Any, w: float = 1.0) -> None:
        """Learn from one row; ``w`` is the weight of its loss."""
        weight = 1.0 if w == 1.0 else importance(w)
        self._learner.learn(x, weight, lambda: self._target(y))

    def predict_proba_one(self, x: dict[Hashable, Any], **_: Any) -> dict[Any, float]:
        """Return the probability of each class so far; unknown names have weight 0."""
        self._needs_probabilities()
        found, codes = self._learner.margins(x)
        if len(codes) == 2:
            first, second = codes
            p = sigmoid_of_float(found)
            return {first: 1.0 - p, second: p}
        return dict(zip(codes, self._shares(np.reshape(found, (1, -1)), len(codes))[0].tolist(), strict=True))

    def predict_one(self, x: dict[Hashable, Any], **_: Any) -> Any:
        """Return the class with the largest margin; None before the first row."""
        found, codes = self._learner.margins(x)
        return _winners(np.reshape(found, (1, -1)), list(codes))[0]

    def learn_many(self, X: Any, y: Any, w: Any = 1.0) -> None:
        """Learn from each row of a frame in order, with the same bits as ``learn_one``."""
        height, learner = len(X), self._learner
        labels, name = targets(y, height)
        for label in labels:
            _check(label)
        weight = importances(w, height, learner.learner.dtype)
        frame = self._rows(X)
        with learner.guard.writing():
            rows, start = frame.at(learner.assign_slots(frame.names)), 0
            while start < height:
                if labels[start] not in learner.codes:
                    self._admission(learner.codes, labels[start])()
                # Split before a row with a new class, because the model of the class starts there.
                stop = next((k for k in range(start, height) if labels[k] not in learner.codes), height)
                codes = np.array([learner.codes[label] for label in labels[start:stop]], learner.learner.dtype)
                indptr = rows.indptr[start : stop + 1]
                learner.learn_rows(Rows(indptr, rows.indices, rows.values), codes, weight[start:stop])
                start = stop
            self._y_name = name

    def predict_proba_many(self, X: Any) -> Any:
        """Return the probabilities of a frame's rows, with a column for each class, as a frame of the same library."""
        self._needs_probabilities()
        found, codes = self._learner.frame_margins(self._rows(X))
        shares = self._shares(found, len(codes))
        columns = {label: shares[:, k] for k, label in enumerate(codes)}
        return dataframe.to_native_frame(columns, like=dataframe.into_frame(X))

    def predict_many(self, X: Any) -> Any:
        """Return the predicted classes of a frame's rows, as a series of the same library."""
        margins, codes = self._learner.frame_margins(self._rows(X))
        found = _winners(margins, list(codes))
        return dataframe.to_native_series(found, name=self._y_name, like=dataframe.into_frame(X))

    def certificate(self, label: Any = None) -> Certificate:
        """Return the certificate of the model, or of one class; coordinates are those of ``weights``, then the bias."""
        with self._learner.guard.reading():
            classes, starts = self.classes, self._learner.class_starts
            if len(classes) <= 2:
                return self._learner.certificate()
            if label not in classes:
                raise refuse("label", label, f"one of the classes {classes}, each of which has a model")
            lane = classes.index(label)
            proof = self._learner.certificate(lane)
        late, weight = starts[lane]
        proof = replace(proof, rounds=proof.rounds - late, weight=proof.weight - weight)
        settings = self._learner.learner.settings
        if late and settings.penalty_weight == "every":
            void = f"the class {label!r} first occurred after {counted(late, 'row')}, which its penalty counts"
            return replace(proof, void=proof.void or void)
        return proof

    def _needs_probabilities(self) -> None:
        if not self._learner.learner.settings.loss_function.link.probabilities:
            raise NotImplementedError(f"loss={self.loss!r} has no probabilities; use loss='logistic'")

    def _shares(self, found: NDArray[Any], known: int) -> NDArray[np.float64]:
        """Return the probabilities of the known classes from margins, with a column for each class."""
        if known < 2:
            return np.ones((len(found), known))
        margins = found[:, : known if known > 2 else 1].astype(np.float64)
        if known > 2 and self._learner.learner.mixture is not None:  # log-probabilities
            return np.exp(margins)
        each = np.hstack([-margins, margins]) if known == 2 else margins
        shares: NDArray[np.float64] = np.exp(log_softmax(log_expit(each), axis=1))
        return shares

    def _target(self, y: Any) -> Target:
        """Return all codes, and the code of a class or a function that adds the class and returns its code."""
        codes = self._learner.codes
        code = codes.get(y)
        return codes, self._admission(codes, y) if code is None else code

    def _admission(self, codes: dict[Any, float], y: Any) -> Callable[[], float]:
        """Return a function that adds a new class, inside a change, and returns its code."""
        _check(y)
        learner, signs = self._learner, self._learner.learner.settings.signed
        new = [False, True] if not codes and isinstance(y, bool | np.bool_) else [y]
        known = len(codes)
        two = known + len(new) <= 2
        # Hashes and comparisons of classes may run user code, so they come before any change.
        low = -1.0 if two and signs else 0.0
        labels = [*codes, *new]
        after = dict(zip(labels, (low, 1.0) if two else map(float, range(len(labels))), strict=False))
        code: float = after[y]

        def admit() -> float:
            if not two:
                learner.add_class(known, "signs" if signs else "classes")
            late = (0, 0.0) if two and known == 1 else (learner.state.rounds, learner.state.total_importance)
            learner.codes, learner.class_starts = after, learner.class_starts + (late,) * len(new)
            return code

        return admit


def _winners(found: NDArray[Any], known: list[Any]) -> list[Any]:
    """Return the class with the largest margin for each row; None if there are no classes."""
    if len(known) < 2:
        return (known or [None]) * len(found)
    best = found[:, 0] > 0 if len(known) == 2 else found[:, : len(known)].argmax(axis=1)
    return [known[int(k)] for k in best]


def _check(y: Any) -> None:
    if y is None or y != y:
        raise refuse("y", y, "a class: True or False, a name, a number")


class LinearRegressor(RiverModel, base.MiniBatchRegressor):
    r"""A linear regression for river: by default a mixture of settings, which needs neither tuning nor scaled features.

    With ``alpha`` it is one model with the rates $\eta_{t,i} = \alpha/(\beta + \sqrt{\sum g_{s,i}^2})$, which learns
    several times as fast.

    Parameters
    ----------
    alpha, beta : parameters of the rate; predictions far from 0 need a large alpha. Without alpha, settings are mixed
        as by :func:`forel.train`
    l1, l2 : weights of the penalty λ1‖x‖₁ + (λ2/2)‖x‖²
    algorithm : "proximal" (FTRL-Proximal), "centered" (dual averaging), "mirror" (gradient descent, FOBOS), or
        "filter" (a Gaussian filter with prior variance alpha and shrinkage beta)
    rate : "adagrad" (the default with alpha) or "scale_free" (scale-invariant, the default of a mixture)
    loss : "squared" (the default), "absolute", "huber", "quantile", "epsilon_insensitive", or one of ``forel.losses``
        such as ``Quantile(0.9)``
    penalty_weight : "once" (as in the ad-click paper) or "every" round (the survey's composite objective)
    radius : weights stay in [−radius, radius]; None for no bound
    bias : whether to add a constant feature, which is not penalized
    bits : None for a slot for each name, in a state that grows; 22 hashes names to 2**22 slots, the same as
        :func:`forel.read` does, and keeps no names; strings are then categories
    dtype : "float64", or "float32" for half the memory
    certified : whether to keep the sums that :meth:`certificate` needs
    seed : seed of the noise with which float32 sums are rounded
    memory : for algorithm="filter", below 1 for streams that drift
    interval : the fraction of labels that ``predict_one(x, with_interval=True)`` should cover; None for no intervals

    >>> model = LinearRegressor(alpha=1.0)
    >>> for k in range(400):
    ...     model.learn_one({"a": k % 4, "b": k % 3 == 0}, 2 * (k % 4) + 1)
    >>> round(model.predict_one({"a": 4, "b": False}), 1)
    9.0
    >>> round(model.weights["a"], 1), round(model.intercept, 1)
    (2.0, 1.0)

    Survey: section 3.4
    """

    _losses = REGRESSION
    _intervals = True

    def learn_one(self, x: dict[Hashable, Any], y: float, w: float = 1.0) -> None:
        """Learn from one row; ``w`` is the weight of its loss."""
        target, weight, learner = self._target(y), 1.0 if w == 1.0 else importance(w), self._learner
        if self._coverage is None:
            learner.learn(x, weight, lambda: (learner.codes, target))
            return
        before = self.predict_one(x)
        learner.learn(x, weight, lambda: (learner.codes, target))
        if weight:
            self._coverage.add([before], [target])

    def predict_one(self, x: dict[Hashable, Any], with_interval: bool = False) -> Any:
        """Return the prediction for a row, or an interval around it; unknown names have weight 0."""
        found, _ = self._learner.margins(x)
        if not with_interval:
            return found
        if self._coverage is None:
            raise refuse("with_interval", True, "False: the model was made without interval")
        return Interval(found - self._coverage.half_width, found + self._coverage.half_width)

    def learn_many(self, X: Any, y: Any, w: Any = 1.0) -> None:
        """Learn from each row of a frame in order, with the same bits as ``learn_one``."""
        height = len(X)
        given, name = targets(y, height)
        labels = np.array([self._target(each) for each in given], self._learner.learner.dtype)
        weight = importances(w, height, labels.dtype)
        frame, learner = self._rows(X), self._learner
        before = None if self._coverage is None else learner.frame_margins(frame)[0][:, 0]
        with learner.guard.writing():
            learner.learn_rows(frame.at(learner.assign_slots(frame.names)), labels, weight)
            self._y_name = name
        if self._coverage is not None and before is not None:
            self._coverage.add(before[weight > 0], labels[weight > 0])

    def predict_many(self, X: Any) -> Any:
        """Return the predictions for a frame, as a series of the same library."""
        found, _ = self._learner.frame_margins(self._rows(X))
        return dataframe.to_native_series(found[:, 0], name=self._y_name, like=dataframe.into_frame(X))

    def certificate(self) -> Certificate:
        """Return the certificate so far; coordinates are those of ``weights``, then the bias."""
        return self._learner.certificate()

    def _target(self, y: Any) -> float:
        dtype = self._learner.learner.dtype
        try:
            target = math.nan if isinstance(y, str | bytes | bytearray) else float(y)
        except (TypeError, ValueError, OverflowError):
            target = math.nan
        if not abs(target) <= float(np.finfo(dtype).max):
            raise refuse("y", y, f"a finite number within the range of {dtype}")
        return target
