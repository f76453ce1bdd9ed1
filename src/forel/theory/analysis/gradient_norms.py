r"""The norms in which bounds measure gradients: those in which the objective is strongly convex.

In round t they are those of $r_{0:t-1} + f_{1:t} + \alpha_{1:t-1}\Psi$ for Theorem 1, and of $r_{0:t} + f_{1:t} +
\alpha_{1:t-1}\Psi$ for Theorems 2, 10 and 12. This round's penalty is in neither: its curvature is used up by the step
from $\Psi(x_t)$ to $\Psi(x_{t+1})$. The survey's Corollary 8 counts it, and is false.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from forel.losses import Linear, Loss, Quadratic
from forel.losses.functions import plus
from forel.theory.algorithms.delayed import huber
from forel.theory.geometries import Geometry
from forel.theory.norms import DiagonalNorm, MatrixNorm, Norm
from forel.theory.penalties import Penalty, split_penalty
from forel.theory.regularizers import Regularizer
from forel.validation import Strength, Vector, refuse

if TYPE_CHECKING:
    from forel.theory.analysis.game import Stage

__all__ = ["curvature_of", "squared_norms"]


def curvature_of(penalty: Penalty | Loss) -> float | Vector:
    """Return the σ, one number or one per coordinate, for which Ψ − ½Σσ_i x_i² is convex.

    >>> from forel.theory.penalties import ElasticNet, l1
    >>> curvature_of(ElasticNet(l2=[0.0, 2.0]) + l1(1.0)), curvature_of(l1(1.0))
    (array([0., 2.]), 0.0)

    Survey: section 5
    """
    taken = split_penalty(penalty)  # for a tangent, or a user's penalty, only the constant is used
    return taken.l2 + sum(other.strong_convexity for other in taken.others)


def squared_norms(initial: Regularizer, stages: Sequence["Stage"], total: float) -> tuple[Vector, Vector]:
    r"""Return $\|g_t\|^2_{(t-1),\star}$ and $\|g_t\|^2_{(t),\star}$ for every round.

    With a hint $m_t$ it is twice Huber's loss of $\|g_t - m_t\|$: at most its square, and $2\|g_t - m_t\|\|g_t\|$.

    Curvature of losses and penalties is in the L2 norm. It adds to quadratic geometries, and nothing to the entropy and
    to p-norms: what is strongly convex in L2 need not be so in a norm that is larger.

    Parameters
    ----------
    initial : r_0
    stages : the rounds, as a trace has them
    total : Σ x_i on a simplex, by which the entropy's modulus is divided

    Survey: Theorems 1, 2, 10 and 12
    """
    geometry, before, penalties = initial.geometry, initial.strength, np.zeros(initial.linear.size)
    losses: Strength = 0.0
    rows = []
    for stage in stages:
        loss, hint = stage.added.loss, stage.added.hint
        if np.shape(stage.strength) != np.shape(stage.regularizer.strength):
            raise refuse("strength", stage.strength, f"one of the shape that {geometry} takes")
        losses = plus(losses, loss.curvature if isinstance(loss, Quadratic) else loss.strong_convexity)
        strengths = (before, stage.strength)
        duals = [_norm(geometry, strength, plus(losses, penalties), total).dual for strength in strengths]
        lengths = [norm(stage.added.g) for norm in duals]
        if hint is None:
            rows.append([length * length for length in lengths])  # a power would raise OverflowError
        else:
            rows.append([huber(norm(stage.added.g - hint), b) for norm, b in zip(duals, lengths, strict=True)])
        if stage.added.weight > 0 and not isinstance(stage.added.penalty, Linear):
            penalties = penalties + stage.added.weight * curvature_of(stage.added.penalty)
        before = stage.regularizer.strength
    delayed, present = np.array(rows).T
    return delayed, present


def _norm(geometry: Geometry, strength: Strength, curvature: Strength, total: float) -> Norm:
    if geometry.on_simplex:
        return geometry.norm(strength / total)
    if not geometry.quadratic or not curvature.any():
        return geometry.norm(strength)
    found = plus(strength, curvature)
    return MatrixNorm(found) if np.ndim(found) == 2 else DiagonalNorm(found)
