"""What a row does to its coordinates in one lane: they are taken to a desk, worked on side by side, and put back.

The ``desk`` has blocks of BLOCK coordinates, the bias last, and in a block numbers of the same kind are together: Z, N,
G and MOVED as in the state, the weight X, ROOT = √n, what is found AFTER a step, the value V, whether a penalty
applies, FREE, the scale SPAN, which may be a record's fourth number, and SPARE room for what nobody asks for. One
array, and distances that are literals, tell the compiler that kinds do not overlap. It takes SIDE coordinates at a
time, and none is left over, because the places after the last are empty.
"""

__all__ = ["ONE_LANE"]

ONE_LANE = '''\
BLOCK, SIDE = np.uint64(64), np.uint64(8)
APART = 64
Z, N, G, MOVED, X, ROOT, AFTER, V, FREE, SPAN, SPARE, SIZE = [np.uint64(APART * kind) for kind in range(12)]
#within SPAN = MOVED
KEPT = Z
#gradients KEPT = G  # where g_{1:t} is


@inline
def sized(longest):
    """Return how many numbers a desk has for rows of up to so many coordinates."""
    return (np.uint64(longest) // BLOCK + ONE) * SIZE


@inline
def furnish(desk):
    """Say of a new desk that penalties apply."""
    for base in range(ZERO, np.uint64(desk.shape[0]), SIZE):
        for i in range(BLOCK):
            desk[base + i + FREE] = 1


@inline
def cell(i, k):
    """Return where the numbers of the i-th coordinate begin on the desk."""
    return i // BLOCK * SIZE + i % BLOCK


@inline
def known(STATE, indices, values, lo, hi, i, k):
    """Return value, freedom, scale, unit and n of the i-th coordinate, in its unit."""
    c, s, free = cell(i, k), desk.dtype.type(0), desk.dtype.type(1 if i < hi - lo else 0)
    u = s
    #see u = unit(desk[c + SPAN])
    #see s = desk[c + SPAN] * inverse(u)
    return desk[c + V], free, s, u, desk[c + N]


@inline
def shown(STATE, q, i, k):
    """Return the weight of coordinate q, at place i of the desk."""
    x = desk[cell(i, k) + X]
    #see x = within(x * inverse(unit(desk[cell(i, k) + SPAN])))
    return x


#late @inline
#late def freshen(STATE, q, c):
#late     """Bring a record on the desk up to date."""
#late     z = desk[c + Z]
#late     p = (params[0], params[1], desk[c + FREE] * params[2], desk[c + FREE] * params[3], params[4])
#fade     s = z - z
#fade     #see u = unit(desk[c + SPAN])
#fade     #see s, p, z = desk[c + SPAN] * inverse(u), scaled(p, u), within(z * u)
#fade     strong = strength(measure(desk[c + N]), s, row[3], p)
#fade     z = zn.dtype.type(faded(z, strong, zn.dtype.type(t - last[q]), p))
#drift     z = zn.dtype.type(drifted(z, totals[3] - mark[q], p))
#replay     z = zn.dtype.type(replayed(z, last[q], t, p))
#fade     #see z = within(z * inverse(u))
#late     desk[c + Z] = z


@inline
def put(STATE, q, c):
    """Put a record of the desk back to coordinate q."""
    at = q * WIDTH
    zn[at], zn[at + ONE] = desk[c + Z], desk[c + N]
    #gradients zn[at + TWO] = desk[c + G]
    #points zn[at + THREE] = desk[c + MOVED]


#behind @inline
#behind def stamp(STATE, q, c):
#behind     """Say up to when a coordinate is up to date, and its scale."""
#drift     mark[q] = totals[3]
#since     last[q] = t + 1
#apart     reach[q] = desk[c + SPAN]


@inline
def rounded(count):
    """Return how many places are worked on: whole SIDEs of them."""
    return (count + SIDE - ONE) // SIDE * SIDE


@loose
def weigh(desk, base, count, lane, now, held):
    """Find the weights of some places of a block, and return the sum of weights times values."""
    m = desk.dtype.type(0)
    for i in range(count):
        c = base + i
        free, s = desk[c + FREE], desk.dtype.type(0)
        p = (lane[0], lane[1], free * lane[2], free * lane[3], lane[4])
        # The record in units of its scale, which this row's value may have made larger.
        #see before = unit(desk[c + SPAN])
        #see s = desk[c + SPAN] = max(desk[c + SPAN], abs(desk[c + V]))
        #see u = unit(s)
        #see w = inverse(u)
        #see change = min(before * w, SINGLE)  # records of new coordinates are 0 in any unit
        #see s, p = s * w, scaled(p, u)
        #see desk[c + V] *= w
        #see desk[c + N] *= change * change
        #see #dual desk[c + Z] *= change
        #see #gradients desk[c + G] *= change
        #see #points desk[c + MOVED] *= change
        root = measure(desk[c + N])
        x = weight(desk[c + Z], strength(root, s, now, p), held, p)
        #see #primal x = within(x * u)
        desk[c + X], desk[c + ROOT] = x, root
        m += x * desk[c + V]
    return m


@inline
def recall(STATE, indices, values, lo, hi, extra, held):
    """Put the row's coordinates and weights on the desk, the bias too if one is extra, and their margin in the row."""
    count, lane, now = hi - lo + extra, (params[0], params[1], params[2], params[3], params[4]), row[3]
    bias, unit, far = final(zn), desk.dtype.type(extra), distance(indices, hi)
    rest = (hi - lo) % SIDE
    exempt(desk, cell(hi - lo - rest, 0) + FREE, rest, unit)
    for b in range(ZERO, count, BLOCK):
        base, here, seen = b // BLOCK * SIZE, min(BLOCK, count - b), min(BLOCK, hi - lo - b)
        whole = seen // SIDE * SIDE
        for i in range(ZERO, whole, SIDE):
            for j in range(lo + b + i, lo + b + i + SIDE):
                coming(zn, reach, indices, j + far)
            fetch(desk, base + i, APART, zn, PARTS, indices, lo + b + i)
            #apart fetch(desk, base + i + SPAN, APART, reach, 1, indices, lo + b + i)
            spread(desk, base + i + V, values, lo + b + i)
        if whole < here:
            if far > ZERO:
                for j in range(lo + b + whole, lo + b + whole + SIDE):
                    coming(zn, reach, indices, j + far)
            fetch_rest(desk, base + whole, APART, zn, PARTS, indices, lo + b + whole, rest, bias)
            #apart fetch_rest(desk, base + whole + SPAN, APART, reach, 1, indices, lo + b + whole, rest, bias)
            spread_rest(desk, base + whole + V, values, lo + b + whole, rest, unit)
        #late for i in range(here):
        #late     freshen(STATE, np.uint64(indices[lo + b + i]) if i < seen else bias, base + i)
        row[0] += weigh(desk, base, rounded(here), lane, now, held)
    exempt(desk, cell(hi - lo - rest, 0) + FREE, rest, unit - unit)


@inline
def step_all(STATE, base, count, pulled, rz, rn):
    """Take the steps of some places of a block, along the slopes in the row times their values."""
    lane, way, slope = (params[0], params[1], params[2], params[3], params[4]), row[1], row[2]
    now, next = row[3], row[4]
    for i in range(count):
        c = base + i
        free, v, s = desk[c + FREE], desk[c + V], desk.dtype.type(0)
        p = (lane[0], lane[1], free * lane[2], free * lane[3], lane[4])
        #see u = unit(desk[c + SPAN])
        #see w = inverse(u)
        #see s, p = desk[c + SPAN] * w, scaled(p, u)
        z, n, x, root = desk[c + Z], desk[c + N], desk[c + X], desk[c + ROOT]
        desk[c + Z], desk[c + N], h, uz, un, added, spent = stepped(
            z, n, x, root, way * v, slope * v, s, now, next, pulled, p, rz, rn
        )
        #see #primal desk[c + Z] = within(desk[c + Z] * w)
        #gradients desk[c + G] = add(desk[c + G], h, -uz)
        #points desk[c + MOVED] = add(desk[c + MOVED], added * x, -un)
        #points desk[c + AFTER] = spent


#proof @loose
#proof def largest_value(desk, base, count):
#proof     """Return the largest |value| of some places of a block."""
#proof     largest = desk.dtype.type(0)
#proof     for i in range(count):
#proof         largest = max(largest, abs(desk[base + i + V]))
#proof     return largest


#proof @inline
#proof def add_square(STATE, q, i, times):
#proof     """Add G² of coordinate q, at place i of the desk, so many times."""
#proof     c = cell(i, 0)
#proof     g = np.float64(desk[c + KEPT])
#proof     #see g *= np.float64(unit(desk[c + SPAN]))
#proof     squares[0] += times * g * g


#points @loose
#points def spent_by(desk, base, count):
#points     """Return the sum of what the steps of some places spent."""
#points     total = desk.dtype.type(0)
#points     for i in range(count):
#points         total += desk[base + i + AFTER]
#points     return total


@inline
def absorb_one(STATE, q, i, s, u, change, v, free, pulled, rz, rn):
    """Take the step of coordinate q, at place i of the desk."""
    c = cell(i, 0)
    step_all(STATE, c, ONE, pulled, rz, rn)
    #points row[5] += desk[c + AFTER]
    put(STATE, q, c)
    #behind stamp(STATE, q, c)


@inline
def absorb(STATE, indices, values, lo, hi, extra, pulled, rz, rn):
    """Take the row's steps, and the bias's if one is extra."""
    count, bias = hi - lo + extra, final(zn)
    rest, unit = (hi - lo) % SIDE, desk.dtype.type(extra)
    exempt(desk, cell(hi - lo - rest, 0) + FREE, rest, unit)
    for b in range(ZERO, count, BLOCK):
        base, here, seen = b // BLOCK * SIZE, min(BLOCK, count - b), min(BLOCK, hi - lo - b)
        step_all(STATE, base, rounded(here), pulled, rz, rn)
        #points row[5] += spent_by(desk, base, rounded(here))
        #proof row[6] = max(row[6], abs(row[2]) * largest_value(desk, base, rounded(here)))
        whole = seen // SIDE * SIDE
        for i in range(ZERO, whole, SIDE):
            give(desk, base + i, APART, zn, PARTS, indices, lo + b + i)
        if whole < here:
            at = lo + b + whole
            give_rest(desk, base + whole, APART, zn, PARTS, indices, at, rest, bias, extra, base + SPARE)
        #behind for i in range(here):
        #behind     stamp(STATE, np.uint64(indices[lo + b + i]) if i < seen else bias, base + i)
    exempt(desk, cell(hi - lo - rest, 0) + FREE, rest, unit - unit)
'''
