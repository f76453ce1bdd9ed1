r"""What a coordinate does: its strength, its weight, and its step.

Each function works on one coordinate of one lane. The parameters p of a lane are (1/α, β, λ1, λ2, R); ``now`` and
``next`` are the strengths 1/η_{t−1} and 1/η_t of rates that look at the round only; ``penalty`` is α_{1:t−1} for FTRL
and α_t for Mirror Descent. A rate is four functions: what of n is kept at hand (``root``), the ``strength`` that it
stands for, how n grows (``grown``), and the strength that it gains by that (``gain``).
"""

import math

import numpy as np

from forel.learner.kernels.dither import add
from forel.learner.kernels.inline import fast

TINY = np.float32(1e-30)  # a literal would make a double of everything it meets
ONE = np.float32(1)


@fast
def argmin(z, strength, l1, l2, radius):
    """Return the minimiser of z·x + l1|x| + (strength + l2)/2 x² over [−radius, radius]; 0 where nothing is known."""
    # Without branches or calls, so that lanes go through it side by side; TINY only keeps 0/0 at 0.
    shrunk = min(max(z, -l1), l1) - z
    return min(max(shrunk / max(strength + l2, TINY), -radius), radius)


@fast
def adagrad_root(n):
    """Return √n."""
    return np.sqrt(n)


@fast
def adagrad_strength(root, reach, now, p):
    """Return (β + √n)/α."""
    return (p[1] + root) * p[0]


@fast
def adagrad_grown(n, gg, next, r):
    """Return n + g²."""
    return add(n, gg, r)


@fast
def adagrad_gain(root, after, reach, now, next, p):
    """Return the strength that was added, from a difference that is exactly 0 where nothing was."""
    return (after - root) * p[0]


@fast
def scale_free_strength(root, reach, now, p):
    """Return s(βs + √n)/α, with s the largest feature value seen."""
    return reach * (p[1] * reach + root) * p[0]


@fast
def scale_free_gain(root, after, reach, now, next, p):
    """Return the strength that was added around the point; what the scale added was around 0, before."""
    return reach * (after - root) * p[0]


@fast
def timed_root(n):
    """Return n, which is not used."""
    return n


@fast
def timed_strength(root, reach, now, p):
    """Return the strength of the round."""
    return now


@fast
def timed_grown(n, gg, next, r):
    """Return n as it is."""
    return n


@fast
def timed_gain(root, after, reach, now, next, p):
    """Return what the round added."""
    return next - now


@fast
def elapsed_strength(root, reach, now, p):
    """Return the strength of the round in which the coordinate was last seen, kept in place of n."""
    return root


@fast
def elapsed_grown(n, gg, next, r):
    """Return the strength of this round."""
    return next


@fast
def elapsed_gain(root, after, reach, now, next, p):
    """Return what was added since: around weights that stayed the same, so that all of it can be added now."""
    return after - root


@fast
def centered_step(z, x, g, added, after, penalty, p, r):
    """Return z + g: regularizers around 0 leave the dual state to the gradients."""
    return add(z, g, r)


@fast
def proximal_step(z, x, g, added, after, penalty, p, r):
    """Return z + g − σx: what a regularizer around x adds."""
    return add(z, g - added * x, r)


@fast
def mirror_step(z, x, g, added, after, penalty, p, r):
    """Return the next point itself, argmin g·x' + αΨ(x') + (1/2η)(x' − x)²."""
    l1, l2 = penalty * p[2], penalty * p[3]
    target = argmin(g - after * x, after, l1, l2, p[4])
    inside = target != 0 and abs(target) < p[4]
    # The same point from its optimality condition, as a step whose size survives rounding.
    step = (g + (l1 if target > 0 else -l1) + l2 * target) / max(after, TINY)
    # A step that overflows ends where weights may end.
    return min(max(add(x, -step, r), -p[4]), p[4]) if inside else target


@fast
def dual_weight(z, strength, penalty, p):
    """Return the weight that a dual state stands for."""
    return argmin(z, strength, penalty * p[2], penalty * p[3], p[4])


@fast
def primal_weight(z, strength, penalty, p):
    """Return the weight where it is the state."""
    return z


@fast
def faded(x, strength, skipped, p):
    """Return x after rounds without a gradient and of equal strength, in each of which the penalty pulled it to 0.

    |x| ← max(0, (S|x| − λ1)/(S + λ2)), k times: geometric with λ2, arithmetic without.
    """
    if skipped <= 0 or x == 0:
        return x
    if p[3] > 0:
        return drifted(x, skipped * math.log(strength / (strength + p[3])), p)
    return drifted(x, skipped * p[2] / strength, p) if strength > 0 else x * 0


@fast
def drifted(x, change, p):
    """Return x after rounds without a gradient, from the sum of ``tick`` over them."""
    if p[3] > 0:
        # The distance to the fixed point −λ1/λ2 shrinks by S/(S + λ2) in each round.
        far = p[2] / p[3]
        left = abs(x) * math.exp(change) + far * math.expm1(change)
    else:
        left = abs(x) - change
    return math.copysign(max(left, x * 0), x)


@fast
def tick(strength, p):
    """Return what one round of this strength adds: log S/(S + λ2), or λ1/S without λ2."""
    return math.log(strength / (strength + p[3])) if p[3] > 0 else p[2] / strength


@fast
def constant_clock(t, p):
    """Return 1/η."""
    return p[0]


@fast
def root_clock(t, p):
    """Return √(t + 1)/α."""
    return np.sqrt(np.float64(t) + ONE) * p[0]


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
