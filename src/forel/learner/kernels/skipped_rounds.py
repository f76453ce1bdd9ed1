"""Lazy updates: the penalties of rounds without a coordinate are applied when the coordinate occurs again.

Without a gradient, |x| ← max(0, (S|x| − λ1)/(S + λ2)) in each round, with S the strength of the round.
"""

import math

from forel.learner.kernels.rates import round_strength
from forel.learner.kernels.reference import inline, inline_ir
from forel.learner.kernels.updates import penalty_total, weight


@inline_ir
def drifted(x, change, p):
    """Return x after rounds without a gradient, ``change`` being the sum of ``clock_tick`` over them."""
    if p.l2 > 0:
        # The distance to the fixed point −λ1/λ2 shrinks by S/(S + λ2) in each round.
        ratio = p.l1 / p.l2
        size = abs(x) * math.exp(change) + ratio * math.expm1(change)
    else:
        size = abs(x) - change
    return math.copysign(max(size, x * 0), x)


@inline_ir
def decayed(x, strength, skipped, p):
    """Return x after ``skipped`` rounds without a gradient and of equal strength."""
    if skipped <= 0 or x == 0:
        return x
    if p.l2 > 0:
        return drifted(x, -skipped * math.log1p(p.l2 / strength), p)
    return drifted(x, skipped * p.l1 / strength, p) if strength > 0 else x * 0


@inline_ir
def clock_tick(strength, p):
    """Return what a round of this strength adds to the penalty clock: log S/(S + λ2), or λ1/S without λ2."""
    return -math.log1p(p.l2 / strength) if p.l2 > 0 else p.l1 / strength


@inline
def replayed(z, since, until, p):
    """Return z after rounds without a gradient, in each of which strength and penalty increase."""
    for s in range(since, until):
        current = round_strength(s, p)
        x = weight(z, current, penalty_total(s), p)
        if x == 0:
            break
        z -= (round_strength(s + 1, p) - current) * x
    return z
