r"""Diagonal Gaussian filters: every weight has a mean and a variance, and its learning rate is its variance.

The record of a lane has the mean of the weight and the information n that it got from rows. With the scale s of the
coordinate and the prior variance α of a weight times its scale, the variance of the weight is $V = 1/(s^2/\alpha + n)$.
The margin m of a row has the variance $S = \sum_i V_i v_i^2$. With slope g and curvature h of its loss, the update is

$$\mu_i \leftarrow \mu_i - \frac{V_i v_i g}{1 + hS}, \qquad n_i \leftarrow n_i + \frac{h v_i^2}{1 + h(S - V_i v_i^2)},$$

the exact update of a Gaussian whose off-diagonal covariances are set to 0, with the loss replaced by its quadratic
approximation at m. A filter that forgets multiplies n of the row's coordinates by its memory before the row is added.
The weight itself is $\mu \max(0, \mu^2 - \beta V)/(\mu^2 + \beta V)$: exactly 0 where the mean is within
$\sqrt\beta$ standard errors of 0.
"""

import numpy as np

from forel.learner.kernels.reference import MAX, REAL_ONE, REAL_ZERO, TINY, curvature, inline, inline_ir
from forel.learner.kernels.stochastic_rounding import add

RATIO_LIMIT = np.float32(1e30)  # of ratios and curvatures, so that their products are finite


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
