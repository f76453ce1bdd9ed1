r"""The update of one coordinate: from state to weight, and from gradient to state.

``n`` is Σg², from which the learning rate follows as a strength $1/\eta_t$.

In diagonal Gaussian filters every weight has a mean and a variance, and its learning rate is its variance.
The record of a lane has the mean of the weight and the information n that it got from rows. With the scale s of the
coordinate and the prior variance α of a weight times its scale, the variance of the weight is $V = 1/(s^2/\alpha + n)$.
The margin m of a row has the variance $S = \sum_i V_i v_i^2$. With slope g and curvature h of its loss, the update is

$$\mu_i \leftarrow \mu_i - \frac{V_i v_i g}{1 + hS}, \qquad n_i \leftarrow n_i + \frac{h v_i^2}{1 + h(S - V_i v_i^2)},$$

the exact update of a Gaussian whose off-diagonal covariances are set to 0, with the loss replaced by its quadratic
approximation at m. A filter that forgets multiplies n of the row's coordinates by its memory before the row is added.
The weight itself is $\mu \max(0, \mu^2 - \beta V)/(\mu^2 + \beta V)$: exactly 0 where the mean is within
$\sqrt\beta$ standard errors of 0.
"""

import math

import numpy as np

from forel.learner.kernels.reference import (
    EVERY_ROUND,
    GRADIENT_LIMIT,
    KEEPS_POINTS,
    MAX,
    PRIMAL,
    PROXIMAL,
    REAL_ONE,
    REAL_ZERO,
    SCALE_FREE,
    TINY,
    curvature,
    inline,
    inline_ir,
)
from forel.learner.kernels.stochastic_rounding import add

RATIO_LIMIT = np.float32(1e30)  # of ratios and curvatures, so that their products are finite


@inline_ir
def strength(root_n, scale, p):
    """Return 1/η: (β + √n)/α, or s(βs + √n)/α with s the largest |value|."""
    if SCALE_FREE:
        return scale * (p.beta * scale + root_n) * p.inverse_alpha
    return (p.beta + root_n) * p.inverse_alpha


@inline_ir
def strength_gain(root_before, root_after, scale, p):
    """Return σ = 1/η_t − 1/η_{t−1} from √n before and after; exactly 0 where n did not change.

    The growth of a scale is not part of it, because it adds a regularizer centered at 0.
    """
    if SCALE_FREE:
        return scale * (root_after - root_before) * p.inverse_alpha
    return (root_after - root_before) * p.inverse_alpha


@inline_ir
def argmin(z, strength, l1, l2, radius):
    """Return argmin z·x + l1|x| + (strength + l2)/2 x² over [−radius, radius]; 0 for 0/0.

    Without branches or library calls, so that it vectorizes.
    """
    shrunk = min(max(z, -l1), l1) - z
    return min(max(shrunk / max(strength + l2, TINY), -radius), radius)


@inline_ir
def weight(z, strength, penalty, p):
    """Return the weight of a state; ``penalty`` is α_{1:t−1}."""
    if PRIMAL:
        return z
    return argmin(z, strength, penalty * p.l1, penalty * p.l2, p.radius)


@inline_ir
def mirror_step(x, g, after, penalty, p, noise):
    """Return argmin g·x' + αΨ(x') + (x' − x)²/(2η), with 1/η = ``after`` and α_t = ``penalty``."""
    l1, l2 = penalty * p.l1, penalty * p.l2
    target = argmin(g - after * x, after, l1, l2, p.radius)
    inside = target != 0 and abs(target) < p.radius
    # The same point from its optimality condition, as a step from x, which does not suffer from cancellation.
    step = (g + (l1 if target > 0 else -l1) + l2 * target) / max(after, TINY)
    # Steps that overflow end at the boundary.
    return min(max(add(x, -step, noise), -p.radius), p.radius) if inside else target


@inline_ir
def next_state(z, x, g, gain, after, penalty, p, noise):
    """Return the state after a gradient: z + g, z + g − σx for proximal regularizers, or the next point itself."""
    if PRIMAL:
        return mirror_step(x, g, after, penalty, p, noise)
    if PROXIMAL:
        return add(z, g - gain * x, noise)
    return add(z, g, noise)


@inline_ir
def step(z, n, x, root_n, g, scale, penalty, p, noise_z, noise_n):
    """Return z and n after a step along g, and terms of certificates: g, the noise of z and n, σ, g²/S + σx²."""
    zero = x - x
    g = min(max(g, -GRADIENT_LIMIT), GRADIENT_LIMIT)
    # A sum that does not change is not rounded.
    noise_z, noise_n = (noise_z, noise_n) if g != 0 else (zero, zero)
    # The gain is computed from n as stored: the next round's gain corrects this round's rounding.
    stored = min(add(n, g * g, noise_n), MAX)
    after_root = np.sqrt(stored)
    gain = strength_gain(root_n, after_root, scale, p)
    after = strength(after_root, scale, p)
    bound_term = g * g / max(after, TINY) + gain * x * x if KEEPS_POINTS else zero
    z = next_state(z, x, g, gain, after, penalty, p, noise_z)
    return z, stored, g, noise_z, noise_n, gain, bound_term


@inline_ir
def penalty_total(t):
    """Return α_{1:t}: penalties apply in round 1 only, or in every round."""
    if EVERY_ROUND:
        return t
    return 1 if t >= 1 else 0


@inline_ir
def penalty_weight(t):
    """Return α_t."""
    if EVERY_ROUND:
        return 1
    return 1 if t == 1 else 0


@inline_ir
def decayed(x, strength, skipped, p):
    """Return x after ``skipped`` rounds of equal strength without a gradient, but with penalties.

    In each, |x| ← max(0, (S|x| − λ1)/(S + λ2)): the distance to the fixed point −λ1/λ2 shrinks by S/(S + λ2).
    """
    if skipped <= 0 or x == 0:
        return x
    if p.l2 > 0:
        change, ratio = -skipped * math.log1p(p.l2 / strength), p.l1 / p.l2
        size = abs(x) * math.exp(change) + ratio * math.expm1(change)
    else:
        size = abs(x) - skipped * p.l1 / strength if strength > 0 else x * 0
    return math.copysign(max(size, x * 0), x)


@inline_ir
def precision(n, scale, p):
    """Return 1/V of a weight, in the unit of its coordinate."""
    return max(scale * scale * p.inverse_alpha + n, TINY)


@inline_ir
def shrink(mean, precision, shrinkage):
    """Return the weight for a mean; the weight of the bias, whose shrinkage is 0, is the mean itself."""
    ratio = min(max(mean * mean * precision, TINY), RATIO_LIMIT)  # μ²/V
    return mean * (max(ratio - shrinkage, REAL_ZERO) / (ratio + shrinkage))


@inline
def row_curvature(margin, importance):
    """Return the second derivative of a row's loss at a margin."""
    return min(importance * curvature(margin), RATIO_LIMIT)


@inline_ir
def filter_step(mean, n, v, variance, margin_variance, damped_slope, loss_curvature, forgotten, noise_mean, noise_n):
    """Return mean and information of a weight after a row.

    Parameters
    ----------
    v, variance : value and variance of the coordinate
    margin_variance : variance S of the margin
    damped_slope : slope of the loss divided by 1 + hS
    loss_curvature : curvature h of the loss
    forgotten : the part of n that is forgotten in a row that gives information
    """
    zero = v - v
    square = v * v
    step = -(variance * v) * damped_slope
    gain = square * loss_curvature / (REAL_ONE + loss_curvature * max(margin_variance - variance * square, zero))
    # A sum that does not change is not rounded.
    noise_mean, noise_n = noise_mean if step != 0 else zero, noise_n if gain != 0 else zero
    n -= forgotten * n if gain != 0 else zero
    return add(mean, step, noise_mean), min(add(n, gain, noise_n), MAX)
