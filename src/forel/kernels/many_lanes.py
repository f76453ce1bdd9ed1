"""What a row does to its coordinates in many lanes: one coordinate after the other, its lanes side by side.

The ``desk`` has the weight X and ROOT = √n of each coordinate of the row and lane, and a strength AFTER a step.
"""

__all__ = ["MANY_LANES"]

MANY_LANES = '''\
DESK = np.uint64({kinds} * L)
X, ROOT, AFTER = np.uint64(0), np.uint64(L), np.uint64(2 * L)
KEPT = 0
#gradients KEPT = 2 * L  # where g_{1:t} is


@inline
def sized(longest):
    """Return how many numbers a desk has for rows of up to so many coordinates."""
    return (np.uint64(longest) + ONE) * DESK


@inline
def furnish(desk):
    """Leave a new desk as it is."""


@inline
def cell(i, k):
    """Return where the numbers of the i-th coordinate and a lane begin on the desk."""
    return i * DESK + np.uint64(k)


@inline
def known(STATE, indices, values, lo, hi, i, k):
    """Return value, freedom, scale and n of the i-th coordinate and a lane."""
    inside, unit = i < hi - lo, desk.dtype.type(1)
    q = np.uint64(indices[lo + i]) if inside else final(zn)
    v, free, s = (values[lo + i], unit, unit - unit) if inside else (unit, unit - unit, unit - unit)
    #see s = max(reach[q], abs(v))
    return v, free, s, zn[q * WIDTH + np.uint64(L + k)]


@pasted
def recall_one(STATE, q, i, s, v, held, free):
    """Put the weights of coordinate q at place i of the desk, and what they add to the margins into the row."""
    at, place = q * WIDTH, i * DESK
    for k in range(TURNS):
        p = (params[k], params[L + k], free * params[2 * L + k], free * params[3 * L + k], params[4 * L + k])
        root = measure(zn[at + np.uint64(L + k)])
        strong = strength(root, s, row[3 * L + k], p)
        z = zn[at + np.uint64(k)]
        #replay z = zn.dtype.type(replayed(z, last[q], t, p))
        x = weight(z, strong, held, p)
        #fade x = zn.dtype.type(faded(x, strong, zn.dtype.type(t - last[q]), p))
        #drift x = zn.dtype.type(drifted(x, totals[3 * L + k] - mark[q * np.uint64(L) + np.uint64(k)], p))
        desk[place + X + np.uint64(k)] = x
        desk[place + ROOT + np.uint64(k)] = root
        row[k] += x * v


@pasted
def recall(STATE, indices, values, lo, hi, extra, held):
    """Put the weights of the row's coordinates on the desk, and the bias's if one is extra, and margins in the row."""
    unit, far = desk.dtype.type(1), distance(indices, hi)
    for j in range(lo, hi):
        coming(zn, reach, indices, j + far)
        q, v = np.uint64(indices[j]), values[j]
        s = unit - unit
        #see s = reach[q]
        #see seen = max(s, abs(v))
        # What faded did so at the old scale; all else is as if the scale had always been what it is now.
        #see s = SEEN
        recall_one(STATE, q, j - lo, s, v, held, unit)
    if extra > ZERO:
        recall_one(STATE, final(zn), hi - lo, unit, unit, held, unit - unit)


@pasted
def absorb_one(STATE, q, i, s, v, free, pulled, rz, rn):
    """Take the step of coordinate q, at place i of the desk, in every lane, along the slopes in the row times v."""
    at, place = q * WIDTH, i * DESK
    for k in range(TURNS):
        p = (params[k], params[L + k], free * params[2 * L + k], free * params[3 * L + k], params[4 * L + k])
        way, slope, now, next = row[L + k], row[2 * L + k], row[3 * L + k], row[4 * L + k]
        x, root = desk[place + X + np.uint64(k)], desk[place + ROOT + np.uint64(k)]
        z, n = zn[at + np.uint64(k)], zn[at + np.uint64(L + k)]
        #replay z = zn.dtype.type(replayed(z, last[q], t, p))
        z, n, h, uz, un, added, spent = stepped(z, n, x, root, way * v, slope * v, s, now, next, pulled, p, rz, rn)
        zn[at + np.uint64(k)], zn[at + np.uint64(L + k)] = z, n
        #gradients zn[at + np.uint64(2 * L + k)] = add(zn[at + np.uint64(2 * L + k)], h, -uz)
        #proof total = np.float64(zn[at + np.uint64(KEPT + k)])
        #proof squares[k] += total * total
        #points zn[at + np.uint64(3 * L + k)] = add(zn[at + np.uint64(3 * L + k)], added * x, -un)
        #points row[5 * L + k] += spent
        #drift mark[q * np.uint64(L) + np.uint64(k)] = totals[3 * L + k]
    #since last[q] = t + 1


@pasted
def absorb(STATE, indices, values, lo, hi, extra, pulled, rz, rn):
    """Take the row's steps, and the bias's if one is extra."""
    unit = desk.dtype.type(1)
    for j in range(lo, hi):
        q = np.uint64(indices[j])
        s = unit - unit
        #see s = reach[q] = max(reach[q], abs(values[j]))
        absorb_one(STATE, q, j - lo, s, values[j], unit, pulled, rz, rn)
    if extra > ZERO:
        bias = final(zn)
        absorb_one(STATE, bias, hi - lo, unit, unit, unit - unit, pulled, rz, rn)
'''
