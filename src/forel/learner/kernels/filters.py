r"""Diagonal Gaussian filters: every weight has a mean and a variance, and learns as fast as its variance allows.

The record of a lane has the mean of the weight and the information n that rows gave about it. With the scale s of the
coordinate and the prior variance α of a weight times its scale, the variance of the weight is $V = 1/(s^2/\alpha + n)$.
The margin m of a row has the variance $S = \sum_i V_i v_i^2$. With slope g and curvature h of its loss, a round is

$$\mu_i \leftarrow \mu_i - \frac{V_i v_i g}{1 + hS}, \qquad n_i \leftarrow n_i + \frac{h v_i^2}{1 + h(S - V_i v_i^2)},$$

the exact update of a Gaussian whose off-diagonal covariances are set to 0, with the loss replaced by its quadratic
approximation at m. The weight itself is $\mu \max(0, \mu^2 - \beta V)/(\mu^2 + \beta V)$: exactly 0 where the mean is
within $\sqrt\beta$ standard errors of 0.
"""

import numpy as np

from forel.learner.kernels.reference import MAX, TINY, UNIT, curvature, inline, inline_ir
from forel.learner.kernels.stochastic_rounding import add

LARGE = np.float32(1e30)  # of ratios and curvatures, so that products of them are finite


@inline_ir
def precision(n, scale, p):
    """Return 1/V of a weight, in the unit of its coordinate."""
    return max(scale * scale * p.inverse_alpha + n, TINY)


@inline_ir
def shrunken(mean, precision, penalised, p):
    """Return the weight of a mean; that of the bias, which is not penalised, is the mean itself."""
    ratio = min(max(mean * mean * precision, TINY), LARGE)  # μ²/V
    shrinkage = penalised * p.beta
    return mean * (max(ratio - shrinkage, UNIT - UNIT) / (ratio + shrinkage))


@inline
def margin_curvature(margin, importance):
    """Return the second derivative of a row's loss at a margin."""
    return min(importance * curvature(margin), LARGE)


@inline_ir
def filter_step(mean, n, v, variance, predictive, along, curved, noise_mean, noise_n):
    """Return mean and information of a weight after a row.

    Parameters
    ----------
    v, variance : value and variance of the coordinate
    predictive, curved : variance S of the margin, and curvature h of the loss
    along : slope of the loss divided by 1 + hS
    """
    zero = v - v
    square = v * v
    move = -(variance * v) * along
    gain = square * curved / (UNIT + curved * max(predictive - variance * square, zero))
    # A sum that does not change is not rounded.
    noise_mean, noise_n = noise_mean if move != 0 else zero, noise_n if gain != 0 else zero
    return add(mean, move, noise_mean), min(add(n, gain, noise_n), MAX)
