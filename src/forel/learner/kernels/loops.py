"""The loops over rows: gather the row's coordinates, weights, margin, loss and slope, steps, scatter.

Arrays are flat and the number of lanes is a constant, so that the compiler can tell which parts of an array overlap.

``learn_one`` and ``predict_one`` take all arrays by their addresses, as passing a dozen arrays from Python takes longer
than a short row. ``arrays`` has the address and the length of each array, in this order: places, numbers, state,
scales, last_round, parameters, totals, out; and the key of the rounding noise last. Places are the start and the end of
the row and its indices; numbers are label, importance, shape parameter of the loss, and values.
"""

import numpy as np

from forel.learner.kernels.certificate_terms import (
    add_concavity,
    add_to_certificate,
    add_to_histogram,
    sample_gradient_squares,
)
from forel.learner.kernels.coordinates import bias_coordinate, certified_lane, row_lanes, stored_lanes
from forel.learner.kernels.many_lanes import (
    gather_row,
    scratch_size,
    step_row,
    weight_at,
)
from forel.learner.kernels.reference import (
    BIAS,
    CERTIFIED,
    CERTIFIED_LANES,
    CONCAVE,
    FILTERS,
    FIRST_FILTER,
    HISTOGRAM,
    LANES,
    LIMIT,
    PADDED,
    PARAMETERS,
    REAL,
    REAL_ONE,
    ROW_BOUND_TERMS,
    ROW_CLIPPED,
    ROW_FILTERS,
    ROW_SIZE,
    ROW_SLOPE,
    STOCHASTIC_ROUNDING,
    SUM_LIMIT,
    SUM_LOSS,
    USER_LOSS,
    ZERO,
    Work,
    allocate,
    carray,
    entry,
    entry_with_gil,
    inline,
    inline_ir,
    pointer,
    release,
)
from forel.learner.kernels.row_losses import row_losses
from forel.learner.kernels.stochastic_rounding import noise_of
from forel.learner.kernels.updates import penalty_total, penalty_weight


@inline_ir
def allocate_work(state, scales, last_round, totals, parameters, longest):
    """Allocate the work arrays of the kernel and return them with the arrays of the learner."""
    own_parameters = allocate(parameters, np.uint64(parameters.shape[0] // LANES * PADDED))
    row, sums = allocate(parameters, np.uint64(ROW_SIZE)), allocate(totals, np.uint64(3 * PADDED))
    scratch = allocate(parameters, scratch_size(longest))
    for j in range(PARAMETERS):
        for k in range(PADDED):  # padding has the parameters of the last lane, so that its numbers are in range, too
            own_parameters[j * PADDED + k] = parameters[j * LANES + min(k, LANES - 1)]
    w = Work(state, scales, last_round, totals, own_parameters, row, scratch, sums)
    if FILTERS > 0:
        for k in range(FIRST_FILTER, LANES):
            row[ROW_FILTERS + k] = REAL_ONE
    return w


@inline_ir
def release_work(w):
    """Free the arrays that ``allocate_work`` allocated."""
    release(w.parameters)
    release(w.row)
    release(w.scratch)
    release(w.sums)


@inline
def begin_row(w):
    """Reset the values of the row."""
    row = w.row
    for k in range(row_lanes(w.parameters)):
        row[k] = REAL(0)
        row[ROW_BOUND_TERMS + k] = REAL(0)
        row[ROW_CLIPPED + k] = REAL(0)
        w.sums[k] = 0.0
        w.sums[PADDED + k] = 0.0
        w.sums[2 * PADDED + k] = 0.0


@inline
def clip_margins(w):
    """Clip margins that overflowed, and mark their rows as clipped."""
    row, inside = w.row, True
    for k in range(row_lanes(w.parameters)):
        inside &= abs(row[k]) <= LIMIT
    if not inside:  # a well-predicted branch takes less time than clipping
        for k in range(LANES):
            row[ROW_CLIPPED + k] = REAL(0) if abs(row[k]) <= LIMIT else REAL_ONE
            row[k] = clipped(row[k])


@inline
def clipped(number):
    """Return a number within ±LIMIT, 0 for NaN."""
    return min(max(number, -LIMIT), LIMIT) if number == number else REAL(0)


@inline
def add_losses(w):
    """Add losses to the totals and clip slopes; do nothing and return False if a user-defined loss is not finite."""
    row, sums = w.row, w.sums
    if USER_LOSS:
        for k in range(LANES):
            if not (np.isfinite(sums[PADDED + k]) and np.isfinite(row[ROW_SLOPE + k])):
                return False
    inside = True
    for k in range(row_lanes(w.parameters)):
        inside &= (abs(row[ROW_SLOPE + k]) <= LIMIT) & (sums[PADDED + k] <= SUM_LIMIT)
    if not inside:
        for k in range(LANES):
            fits = abs(row[ROW_SLOPE + k]) <= LIMIT and sums[PADDED + k] <= SUM_LIMIT
            row[ROW_CLIPPED + k] = row[ROW_CLIPPED + k] if fits else REAL_ONE
            row[ROW_SLOPE + k] = clipped(row[ROW_SLOPE + k])
            sums[PADDED + k] = sums[PADDED + k] if sums[PADDED + k] <= SUM_LIMIT else SUM_LIMIT
    for k in range(stored_lanes(w.parameters)):
        w.totals[SUM_LOSS + k] += sums[PADDED + k]
    return True


@inline
def rounding_noise(t, key):
    """Return the noise of round t for z and for n."""
    if STOCHASTIC_ROUNDING:
        return noise_of(t, key)
    return REAL(0), REAL(0)


@inline
def add_row_to_certificate(w, label, importance):
    """Add slope times margin, and the terms of the dual value of a row, to the sums of certificates."""
    for m in range(CERTIFIED_LANES):
        k = certified_lane(m)
        w.sums[PADDED + k] = np.float64(w.row[ROW_SLOPE + k]) * np.float64(w.row[k])
    add_to_certificate(w)
    if HISTOGRAM:
        add_to_histogram(w, label, importance)
    if CONCAVE:
        add_concavity(w, label, importance)


@inline
def write_weights(w, indices, lo, hi, out):
    """Write the weights of the row's indices."""
    bias = bias_coordinate(w.state)
    for i in range(hi - lo):
        # The bias is the last coordinate of every row, and is not penalized there.
        place = hi - lo if BIAS > ZERO and np.uint64(indices[lo + i]) == bias else i
        for k in range(LANES):
            out[(lo + i) * np.uint64(LANES) + np.uint64(k)] = weight_at(w, np.uint64(indices[lo + i]), place, k)


@entry
def learn(
    indptr, indices, values, labels, importance, state, scales, last_round, t, key, parameters, shape,
    longest, totals, out,
):  # fmt: skip
    """Predict each row in turn, then learn from it; return the number of rows.

    Margins before learning are written to ``out``, unless it is empty. A row of negative importance is held out: it is
    predicted and is not a round. Learning stops at a row whose user-defined loss is not finite.
    """
    w = allocate_work(state, scales, last_round, totals, parameters, longest)
    done = labels.shape[0]
    for r in range(labels.shape[0]):
        lo, hi = np.uint64(indptr[r]), np.uint64(indptr[r + 1])
        penalty_sum, penalty = REAL(penalty_total(t)), REAL(penalty_weight(t + 1))
        begin_row(w)
        gather_row(w, t, indices, values, lo, hi, BIAS, penalty_sum, importance[r] < REAL(0))
        clip_margins(w)
        if out.shape[0] > 0:
            for k in range(stored_lanes(w.parameters)):
                out[r * LANES + k] = w.row[k]
        if importance[r] < REAL(0):
            continue
        row_losses(w, labels[r], importance[r], shape)
        if not add_losses(w):
            done = r
            break
        noise_z, noise_n = rounding_noise(t, key)
        step_row(w, t, indices, values, lo, hi, BIAS, penalty, noise_z, noise_n)
        if CERTIFIED:
            sample_gradient_squares(w, t, indices, lo, hi, BIAS, key)
            add_row_to_certificate(w, labels[r], importance[r])
        t += 1
    release_work(w)
    return done


@entry
def score(indptr, indices, values, state, scales, last_round, t, key, parameters, totals, of_weights, out):
    """Write the margins of every row and lane, or the weights of every index."""
    longest = 0
    for r in range(indptr.shape[0] - 1):
        longest = max(longest, indptr[r + 1] - indptr[r])
    w = allocate_work(state, scales, last_round, totals, parameters, longest + 1)
    penalty_sum = REAL(penalty_total(t))
    for r in range(indptr.shape[0] - 1):
        lo, hi = np.uint64(indptr[r]), np.uint64(indptr[r + 1])
        begin_row(w)
        gather_row(w, t, indices, values, lo, hi, BIAS, penalty_sum, True)
        if of_weights:
            write_weights(w, indices, lo, hi, out)
        else:
            clip_margins(w)
            for k in range(stored_lanes(w.parameters)):
                out[r * LANES + k] = w.row[k]
    release_work(w)


@inline_ir
def reals(arrays, k):
    """Return the k-th array of ``arrays``, of the type of the state."""
    return carray(pointer(arrays[2 * k]), (arrays[2 * k + 1],), REAL)


@inline_ir
def doubles(arrays, k):
    """Return the k-th array of ``arrays``, of float64."""
    return carray(pointer(arrays[2 * k]), (arrays[2 * k + 1],), np.float64)


@inline_ir
def integers(arrays, k):
    """Return the k-th array of ``arrays``, of int64."""
    return carray(pointer(arrays[2 * k]), (arrays[2 * k + 1],), np.int64)


@entry_with_gil
def predict_one(arrays, t):
    """Write the margins of a row after t rounds and return the first of them."""
    places, values, out = integers(arrays, 0), reals(arrays, 1)[3:], reals(arrays, 7)
    state, scales, last_round = reals(arrays, 2), reals(arrays, 3), integers(arrays, 4)
    score(
        places[:2], places[2:], values, state, scales, last_round, t, arrays[16], reals(arrays, 5),
        doubles(arrays, 6), False, out,
    )  # fmt: skip
    return float(out[0])


@entry_with_gil
def learn_one(arrays, t, label):
    """Learn from a row and its label, and write its margins before; return 1, or 0 if its loss is not finite."""
    places, numbers = integers(arrays, 0), reals(arrays, 1)
    state, scales, last_round = reals(arrays, 2), reals(arrays, 3), integers(arrays, 4)
    numbers[0] = label
    values = numbers[3:]
    return learn(
        places[:2], places[2:], values, numbers[:1], numbers[1:2], state, scales, last_round, t,
        arrays[16], reals(arrays, 5), numbers[2], places[1] + 1, doubles(arrays, 6), reals(arrays, 7),
    )  # fmt: skip
