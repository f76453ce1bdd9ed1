"""The loops over rows, coordinates and lanes, as source into which pieces are put.

It is text because numba's disk cache needs a module: a closure over compiled functions is compiled in every process.
Lines that only some recipes need are marked with a name and left out otherwise. Arrays are flat and the number of lanes
is a literal, so that the compiler sees which parts of an array cannot overlap, and takes the lanes side by side.

The state ``zn`` has PARTS numbers a coordinate and lane: z and n, with a certificate g_{1:t}, and Σσx where z is a
point. The ``desk`` has the weight and √n of each coordinate of the present row. The ``row`` has six numbers a lane:
margin, slope of the step, slope of the loss, 1/η_{t−1}, 1/η_t, and Σ g²/S + σx² where z is a point. The ``totals`` are
doubles, four a lane: loss, Σ g·x, half of the former over all rows, and the sum of ticks. Lanes of several settings and
classes have the settings of one class next to each other.
"""

__all__ = ["TEMPLATE"]

TEMPLATE = '''\
"""Composed by forel; safe to delete."""
import numpy as np
from numba import njit
{imports}

FLAGS = {flags}
L, GROUPS, PARTS, AHEAD = {lanes}, {groups}, {parts}, np.uint64({ahead})
WIDTH, DESK, EXTRA = np.uint64({lanes} * {parts}), np.uint64({desk} * {lanes}), np.uint64({bias})
LIMIT, LARGEST, TINY = {limit}, {largest}, np.float32(1e-30)


#replay @njit(error_model="numpy", nogil=True, fastmath=FLAGS, inline="always")
#replay def replayed(z, since, until, p):
#replay     """Return a dual state after rounds without a gradient, where strength and penalty grew in each."""
#replay     for s in range(since, until):
#replay         now = clock(s, p)
#replay         x = weight(z, now, total(s), p)
#replay         if x == 0:
#replay             break
#replay         z -= (clock(s + 1, p) - now) * x
#replay     return z


@njit(error_model="numpy", nogil=True, fastmath=FLAGS, inline="always")
def recall(STATE, q, i, s, v, held, free):
    """Put the weights of coordinate q at place i of the desk, and what they add to the margins into the row."""
    at, place = q * WIDTH, np.uint64(i) * DESK
    for k in range(TURNS):
        #one p = free
        #many l1, l2 = free * params[2 * L + k], free * params[3 * L + k]
        #many p = (params[k], params[L + k], l1, l2, params[4 * L + k])
        root = measure(zn[at + np.uint64(L + k)])
        strong = strength(root, s, row[3 * L + k], p)
        z = zn[at + np.uint64(k)]
        #replay z = zn.dtype.type(replayed(z, last[q], t, p))
        x = weight(z, strong, held, p)
        #fade x = zn.dtype.type(faded(x, strong, zn.dtype.type(t - last[q]), p))
        #drift x = zn.dtype.type(drifted(x, totals[3 * L + k] - mark[q * np.uint64(L) + np.uint64(k)], p))
        desk[place + np.uint64(k)] = x
        desk[place + np.uint64(L + k)] = root
        #many row[k] += x * v
    #one return x * v


@njit(error_model="numpy", nogil=True, fastmath=FLAGS, inline="always")
def absorb(STATE, q, i, s, v, pulled, free, rz, rn):
    """Take one coordinate's step in every lane, along the slopes in the row times v."""
    real = zn.dtype.type
    zero, limit = real(0), real(LIMIT)
    at, place = q * WIDTH, np.uint64(i) * DESK
    for k in range(TURNS):
        #one p = free
        #many l1, l2 = free * params[2 * L + k], free * params[3 * L + k]
        #many p = (params[k], params[L + k], l1, l2, params[4 * L + k])
        g = min(max(row[L + k] * v, -limit), limit)
        h = g
        #implicit h = min(max(row[2 * L + k] * v, -limit), limit)
        gg = h * h
        uz, un = rz, rn
        #many uz, un = (rz, rn) if h != 0 else (zero, zero)
        x, root = desk[place + np.uint64(k)], desk[place + np.uint64(L + k)]
        z, n = zn[at + np.uint64(k)], zn[at + np.uint64(L + k)]
        #replay z = real(replayed(z, last[q], t, p))
        now, next = row[3 * L + k], row[4 * L + k]
        # From n as it is kept: what rounding does to one round's strength, the next one's takes back.
        kept = grown(n, gg, next, un)
        after_root = measure(kept)
        added = gain(root, after_root, s, now, next, p)
        after = strength(after_root, s, next, p)
        spent = zero
        #points spent = gg / max(after, TINY) + added * x * x
        #many #points row[5 * L + k] += spent
        #gradients zn[at + np.uint64(2 * L + k)] = add(zn[at + np.uint64(2 * L + k)], h, -uz)
        #points zn[at + np.uint64(3 * L + k)] = add(zn[at + np.uint64(3 * L + k)], added * x, -un)
        zn[at + np.uint64(k)] = step(z, x, g, added, after, pulled, p, uz)
        zn[at + np.uint64(L + k)] = kept
        #drift mark[q * np.uint64(L) + np.uint64(k)] = totals[3 * L + k]
    #since last[q] = t + 1
    #one return spent


@njit(error_model="numpy", nogil=True, fastmath=FLAGS, inline="always")
def scratch(lanes, longest):
    """Return the lanes' parameters, a row and a desk as new arrays, which overlap with nothing."""
    return lanes.copy(), np.zeros(6 * L, lanes.dtype), np.empty(longest * DESK, lanes.dtype)


#one @njit(error_model="numpy", nogil=True, fastmath=FLAGS, inline="always")
#one def alone(params):
#one     """Return the only lane's parameters, for features and without a penalty: they fit into registers."""
#one     zero = params[0] - params[0]
#one     return (
#one         (params[0], params[1], params[2], params[3], params[4]), (params[0], params[1], zero, zero, params[4])
#one     )


@njit(error_model="numpy", nogil=True, fastmath=FLAGS, inline="always")
def begin(row, params, t, real):
    """Clear the row, and say how strong this round is where that depends on nothing else."""
    for k in range(L):
        p = (params[k], params[L + k], params[2 * L + k], params[3 * L + k], params[4 * L + k])
        row[k] = real(0)
        row[5 * L + k] = real(0)
        #timed row[3 * L + k] = real(clock(t, p))
        #timed row[4 * L + k] = real(clock(t + 1, p))


@njit(error_model="numpy", nogil=True, fastmath=FLAGS, inline="always")
def bounded(row, real):
    """Keep margins that overflowed finite."""
    largest = real(LARGEST)
    for k in range(L):
        m = row[k]
        row[k] = min(max(m, -largest), largest) if m == m else real(0)


#drift @njit(error_model="numpy", nogil=True, fastmath=FLAGS, inline="always")
#drift def tock(row, totals, params):
#drift     """Add this round to the sums of ticks, after weights were recalled and before they are changed."""
#drift     for k in range(L):
#drift         p = (params[k], params[L + k], params[2 * L + k], params[3 * L + k], params[4 * L + k])
#drift         totals[3 * L + k] += tick(np.float64(row[4 * L + k]), p)


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FLAGS)
def learn(
    indptr, indices, values, labels, importance, zn, reach, last, mark, t, lanes, shape, longest, totals, out
):
    """Predict, suffer, and learn from each row in turn; return the number of rounds so far.

    Margins before learning are written to ``out``, unless it is empty. A row whose importance is negative is held out:
    predicted, and no round.
    """
    rows = labels.shape[0]
    bias = np.uint64(zn.shape[0] // (L * PARTS) - 1)
    real = zn.dtype.type
    zero, one = real(0), real(1)
    params, row, desk = scratch(lanes, longest)
    #one lane, fixed = alone(params)
    end = np.uint64(indptr[rows]) - np.uint64(1)
    for r in range(rows):
        lo, hi = np.uint64(indptr[r]), np.uint64(indptr[r + 1])
        held, pulled = real(total(t)), real(now_weight(t + 1))
        scale = importance[r]
        begin(row, params, t, real)
        #one margin = spent = zero
        for j in range(lo, hi):
            coming = np.uint64(indices[min(np.uint64(j) + AHEAD, end)])
            ahead = coming * WIDTH
            {prefetch}
            #see prefetch(reach, coming)
            q, v = np.uint64(indices[j]), values[j]
            s = zero
            #see s = reach[q]
            #see seen = max(s, abs(v))
            #see reach[q] = seen if scale >= zero else s
            #see s = SEEN
            ONE_MARGINrecall(STATE, q, np.uint64(j) - lo, s, v, held, LANE)
        #bias ONE_MARGINrecall(STATE, bias, hi - lo, one, one, held, FIXED)
        #one row[0] = margin
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
        # Where there is nothing to add there is nothing to round.
        #one rz, rn = (rz, rn) if row[2] != 0 else (zero, zero)
        for j in range(lo, hi):
            q = np.uint64(indices[j])
            s = zero
            #see s = reach[q]
            ONE_SPENTabsorb(STATE, q, np.uint64(j) - lo, s, values[j], pulled, LANE, rz, rn)
        #bias ONE_SPENTabsorb(STATE, bias, hi - lo, one, one, pulled, FIXED, rz, rn)
        #one row[5] = spent
        #proof for k in range(L):
        #proof     totals[L + k] += np.float64(row[2 * L + k]) * np.float64(row[k])
        #points for k in range(L):
        #points     totals[2 * L + k] += 0.5 * np.float64(row[5 * L + k])
        t += 1
    return t


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FLAGS)
def feed(indptr, indices, gradients, zn, reach, last, mark, t, lanes, longest, totals):
    """Learn from gradients as they are, a round a row; ``gradients`` has L numbers for each index."""
    rows = indptr.shape[0] - 1
    real = zn.dtype.type
    zero, one = real(0), real(1)
    params, row, desk = scratch(lanes, longest)
    #one lane, fixed = alone(params)
    for r in range(rows):
        lo, hi = np.uint64(indptr[r]), np.uint64(indptr[r + 1])
        held, pulled = real(total(t)), real(now_weight(t + 1))
        begin(row, params, t, real)
        #one margin = spent = zero
        for j in range(lo, hi):
            recall(STATE, np.uint64(indices[j]), np.uint64(j) - lo, one, zero, held, LANE)
        #drift tock(row, totals, params)
        rz, rn = zero, zero
        #dither rz, rn = noise(t)
        for j in range(lo, hi):
            for k in range(L):
                row[L + k] = row[2 * L + k] = gradients[np.uint64(j) * np.uint64(L) + np.uint64(k)]
                #proof x = desk[(np.uint64(j) - lo) * DESK + np.uint64(k)]
                #proof totals[L + k] += np.float64(row[L + k]) * np.float64(x)
            uz, un = rz, rn
            #one uz, un = (rz, rn) if row[1] != 0 else (zero, zero)
            ONE_SPENTabsorb(STATE, np.uint64(indices[j]), np.uint64(j) - lo, one, one, pulled, LANE, uz, un)
        #one row[5] = spent
        #points for k in range(L):
        #points     totals[2 * L + k] += 0.5 * np.float64(row[5 * L + k])
        t += 1
    return t


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FLAGS)
def predict(indptr, indices, values, zn, reach, last, mark, t, lanes, totals, out):
    """Write the margins of every row and lane, learning nothing."""
    rows = indptr.shape[0] - 1
    bias = np.uint64(zn.shape[0] // (L * PARTS) - 1)
    real = zn.dtype.type
    zero, one = real(0), real(1)
    params, row, desk = scratch(lanes, 1)
    #one lane, fixed = alone(params)
    held = real(total(t))
    end = np.uint64(indptr[rows]) - np.uint64(1)
    for r in range(rows):
        begin(row, params, t, real)
        #one margin = spent = zero
        for j in range(np.uint64(indptr[r]), np.uint64(indptr[r + 1])):
            coming = np.uint64(indices[min(np.uint64(j) + AHEAD, end)])
            ahead = coming * WIDTH
            {prefetch}
            #see prefetch(reach, coming)
            q, v = np.uint64(indices[j]), values[j]
            s = zero
            #see s = reach[q]
            #see seen = max(s, abs(v))
            #see s = SEEN
            ONE_MARGINrecall(STATE, q, 0, s, v, held, LANE)
        #bias ONE_MARGINrecall(STATE, bias, 0, one, one, held, FIXED)
        #one row[0] = margin
        bounded(row, real)
        for k in range(L):
            out[r * L + k] = row[k]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FLAGS)
def gather(chosen, zn, reach, last, mark, t, lanes, totals, out):
    """Write the weights of the chosen coordinates in every lane."""
    bias = np.uint64(zn.shape[0] // (L * PARTS) - 1)
    real = zn.dtype.type
    zero, one = real(0), real(1)
    params, row, desk = scratch(lanes, 1)
    #one lane, fixed = alone(params)
    held = real(total(t))
    begin(row, params, t, real)
    for j in range(chosen.shape[0]):
        q = np.uint64(chosen[j])
        s = one
        #see s = reach[q]
        free = LANE if q < bias or EXTRA == 0 else FIXED
        recall(STATE, q, 0, s, zero, held, free)
        for k in range(L):
            out[j * L + k] = desk[k]


@njit(error_model="numpy", nogil=True, fastmath=FLAGS, inline="always")
def usable(numbers, count):
    """Tell whether a row has neither NaN nor infinity."""
    for j in range(3, 3 + count):
        if not np.isfinite(numbers[j]):
            return False
    return True


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FLAGS)
def predict_one(block):
    """Write the margins of one row, all of whose arrays lie where the block says: address and length of each.

    Ends and indices are in the places; label, importance, shape and values in the numbers. Return the number of rounds
    so far, or −1 for a row that is not finite.
    """
    places, numbers = carray(pointer(block[0]), (block[1],), np.int64), carray(pointer(block[2]), (block[3],), {real})
    if not usable(numbers, places[1]):
        return np.int64(-1)
    zn, reach = carray(pointer(block[4]), (block[5],), {real}), carray(pointer(block[6]), (block[7],), {real})
    last, mark = carray(pointer(block[8]), (block[9],), np.int64), carray(pointer(block[10]), (block[11],), np.float64)
    lanes = carray(pointer(block[12]), (block[13],), {real})
    totals = carray(pointer(block[14]), (block[15],), np.float64)
    out = carray(pointer(block[16]), (block[17],), {real})
    predict(places[:2], places[2:], numbers[3:], zn, reach, last, mark, block[18], lanes, totals, out)
    return block[18]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FLAGS)
def learn_one(block):
    """Learn from one row likewise."""
    places, numbers = carray(pointer(block[0]), (block[1],), np.int64), carray(pointer(block[2]), (block[3],), {real})
    if not usable(numbers, places[1]):
        return np.int64(-1)
    zn, reach = carray(pointer(block[4]), (block[5],), {real}), carray(pointer(block[6]), (block[7],), {real})
    last, mark = carray(pointer(block[8]), (block[9],), np.int64), carray(pointer(block[10]), (block[11],), np.float64)
    lanes = carray(pointer(block[12]), (block[13],), {real})
    totals = carray(pointer(block[14]), (block[15],), np.float64)
    ends, indices, label, importance, values = places[:2], places[2:], numbers[:1], numbers[1:2], numbers[3:]
    t, shape, longest = block[18], numbers[2], places[1] + 1
    block[18] = learn(
        ends, indices, values, label, importance, zn, reach, last, mark, t, lanes, shape, longest, totals, values[:0]
    )
    return block[18]
'''
