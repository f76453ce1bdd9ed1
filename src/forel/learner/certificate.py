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
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from forel.learner.certificate_sums import Norm, in_scales
from forel.learner.dual import DualPoint
from forel.learner.loss_floor import LossFloor
from forel.notebook import card
from forel.theory.norms import L1, L2, LINF
from forel.validation import Unsupported, Vector, non_negative, number, vector

__all__ = ["Certificate"]

DUALS = {"l2": L2, "l1": LINF, "box": L1}


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
    least : a lower bound on the loss of any row
    bias : whether the last coordinate is a bias
    floor_void : the reason why there is no lower bound on losses; empty if there is one
    counts : whether all importances are 1
    models : number of models that share a joint loss; coordinates are those of the first, then of the second, ...
    points : points of the dual problem for each norm: of the learner, and of other settings on the same rows
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
    void: str = ""
    rounding: float = 0.0
    slack: float = 0.0
    least: float = 0.0
    bias: bool = False
    floor_void: str = ""
    counts: bool = True
    models: int = 1
    points: Mapping[str, tuple[DualPoint, ...]] = field(default_factory=dict, repr=False)
    scales: Vector | None = field(default=None, repr=False)

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
        gradients = self.gradients
        if name == "scaled":
            gradients = in_scales(gradients, self._scales)
        return self.loss - self.lower + size * DUALS.get(name, L2)(gradients)

    def loss_floor(
        self,
        *,
        l2: float | None = None,
        l1: float | None = None,
        box: float | None = None,
        scaled: float | None = None,
        bias: float | None = None,
    ) -> float:
        """Return a lower bound on the average loss of every fixed model in a ball, on the rows learned from.

        Balls are those of :meth:`worst`. With ``bias`` they are balls of the weights alone, and ``bias`` bounds the
        absolute value of the bias. The bound on rounding errors is subtracted.
        """
        name, size = _ball(l2=l2, l1=l1, box=box, scaled=scaled)
        return max(point.floor(size) for point in self._points(name, bias)) / (self.weight or 1.0)

    def needed_norm(self, loss: float, norm: Norm = "l2", bias: float | None = None) -> float:
        """Return a lower bound on the norm of every fixed model whose average loss is smaller than ``loss``.

        With ``bias`` it is the norm of the weights alone, for models whose bias is at most ``bias`` in absolute value.

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
        total = number("loss", loss) * (self.weight or 1.0)
        return max(point.needed_norm(total) for point in self._points(norm, bias))

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
        each = (x * self._scales if scaled else x).reshape(self.models, -1)
        weights, biases = (each[:, :-1], each[:, -1]) if self.bias else (each, each[:, :0])
        points = () if self.floor_void else self.points["scaled" if scaled else "l2"]
        return LossFloor(
            self.rounds, self.weight, self.loss, L2(each.ravel()), points, self.least, self.models * self.bias, scaled,
            self.floor_void, L2(weights.ravel()), L2(biases), counts=self.counts,
        )  # fmt: skip

    def _points(self, norm: str, bias: float | None) -> tuple[DualPoint, ...]:
        if self.floor_void:
            raise Unsupported(f"no loss floor: {self.floor_void}")
        if norm == "scaled":
            _ = self._scales
        if bias is None:
            return self.points[norm]
        if not self.bias:
            raise Unsupported(f"bias: got {bias:.6g}, expected None for a model without a bias")
        limit = non_negative("bias", bias)
        return tuple(point.with_free_bias(limit) for point in self.points[norm])

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
