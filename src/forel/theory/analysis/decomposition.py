r"""The survey's lemmas that turn regret into regularization plus stability, as equalities.

Each lemma is an inequality because it leaves out a non-positive remainder; with it, both sides agree to rounding. In
the Strong FTRL Lemma the remainder is $h_{0:T}(x_{T+1}) - h_{0:T}(x^*)$: how much better the last point is for the
objective. It is non-positive at every comparator in X exactly when $x_{T+1}$ is an argmin, independent of the
earlier points, which determine the remainders at shorter horizons. ``Trace.suboptimality`` has the
largest of each horizon, and bounds are void where one is positive.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from forel.theory.analysis.game import Trace
from forel.validation import Unsupported, Vector, vector

__all__ = [
    "Against",
    "Decomposition",
    "conjugate_lemma",
    "standard_ftrl_lemma",
    "strong_ftrl_lemma",
    "surrogate_regret",
]

# Regret against f_t + α_tΨ (the penalty is part of the objective), or against f_t alone (part of the regularizer).
Against = Literal["composite", "losses"]


@dataclass(frozen=True, eq=False)
class Decomposition:
    """Regret as regularization + Σ stability + remainder, the remainder being at most 0 where x_{T+1} is an argmin.

    ``regret`` is measured by playing, the other parts come from the objective; ``error`` is what rounding leaves.

    >>> Decomposition("Lemma 5", 1.0, 0.5, np.array([0.5, 0.25]), -0.25).bound
    1.25

    Survey: section 4.1
    """

    result: str
    regret: float
    regularization: float
    stability: Vector
    remainder: float

    @property
    def bound(self) -> float:
        """The lemma's right-hand side: without the remainder."""
        return self.regularization + float(self.stability.sum())

    @property
    def error(self) -> float:
        """The difference between both sides of the equality, relative to the size of their terms."""
        scale = abs(self.regret) + abs(self.regularization) + float(np.abs(self.stability).sum()) + abs(self.remainder)
        return abs(self.regret - self.bound - self.remainder) / max(scale, 1e-300)


def surrogate_regret(trace: Trace, x: ArrayLike, against: Against = "losses") -> float:
    """Return the regret of the losses as the algorithm treats them, with or without α_tΨ, term by term.

    >>> from forel.theory.algorithms import gradient_descent
    >>> from forel.theory.analysis import play
    >>> from forel.losses import Linear
    >>> surrogate_regret(play(gradient_descent(1.0), [Linear([1.0]), Linear([-2.0])]), np.array([1.0]))
    3.0

    Survey: section 5
    """
    x = vector("x", x, trace.points.shape[1])
    total = sum(value - added.loss(x) for added, value in zip(trace.added, trace.surrogate_values, strict=True))
    if against == "composite":
        at_x = trace.algorithm.penalty(x)
        charged = zip(trace.weight_values, trace.penalty_values[:-1].tolist(), strict=True)
        total += sum(weight * (value - at_x) for weight, value in charged if weight > 0)
    return total


def _treated(trace: Trace, x: Vector, against: Against) -> float:
    """Return the regret that the lemmas are about: of Ψ's tangents where the algorithm keeps only those."""
    if against == "losses":
        return surrogate_regret(trace, x)
    pairs = zip(trace.added, trace.surrogate_penalty_values, strict=True)
    charged = (added.weight * (value - added.penalty(x)) for added, value in pairs if added.weight > 0)
    return surrogate_regret(trace, x) + sum(charged)


def strong_ftrl_lemma(trace: Trace, x: ArrayLike, against: Against = "composite") -> Decomposition:
    r"""Return the Strong FTRL Lemma's parts.

    $$\mathrm{Regret}(x^*) = r_{0:T}(x^*) + \sum_{t=1}^T \bigl(h_{0:t}(x_t) - h_{0:t}(x_{t+1}) - r_t(x_t)\bigr)
    + \bigl(h_{0:T}(x_{T+1}) - h_{0:T}(x^*)\bigr)$$

    Parameters
    ----------
    trace : a game that was played
    x : the comparator
    against : whether α_tΨ counts as loss or as regularizer

    >>> from forel.theory.algorithms import gradient_descent
    >>> from forel.theory.analysis import play
    >>> from forel.losses import Linear
    >>> parts = strong_ftrl_lemma(play(gradient_descent(1.0), [Linear([1.0]), Linear([-2.0])]), np.array([1.0]))
    >>> parts.regret, parts.regularization, parts.stability, parts.remainder
    (3.0, 0.5, array([0.5, 2. ]), 0.0)

    Survey: Lemma 5
    """
    x = vector("x", x, trace.points.shape[1])
    charged = list(trace.regularizer_values)
    if against == "losses":
        for t, (added, value) in enumerate(zip(trace.added, trace.surrogate_penalty_values, strict=True)):
            if added.weight > 0:
                charged[t] += added.weight * value
    stability = trace.decreases - charged
    last = trace.stages[-1]
    regularization = last.regularizer(x) + (last.penalties(x) if against == "losses" else 0.0)
    remainder = last.objective(trace.leaders[-1]) - last.objective(x) - trace.initial(trace.leaders[0])
    return Decomposition("Lemma 5", _treated(trace, x, against), regularization, stability, remainder)


def conjugate_lemma(trace: Trace, x: ArrayLike) -> Decomposition:
    r"""Return the same in terms of conjugates, for linear losses and Ψ in the regularizer.

    $$h_{0:t}(x_t) - h_{0:t}(x_{t+1}) - r_t(x_t)
    = r^\star_{0:t}(-g_{1:t}) - r^\star_{0:t-1}(-g_{1:t-1}) + g_t \cdot x_t$$

    >>> from forel.theory.algorithms import gradient_descent
    >>> from forel.theory.analysis import play
    >>> from forel.losses import Linear
    >>> conjugate_lemma(play(gradient_descent(1.0), [Linear([1.0]), Linear([-2.0])]), np.array([1.0])).stability
    array([0.5, 2. ])

    Survey: Corollary 6
    """
    primal = strong_ftrl_lemma(trace, x, "losses")
    argmin = getattr(trace.algorithm, "argmin", None)
    if argmin is None or any(
        not stage.losses.quadratic or np.any(stage.losses.curvature) or stage.added.hint is not None
        for stage in trace.stages
    ):
        raise Unsupported("the conjugate form needs an algorithm that keeps linear losses and the exact penalty")
    geometry, weight, totals = trace.initial.geometry, 0.0, [0.0]
    for stage in trace.stages:
        # r*(−g) = max −g·x − r(x), solved again from the sums, independent of the points that were played
        weight += stage.added.weight
        z = stage.losses.g - stage.regularizer.linear
        strength = geometry.check(stage.regularizer.strength, z.size)
        totals.append(argmin.conjugate(-z, strength, weight) - stage.regularizer.constant)
    played = np.einsum("ti,ti->t", trace.gradients, trace.points[:-1])
    return Decomposition(
        "Corollary 6", primal.regret, primal.regularization, np.diff(totals) + played, primal.remainder
    )


def standard_ftrl_lemma(trace: Trace, x: ArrayLike, against: Against = "composite") -> Decomposition:
    r"""Return the Standard FTRL Lemma's parts, whose stability is $f_t(x_t) - f_t(x_{t+1})$.

    >>> from forel.theory.algorithms import gradient_descent
    >>> from forel.theory.analysis import play
    >>> from forel.losses import Linear
    >>> standard_ftrl_lemma(play(gradient_descent(1.0), [Linear([1.0]), Linear([-2.0])]), np.array([1.0])).stability
    array([1., 4.])

    Survey: Lemma 13
    """
    primal = strong_ftrl_lemma(trace, x, against)
    stability = []
    losses, penalties = trace.surrogate_values, trace.surrogate_penalty_values
    for added, loss, penalty, following in zip(trace.added, losses, penalties, trace.leaders[1:], strict=True):
        change = loss - added.loss(following)
        if against == "composite" and added.weight > 0:
            change += added.weight * (penalty - added.penalty(following))
        stability.append(change)
    remainder = primal.remainder + float(primal.stability.sum()) - sum(stability)
    return Decomposition("Lemma 13", primal.regret, primal.regularization, np.array(stability), remainder)
