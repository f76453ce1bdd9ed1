r"""The live certificate: from a few running sums, what is proved of a model that learned online.

With $S = \sum_t g_t \cdot x_t$, $g_{1:T}$, and the strength and linear part of $r_{0:T}$, regret against any fixed
model is $S - g_{1:T} \cdot x^*$ for the linearized losses, which bounds that of the losses themselves; its worst case
over a ball is one norm. What is proved before a comparator is chosen is a quadratic in it. For FTRL it is that of the
Strong FTRL Lemma, $r_{0:T}(x^*) + \alpha_{1:T}\Psi(x^*) + \sum_t (h_{0:t}(x_t) - h_{0:t}(x_{t+1}) - r_t(x_t))$; the sum
telescopes to $S - h_{0:T}(x_{T+1})$ and so costs nothing. The theorems that follow from the lemma replace the terms of
that sum by $\frac12\|g_t\|_\star^2$, which without a penalty or a box is the same and is never less. For Mirror Descent
it is Theorem 12, with $\frac12\sum_t\|g_t\|_\star^2$ as a running sum.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from forel.checks import Unsupported, Vector, non_negative, vector
from forel.norms import L1, L2, LINF

__all__ = ["Certificate", "ruled_out"]


@dataclass(frozen=True, eq=False)
class Certificate:
    """What is known after a number of rounds; a model's last coordinate is its bias, where it has one.

    >>> from forel.linear import Linear, Settings
    >>> model = Linear(2, Settings(alpha=0.5, bias=False), certified=True)
    >>> _ = model.learn([[1.0, 0.0], [0.0, 1.0]] * 50, [1, 0] * 50)
    >>> proof = model.certificate()
    >>> proof.regret([1.0, -1.0]) <= proof.bound([1.0, -1.0])
    True
    >>> proof.loss_floor(l2=2.0) < proof.loss / proof.rounds
    True

    Survey: Lemma 5 and Theorem 12
    """

    rounds: int
    loss: float
    played: float
    gradients: Vector
    strength: Vector
    linear: Vector
    constant: float
    l1: Vector
    l2: Vector
    radius: float | None
    result: str
    void: str = ""

    def regret(self, model: ArrayLike) -> float:
        r"""Return the linearized regret $\sum_t g_t \cdot (x_t - x^*)$, which is no less than the true one."""
        return self.played - float(self.gradients @ self._model(model))

    def bound(self, model: ArrayLike) -> float:
        """Return the bound that is proved on that regret; the penalty counts as part of the regularizer."""
        if self.void:
            raise Unsupported(f"{self.result} is void: {self.void}")
        x = self._model(model)
        if self.radius is not None and LINF(x) > self.radius * (1 + 1e-6):
            raise ValueError(
                f"model: got a weight of {LINF(x):.6g}, outside the radius {self.radius:.6g}, where {self.result} is "
                "void; ask of a model within it"
            )
        regularizer = 0.5 * float((self.strength * x) @ x) - float(self.linear @ x) + self.constant
        penalty = float(self.l1 @ np.abs(x)) + 0.5 * float((self.l2 * x) @ x)
        return regularizer + penalty

    def worst(self, *, l2: float | None = None, l1: float | None = None, box: float | None = None) -> float:
        """Return the largest regret against any model in a ball: ‖x‖₂ ≤ l2, ‖x‖₁ ≤ l1 or |x_i| ≤ box, exactly one."""
        given = {name: size for name, size in (("l2", l2), ("l1", l1), ("box", box)) if size is not None}
        if len(given) != 1:
            raise ValueError(f"l2, l1, box: got {len(given)} of them, expected exactly one")
        ((name, size),) = given.items()
        dual = {"l2": L2, "l1": LINF, "box": L1}[name]
        return self.played + non_negative(name, size) * dual(self.gradients)

    def loss_floor(self, *, l2: float | None = None, l1: float | None = None, box: float | None = None) -> float:
        """Return an average loss below which no fixed model in the ball could have come on the rows seen so far."""
        return (self.loss - self.worst(l2=l2, l1=l1, box=box)) / max(self.rounds, 1)

    def words(self, model: ArrayLike) -> str:
        """Return what this says of all models no larger than one, such as the learned one.

        >>> import numpy as np
        >>> from forel.linear import Linear, Settings
        >>> model = Linear(1, Settings(alpha=1.0, bias=False), certified=True)
        >>> _ = model.learn(np.ones((100, 1)), [1] * 60 + [0] * 40)
        >>> model.certificate().words(model.weights)
        'no fixed model of norm at most 1.642 could have had an average loss below 0.1951 on these rows; this one ...'
        """
        norm = L2(np.asarray(model, dtype=np.float64).ravel())
        return ruled_out(self.rounds, self.loss, self.loss_floor(l2=norm), norm)

    def _model(self, model: ArrayLike) -> Vector:
        return vector("model", np.asarray(model, dtype=np.float64).ravel(), self.gradients.size)


def ruled_out(rounds: int, loss: float, floor: float, norm: float) -> str:
    """Return what an average loss that no fixed model of this norm could have come below says, beside one's own.

    >>> ruled_out(10, 5.0, 0.0, 2.0)
    'so far no average loss is ruled out for fixed models of norm at most 2; this one had 0.5000'
    """
    mine = loss / max(rounds, 1)
    if floor <= 0:
        return (
            f"so far no average loss is ruled out for fixed models of norm at most {norm:.4g}; this one had {mine:.4f}"
        )
    said = f"no fixed model of norm at most {norm:.4g} could have had an average loss below {floor:.4f}"
    return f"{said} on these rows; this one had {mine:.4f}"
