"""Progressive metrics, summed one row at a time, so that sums do not depend on the sizes of blocks."""

import numpy as np

from forel.jit import njit
from forel.learner.kernels.elementary import exp_minus, log1p

__all__ = ["log_losses", "tally"]

compiled = njit()


@compiled
def log_losses(margins, labels, losses, predictions):
    """Write the log-loss of each row and its probability of label 1, from one exponential."""
    for r in range(np.uint64(labels.size)):
        m, y = np.float64(margins[r]), np.float64(labels[r])
        e = exp_minus(abs(m))
        losses[r] = y * max(-m, 0.0) + (1.0 - y) * max(m, 0.0) + log1p(e)
        predictions[r] = (e if m < 0 else 1.0) / (1.0 + e)


@compiled
def tally(margins, labels, positives, importance, losses, predictions, sums, bins, reach):
    """Add rows to the sums of rows, importance, loss, label and prediction, and to the histogram of margins.

    Rows of importance 0 do not count. A bin has the sums of importance, positive labels and predictions. Bins divide
    [−reach, reach] evenly; the outermost also count margins outside. A histogram with a single bin is not updated.
    """
    last = bins.shape[0] - 1
    bins_per_unit = (last + 1) / (2 * reach)
    rows, weight, loss, label, predicted = sums[0], sums[1], sums[2], sums[3], sums[4]
    for r in range(np.uint64(labels.size)):
        w = np.float64(importance[r])
        rows += w > 0
        weight += w
        loss += w * losses[r]
        label += w * labels[r]
        predicted += w * predictions[r]
    sums[0], sums[1], sums[2], sums[3], sums[4] = rows, weight, loss, label, predicted
    if last > 0:
        # Bins are seldom in the cache: with little other work in a loop, more of them are fetched at the same time.
        found = np.empty(labels.size, np.int32)
        for r in range(np.uint64(labels.size)):
            position = (margins[r] + reach) * bins_per_unit
            found[r] = np.int32(min(position, float(last)) if position > 0 else 0.0)  # NaN must not become an index
        for r in range(np.uint64(labels.size)):
            b, w = np.uint64(found[r]), np.float64(importance[r])
            bins[b, 0] += w
            bins[b, 1] += w * positives[r]
            bins[b, 2] += w * predictions[r]
