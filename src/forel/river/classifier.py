"""Classification for river: one lane for two classes, one a class for more, as classes come."""

import math
from collections.abc import Hashable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from river import base
from river.utils import dataframe
from scipy.special import log_expit, log_softmax

from forel.certificate import Certificate
from forel.checks import refuse
from forel.river.frames import importances, rows_of_frame, targets
from forel.river.learner import Learner, importance, settings_of
from forel.rows import Rows

__all__ = ["LinearClassifier"]

LOSSES = ("logistic", "hinge", "squared_hinge")
FEWEST = 4  # lanes as soon as there are more than two classes; then they double, so that few kernels are compiled


class LinearClassifier(base.MiniBatchClassifier):
    r"""A linear classifier for river, $\eta_{t,i} = \alpha/(\beta + \sqrt{\sum g_{s,i}^2})$, one rate a feature.

    Parameters
    ----------
    alpha, beta : of the rate
    l1, l2 : of the penalty λ1‖x‖₁ + (λ2/2)‖x‖²
    algorithm : "proximal" (FTRL-Proximal), "centered" (dual averaging), "mirror" (gradient descent, FOBOS), "implicit"
    rate : "adagrad", "scale_free" (does not mind units), "constant", or "root" (α/√(t + 1))
    loss : "logistic", "hinge" or "squared_hinge"; only the first gives probabilities
    penalty_weight : "once" (as in the ad-click paper) or "every" round (the survey's composite objective)
    radius : weights stay in [−radius, radius]; None for no bound
    bias : whether there is a constant feature, which is not penalised
    bits : None for a slot a name, however many come; 22 hashes them into 2^22 slots, and keeps no names
    dtype : "float64", or "float32" for half the memory
    certified : whether :meth:`certificate` can be asked for

    Two classes are one model, of the second against the first; True is always the second. With a third, each class has
    a model against the rest, which begins with the class's first row; the first two go on from what they learned.

    >>> model = LinearClassifier(alpha=1.0)
    >>> for _ in range(20):
    ...     model.learn_one({"viagra": 1, "offer": 1}, "spam")
    ...     model.learn_one({"meeting": 1, "offer": 1}, "ham")
    >>> model.predict_one({"viagra": 1})
    'spam'
    >>> {label: round(p, 1) for label, p in model.predict_proba_one({"meeting": 1, "never seen": 1}).items()}
    {'spam': 0.1, 'ham': 0.9}
    >>> list(model.weights)
    ['viagra', 'offer', 'meeting']

    Survey: section 3.4
    """

    def __init__(
        self,
        alpha: float = 0.1,
        beta: float = 1.0,
        l1: float = 0.0,
        l2: float = 0.0,
        algorithm: str = "proximal",
        rate: str = "adagrad",
        loss: str = "logistic",
        penalty_weight: str = "once",
        radius: float | None = None,
        bias: bool = True,
        bits: int | None = None,
        dtype: str = "float64",
        certified: bool = False,
    ) -> None:
        self.alpha = alpha
        self.beta = beta
        self.l1 = l1
        self.l2 = l2
        self.algorithm = algorithm
        self.rate = rate
        self.loss = loss
        self.penalty_weight = penalty_weight
        self.radius = radius
        self.bias = bias
        self.bits = bits
        self.dtype = dtype
        self.certified = certified
        self._learner = Learner(settings_of(self, LOSSES), dtype, bits, certified)
        self._codes: dict[Any, float] = {}  # what the kernel is told instead of a class
        self._begun: list[int] = []  # the round before each class's model began
        self._y_name: str | None = None

    @property
    def _multiclass(self) -> bool:
        return True

    @property
    def classes(self) -> list[Any]:
        """The classes so far: False and True with the first of either, others in the order they came."""
        return list(self._codes)

    def learn_one(self, x: dict[Hashable, Any], y: Any, w: float = 1.0) -> None:
        """Learn from one row; ``w`` multiplies its loss."""
        weight = 1.0 if w == 1.0 else importance(w)
        code = self._codes.get(y)
        if code is None:
            # Only a row that can be learned from brings a new class.
            self._learner.check(x)
            code = self._admit(y)
        self._learner.learn(x, code, weight)

    def predict_proba_one(self, x: dict[Hashable, Any], **_: Any) -> dict[Any, float]:
        """Return the probability of each class so far; names that were never learned from have weight 0."""
        self._needs_probabilities()
        found = self._learner.margins(x)
        if len(self._codes) == 2:
            first, second = self._codes
            p = _expit(found.item(0))
            return {first: 1.0 - p, second: p}
        return dict(zip(self._codes, self._shares(found[None, :])[0].tolist(), strict=True))

    def predict_one(self, x: dict[Hashable, Any], **_: Any) -> Any:
        """Return the class with the largest margin; None before the first row."""
        found = self._winners(self._learner.margins(x)[None, :])
        return found[0]

    def learn_many(self, X: Any, y: Any, w: Any = 1.0) -> None:
        """Learn from each row of a frame in turn: the same as one at a time, to the bit."""
        height, dtype = len(X), self._learner.lanes.dtype
        labels, name = targets(y, height)
        for label in labels:
            _check(label)
        weight = importances(w, height, dtype)
        rows = rows_of_frame(self._learner, X, learning=True)
        # A row that brings a new class begins a new piece, since the class's model begins with it.
        start = 0
        while start < height:
            if labels[start] not in self._codes:
                self._admit(labels[start])
            stop = next((k for k in range(start, height) if labels[k] not in self._codes), height)
            codes = np.array([self._codes[label] for label in labels[start:stop]], dtype)
            indptr = rows.indptr[start : stop + 1]
            self._learner.learn_rows(Rows(indptr, rows.indices, rows.values), codes, weight[start:stop])
            start = stop
        self._y_name = name

    def predict_proba_many(self, X: Any) -> Any:
        """Return the probabilities for a frame, a column a class, as a frame of its kind."""
        self._needs_probabilities()
        shares = self._shares(self._frame_margins(X))
        columns = {label: shares[:, k] for k, label in enumerate(self._codes)}
        return dataframe.to_native_frame(columns, like=dataframe.into_frame(X))

    def predict_many(self, X: Any) -> Any:
        """Return the classes predicted for a frame, as a series of its kind."""
        found = self._winners(self._frame_margins(X))
        return dataframe.to_native_series(found, name=self._y_name, like=dataframe.into_frame(X))

    @property
    def weights(self) -> dict[Any, Any]:
        """The weight of each name, exact zeros included; with more than two classes, a dict of them for each class.

        Two classes have one set of weights, of the second against the first. By slot where names are hashed.
        """
        if len(self._codes) <= 2:
            return self._learner.weights()
        return {label: self._learner.weights(k) for k, label in enumerate(self._codes)}

    @property
    def intercept(self) -> Any:
        """The weight of the constant feature, for each class where there are more than two; 0 without ``bias``."""
        if len(self._codes) <= 2:
            return self._learner.bias()
        return {label: self._learner.bias(k) for k, label in enumerate(self._codes)}

    def certificate(self, label: Any = None) -> Certificate:
        """Return what is proved of the model, or of one class's; coordinates as in ``weights``, the bias last."""
        if len(self._codes) <= 2:
            return self._learner.certificate()
        if label not in self._codes:
            raise refuse("label", label, f"one of the classes {self.classes}, each of which has a model")
        lane = self.classes.index(label)
        proof = self._learner.certificate(lane)
        begun = self._begun[lane]
        if begun and (self.penalty_weight == "every" or self.rate == "root"):
            void = f"the class {label!r} came after {begun} rows, which its penalty or rate counted"
            return replace(proof, rounds=proof.rounds - begun, void=proof.void or void)
        return replace(proof, rounds=proof.rounds - begun)

    def _needs_probabilities(self) -> None:
        if self.loss != "logistic":
            raise NotImplementedError(f"loss={self.loss!r} gives no probabilities; use loss='logistic'")

    def _admit(self, y: Any) -> float:
        """Make room for a new class and return its code."""
        _check(y)
        learner, signs = self._learner, self.loss != "logistic"
        new = [False, True] if not self._codes and isinstance(y, bool | np.bool_) else [y]
        known = len(self._codes)
        if known + len(new) <= 2:
            low = -1.0 if signs else 0.0
            self._codes.update(zip(new, (low, 1.0)[known:], strict=False))
            self._begun += [learner.lanes.rounds if known == 0 else 0] * len(new)
            return self._codes[y]
        kind: Literal["classes", "signs"] = "signs" if signs else "classes"
        if known == 2:
            learner.make_room(FEWEST, kind)
            state = learner.lanes.state
            # The losses are even, f(m, y) = f(−m, −y): the first class's model is the second's with its sign changed,
            # and of all that is kept only n does not change it.
            state[:, :, 1] = state[:, :, 0]
            state[:, 0, 0] = 0 - state[:, 0, 0]
            state[:, 2:, 0] = 0 - state[:, 2:, 0]
            learner.lanes.sums[:, 1] = learner.lanes.sums[:, 0]
            mark = learner.lanes.mark
            if mark.size > 1:
                mark.reshape(-1, FEWEST)[:, 1] = mark.reshape(-1, FEWEST)[:, 0]
            self._codes = {label: float(k) for k, label in enumerate(self._codes)}
        elif known == learner.lanes.lanes:
            learner.make_room(2 * known)
        else:
            # A lane without a class has learned that every row is of the rest.
            learner.lanes.state[:, :, known] = 0
            learner.lanes.sums[[0, 1, 2, 4, 5], known] = 0  # all but the ticks, which are the clock's
        self._codes[y] = float(known)
        self._begun.append(learner.lanes.rounds)
        return float(known)

    def _frame_margins(self, X: Any) -> NDArray[Any]:
        return self._learner.row_margins(rows_of_frame(self._learner, X, learning=False))

    def _shares(self, found: NDArray[Any]) -> NDArray[np.float64]:
        """Return probabilities from margins, a column a class."""
        known = len(self._codes)
        if known < 2:
            return np.ones((len(found), known))
        held = found[:, : known if known > 2 else 1].astype(np.float64)
        each = np.hstack([-held, held]) if known == 2 else held
        shares: NDArray[np.float64] = np.exp(log_softmax(log_expit(each), axis=1))
        return shares

    def _winners(self, found: NDArray[Any]) -> list[Any]:
        known = self.classes
        if len(known) < 2:
            return (known or [None]) * len(found)
        best = found[:, 0] > 0 if len(known) == 2 else found[:, : len(known)].argmax(axis=1)
        return [known[int(k)] for k in best]


def _check(y: Any) -> None:
    if y is None or y != y:
        raise refuse("y", y, "a class: True or False, a name, a number")


def _expit(m: float) -> float:
    if m >= 0:
        return 1 / (1 + math.exp(-m))
    e = math.exp(m)
    return e / (1 + e)
