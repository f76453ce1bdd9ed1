r"""What a coordinate does: its strength, its weight, and its step.

Each function works on one coordinate of one lane. The parameters p of a lane are
(1/scale, β, δ², λ1, λ2, R); ``now`` and ``next`` are the strengths 1/η_{t−1} and 1/η_t of rates that look at the round
only; ``penalty`` is α_{1:t−1} for FTRL and α_t for Mirror Descent.
"""

import math

import numpy as np
from numba import njit

fast = njit(error_model="numpy", nogil=True, fastmath=True, inline="always")
TINY = np.float32(1e-30)  # a literal would make a double of everything it meets


@fast
def argmin(z, strength, l1, l2, radius):
    """Return the minimiser of z·x + l1|x| + (strength + l2)/2 x² over [−radius, radius]; 0 where nothing is known."""
    # Without branches or calls, so that lanes go through it side by side; TINY only keeps 0/0 at 0.
    shrunk = min(max(z, -l1), l1) - z
    return min(max(shrunk / max(strength + l2, TINY), -radius), radius)


@fast
def adagrad(n, reach, now, p):
    """Return (β + √(δ² + n))/c."""
    return (p[1] + np.sqrt(p[2] + n)) * p[0]


@fast
def scale_free(n, reach, now, p):
    """Return s(βs + √n)/α, with s the largest feature value seen."""
    return reach * (p[1] * reach + np.sqrt(n)) * p[0]


@fast
def timed(n, reach, now, p):
    """Return the strength of the round."""
    return now


@fast
def centered_step(z, n, x, g, before, after, penalty, p):
    """Return z + g: regularizers around 0 leave the dual state to the gradients."""
    return z + g


@fast
def proximal_step(z, n, x, g, before, after, penalty, p):
    """Return z + g − σx: what a regularizer around x adds."""
    return z + g - (after - before) * x


@fast
def mirror_step(z, n, x, g, before, after, penalty, p):
    """Return the next point itself, argmin g·x' + αΨ(x') + (1/2η)(x' − x)²."""
    return argmin(g - after * x, after, penalty * p[3], penalty * p[4], p[5])


@fast
def dual_weight(z, strength, penalty, p):
    """Return the weight that a dual state stands for."""
    return argmin(z, strength, penalty * p[3], penalty * p[4], p[5])


@fast
def primal_weight(z, strength, penalty, p):
    """Return the weight where it is the state."""
    return z


@fast
def faded(x, strength, skipped, p):
    """Return x after rounds without a gradient, in each of which the penalty pulled it towards 0.

    |x| ← max(0, (S|x| − λ1)/(S + λ2)), k times: geometric with λ2, arithmetic without.
    """
    if skipped <= 0 or x == 0:
        return x
    if p[4] > 0:
        ratio = math.pow(strength / (strength + p[4]), skipped)
        left = abs(x) * ratio - p[3] / p[4] * (1 - ratio)
    else:
        left = abs(x) - skipped * p[3] / strength if strength > 0 else x * 0
    return math.copysign(max(left, x * 0), x)


@fast
def constant_clock(t, p):
    """Return 1/η."""
    return p[0]


@fast
def root_clock(t, p):
    """Return √(t + offset)/c."""
    return np.sqrt(t + p[2]) * p[0]


@fast
def no_clock(t, p):
    """Return 0, for rates that do not look at the round."""
    return p[0] - p[0]


@fast
def once_total(t):
    """Return α_{1:t} of a penalty that comes in round 1."""
    return 1 if t >= 1 else 0


@fast
def every_total(t):
    """Return α_{1:t} of a penalty that comes in every round."""
    return t


@fast
def once_now(t):
    """Return α_t of a penalty that comes in round 1."""
    return 1 if t == 1 else 0


@fast
def every_now(t):
    """Return α_t of a penalty that comes in every round."""
    return 1
