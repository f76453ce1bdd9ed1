"""Progressive metrics, summed one row at a time, so that sums do not depend on the sizes of blocks."""

import numpy as np

from forel.jit.compiling import cached_njit
from forel.learner.kernels import elementary
from forel.learner.kernels.elementary import decay, log1p

__all__ = ["log_losses", "tally"]

compiled = cached_njit(__file__, elementary.__file__)


@compiled
def log_losses(margins, labels, losses, predictions):
    """Write each row's log-loss and probability of a one, from one exponential."""
    for r in range(np.uint64(labels.size)):
        m, y = np.float64(margins[r]), np.float64(labels[r])
        e = decay(abs(m))
        losses[r] = y * max(-m, 0.0) + (1.0 - y) * max(m, 0.0) + log1p(e)
        predictions[r] = (e if m < 0 else 1.0) / (1.0 + e)


@compiled
def tally(margins, labels, shares, importance, losses, predictions, sums, bins, reach):
    """Add rows to the sums of rows, importance, loss, label and prediction, and to the bins of their margins.

    A bin has the sums of importance, positive labels and predictions. Bins divide [−reach, reach] evenly; margins
    outside are in the outermost. A single bin is not used.
    """
    last = bins.shape[0] - 1
    per = (last + 1) / (2 * reach)
    rows, weight, lost, ones, predicted = sums[0], sums[1], sums[2], sums[3], sums[4]
    for r in range(np.uint64(labels.size)):
        w = np.float64(importance[r])
        prediction = w * predictions[r]
        rows += 1
        weight += w
        lost += w * losses[r]
        ones += w * labels[r]
        predicted += prediction
        if last > 0:
            at = (margins[r] + reach) * per
            place = np.uint64(min(at, float(last)) if at > 0 else 0.0)  # NaN must not become an index
            bins[place, 0] += w
            bins[place, 1] += w * shares[r]
            bins[place, 2] += prediction
    sums[0], sums[1], sums[2], sums[3], sums[4] = rows, weight, lost, ones, predicted
