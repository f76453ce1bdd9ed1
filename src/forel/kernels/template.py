"""The loops over rows, as source into which pieces are put.

It is text because numba's disk cache needs a module: a closure over compiled functions is compiled in every process.
Lines that only some recipes need are marked with a name and left out otherwise. What a row does to its coordinates is
in ``one_lane`` or in ``many_lanes``. Arrays are flat and the number of lanes is a literal, so that the compiler sees
which parts of an array cannot overlap.

The state ``zn`` has PARTS numbers a coordinate and lane: z and n, with a certificate g_{1:t}, and Σσx where z is a
point. Records are WIDTH numbers apart; in one lane the fourth number may be the scale of a scale-free rate, which is in
``reach`` otherwise. The ``desk`` is what the coordinates of the present row are worked on with. The ``row`` has six
numbers a lane: margin, slope of the step, slope of the loss, 1/η_{t−1}, 1/η_t, and Σ g²/S + σx² where z is a point. The
``totals`` are four doubles a lane: loss, Σ g·x, half of the former over all rows, and the sum of ticks. Lanes of
several settings and classes have the settings of one class next to each other.
"""

__all__ = ["TEMPLATE"]

TEMPLATE = '''\
"""Composed by forel; safe to delete."""
import numpy as np
from numba import njit
{imports}

FLAGS = {flags}
HOW = {"error_model": "numpy", "nogil": True, "no_cfunc_wrapper": True}
entry = njit(cache=True, fastmath=FLAGS, **HOW)
# A row takes less time than giving the interpreter's lock to another thread and waiting to get it back.
one_row = njit(cache=True, fastmath=FLAGS, **{**HOW, "nogil": False})
# What follows is not to be called from Python, for which much would have to be compiled.
inline = njit(fastmath=FLAGS, forceinline=True, no_cpython_wrapper=True, **HOW)
loose = njit(fastmath=FLAGS | {"reassoc"}, forceinline=True, no_cpython_wrapper=True, **HOW)  # sums in any order
pasted = njit(fastmath=FLAGS, inline="always", **HOW)  # as if written there
L, GROUPS, PARTS = {lanes}, {groups}, {parts}
ZERO, ONE, TWO, THREE = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3)
WIDTH, EXTRA, AHEAD = np.uint64({width}), np.uint64({bias}), np.uint64({ahead})
BOUND, LARGEST, TINY = {real}({limit}), {largest}, np.float32(1e-30)


#replay @inline
#replay def replayed(z, since, until, p):
#replay     """Return a dual state after rounds without a gradient, where strength and penalty grew in each."""
#replay     for s in range(since, until):
#replay         now = clock(s, p)
#replay         x = weight(z, now, total(s), p)
#replay         if x == 0:
#replay             break
#replay         z -= (clock(s + 1, p) - now) * x
#replay     return z


@inline
def final(zn):
    """Return the last coordinate, which is the bias."""
    return np.uint64(zn.shape[0]) // WIDTH - ONE


@inline
def distance(indices, hi):
    """Return how far ahead of a row's coordinates, eight at a time, others are asked for; 0 where too few follow."""
    return AHEAD if hi + AHEAD + np.uint64(8) <= np.uint64(indices.shape[0]) else ZERO


@inline
def coming(zn, reach, indices, j):
    """Ask for the j-th coordinate, which will be needed soon."""
    q = np.uint64(indices[j])
    ahead = q * WIDTH
    {prefetch}
    #apart prefetch(reach, q)


@pasted
def stepped(z, n, x, root, g, h, s, now, next, pulled, p, rz, rn):
    """Return z and n after a step along g, with h the slope of the loss, and what certificates add up."""
    nothing = x - x
    g = min(max(g, -BOUND), BOUND)
    #implicit h = min(max(h, -BOUND), BOUND)
    #explicit h = g
    # Where there is nothing to add there is nothing to round.
    rz, rn = (rz, rn) if h != 0 else (nothing, nothing)
    # From n as it is kept: what rounding does to one round's strength, the next one's takes back.
    kept = grown(n, h * h, next, rn)
    after_root = measure(kept)
    added = gain(root, after_root, s, now, next, p)
    after = strength(after_root, s, next, p)
    spent = nothing
    #points spent = h * h / max(after, TINY) + added * x * x
    return step(z, x, g, added, after, pulled, p, rz), kept, h, rz, rn, added, spent


{coordinates}


@pasted
def scratch(lanes, longest):
    """Return the lanes' parameters, a row and a desk as memory of one's own, to be released."""
    params, row = owned(lanes, np.uint64(lanes.shape[0])), owned(lanes, np.uint64(6 * L))
    desk = owned(lanes, sized(longest))
    for k in range(5 * L):
        params[k] = lanes[k]
    furnish(desk)
    return params, row, desk


@pasted
def cleared(params, row, desk):
    """Give what ``scratch`` took back."""
    release(params)
    release(row)
    release(desk)


@inline
def begin(row, params, t, real):
    """Clear the row, and say how strong this round is where that depends on nothing else."""
    for k in range(L):
        p = (params[k], params[L + k], params[2 * L + k], params[3 * L + k], params[4 * L + k])
        row[k] = real(0)
        row[5 * L + k] = real(0)
        #timed row[3 * L + k] = real(clock(t, p))
        #timed row[4 * L + k] = real(clock(t + 1, p))


@inline
def bounded(row, real):
    """Keep margins that overflowed finite."""
    largest = real(LARGEST)
    for k in range(L):
        m = row[k]
        row[k] = min(max(m, -largest), largest) if m == m else real(0)


#drift @inline
#drift def tock(row, totals, params):
#drift     """Add this round to the sums of ticks, after weights were recalled and before they are changed."""
#drift     for k in range(L):
#drift         p = (params[k], params[L + k], params[2 * L + k], params[3 * L + k], params[4 * L + k])
#drift         totals[3 * L + k] += tick(np.float64(row[4 * L + k]), p)


@entry
def learn(
    indptr, indices, values, labels, importance, zn, reach, last, mark, t, lanes, shape, longest, totals, out
):
    """Predict, suffer, and learn from each row in turn; return the number of rounds so far.

    Margins before learning are written to ``out``, unless it is empty. A row whose importance is negative is held out:
    predicted, and no round.
    """
    rows = labels.shape[0]
    real = zn.dtype.type
    zero, one = real(0), real(1)
    params, row, desk = scratch(lanes, longest)
    for r in range(rows):
        lo, hi = np.uint64(indptr[r]), np.uint64(indptr[r + 1])
        held, pulled = real(total(t)), real(now_weight(t + 1))
        scale = importance[r]
        begin(row, params, t, real)
        recall(STATE, indices, values, lo, hi, EXTRA, held)
        bounded(row, real)
        if out.shape[0] > 0:
            for k in range(L):
                out[r * L + k] = row[k]
        if scale < zero:
            continue
        #drift tock(row, totals, params)
        {loss}
        rz, rn = zero, zero
        #dither rz, rn = noise(t)
        absorb(STATE, indices, values, lo, hi, EXTRA, pulled, rz, rn)
        #proof for k in range(L):
        #proof     totals[L + k] += np.float64(row[2 * L + k]) * np.float64(row[k])
        #points for k in range(L):
        #points     totals[2 * L + k] += 0.5 * np.float64(row[5 * L + k])
        t += 1
    cleared(params, row, desk)
    return t


@entry
def feed(indptr, indices, gradients, zn, reach, last, mark, t, lanes, longest, totals):
    """Learn from gradients as they are, a round a row; ``gradients`` has L numbers for each index."""
    rows = indptr.shape[0] - 1
    real = zn.dtype.type
    zero, one = real(0), real(1)
    params, row, desk = scratch(lanes, longest)
    values = np.ones(indices.shape[0], lanes.dtype)
    for r in range(rows):
        lo, hi = np.uint64(indptr[r]), np.uint64(indptr[r + 1])
        held, pulled = real(total(t)), real(now_weight(t + 1))
        begin(row, params, t, real)
        recall(STATE, indices, values, lo, hi, ZERO, held)
        #drift tock(row, totals, params)
        rz, rn = zero, zero
        #dither rz, rn = noise(t)
        for i in range(hi - lo):
            for k in range(L):
                row[L + k] = row[2 * L + k] = gradients[(lo + i) * np.uint64(L) + np.uint64(k)]
                #proof totals[L + k] += np.float64(row[L + k]) * np.float64(desk[cell(i, k) + X])
            absorb_one(STATE, np.uint64(indices[lo + i]), i, one, one, one, pulled, rz, rn)
        #points for k in range(L):
        #points     totals[2 * L + k] += 0.5 * np.float64(row[5 * L + k])
        t += 1
    cleared(params, row, desk)
    return t


@entry
def predict(indptr, indices, values, zn, reach, last, mark, t, lanes, totals, out):
    """Write the margins of every row and lane, learning nothing."""
    rows = indptr.shape[0] - 1
    real = zn.dtype.type
    longest = 0
    for r in range(rows):
        longest = max(longest, indptr[r + 1] - indptr[r])
    params, row, desk = scratch(lanes, longest + 1)
    held = real(total(t))
    for r in range(rows):
        lo, hi = np.uint64(indptr[r]), np.uint64(indptr[r + 1])
        begin(row, params, t, real)
        recall(STATE, indices, values, lo, hi, EXTRA, held)
        bounded(row, real)
        for k in range(L):
            out[r * L + k] = row[k]
    cleared(params, row, desk)


@entry
def gather(chosen, zn, reach, last, mark, t, lanes, totals, out):
    """Write the weights of the chosen coordinates in every lane."""
    bias = final(zn)
    held, real = zn.dtype.type(total(t)), zn.dtype.type
    nothing = np.zeros(64, lanes.dtype)
    params, row, desk = scratch(lanes, 65)
    begin(row, params, t, real)
    for start in range(0, chosen.shape[0], 64):
        part = chosen[start : start + 64]
        size = np.uint64(part.shape[0])
        recall(STATE, part, nothing, ZERO, size, EXTRA, held)
        for i in range(size):
            place = size if EXTRA > ZERO and np.uint64(part[i]) == bias else i  # the bias comes last, free of penalties
            for k in range(L):
                out[(start + np.int64(i)) * L + k] = desk[cell(place, k) + X]
    cleared(params, row, desk)


@one_row
def predict_one(block, t):
    """Write the margins of one row after t rounds, and return the first of them.

    All arrays lie where the block says: address and length of each. Ends and indices are in the places; label,
    importance, shape and values in the numbers.
    """
    places, numbers = carray(pointer(block[0]), (block[1],), np.int64), carray(pointer(block[2]), (block[3],), {real})
    zn, reach = carray(pointer(block[4]), (block[5],), {real}), carray(pointer(block[6]), (block[7],), {real})
    last, mark = carray(pointer(block[8]), (block[9],), np.int64), carray(pointer(block[10]), (block[11],), np.float64)
    lanes = carray(pointer(block[12]), (block[13],), {real})
    totals = carray(pointer(block[14]), (block[15],), np.float64)
    out = carray(pointer(block[16]), (block[17],), {real})
    predict(places[:2], places[2:], numbers[3:], zn, reach, last, mark, t, lanes, totals, out)
    return np.float64(out[0])


@one_row
def learn_one(block, t, target):
    """Learn from one row likewise, with a label that is written to its place, and return the number of rounds."""
    places, numbers = carray(pointer(block[0]), (block[1],), np.int64), carray(pointer(block[2]), (block[3],), {real})
    zn, reach = carray(pointer(block[4]), (block[5],), {real}), carray(pointer(block[6]), (block[7],), {real})
    last, mark = carray(pointer(block[8]), (block[9],), np.int64), carray(pointer(block[10]), (block[11],), np.float64)
    lanes = carray(pointer(block[12]), (block[13],), {real})
    totals = carray(pointer(block[14]), (block[15],), np.float64)
    numbers[0] = target
    ends, indices, label, importance, values = places[:2], places[2:], numbers[:1], numbers[1:2], numbers[3:]
    shape, longest = numbers[2], places[1] + 1
    return learn(
        ends, indices, values, label, importance, zn, reach, last, mark, t, lanes, shape, longest, totals, values[:0]
    )
'''
