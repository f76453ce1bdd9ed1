"""Counting predictions, one row after the other, so that sums do not depend on how rows come in blocks."""

import numpy as np

from forel.native.compiling import kept

__all__ = ["tally"]

compiled = kept("counting", __file__)


@compiled
def tally(margins, labels, shares, importance, losses, predictions, sums, bins, reach):
    """Add rows to the sums of rows, importance, loss, label and prediction, and to the bins of their margins.

    A bin has importance, share of the class 1, and prediction. They are equal parts of [−reach, reach], with all beyond
    in the outermost; a single one is left alone.
    """
    last = bins.shape[0] - 1
    per = (last + 1) / (2 * reach)
    for r in range(np.uint64(labels.size)):
        w = importance[r]
        prediction = w * predictions[r]
        sums[0] += 1
        sums[1] += w
        sums[2] += w * losses[r]
        sums[3] += w * labels[r]
        sums[4] += prediction
        if last > 0:
            at = (margins[r] + reach) * per
            place = np.uint64(min(at, float(last)) if at > 0 else 0.0)  # of NaN too, which no memory may be asked for
            bins[place, 0] += w
            bins[place, 1] += w * shares[r]
            bins[place, 2] += prediction
