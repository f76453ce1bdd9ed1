"""What a row costs, and the slopes along which it is learned from: source that is put into the loop over rows.

The ``row`` has the margins of all lanes first, then the slopes of the step, then those of the loss. Both are the same
but for implicit updates.
"""

__all__ = ["IMPLICIT", "MARGINAL", "SOFTMAX"]

MARGINAL = """\
for k in range(L):
    m = row[k]
    value, slope = loss(m, LABEL, shape)
    squares[L + k] = np.float64(scale) * np.float64(value)
    row[L + k] = row[2 * L + k] = scale * slope
"""

SOFTMAX = """\
for s in range(GROUPS):
    hit, top = np.intp(labels[r]) * GROUPS + s, s
    for k in range(s, L, GROUPS):
        top = k if row[k] > row[top] else top
    rest = 0.0
    for k in range(s, L, GROUPS):
        row[L + k] = np.exp(row[k] - row[top])
        rest += 0.0 if k == top else np.float64(row[L + k])
    squares[L + s] = np.float64(scale) * (np.float64(row[top] - row[hit]) + np.log1p(rest))
    others = 0.0
    for k in range(s, L, GROUPS):
        row[L + k] *= scale / real(1 + rest)
        others += 0.0 if k == hit else np.float64(row[L + k])
    row[L + hit] = -others
    for k in range(s, L, GROUPS):
        row[2 * L + k] = row[L + k]
"""

# The slope at the point that is stepped to: between none and the one at the point that is left, where s = ℓ'(m(s)).
IMPLICIT = """\
for k in range(L):
    p = (params[k], params[L + k], params[2 * L + k], params[3 * L + k], params[4 * L + k])
    for i in range(hi - lo + EXTRA):
        v, free, s, u, n = known(STATE, indices, values, lo, hi, i, k)
        n = min(grown(n, row[2 * L + k] * v * (row[2 * L + k] * v), row[4 * L + k], zero), FULL)
        desk[cell(i, k) + AFTER] = strength(measure(n), s, row[4 * L + k], p)
    here, there = 0.0, np.float64(row[2 * L + k])
    below, above = -there, 0.0
    for turn in range(200):
        # A secant, then a bisection: fast where the slope is smooth, and sure where it jumps.
        s = there if turn == 0 else (here + there) / 2
        if turn > 0 and (s == here or s == there):
            break
        if turn % 2 == 0 and turn > 0:
            bent = here - below * (there - here) / (above - below)
            s = bent if min(here, there) < bent < max(here, there) else s
        m = zero
        for i in range(hi - lo + EXTRA):
            v, free, _, u, _ = known(STATE, indices, values, lo, hi, i, k)
            x, after, pull, own = desk[cell(i, k) + X], desk[cell(i, k) + AFTER], pulled * free, scaled(p, u)
            m += v * argmin(real(s) * v - after * x, after, pull * own[2], pull * own[3], own[4])
        value, slope = loss(m, LABEL, shape)
        excess = s - np.float64(scale) * np.float64(slope)
        if excess == 0:
            here = there = s
            break
        if (excess > 0) == (row[2 * L + k] > 0):
            there, above = s, excess
        else:
            here, below = s, excess
    row[L + k] = there
"""
