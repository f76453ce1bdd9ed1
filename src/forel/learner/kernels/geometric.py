r"""Geometric mixers of log-loss: a margin $v \cdot m$ of the experts' margins m, with v learned by online Newton steps.

A mixer is a Gaussian filter with the full covariance matrix C of its few weights. With p the probability of its margin,
curvature $h = p(1 - p)$ and $c = Cm$, the update for a row with label y is

$$v \leftarrow v + \frac{c\,(y - p)}{1 + h\,m \cdot c}, \qquad C \leftarrow C - \frac{h\,c\,c^\top}{1 + h\,m \cdot c},$$

after which C is averaged with its prior by the forgetting factor, so that it never exceeds the prior.
"""

import numpy as np

from forel.jit import njit

__all__ = ["CLIP", "CONSTANT", "mix"]

compiled = njit()
CLIP = 4.0  # limit of input margins: a probability of 0.982 is as confident as the best expert usually is
MARGIN_LIMIT = 30.0  # of a mixer
MIN_CURVATURE = 1e-6
CONSTANT = 0.3  # a constant input, so that the mean prediction can be calibrated
ROUNDING = 1e-12  # relative to the prior variance: a smaller variance may be a rounding error, even negative


@compiled
def mix(margins, labels, importance, parameters, mixers, out):
    """Write the margin of every mixer to ``out``, then update the mixer with the row.

    Parameters
    ----------
    margins : margins of the experts, one row per example
    importance : importance of rows; those of negative importance are predicted only
    parameters : prior variance and memory (forgetting factor) of each mixer
    mixers : state of each mixer: a row for v, and a row of C for each expert and for the constant
    """
    rows, experts = margins.shape
    count = experts + 1
    x, c = np.empty(count), np.empty(count)
    x[experts] = CONSTANT
    for r in range(rows):
        weight, label = np.float64(importance[r]), np.float64(labels[r])
        norm_squared = CONSTANT * CONSTANT
        for k in range(experts):
            x[k] = min(max(np.float64(margins[r, k]), -CLIP), CLIP)
            norm_squared += x[k] * x[k]
        for j in range(mixers.shape[0]):
            margin, variance = 0.0, 0.0
            for k in range(count):
                margin += mixers[j, 0, k] * x[k]
            margin = min(max(margin, -MARGIN_LIMIT), MARGIN_LIMIT)
            out[r, j] = margin
            if weight <= 0:
                continue
            p = 1.0 / (1.0 + np.exp(-margin))
            for i in range(count):
                c[i] = 0.0
                for k in range(count):
                    c[i] += mixers[j, 1 + i, k] * x[k]
                variance += c[i] * x[i]
            curvature, memory = weight * max(p * (1.0 - p), MIN_CURVATURE), parameters[j, 1]
            damping = 1.0 + curvature * max(variance, ROUNDING * parameters[j, 0] * norm_squared)
            step, shrinkage = weight * (label - p) / damping, curvature / damping
            for i in range(count):
                mixers[j, 0, i] += step * c[i]
                for k in range(count):
                    mixers[j, 1 + i, k] = memory * (mixers[j, 1 + i, k] - shrinkage * (c[i] * c[k]))
                mixers[j, 1 + i, i] += (1.0 - memory) * parameters[j, 0]
