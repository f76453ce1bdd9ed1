"""Records of many lanes as vectors of eight numbers.

The compiler processes lanes that do not fill a vector one by one. Where LANES is not a multiple of eight, the parts of
a record are copied to the row, padded to PADDED numbers each, and loops over lanes use the copies.
"""

import numpy as np

from forel.learner.kernels.coordinates import row_lanes
from forel.learner.kernels.reference import (
    FILTERS,
    FIRST_FILTER,
    LANES,
    PADDED,
    ROW_FILTERS,
    ROW_RECORD,
    UNROLLED,
    inline,
    inline_ir,
    load_lanes,
    store_lanes,
)

PADS = PADDED > LANES


@inline_ir
def lane_count(parameters):
    """Return PADDED; as a variable where loops must not be unrolled before they are vectorized."""
    if UNROLLED:
        return PADDED
    return row_lanes(parameters)


@inline_ir
def filter_lane(row, k):
    """Return whether lane k is a filter; loops of variable length that compare k itself would not vectorize."""
    if UNROLLED or FILTERS == 0:
        return k >= FIRST_FILTER
    return row[ROW_FILTERS + k] > 0


@inline
def load_parts(w, at, parts):
    """Copy the first ``parts`` parts of the record at ``at`` to the row, if lanes are padded."""
    if PADS:
        for part in range(parts):
            load_lanes(w.state, at + np.uint64(part * LANES), w.row, np.uint64(ROW_RECORD + part * PADDED), LANES)


@inline
def store_parts(w, at, parts):
    """Copy the first ``parts`` parts of a record back from the row, if lanes are padded."""
    if PADS:
        for part in range(parts):
            store_lanes(w.row, np.uint64(ROW_RECORD + part * PADDED), w.state, at + np.uint64(part * LANES), LANES)


@inline_ir
def part_of(w, at, part, k):
    """Return a part of the record at ``at`` in lane k."""
    if PADS:
        return w.row[ROW_RECORD + part * PADDED + k]
    return w.state[at + np.uint64(part * LANES + k)]


@inline_ir
def set_part(w, at, part, k, number):
    """Set a part of the record at ``at`` in lane k."""
    if PADS:
        w.row[ROW_RECORD + part * PADDED + k] = number
    else:
        w.state[at + np.uint64(part * LANES + k)] = number
