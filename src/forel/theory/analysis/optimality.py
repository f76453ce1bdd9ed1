r"""Whether the points that were played are argmins, as the survey's proofs assume.

The results about FTRL hold for points $x_{t+1} = \arg\min_{x \in X} h_{0:t}(x)$. An algorithm that plays others has
no bound. Each round's minimum is therefore solved again, from the sums of what the rounds added.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from forel.cvx import minimize
from forel.losses import Linear, Total
from forel.losses.functions import plus, times
from forel.theory.algorithms import Algorithm
from forel.theory.argmin import SOLVER, Argmin
from forel.theory.norms import without_rounding
from forel.theory.regularizers import Regularizer
from forel.validation import Matrix, Strength, Unbounded, Vector

if TYPE_CHECKING:
    from forel.theory.analysis.game import Stage

__all__ = ["first_suboptimal_round", "leaders", "suboptimality"]

# Relative to the bound and to the terms of the objective, which may all vanish. Closed forms leave rounding; the solver
# stops at its tolerance.
ROUNDING, SOLVED = 1e-12, 1e-8


class _Objective(NamedTuple):
    """Losses, α·Ψ and r, to be minimized over X; penalties kept as tangents are part of the losses."""

    losses: Total
    weight: float
    regularizer: Regularizer

    def strength(self) -> Strength | None:
        """Return the strength of r with the curvature of the losses, None where they do not make one geometry."""
        geometry, curvature = self.regularizer.geometry, self.losses.curvature
        if not self.losses.quadratic or (np.any(curvature) and not geometry.quadratic):
            return None
        return plus(self.regularizer.strength, curvature) if np.any(curvature) else self.regularizer.strength

    @property
    def constant(self) -> bool:
        """Whether nothing has been added yet, so that every point is an argmin."""
        losses, r = self.losses, self.regularizer
        curved = losses.others or np.any(losses.curvature) or self.weight or np.any(r.strength)
        return not (curved or (losses.g - r.linear).any())

    def minimum(self, argmin: Argmin, largest: float) -> Vector:
        """Return the argmin over X, for linear parts of which the largest was of a size."""
        r, strength = self.regularizer, self.strength()
        if strength is not None:
            argmin = argmin.lifted(np.ndim(strength))
            return argmin.solve(without_rounding(self.losses.g - r.linear, strength, largest), strength, self.weight)
        factor = r.geometry.factor(r.strength)

        def objective(x: Any) -> Any:
            regularizer = r.geometry.expression(factor, x) - r.linear @ x
            return self.losses.expression(x) + self.weight * argmin.penalty.expression(x) + regularizer

        return minimize(r.linear.size, objective, argmin.feasible.constraints)

    def terms(self, argmin: Argmin, x: Vector) -> Vector:
        """Return the terms that the objective is the sum of at x, up to a constant."""
        r, penalty = self.regularizer, self.weight * argmin.penalty(x) if self.weight > 0 else 0.0
        others = [w * f(x) for w, f in self.losses.others]
        quadratic = 0.5 * float(times(self.losses.curvature, x) @ x)
        value = r.geometry.value(r.strength, x)
        return np.array([*((self.losses.g - r.linear) * x), quadratic, penalty, value, *others])


def leaders(algorithm: Algorithm, initial: Regularizer, stages: Sequence["Stage"], points: Matrix) -> Matrix:
    r"""Return $w_t = \arg\min_{x \in X} h_{0:t-1}(x)$, the points without hints; those that were played without any."""
    if all(stage.added.hint is None for stage in stages):
        return points
    argmin, (objectives, sizes) = (
        Argmin(initial.geometry, algorithm.penalty, algorithm.feasible),
        _objectives(algorithm, initial, stages, points),
    )
    found = zip(objectives, points, np.maximum.accumulate(sizes), strict=True)
    return np.array([x if one.constant else one.minimum(argmin, size) for one, x, size in found])


def suboptimality(
    algorithm: Algorithm, initial: Regularizer, stages: Sequence["Stage"], points: Matrix, squared_norms: Vector
) -> Vector:
    r"""Return $h_{0:t-1}(x_t) - \min_{x \in X} h_{0:t-1}(x)$ for t = 1, …, T + 1: 0 where that is but rounding.

    These are the largest remainders of the Strong FTRL Lemma at each horizon, over all comparators. Infinite outside
    of X, and where the objective has no minimum. For Mirror Descent, which keeps tangents of its penalties, the
    objective is the one in which this round's is still whole.

    Parameters
    ----------
    algorithm, initial, stages, points : as a trace has them
    squared_norms : $\|g_t\|^2_{(t),\star}$ for every round, half the sum of which is the stability of a bound

    Survey: Lemma 5
    """
    stability = np.cumsum(np.where(np.isfinite(squared_norms), squared_norms, 0.0) / 2).tolist()
    argmin = Argmin(initial.geometry, algorithm.penalty, algorithm.feasible)
    objectives, sizes = _objectives(algorithm, initial, stages, points)
    for t, stage in enumerate(stages):
        if stage.added.hint is not None:
            losses = objectives[t].losses
            objectives[t] = objectives[t]._replace(losses=losses._replace(g=losses.g + stage.added.hint))
    # x_t counts from horizon t − 1 on, and x_1 from the first.
    rounds = zip(objectives, points, [stability[0], *stability], np.maximum.accumulate(sizes), strict=True)
    found = np.array([_suboptimality(argmin, *parts) for parts in rounds])
    if stages[-1].added.hint is not None:
        found[-1] = 0.0  # the hint after the last round is in no round, and the point after it in no bound
    return found


def _objectives(
    algorithm: Algorithm, initial: Regularizer, stages: Sequence["Stage"], points: Matrix
) -> tuple[list[_Objective], list[float]]:
    """Return h_{0:t} for t = 0, …, T, without hints, and the sizes of their linear parts."""
    objectives = [_Objective(Total.zero(points.shape[1]), 0.0, initial)]
    weight, tangents = 0.0, Total.zero(points.shape[1])
    for t, stage in enumerate(stages, start=1):
        added = stage.added
        if isinstance(added.penalty, Linear):
            losses = stage.losses._replace(g=stage.losses.g + tangents.g)
            objectives.append(_Objective(losses, algorithm.weights(t), stage.regularizer))
            tangents = tangents.plus(added.penalty, added.weight)
        else:
            weight += added.weight
            objectives.append(_Objective(stage.losses, weight, stage.regularizer))
    return objectives, [max(np.abs(one.losses.g).max(), np.abs(one.regularizer.linear).max()) for one in objectives]


def _suboptimality(argmin: Argmin, objective: _Objective, x: Vector, stability: float, largest: float) -> float:
    if not (argmin.feasible.contains(x) and argmin.penalty(x) < math.inf):
        return math.inf
    if objective.constant:
        return 0.0
    try:
        best = objective.minimum(argmin, largest)
    except Unbounded:
        return math.inf
    here, least = objective.terms(argmin, x), objective.terms(argmin, best)
    closed = objective.strength() is not None and argmin.method != SOLVER
    allowance = (ROUNDING if closed else SOLVED) * (stability + float(np.abs(here).sum() + np.abs(least).sum()))
    above = math.fsum(here) - math.fsum(least)
    return above if above > allowance else 0.0


def first_suboptimal_round(found: Vector) -> str:
    """Return the first round whose point is not an argmin, as a reason why bounds are void.

    >>> first_suboptimal_round(np.array([0.0, 0.0, 0.25]))
    'the point of round 3 is not an argmin: its objective is 0.25 above the minimum'

    Survey: Lemma 5
    """
    wrong = np.flatnonzero(found)
    if not wrong.size:
        return ""
    t, above = wrong[0] + 1, found[wrong[0]]
    if above == math.inf:
        return f"the point of round {t} is not an argmin: it lies outside X, or its objective has no minimum"
    return f"the point of round {t} is not an argmin: its objective is {above:.3g} above the minimum"
