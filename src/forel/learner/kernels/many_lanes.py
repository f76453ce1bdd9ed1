"""What a row does to its coordinates in many lanes: one coordinate after the other, its lanes side by side.

The ``desk`` has the weight X and ROOT = √n of each coordinate of the row and lane, and a strength AFTER a step.
"""

__all__ = ["MANY_LANES"]

MANY_LANES = '''\
DESK = np.uint64({kinds} * L)
X, ROOT, AFTER = np.uint64(0), np.uint64(L), np.uint64(2 * L)
KEPT = np.uint64(0)
#gradients KEPT = np.uint64(2 * L)  # where g_{1:t} is


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
    """Return value, freedom, scale, unit and n of the i-th coordinate and a lane, in its unit."""
    inside, one = i < hi - lo, desk.dtype.type(1)
    q = np.uint64(indices[lo + i]) if inside else final(zn)
    v, free = (values[lo + i], one) if inside else (one, one - one)
    s, u, n = one - one, one, zn[q * WIDTH + np.uint64(L + k)]
    #see s, u, change = seen(reach[q], v)
    #see v, n = v * inverse(u), n * change * change
    return v, free, s, u, n


@inline
def shown(STATE, q, i, k):
    """Return the weight of coordinate q, at place i of the desk."""
    x = desk[cell(i, k) + X]
    #see x = within(x * inverse(unit(reach[q])))
    return x


#see @inline
#see def seen(before, v):
#see     """Return a scale that has seen a value, in its unit, that unit, and what a record is to be multiplied by."""
#see     s = max(before, abs(v))
#see     u = unit(s)
#see     # Records of new coordinates are 0 in any unit.
#see     return s * inverse(u), u, min(unit(before) * inverse(u), SINGLE)


@pasted
def recall_one(STATE, q, i, s, u, change, v, held, free):
    """Put the weights of coordinate q at place i of the desk, and what they add to the margins into the row."""
    at, place = q * WIDTH, i * DESK
    #fade old = s
    #fade #see old = reach[q] * inverse(u)  # what faded did so at the old scale
    for k in range(TURNS):
        p = (params[k], params[L + k], free * params[2 * L + k], free * params[3 * L + k], params[4 * L + k])
        p = scaled(p, u)
        z, n = zn[at + np.uint64(k)], zn[at + np.uint64(L + k)]
        #see n *= change * change
        #see #dual z *= change
        #see #primal z = within(z * u)
        root = measure(n)
        #replay z = zn.dtype.type(replayed(z, last[q], t, p))
        x = weight(z, strength(root, s, row[3 * L + k], p), held, p)
        #fade strong = strength(root, old, row[3 * L + k], p)
        #fade x = zn.dtype.type(faded(x, strong, zn.dtype.type(t - last[q]), p))
        #drift x = zn.dtype.type(drifted(x, totals[3 * L + k] - mark[q * np.uint64(L) + np.uint64(k)], p))
        desk[place + X + np.uint64(k)] = x
        desk[place + ROOT + np.uint64(k)] = root
        row[k] += x * v


@pasted
def recall(STATE, indices, values, lo, hi, extra, held):
    """Put the weights of the row's coordinates on the desk, and the bias's if one is extra, and margins in the row."""
    one, far = desk.dtype.type(1), distance(indices, hi)
    for j in range(lo, hi):
        coming(zn, reach, indices, j + far)
        q, v = np.uint64(indices[j]), values[j]
        s, u, change = one - one, one, one
        # All but what faded is as if the scale had always been what it is now.
        #see s, u, change = seen(reach[q], v)
        #see v *= inverse(u)
        recall_one(STATE, q, j - lo, s, u, change, v, held, one)
    if extra > ZERO:
        recall_one(STATE, final(zn), hi - lo, one, one, one, one, held, one - one)


@pasted
def absorb_one(STATE, q, i, s, u, change, v, free, pulled, rz, rn):
    """Take the step of coordinate q, at place i of the desk, in every lane, along the slopes in the row times v."""
    at, place = q * WIDTH, i * DESK
    for k in range(TURNS):
        p = (params[k], params[L + k], free * params[2 * L + k], free * params[3 * L + k], params[4 * L + k])
        p = scaled(p, u)
        way, slope, now, next = row[L + k], row[2 * L + k], row[3 * L + k], row[4 * L + k]
        x, root = desk[place + X + np.uint64(k)], desk[place + ROOT + np.uint64(k)]
        z, n = zn[at + np.uint64(k)], zn[at + np.uint64(L + k)]
        #see z, n = z * change, n * change * change
        #replay z = zn.dtype.type(replayed(z, last[q], t, p))
        z, n, h, uz, un, added, spent = stepped(z, n, x, root, way * v, slope * v, s, now, next, pulled, p, rz, rn)
        #see #primal z = within(z * inverse(u))
        zn[at + np.uint64(k)], zn[at + np.uint64(L + k)] = z, n
        #gradients kept = zn[at + np.uint64(2 * L + k)]
        #gradients #see kept *= change
        #gradients zn[at + np.uint64(2 * L + k)] = add(kept, h, -uz)
        #points moved = zn[at + np.uint64(3 * L + k)]
        #points #see moved *= change
        #points zn[at + np.uint64(3 * L + k)] = add(moved, added * x, -un)
        #points row[5 * L + k] += spent
        #drift mark[q * np.uint64(L) + np.uint64(k)] = totals[3 * L + k]
    #since last[q] = t + 1


@pasted
def absorb(STATE, indices, values, lo, hi, extra, pulled, rz, rn):
    """Take the row's steps, and the bias's if one is extra."""
    one = desk.dtype.type(1)
    largest = desk.dtype.type(extra)
    for j in range(lo, hi):
        q, v = np.uint64(indices[j]), values[j]
        s, u, change = one - one, one, one
        #see s, u, change = seen(reach[q], v)
        #see reach[q] = max(reach[q], abs(v))
        #see v *= inverse(u)
        largest = max(largest, abs(v))
        absorb_one(STATE, q, j - lo, s, u, change, v, one, pulled, rz, rn)
    if extra > ZERO:
        bias = final(zn)
        absorb_one(STATE, bias, hi - lo, one, one, one, one, one - one, pulled, rz, rn)
    #proof for k in range(L):
    #proof     row[6 * L + k] = max(row[6 * L + k], abs(row[2 * L + k]) * largest)


#proof @inline
#proof def add_square(STATE, q, i, times):
#proof     """Add G² of coordinate q so many times, in every lane."""
#proof     at, u = q * WIDTH + KEPT, 1.0
#proof     #see u = np.float64(unit(reach[q]))
#proof     for k in range(L):
#proof         g = np.float64(zn[at + np.uint64(k)]) * u
#proof         squares[k] += times * g * g
'''
