"""The update of one coordinate: from state to weight, and from gradient to state."""

from forel.learner.kernels.rates import accumulate, root, strength, strength_gain
from forel.learner.kernels.reference import (
    EVERY_ROUND,
    GRADIENT_LIMIT,
    IMPLICIT,
    KEEPS_POINTS,
    MAX,
    PRIMAL,
    PROXIMAL,
    TINY,
    inline_ir,
)
from forel.learner.kernels.stochastic_rounding import add


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
def step(z, n, x, root_n, g, h, scale, current_strength, next_strength, penalty, p, noise_z, noise_n):
    """Return z and n after a step along g, and terms of certificates: h, the noise of z and n, σ, h²/S + σx².

    h is the gradient of the loss; it differs from g for implicit updates.
    """
    zero = x - x
    g = min(max(g, -GRADIENT_LIMIT), GRADIENT_LIMIT)
    h = min(max(h, -GRADIENT_LIMIT), GRADIENT_LIMIT) if IMPLICIT else g
    # A sum that does not change is not rounded.
    noise_z, noise_n = (noise_z, noise_n) if h != 0 else (zero, zero)
    # The gain is computed from n as stored: the next round's gain corrects this round's rounding.
    stored = min(accumulate(n, h * h, next_strength, noise_n), MAX)
    after_root = root(stored)
    gain = strength_gain(root_n, after_root, scale, current_strength, next_strength, p)
    after = strength(after_root, scale, next_strength, p)
    bound_term = h * h / max(after, TINY) + gain * x * x if KEEPS_POINTS else zero
    z = next_state(z, x, g, gain, after, penalty, p, noise_z)
    return z, stored, h, noise_z, noise_n, gain, bound_term


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
