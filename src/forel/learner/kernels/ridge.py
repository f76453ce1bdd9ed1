r"""Mixers of squared loss: a prediction $v \cdot x$ of the experts' predictions x, with v learned by ridge regression.

A mixer is a Gaussian filter with all covariances C of its few weights. Predictions are clipped to the range of labels
seen before, and relative to its middle and length. With $c = Cx$ and the precision h of a row, the inverse of the
variance of the mixer's residuals so far, a row with residual e is

$$v \leftarrow v + \frac{h\,c\,e}{1 + h\,x \cdot c}, \qquad C \leftarrow C - \frac{h\,c\,c^\top}{1 + h\,x \cdot c},$$

after which C is moved toward its prior by what the mixer forgets, so that it never exceeds the prior. Nothing depends
on the unit of the labels, nor on their level while the range is the same.
"""

import numpy as np

from forel.jit import njit

__all__ = ["CONSTANT", "mix"]

compiled = njit()
CONSTANT = 0.3  # one more input, so that the mean prediction is right
HALF = 0.5  # the range of inputs on both sides of the middle
ROUNDING = 1e-12  # of the prior variance: a variance below it may be rounding alone, and even negative
ROWS = 1.0  # with a residual as large as the range of labels, before the first row
HEAVIEST = 1e30  # importance of a row, and sum of importances, so that precisions are finite
MOST_PRECISE = 1e9  # precision of a row, so that what is left of the prior variance is not rounding alone


@compiled
def mix(margins, labels, importance, lows, highs, parameters, mixers, residuals, out):
    """Write the prediction of every mixer, and then let it learn the row.

    Parameters
    ----------
    margins : of the experts, a row for each example
    importance : of rows; those of negative importance are predicted only
    lows, highs : the range of labels before each row
    parameters : prior variance and memory of each mixer
    mixers : of each mixer a row v, and a row of C for each expert and for the constant
    residuals : of each mixer the sum of squared residuals in units of a range, that of importances, and that range
    """
    rows, experts = margins.shape
    count = experts + 1
    x, c = np.empty(count), np.empty(count)
    x[experts] = CONSTANT
    for r in range(rows):
        weight, low, high = min(np.float64(importance[r]), HEAVIEST), lows[r], highs[r]
        span = high - low
        if not span > 0:
            for j in range(mixers.shape[0]):
                out[r, j] = low
            continue
        square, middle = CONSTANT * CONSTANT, low + span / 2
        for k in range(experts):
            x[k] = min(max((np.float64(margins[r, k]) - middle) / span, -HALF), HALF)
            square += x[k] * x[k]
        y = min(max((np.float64(labels[r]) - middle) / span, -HALF - 1.0), HALF + 1.0)
        for j in range(mixers.shape[0]):
            mixed, spread = 0.0, 0.0
            for k in range(count):
                mixed += mixers[j, 0, k] * x[k]
            mixed = min(max(mixed, -HALF), HALF)
            out[r, j] = min(max(middle + mixed * span, low), high)
            if weight <= 0:
                continue
            for i in range(count):
                c[i] = 0.0
                for k in range(count):
                    c[i] += mixers[j, 1 + i, k] * x[k]
                spread += c[i] * x[i]
            prior, memory = parameters[j, 0], parameters[j, 1]
            shrunk = residuals[j, 2] / span
            known = residuals[j, 0] * shrunk * shrunk
            precision = min(weight * (residuals[j, 1] + ROWS) / (known + ROWS), MOST_PRECISE)
            damping = 1.0 + precision * max(spread, ROUNDING * prior * square)
            error = min(max(y - mixed, -1.0), 1.0)
            residuals[j, 0] = memory * known + weight * error * error
            residuals[j, 1] = min(memory * residuals[j, 1] + weight, HEAVIEST)
            residuals[j, 2] = span
            step, gain = precision * error / damping, precision / damping
            for i in range(count):
                mixers[j, 0, i] += step * c[i]
                for k in range(count):
                    mixers[j, 1 + i, k] = memory * (mixers[j, 1 + i, k] - gain * (c[i] * c[k]))
                mixers[j, 1 + i, i] += (1.0 - memory) * prior
