r"""Whether what an algorithm declares about a round agrees with the round, as the survey's proofs assume.

Bounds are computed from the rounds that an algorithm declares. A round proves nothing if its loss is not $f_t(x_t)$ at
$x_t$, or is above $f_t$ at the comparator; if its penalty is not $\alpha_t\Psi$; or if its regularizer is negative, or,
where the algorithm is proximal, not smallest at $x_t$. Nor if the Strong FTRL Lemma's stability of the round, which is
known from the points, is more than the bound has for it: whatever else was declared, the lemma is an equality.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from forel.losses import Linear
from forel.theory.penalties import NONE
from forel.theory.regularizers import Regularizer
from forel.validation import Strength, Vector

if TYPE_CHECKING:
    from forel.theory.analysis.game import Trace

__all__ = [
    "first_above",
    "first_better",
    "first_misdeclared",
    "first_not_proximal",
    "first_unaccounted",
    "lemma_stabilities",
]

# Relative to the bound; tangents of a penalty are as accurate as the solver's points. The terms of a comparison leave
# rounding, relative to their size.
ROUNDING, SOLVED, EPS = 1e-9, 1e-6, 256 * float(np.finfo(np.float64).eps)
UNDERFLOW = 1e-290  # the gradient of a geometry at a smaller coordinate is known from its mirror image only


def first_misdeclared(trace: "Trace") -> str:
    """Return the first round that was declared wrongly, as a reason why bounds are void; empty if there is none."""
    stability = _stability(trace)
    if _least(trace.initial, trace) < -ROUNDING * stability - EPS * _size(trace.initial, trace.points[0]):
        return "the regularizer r_0 is negative"
    return next((reason for t in range(1, trace.rounds + 1) if (reason := _misdeclared(trace, t, stability))), "")


def _misdeclared(trace: "Trace", t: int, stability: float) -> str:
    x, following, stage = trace.points[t - 1], trace.points[t], trace.stages[t - 1]
    added, value, declared = stage.added, float(trace.values[t - 1]), trace.surrogate_values[t - 1]
    if not abs(declared - value) <= ROUNDING * stability + EPS * (abs(value) + float(np.abs(added.g) @ np.abs(x))):
        return f"the loss declared for round {t} is {declared:.6g} at x_{t}, where that of the round is {value:.6g}"
    slope = added.loss.subgradient(x)
    if np.abs(added.g - slope).max() > ROUNDING * np.abs(slope).max():
        return f"the gradient declared for round {t} is not that of its loss at x_{t}"
    own, at_next = trace.weight_values[t - 1], float(trace.penalty_values[t])
    if isinstance(added.penalty, Linear):
        tangent, scale = added.weight * added.penalty(following), _terms(added.penalty, following)
        same = abs(tangent - (own * at_next if own else 0.0)) <= SOLVED * stability + EPS * scale
    else:
        given, penalty = added.penalty, trace.algorithm.penalty
        same = (given is penalty or given == penalty) and (penalty is NONE or added.weight == own)
    if not same:
        return f"the penalty declared for round {t} is not the algorithm's α_{t}Ψ"
    if added.strength is not None and _exceeds(added.strength, stage.regularizer.strength):
        return f"the strength declared for round {t} is more than that of the regularizers"
    r, size = added.regularizer, _size(added.regularizer, x) + _size(added.regularizer, following)
    if min(r(following), _least(r, trace)) < -ROUNDING * stability - EPS * size:
        return f"the regularizer of round {t} is negative"
    return ""


def first_unaccounted(trace: "Trace", stability: Vector) -> str:
    """Return the first round whose stability by the Strong FTRL Lemma is more than a bound has for it, as a reason."""
    spent, terms = trace.spent
    over = ~(spent - stability <= SOLVED * float(stability.sum()) + EPS * terms)
    if not over.any():
        return ""
    return (
        f"the objective falls more in round {int(np.argmax(over)) + 1} than the gradient declared for it accounts for"
    )


def lemma_stabilities(trace: "Trace") -> tuple[Vector, Vector]:
    r"""Return $h_{0:t}(x_t) - h_{0:t}(x_{t+1}) - r_t(x_t) - \alpha_t(\Psi(x_t) - \Psi(x_{t+1}))$ for every round.

    That is what a round costs by the Strong FTRL Lemma, as declared; with it comes the size of its terms.
    """
    rows = []
    charged = zip(
        trace.stages, trace.points, trace.leaders[1:], trace.decreases, trace.regularizer_values, strict=False
    )
    for stage, x, following, decrease, value in charged:
        added, moved = stage.added, 0.0
        if added.weight > 0:
            moved = added.weight * (added.penalty(x) - added.penalty(following))
        terms = sum(_size(stage.regularizer, u) + float(np.abs(stage.losses.g) @ np.abs(u)) for u in (x, following))
        rows.append((decrease - value - moved, terms + abs(stage.losses.constant) + 2 * abs(stage.penalties(x))))
    spent, sizes = np.array(rows).T
    return spent, sizes


def first_better(trace: "Trace", x: Vector, charged: Vector | None = None) -> str:
    r"""Return the first round in which a comparator is better than the round allows, as a reason.

    No point of X has a smaller objective than its argmin. Where the regularizer of the last round is not in the bound,
    that of the rounds before with $f_t$ is smaller by no more than the round was ``charged``.
    """
    before: Callable[[Vector], float] = trace.initial
    start, allowed, terms = before(trace.leaders[0]), SOLVED * _stability(trace), trace.spent[1]
    for t, stage in enumerate(trace.stages):
        here = stage.objective(x)
        rounding = allowed + EPS * (terms[t] + _size(stage.regularizer, x) + float(np.abs(stage.losses.g) @ np.abs(x)))
        better = not stage.objective(trace.leaders[t + 1]) - start <= here + rounding
        if charged is not None:
            least = before(trace.leaders[t]) + trace.surrogate_values[t] - charged[t]
            better |= not least - start <= before(x) + stage.added.loss(x) + rounding
        if better:
            return f"the comparator lies outside X, or what was declared does not hold there in round {t + 1}"
        before = stage.objective
    return ""


def _least(r: Regularizer, trace: "Trace") -> float:
    """Return the least value of a regularizer, on the simplex of the right total where it is an entropy."""
    if not np.any(r.strength):
        return -math.inf if r.linear.any() else r.constant
    total = trace.points[0].sum() if r.geometry.on_simplex else 1.0
    x = total * r.minimizer
    return r(x) if np.isfinite(x).all() else -math.inf


def first_not_proximal(trace: "Trace") -> str:
    """Return the first round whose regularizer is not 0 and smallest at the point played, as a reason."""
    stability = _stability(trace)
    for t, (added, x) in enumerate(zip(trace.added, trace.points, strict=False), start=1):
        r = added.regularizer
        known = np.abs(x) > UNDERFLOW if not r.geometry.quadratic else np.full(x.size, True)
        slope = np.abs(r.gradient(x)[known]).max(initial=0.0)
        if abs(r(x)) > ROUNDING * stability + EPS * _size(r, x) or slope > ROUNDING * np.abs(r.linear).max():
            return f"the regularizer of round {t} is not 0 and smallest at x_{t}, so that it is not proximal"
    return ""


def first_above(trace: "Trace", x: Vector) -> str:
    """Return the first round declared above its loss or penalty at a comparator, or a path of them, as a reason."""
    stability, gradients, path = _stability(trace), np.array([added.g for added in trace.added]), trace.path(x)
    values = np.array([loss(u) for loss, u in zip(trace.losses, path, strict=True)])
    pairs = zip(trace.added, trace.losses, values, path, strict=True)
    declared = np.array([value if added.loss is loss else added.loss(u) for added, loss, value, u in pairs])
    apart = (np.abs(gradients) * (np.abs(path) + np.abs(trace.points[:-1]))).sum(axis=1)
    size = np.abs(values) + np.abs(trace.values) + apart
    if (above := declared > values + ROUNDING * stability + EPS * size).any():
        return f"the loss declared for round {int(np.argmax(above)) + 1} is above that of the round at the comparator"
    if np.ndim(x) == 2:  # without a penalty
        return ""
    penalty = trace.algorithm.penalty(x)
    for t, (stage, weight) in enumerate(zip(trace.stages, trace.weight_values, strict=True), start=1):
        added = stage.added
        if isinstance(added.penalty, Linear):  # a difference of gradients, which leaves their rounding
            size = _terms(added.penalty, x) + _size(stage.regularizer, x)
            most = weight * penalty if weight else 0.0
            if added.weight * added.penalty(x) > most + SOLVED * stability + EPS * size:
                return f"the penalty declared for round {t} is above α_{t}Ψ at the comparator"
    return ""


def _stability(trace: "Trace") -> float:
    norms = trace.squared_norms[1]
    return float(norms[np.isfinite(norms)].sum()) / 2


def _terms(tangent: Linear, x: Vector) -> float:
    return float(np.abs(tangent.g) @ np.abs(x)) + abs(tangent.constant)


def _size(r: Regularizer, x: Vector) -> float:
    return abs(r.geometry.value(r.strength, x)) + abs(float(r.linear @ x)) + abs(r.constant)


def _exceeds(declared: Strength, actual: Strength) -> bool:
    rest = np.subtract(actual, declared)
    least = np.linalg.eigvalsh(rest)[0] if np.ndim(rest) == 2 else np.min(rest)
    return bool(least < -ROUNDING * np.max(np.abs(actual)))
