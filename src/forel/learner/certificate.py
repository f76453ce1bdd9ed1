r"""Certificates: regret, its bound, and lower bounds on the loss of fixed models, from a few running sums.

With $S = \sum_t g_t \cdot x_t$, $g_{1:T}$, and the strength and linear part of $r_{0:T}$, the regret to any fixed model
is $S - g_{1:T} \cdot x^*$ for the linearized losses, which bounds that for the losses themselves; its maximum over a
ball is a dual norm. The bound is a quadratic in the comparator. For FTRL it is that of the Strong FTRL Lemma,
$r_{0:T}(x^*) + \alpha_{1:T}\Psi(x^*) + \sum_t (h_{0:t}(x_t) - h_{0:t}(x_{t+1}) - r_t(x_t))$; the sum telescopes to
$S - h_{0:T}(x_{T+1})$, which needs no more sums. The theorems that follow from the lemma replace the terms of that sum
by $\frac12\|g_t\|_\star^2$, which is the same without a penalty or a box and never smaller. For Mirror Descent it
is Theorem 12, with $\frac12\sum_t\|g_t\|_\star^2$ as a running sum.

Loss floors need only convexity; they are those of :mod:`forel.learner.dual`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from forel.learner.loss_floor import LossFloor
from forel.learner.settings import Settings
from forel.notebook import card
from forel.theory.norms import L1, L2, LINF
from forel.validation import Unsupported, Vector, non_negative, number, vector

__all__ = ["Certificate", "Norm", "bounded_lanes", "certified_lanes", "in_scales"]

Norm = Literal["l2", "scaled"]
DUALS = {"l2": L2, "l1": LINF, "box": L1, "scaled": L2}
COUNT = 3  # with the scale, four numbers for each coordinate


def certified_lanes(settings: Settings) -> tuple[int, ...]:
    """Return the lanes whose sums of gradients are kept; for settings with filters at most three, in order.

    They are the lanes of the middle rate, or of the two middle ones, of the filter with the smallest variance, and
    of the middle filter in the order of the settings; then of others, if these are fewer. Small rates and large
    variances have large losses on short streams, and the extremes are far from the best model on long ones.

    >>> certified_lanes(Settings(alpha=(0.05, 0.3, 1.5, 20), rate="scale_free", filters=[(10, 1), (0.3,), (0.03,)]))
    (1, 2, 6)
    >>> certified_lanes(Settings(alpha=(0.1, 0.5, 2.0, 9.0)))
    (0, 1, 2, 3)
    """
    lanes, rates = range(settings.n_settings), settings.first_filter
    if not settings.filters:
        return tuple(lanes)
    alphas = settings.alpha if isinstance(settings.alpha, tuple) else (settings.alpha,) * rates
    by_rate = sorted(range(rates), key=lambda lane: alphas[lane])
    least = min(range(len(settings.filters)), key=lambda k: settings.filters[k].variance)
    preferred = [by_rate[(rates - 1) // 2], by_rate[rates // 2], rates + least, rates + len(settings.filters) // 2]
    return tuple(sorted(list(dict.fromkeys((*preferred, *lanes)))[:COUNT]))


def bounded_lanes(settings: Settings) -> tuple[int, ...]:
    """Return those of the certified lanes whose regret has a bound, which filters do not have."""
    return tuple(lane for lane in certified_lanes(settings) if lane < settings.first_filter)


def in_scales(gradients: Vector, scales: Vector) -> Vector:
    """Return gradients divided by scales, 0 where the scale is 0: such a feature has no gradient.

    >>> in_scales(np.array([3.0, 0.0]), np.array([2.0, 0.0]))
    array([1.5, 0. ])
    """
    return np.divide(gradients, scales, out=np.zeros_like(gradients), where=scales > 0)


@dataclass(frozen=True, eq=False)
class Certificate:
    """Regret to fixed models after a number of rounds; a model's last coordinate is its bias, where it has one.

    Parameters
    ----------
    rounds, weight : the number of rows learned from, and the sum of their importances, by which averages are taken
    loss : the total loss on them
    lower : the total loss of any model is at least lower + gradients · model
    gradients : g_{1:T}
    rounding, slack : bounds on the rounding errors of g_{1:T}, in the Euclidean norm, and of ``lower``
    strength, linear, constant, l1, l2, radius : coefficients of the bound on the regret
    result, void : the result that proves the bound, and the reason why it is void, if a hypothesis fails
    floors : for each norm, lower bounds on the losses of models, from the slopes of all settings on the same rows
    scales : the largest absolute value of each coordinate, 1 for the bias; None where scales are not kept

    >>> from forel.learner.learner import Learner
    >>> from forel.learner.settings import Settings
    >>> model = Learner(2, Settings(alpha=0.5, bias=False), certified=True)
    >>> _ = model.learn([[1.0, 0.0], [0.0, 1.0]] * 50, [1, 0] * 50)
    >>> proof = model.certificate()
    >>> proof.regret([1.0, -1.0]) <= proof.bound([1.0, -1.0])
    True
    >>> proof.loss_floor(l2=2.0) < proof.loss / proof.rounds
    True

    Survey: Lemma 5 and Theorem 12
    """

    rounds: int
    weight: float
    loss: float
    lower: float
    gradients: Vector = field(repr=False)
    strength: Vector = field(repr=False)
    linear: Vector = field(repr=False)
    constant: float
    l1: Vector = field(repr=False)
    l2: Vector = field(repr=False)
    radius: float | None
    result: str
    floors: Mapping[Norm, LossFloor] = field(repr=False)
    void: str = ""
    rounding: float = 0.0
    slack: float = 0.0
    scales: Vector | None = field(default=None, repr=False)

    @property
    def floor_void(self) -> str:
        """Why there is no lower bound on losses; empty if there is one."""
        return self.floors["l2"].void

    def _repr_html_(self) -> str:
        average = self.loss / self.weight if self.weight else 0.0
        rows: list[tuple[str, object]] = [("rows", self.rounds), ("average loss", average), ("result", self.result)]
        if self.floor_void:
            return card("Certificate", [*rows, ("void", self.floor_void)])
        norm = "l2" if self.scales is None else "scaled"
        floors = {size: self.loss_floor(**{norm: size}) for size in (0.1, 1.0, 10.0, 100.0)}
        # Rounded down, so that the statement is true as printed.
        lines = [
            (f"loss of any model of norm ≤ {n:g}", f"≥ {math.floor(1e4 * v) / 1e4:.4f}") for n, v in floors.items()
        ]
        return card(f"Certificate ({norm} norm)", [*rows, *lines])

    def regret(self, model: ArrayLike) -> float:
        r"""Return the linearized regret $\sum_t g_t \cdot (x_t - x^*)$, which bounds the regret of the losses."""
        return self.loss - self.lower - float(self.gradients @ self._model(model))

    def bound(self, model: ArrayLike) -> float:
        """Return the bound on the linearized regret; the penalty counts as part of the regularizer."""
        if self.void:
            raise Unsupported(f"{self.result} is void: {self.void}")
        x = self._model(model)
        if self.radius is not None and LINF(x) > self.radius * (1 + 1e-6):
            raise ValueError(
                f"model: got a weight of {LINF(x):.6g}, outside the radius {self.radius:.6g}, where {self.result} is "
                "void; use a model within the radius"
            )
        regularizer = 0.5 * float((self.strength * x) @ x) - float(self.linear @ x) + self.constant
        penalty = float(self.l1 @ np.abs(x)) + 0.5 * float((self.l2 * x) @ x)
        return regularizer + penalty

    def worst(
        self,
        *,
        l2: float | None = None,
        l1: float | None = None,
        box: float | None = None,
        scaled: float | None = None,
    ) -> float:
        """Return the largest regret against any model in a ball; exactly one argument gives its radius.

        The balls are ‖x‖₂ ≤ l2, ‖x‖₁ ≤ l1, |x_i| ≤ box, and ‖s x‖₂ ≤ scaled with s_i the largest absolute value of
        feature i and 1 for the bias.
        """
        name, size = _ball(l2=l2, l1=l1, box=box, scaled=scaled)
        gradients = in_scales(self.gradients, self._scales) if name == "scaled" else self.gradients
        return self.loss - self.lower + size * DUALS[name](gradients)

    def loss_floor(self, *, l2: float | None = None, scaled: float | None = None) -> float:
        """Return a lower bound on the average loss of every fixed model in a ball, on the rows learned from.

        The balls are two of those of :meth:`worst`. The bound on rounding errors is subtracted.
        """
        name, size = _ball(l2=l2, scaled=scaled)
        return self._floor(name).at(size)

    def needed_norm(self, loss: float, norm: Norm = "l2") -> float:
        """Return a lower bound on the norm of every fixed model whose average loss is smaller than ``loss``.

        >>> import numpy as np
        >>> from forel.learner.learner import Learner
        >>> from forel.learner.settings import Settings
        >>> model = Learner(1, Settings(alpha=1.0, bias=False), certified=True)
        >>> _ = model.learn(np.ones((100, 1)), [1] * 60 + [0] * 40)
        >>> proof = model.certificate()
        >>> needed = proof.needed_norm(0.2)
        >>> proof.loss_floor(l2=needed - 0.001) > 0.2 > proof.loss_floor(l2=needed + 0.001)
        True
        """
        return self._floor(norm).needed_norm(number("loss", loss))

    def summary(self, model: ArrayLike) -> str:
        """Return the loss floor of all models of at most a model's norm, such as the learned one's, in a sentence.

        The norm is the scaled one if scales are kept, and the Euclidean one otherwise.

        >>> import numpy as np
        >>> from forel.learner.learner import Learner
        >>> from forel.learner.settings import Settings
        >>> model = Learner(1, Settings(alpha=1.0, bias=False), certified=True)
        >>> _ = model.learn(np.ones((100, 1)), [1] * 60 + [0] * 40)
        >>> model.certificate().summary(model.weights)
        'this model had an average loss of 0.41... on these 100 rows. No fixed linear model of these features ...'
        """
        return self.floor_for(model).summary()

    def floor_for(self, model: ArrayLike) -> LossFloor:
        """Return lower bounds on the average loss of fixed models by norm, to compare with the norm of ``model``."""
        x, scaled = self._model(model), self.scales is not None
        floor = self.floors["scaled" if scaled else "l2"]
        return replace(floor, loss=self.loss, norm=L2(x * self._scales if scaled else x))

    def _floor(self, norm: str) -> LossFloor:
        if self.floor_void:
            raise Unsupported(f"no loss floor: {self.floor_void}")
        if norm == "scaled":
            _ = self._scales
            return self.floors["scaled"]
        return self.floors["l2"]

    @property
    def _scales(self) -> Vector:
        if self.scales is None:
            raise Unsupported("scaled: got a certificate without scales, expected one of rate='scale_free'")
        return self.scales

    def _model(self, model: ArrayLike) -> Vector:
        return vector("model", np.asarray(model, dtype=np.float64).ravel(), self.gradients.size)


def _ball(**radii: float | None) -> tuple[str, float]:
    """Return the norm whose radius is not None, and the radius."""
    chosen = {name: size for name, size in radii.items() if size is not None}
    if len(chosen) != 1:
        raise ValueError(f"{', '.join(radii)}: got {len(chosen)} of them, expected exactly one")
    ((name, size),) = chosen.items()
    return name, non_negative(name, size)
