r"""Learning rates of one coordinate as strengths $1/\eta_t$.

``n`` is Σg² for AdaGrad and scale-free rates. Rates that depend only on the round do not use it, except that a record
may keep the strength of its last update in its place.
"""

import numpy as np

from forel.learner.kernels.reference import (
    BY_ROUND,
    CONSTANT,
    KEEPS_STRENGTH,
    SCALE_FREE,
    SUMS_SQUARES,
    inline_ir,
)
from forel.learner.kernels.stochastic_rounding import add


@inline_ir
def root(n):
    """Return √n, or n for rates that depend only on the round."""
    if SUMS_SQUARES:
        return np.sqrt(n)
    return n


@inline_ir
def strength(root_n, scale, current_strength, p):
    """Return 1/η: (β + √n)/α, s(βs + √n)/α with s the largest |value|, or the strength of the round."""
    if SCALE_FREE:
        return scale * (p.beta * scale + root_n) * p.inverse_alpha
    if SUMS_SQUARES:
        return (p.beta + root_n) * p.inverse_alpha
    if KEEPS_STRENGTH:
        return root_n
    return current_strength


@inline_ir
def accumulate(n, square, next_strength, noise):
    """Return n after a round with squared gradient ``square``."""
    if SUMS_SQUARES:
        return add(n, square, noise)
    if KEEPS_STRENGTH:
        return next_strength
    return n


@inline_ir
def strength_gain(root_before, root_after, scale, current_strength, next_strength, p):
    """Return σ = 1/η_t − 1/η_{t−1} from √n before and after; exactly 0 where n did not change.

    With KEEPS_STRENGTH it is the gain since the last update: the weight did not change in between. The growth of a
    scale is not part of it, because it adds a regularizer centered at 0.
    """
    if SCALE_FREE:
        return scale * (root_after - root_before) * p.inverse_alpha
    if SUMS_SQUARES:
        return (root_after - root_before) * p.inverse_alpha
    if KEEPS_STRENGTH:
        return root_after - root_before
    return next_strength - current_strength


@inline_ir
def round_strength(t, p):
    """Return the strength of round t + 1 for rates that depend only on the round, 1/α or √(t + 1)/α; else 0."""
    if CONSTANT:
        return p.inverse_alpha
    if BY_ROUND:
        return np.sqrt(np.float64(t) + np.float32(1)) * p.inverse_alpha
    return p.inverse_alpha - p.inverse_alpha
