"""Regression for river: the margin is the prediction."""

import math
from collections.abc import Hashable
from typing import Any

import numpy as np
from river import base
from river.conf import Interval
from river.utils import dataframe

from forel.learner.certificate import Certificate
from forel.losses.links import Identity
from forel.losses.vocabulary import VOCABULARY
from forel.river.arguments import importance
from forel.river.frames import importances, targets
from forel.river.shared import RiverModel
from forel.validation import refuse

__all__ = ["LinearRegressor"]

LOSSES = tuple(name for name, loss in VOCABULARY.items() if isinstance(loss.link, Identity))


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

    _losses = LOSSES
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
        labels = np.array([self._target(each) for each in given], self._learner.lanes.dtype)
        weight = importances(w, height, labels.dtype)
        columns, learner = self._columns(X), self._learner
        before = None if self._coverage is None else learner.frame_margins(columns)[0][:, 0]
        with learner.guard.writing():
            learner.learn_rows(columns.at(learner.assign_slots(columns.names)), labels, weight)
            self._y_name = name
        if self._coverage is not None and before is not None:
            self._coverage.add(before[weight > 0], labels[weight > 0])

    def predict_many(self, X: Any) -> Any:
        """Return the predictions for a frame, as a series of the same library."""
        found, _ = self._learner.frame_margins(self._columns(X))
        return dataframe.to_native_series(found[:, 0], name=self._y_name, like=dataframe.into_frame(X))

    @property
    def weights(self) -> dict[Hashable, float]:
        """The weight of each name, of a mixture that of its best setting; with ``bits``, keys are slots."""
        return self._learner.weights()

    @property
    def intercept(self) -> float:
        """The weight of the constant feature; 0 without ``bias``."""
        return self._learner.bias()

    def certificate(self) -> Certificate:
        """Return the certificate so far; coordinates are those of ``weights``, then the bias."""
        return self._learner.certificate()

    def _target(self, y: Any) -> float:
        try:
            target = math.nan if isinstance(y, str | bytes | bytearray) else float(y)
        except (TypeError, ValueError, OverflowError):
            target = math.nan
        if not abs(target) <= self._largest:
            raise refuse("y", y, f"a finite number within the range of {self._learner.lanes.dtype}")
        return target
