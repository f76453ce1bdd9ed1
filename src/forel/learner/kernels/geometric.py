r"""Geometric mixers of log-loss: a margin $v \cdot m$ of the experts' margins m, with v learned by online Newton steps.

A mixer is a Gaussian filter with all covariances C of its few weights. With probability p of its margin, curvature
$h = p(1 - p)$ and $c = Cm$, a row with label y is

$$v \leftarrow v + \frac{c\,(y - p)}{1 + h\,m \cdot c}, \qquad C \leftarrow C - \frac{h\,c\,c^\top}{1 + h\,m \cdot c},$$

after which C is moved toward its prior by what the mixer forgets, so that it never exceeds the prior.
"""

import numpy as np

from forel.jit.compiling import cached_njit

__all__ = ["CLIP", "CONSTANT", "mix"]

compiled = cached_njit(__file__)
CLIP = 4.0  # of inputs: a probability of 0.982 is as confident as the best expert usually is
FARTHEST = 30.0  # margin of a mixer
LEAST_CURVATURE = 1e-6
CONSTANT = 0.3  # one more input, so that the mean prediction is right
ROUNDING = 1e-12  # of the prior variance: a variance below it may be rounding alone, and even negative


@compiled
def mix(margins, labels, importance, parameters, mixers, out):
    """Write the margin of every mixer, and then let it learn the row.

    Parameters
    ----------
    margins : of the experts, a row for each example
    importance : of rows; those of negative importance are predicted only
    parameters : prior variance and memory of each mixer
    mixers : of each mixer a row v, and a row of C for each expert and for the constant
    """
    rows, experts = margins.shape
    count = experts + 1
    x, c = np.empty(count), np.empty(count)
    x[experts] = CONSTANT
    for r in range(rows):
        weight, y = np.float64(importance[r]), np.float64(labels[r])
        square = CONSTANT * CONSTANT
        for k in range(experts):
            x[k] = min(max(np.float64(margins[r, k]), -CLIP), CLIP)
            square += x[k] * x[k]
        for j in range(mixers.shape[0]):
            margin, spread = 0.0, 0.0
            for k in range(count):
                margin += mixers[j, 0, k] * x[k]
            margin = min(max(margin, -FARTHEST), FARTHEST)
            out[r, j] = margin
            if weight <= 0:
                continue
            p = 1.0 / (1.0 + np.exp(-margin))
            for i in range(count):
                c[i] = 0.0
                for k in range(count):
                    c[i] += mixers[j, 1 + i, k] * x[k]
                spread += c[i] * x[i]
            curvature, memory = weight * max(p * (1.0 - p), LEAST_CURVATURE), parameters[j, 1]
            damping = 1.0 + curvature * max(spread, ROUNDING * parameters[j, 0] * square)
            step, known = weight * (y - p) / damping, curvature / damping
            for i in range(count):
                mixers[j, 0, i] += step * c[i]
                for k in range(count):
                    mixers[j, 1 + i, k] = memory * (mixers[j, 1 + i, k] - known * (c[i] * c[k]))
                mixers[j, 1 + i, i] += (1.0 - memory) * parameters[j, 0]
