r"""Online Platt scaling: the probability of a margin m is that of $a m + b$, with (a, b) learned by Newton steps.

With p the probability of $a m + b$ before the row is seen, $x = (m, 1)$ and curvature $h = p(1 - p)$, the update is

$$H \leftarrow H + h\,x\,x^\top, \qquad (a, b) \leftarrow (a, b) - H^{-1} (p - y)\,x.$$
"""

import numpy as np

from forel.jit.compiling import cached_njit

__all__ = ["calibrate"]

compiled = cached_njit(__file__)
SLOPES, OFFSET = (0.05, 20.0), 20.0  # the range of a, which is positive to keep the order of margins; the limit of b
MARGIN_LIMIT = 30.0  # of exponentials
MIN_CURVATURE = 1e-6
SINGULAR = 1e-12  # a relative determinant, below which rounding errors dominate


@compiled
def calibrate(margins, labels, importance, state, out):
    """Write the calibrated margin of every row to ``out``, then update the state with the row.

    Parameters
    ----------
    margins, labels : of each row, with labels from 0 to 1
    importance : importance of rows; those of importance 0 or less are predicted only
    state : a, b, and the entries (0, 0), (0, 1) and (1, 1) of H
    """
    for r in range(np.uint64(margins.size)):
        x, weight = np.float64(margins[r]), np.float64(importance[r])
        margin = state[0] * x + state[1]
        out[r] = margin
        if weight <= 0:
            continue
        p = 1.0 / (1.0 + np.exp(-min(max(margin, -MARGIN_LIMIT), MARGIN_LIMIT)))
        slope, curvature = weight * (p - labels[r]), weight * max(p * (1.0 - p), MIN_CURVATURE)
        state[2] += curvature * x * x
        state[3] += curvature * x
        state[4] += curvature
        determinant = state[2] * state[4] - state[3] * state[3]
        if determinant <= SINGULAR * state[2] * state[4]:
            continue
        a = state[0] - slope * (state[4] * x - state[3]) / determinant
        b = state[1] - slope * (state[2] - state[3] * x) / determinant
        state[0], state[1] = min(max(a, SLOPES[0]), SLOPES[1]), min(max(b, -OFFSET), OFFSET)
