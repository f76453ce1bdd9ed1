"""Merging of full-covariance filters, which add up their information as mixers do."""

from collections.abc import Sequence

import numpy as np

from forel.learner.full_filters import MOST, FullFilters
from forel.learner.merge_ledgers import merged_gaussian

__all__ = ["merged_full_filters"]


def merged_full_filters(
    base: FullFilters | None, shards: Sequence[tuple[FullFilters | None, FullFilters | None, int]]
) -> FullFilters | None:
    """Return the filters with what all shards have learned; None if there are too many features.

    Parameters
    ----------
    base : the common state
    shards : the state of each before and after its rows, and the number of rows

    >>> from forel.learner.filters import FullFilter
    >>> from forel.learner.rows import Rows
    >>> def learned(start, label):
    ...     filters = start.copy()
    ...     filters.progress(Rows(np.array([0, 1]), np.int32([7]), np.ones(1)), np.array([label]), np.ones(1))
    ...     return filters
    >>> base = FullFilters((FullFilter(1.0),), logistic=False, bias=False)
    >>> merged = merged_full_filters(base, [(base, learned(base, y), 1) for y in (1.0, 3.0)])
    >>> in_order = learned(learned(base, 1.0), 3.0)
    >>> [float(filters.weights_at(np.array([7]), 8)[0, 0].round(3)) for filters in (merged, in_order)]
    [1.333, 1.333]
    """
    known = [(start, end, rows) for start, end, rows in shards if start is not None and end is not None]
    if base is None or len(known) < len(shards):
        return None
    every = (base, *(end for _, end, _ in known))
    slots = np.unique(np.concatenate([one.slots for one in every]))
    if slots.size + 1 > MOST:
        return None
    slots = np.append(-1, slots)
    scales = np.max([one.scales_at(slots) for one in every], axis=0)
    active = scales > 0

    def scaled(filters: FullFilters) -> list[np.ndarray]:
        return list(filters.in_scales(slots[active], scales[active]))

    states = [(scaled(start), scaled(end), rows) for start, end, rows in known]
    merged = []
    for j, (one, state) in enumerate(zip(base.filters, scaled(base), strict=True)):
        memories = [one.memory**rows for *_, rows in states]
        merged.append(merged_gaussian(state, [(start[j], end[j]) for start, end, _ in states], memories, one.variance))
    new = FullFilters(base.filters, base.logistic, base.bias)
    new.set_scaled(slots, scales, np.array(merged))
    return new
