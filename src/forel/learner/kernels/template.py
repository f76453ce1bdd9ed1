"""The loops over rows, as source into which pieces are put.

It is text because numba's disk cache needs a module: a closure over compiled functions is compiled in every process.
Lines that only some recipes need are marked with a name and left out otherwise. What a row does to its coordinates is
in ``one_lane`` or in ``many_lanes``. Arrays are flat and the number of lanes is a literal, so that the compiler sees
which parts of an array cannot overlap.

The state ``zn`` has PARTS numbers a coordinate and lane: z and n, with a certificate g_{1:t}, and Σσx where z is a
point; with a scale-free rate in units of the coordinate's scale, as ``units`` tells. Records are WIDTH numbers apart;
in one lane the fourth number may be the scale, which is in ``reach`` otherwise. The ``desk`` is what the coordinates of
the present row are worked on with. The ``row`` has seven numbers a lane: margin, slope of the step, slope of the loss,
1/η_{t−1}, 1/η_t, Σ g²/S + σx² where z is a point, and the largest |g|, or LARGEST where something else was clipped. The
``squares`` are two doubles a lane: a sample of the row's Σ G², with G = g_{1:t} after the step, and its loss, later its
g·x. The ``totals`` are six doubles a lane: loss, Σ g·x, half of Σ g²/S + σx² over all rows, the sum of ticks, ΣΣ G²
over all rows, and how many rows were clipped. Lanes of several settings and classes have the settings of one class next
to each other. The ``key`` is what the noise of rounding depends on besides the round.
"""

__all__ = ["TEMPLATE"]

TEMPLATE = '''\
"""Composed by forel; safe to delete."""
import numpy as np
from numba import njit
{imports}

FLAGS = {flags}
HOW = {"error_model": "numpy", "nogil": True, "no_cfunc_wrapper": True}
entry = kept(fastmath=FLAGS, **HOW)
# A row takes less time than giving the interpreter's lock to another thread and waiting to get it back.
one_row = kept(fastmath=FLAGS, **{**HOW, "nogil": False})
# What follows is not to be called from Python, for which much would have to be compiled.
inline = njit(fastmath=FLAGS, forceinline=True, no_cpython_wrapper=True, **HOW)
loose = njit(fastmath=FLAGS | {"reassoc"}, forceinline=True, no_cpython_wrapper=True, **HOW)  # sums in any order
pasted = njit(fastmath=FLAGS, inline="always", **HOW)  # as if written there
L, GROUPS, PARTS = {lanes}, {groups}, {parts}
ZERO, ONE, TWO, THREE = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3)
WIDTH, EXTRA, AHEAD = np.uint64({width}), np.uint64({bias}), np.uint64({ahead})
BOUND, LARGEST, TINY = {real}({limit}), {real}({largest}), np.float32(1e-30)
FULL, SINGLE, VAST = np.finfo({real}).max, {real}(1), 1e290


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


@inline
def within(x):
    """Return a number that may have overflowed, as one of its type's range."""
    return min(max(x, -FULL), FULL)


@inline
def scaled(p, u):
    """Return a lane's parameters in units of a coordinate, finite so that none of them times 0 is NaN."""
    #see w = inverse(u)
    #see radius = min(p[4], FULL * min(w, SINGLE)) * u
    #see p = (p[0], p[1], min(p[2] * w, FULL), min(p[3] * w * w, FULL), radius)
    return p


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
    # Strengths that end at the range's are strengths as well.
    kept = min(grown(n, h * h, next, rn), FULL)
    after_root = measure(kept)
    added = gain(root, after_root, s, now, next, p)
    after = strength(after_root, s, next, p)
    spent = nothing
    #points spent = h * h / max(after, TINY) + added * x * x
    return step(z, x, g, added, after, pulled, p, rz), kept, h, rz, rn, added, spent


{coordinates}


@pasted
def scratch(lanes, totals, longest):
    """Return the lanes' parameters, a row, its squares and a desk as memory of one's own, to be released."""
    params, row = owned(lanes, np.uint64(lanes.shape[0])), owned(lanes, np.uint64(7 * L))
    desk, squares = owned(lanes, sized(longest)), owned(totals, np.uint64(2 * L))
    for k in range(5 * L):
        params[k] = lanes[k]
    furnish(desk)
    return params, row, desk, squares


@pasted
def cleared(params, row, desk, squares):
    """Give what ``scratch`` took back."""
    release(params)
    release(row)
    release(desk)
    release(squares)


@inline
def begin(row, squares, params, t, real):
    """Clear the row, and say how strong this round is where that depends on nothing else."""
    for k in range(L):
        p = (params[k], params[L + k], params[2 * L + k], params[3 * L + k], params[4 * L + k])
        row[k] = real(0)
        row[5 * L + k] = real(0)
        row[6 * L + k] = real(0)
        squares[k] = 0.0
        squares[L + k] = 0.0
        #timed row[3 * L + k] = real(clock(t, p))
        #timed row[4 * L + k] = real(clock(t + 1, p))


@inline
def bounded(row, real):
    """Keep margins that overflowed finite."""
    for k in range(L):
        m = row[k]
        #proof row[6 * L + k] = real(0) if abs(m) <= LARGEST else LARGEST
        row[k] = min(max(m, -LARGEST), LARGEST) if m == m else real(0)


@inline
def suffered(row, squares, totals, real):
    """Add what the row lost, and keep slopes finite; tell whether all of it was, else do nothing."""
    #own for k in range(L):
    #own     if not (np.isfinite(squares[L + k]) and np.isfinite(row[2 * L + k])):
    #own         return False
    for k in range(L):
        way, slope, value = row[L + k], row[2 * L + k], squares[L + k]
        #proof row[6 * L + k] = row[6 * L + k] if abs(slope) <= LARGEST and value <= VAST else LARGEST
        totals[k] += min(value, VAST) if value == value else VAST
        row[L + k] = min(max(way, -LARGEST), LARGEST) if way == way else real(0)
        row[2 * L + k] = min(max(slope, -LARGEST), LARGEST) if slope == slope else real(0)
    return True


#proof @inline
#proof def account(row, squares, totals):
#proof     """Add a row to the sums of certificates, or count it where something of it was clipped."""
#proof     for k in range(L):
#proof         played, half = squares[L + k], 0.0
#proof         #points half = 0.5 * np.float64(row[5 * L + k])
#proof         if row[6 * L + k] <= BOUND and abs(played) <= VAST and half <= VAST and squares[k] <= VAST:
#proof             totals[L + k] += played
#proof             totals[2 * L + k] += half
#proof             totals[4 * L + k] += squares[k]
#proof         else:
#proof             totals[5 * L + k] += 1.0


#proof @inline
#proof def sample(STATE, indices, lo, hi, extra, key):
#proof     """Add Σ G² of a row: the bias's, and that of one of the others, in turn, as often as there are others."""
#proof     # Without a branch for empty rows, which add any coordinate 0 times: with one, a row took a tenth longer.
#proof     count = hi - lo
#proof     i = np.uint64(t + (key & 65535)) % max(count, ONE)
#proof     q = np.uint64(indices[lo + i]) if count > ZERO else final(zn)
#proof     add_square(STATE, q, i, np.float64(count))
#proof     if extra > ZERO:
#proof         add_square(STATE, final(zn), count, 1.0)


#drift @inline
#drift def tock(row, totals, params):
#drift     """Add this round to the sums of ticks, after weights were recalled and before they are changed."""
#drift     for k in range(L):
#drift         p = (params[k], params[L + k], params[2 * L + k], params[3 * L + k], params[4 * L + k])
#drift         totals[3 * L + k] += tick(np.float64(row[4 * L + k]), p)


@entry
def learn(
    indptr, indices, values, labels, importance, zn, reach, last, mark, t, key, lanes, shape, longest, totals, out
):
    """Predict, suffer, and learn from each row in turn; return the number of rounds so far.

    Margins before learning are written to ``out``, unless it is empty. A row whose importance is negative is held out:
    predicted, and no round. Learning ends at a row r whose loss, one of the user's own, is not finite; return −1 − r.
    """
    rows = labels.shape[0]
    real = zn.dtype.type
    zero, one = real(0), real(1)
    params, row, desk, squares = scratch(lanes, totals, longest)
    for r in range(rows):
        lo, hi = np.uint64(indptr[r]), np.uint64(indptr[r + 1])
        held, pulled = real(total(t)), real(now_weight(t + 1))
        scale = importance[r]
        begin(row, squares, params, t, real)
        recall(STATE, indices, values, lo, hi, EXTRA, held)
        bounded(row, real)
        if out.shape[0] > 0:
            for k in range(L):
                out[r * L + k] = row[k]
        if scale < zero:
            continue
        {loss}
        if not suffered(row, squares, totals, real):
            t = np.int64(-1) - np.int64(r)
            break
        #drift tock(row, totals, params)
        rz, rn = zero, zero
        #dither rz, rn = noise(t, key)
        absorb(STATE, indices, values, lo, hi, EXTRA, pulled, rz, rn)
        #proof sample(STATE, indices, lo, hi, EXTRA, key)
        #proof for k in range(L):
        #proof     squares[L + k] = np.float64(row[2 * L + k]) * np.float64(row[k])
        #proof account(row, squares, totals)
        t += 1
    cleared(params, row, desk, squares)
    return t


@entry
def feed(indptr, indices, gradients, zn, reach, last, mark, t, key, lanes, longest, totals):
    """Learn from gradients as they are, a round a row; ``gradients`` has L numbers for each index."""
    rows = indptr.shape[0] - 1
    real = zn.dtype.type
    zero, one = real(0), real(1)
    params, row, desk, squares = scratch(lanes, totals, longest)
    values = np.ones(indices.shape[0], lanes.dtype)
    for r in range(rows):
        lo, hi = np.uint64(indptr[r]), np.uint64(indptr[r + 1])
        held, pulled = real(total(t)), real(now_weight(t + 1))
        begin(row, squares, params, t, real)
        recall(STATE, indices, values, lo, hi, ZERO, held)
        #drift tock(row, totals, params)
        rz, rn = zero, zero
        #dither rz, rn = noise(t, key)
        for i in range(hi - lo):
            for k in range(L):
                row[L + k] = row[2 * L + k] = gradients[(lo + i) * np.uint64(L) + np.uint64(k)]
                #proof squares[L + k] += np.float64(row[L + k]) * np.float64(desk[cell(i, k) + X])
            absorb_one(STATE, np.uint64(indices[lo + i]), i, one, one, one, one, one, pulled, rz, rn)
            #proof for k in range(L):
            #proof     row[6 * L + k] = max(row[6 * L + k], abs(row[2 * L + k]))
        #proof sample(STATE, indices, lo, hi, ZERO, key)
        #proof account(row, squares, totals)
        t += 1
    cleared(params, row, desk, squares)
    return t


@entry
def predict(indptr, indices, values, zn, reach, last, mark, t, key, lanes, totals, out):
    """Write the margins of every row and lane, learning nothing."""
    rows = indptr.shape[0] - 1
    real = zn.dtype.type
    longest = 0
    for r in range(rows):
        longest = max(longest, indptr[r + 1] - indptr[r])
    params, row, desk, squares = scratch(lanes, totals, longest + 1)
    held = real(total(t))
    for r in range(rows):
        lo, hi = np.uint64(indptr[r]), np.uint64(indptr[r + 1])
        begin(row, squares, params, t, real)
        recall(STATE, indices, values, lo, hi, EXTRA, held)
        bounded(row, real)
        for k in range(L):
            out[r * L + k] = row[k]
    cleared(params, row, desk, squares)


@entry
def gather(chosen, zn, reach, last, mark, t, key, lanes, totals, out):
    """Write the weights of the chosen coordinates in every lane."""
    bias = final(zn)
    held, real = zn.dtype.type(total(t)), zn.dtype.type
    nothing = np.zeros(64, lanes.dtype)
    params, row, desk, squares = scratch(lanes, totals, 65)
    begin(row, squares, params, t, real)
    for start in range(0, chosen.shape[0], 64):
        part = chosen[start : start + 64]
        size = np.uint64(part.shape[0])
        recall(STATE, part, nothing, ZERO, size, EXTRA, held)
        for i in range(size):
            place = size if EXTRA > ZERO and np.uint64(part[i]) == bias else i  # the bias comes last, free of penalties
            for k in range(L):
                out[(start + np.int64(i)) * L + k] = shown(STATE, np.uint64(part[i]), place, k)
    cleared(params, row, desk, squares)


@one_row
def predict_one(block, t):
    """Write the margins of one row after t rounds, and return the first of them.

    All arrays lie where the block says: address and length of each. Ends and indices are in the places; label,
    importance, shape and values in the numbers. The key of the noise comes last in the block.
    """
    places, numbers = carray(pointer(block[0]), (block[1],), np.int64), carray(pointer(block[2]), (block[3],), {real})
    zn, reach = carray(pointer(block[4]), (block[5],), {real}), carray(pointer(block[6]), (block[7],), {real})
    last, mark = carray(pointer(block[8]), (block[9],), np.int64), carray(pointer(block[10]), (block[11],), np.float64)
    lanes = carray(pointer(block[12]), (block[13],), {real})
    totals = carray(pointer(block[14]), (block[15],), np.float64)
    out = carray(pointer(block[16]), (block[17],), {real})
    predict(places[:2], places[2:], numbers[3:], zn, reach, last, mark, t, block[18], lanes, totals, out)
    return float(out[0])


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
    shape, longest, nothing = numbers[2], places[1] + 1, values[:0]
    return learn(
        ends, indices, values, label, importance, zn, reach, last, mark, t, block[18], lanes, shape, longest, totals,
        nothing,
    )
'''
