"""Margins of rows from a table of weights, with the arithmetic of the kernels, and so with the same rounding."""

import numpy as np

from forel.jit.compiling import cached_njit
from forel.learner.kernels.spec import FASTMATH

__all__ = ["table_margins"]

compiled = cached_njit(__file__, fastmath=frozenset(FASTMATH))


@compiled
def table_margins(indptr, indices, values, table, bias, scales, least, limit, out):
    """Write the margins of rows, clipped to ±limit, and return how many values are above the scale of their feature.

    ``least`` is the smallest of the scales. ``table`` and ``bias`` have a multiple of eight columns, those after the
    columns of ``out`` being 0, so that loops over columns have no remainders.
    """
    width, above = np.uint64(bias.size & ~7), 0
    weights, sums = table.ravel(), np.zeros_like(bias)
    for r in range(out.shape[0]):
        for k in range(width):
            sums[k] = 0
        for j in range(indptr[r], indptr[r + 1]):
            v, at = values[j], np.uint64(indices[j]) * width
            if abs(v) > least and abs(v) > scales[indices[j]]:
                above += 1
            for k in range(width):
                sums[k] += weights[at + k] * v
        for k in range(out.shape[1]):
            margin = sums[k] + bias[k]
            out[r, k] = min(max(margin, -limit), limit) if margin == margin else 0
    return above
