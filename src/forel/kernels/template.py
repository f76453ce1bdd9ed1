"""The loop over rows, coordinates and lanes, as source into which pieces are put.

It is text because numba's disk cache needs a module: a closure over compiled functions is compiled in every process.
Lines that only some rules need are marked with a name and left out otherwise; the number of lanes is a literal, so that
the inner loop is unrolled and vectorised.
"""

__all__ = ["TEMPLATE"]

TEMPLATE = '''\
"""Composed by forel; safe to delete."""
import numpy as np
from numba import njit
{imports}


BIAS = {bias}
LIMIT = {limit}
TINY = np.float32(1e-30)


@njit(cache=True, nogil=True, error_model="numpy", fastmath=True)
def learn(
    indptr, indices, values, labels, importance, zn, reach, last, t, params, sums, w, held_strength, margin, slope,
    part, proof
):
    """Predict, suffer, and learn from each row in turn; return the number of rounds so far."""
    rows = labels.shape[0]
    bias = np.uint64(zn.shape[0] - 1)
    real = zn.dtype.type
    zero, one, limit = real(0), real(1), real(LIMIT)
    extra = np.uint64(BIAS)
    for r in range(rows):
        if r + 2 < rows:
            for j in range(np.uint64(indptr[r + 2]), np.uint64(indptr[r + 3])):
                prefetch(zn, np.intp(indices[j]))
        lo, hi = np.uint64(indptr[r]), np.uint64(indptr[r + 1])
        held, pulled = real(total(t)), real(now_weight(t + 1))
        for k in range({lanes}):
            margin[k] = zero
        for j in range(lo, hi + extra):
            inside = j < hi
            q = np.uint64(indices[j]) if inside else bias
            v = values[j] if inside else one
            penalized = one if inside else zero
            s = zero
            #see reach[q] = max(reach[q], abs(v))
            #see s = reach[q]
            for k in range({lanes}):
                l1, l2 = penalized * params[3, k], penalized * params[4, k]
                p = (params[0, k], params[1, k], params[2, k], l1, l2, params[5, k])
                strong = strength(zn[q, 1, k], s, real(clock(t, p)), p)
                x = weight(zn[q, 0, k], strong, held, p)
                #fade x = faded(x, strong, real(t - last[q]), p)
                w[j - lo, k] = x
                held_strength[j - lo, k] = strong
                margin[k] += x * v
        scale = importance[r]
        {loss}
        for j in range(lo, hi + extra):
            inside = j < hi
            q = np.uint64(indices[j]) if inside else bias
            v = values[j] if inside else one
            penalized = one if inside else zero
            s = zero
            #see s = reach[q]
            for k in range({lanes}):
                l1, l2 = penalized * params[3, k], penalized * params[4, k]
                p = (params[0, k], params[1, k], params[2, k], l1, l2, params[5, k])
                g = min(max(slope[k] * v, -limit), limit)
                n = zn[q, 1, k]
                grown = n + g * g
                before = held_strength[j - lo, k]
                after = strength(grown, s, real(clock(t + 1, p)), p)
                #proof part[0, k] += g * g / max(MEASURED, TINY)
                #around part[1, k] += (after - before) * w[j - lo, k] * w[j - lo, k]
                #around zn[q, 2, k] += (after - before) * w[j - lo, k]
                zn[q, 0, k] = step(zn[q, 0, k], n, w[j - lo, k], g, before, after, pulled, p)
                zn[q, 1, k] = grown
            #fade last[q] = t + 1
        # Sums over a row are short and stay in the state's type; those over rows are long and are doubles.
        #proof for k in range({lanes}):
        #proof     proof[0, k] += float(slope[k] * margin[k])
        #proof     proof[1, k] += 0.5 * float(part[0, k])
        #proof     proof[2, k] += 0.5 * float(part[1, k])
        #proof     part[0, k] = part[1, k] = zero
        t += 1
    return t


@njit(cache=True, nogil=True, error_model="numpy", fastmath=True)
def predict(indptr, indices, values, zn, reach, last, t, params, out):
    """Write the margins of every row and lane, learning nothing."""
    bias = np.uint64(zn.shape[0] - 1)
    real = zn.dtype.type
    zero, one = real(0), real(1)
    extra = np.uint64(BIAS)
    held = real(total(t))
    for r in range(indptr.shape[0] - 1):
        lo, hi = np.uint64(indptr[r]), np.uint64(indptr[r + 1])
        for k in range({lanes}):
            out[r, k] = zero
        for j in range(lo, hi + extra):
            inside = j < hi
            q = np.uint64(indices[j]) if inside else bias
            v = values[j] if inside else one
            penalized = one if inside else zero
            s = zero
            #see s = max(reach[q], abs(v))
            for k in range({lanes}):
                l1, l2 = penalized * params[3, k], penalized * params[4, k]
                p = (params[0, k], params[1, k], params[2, k], l1, l2, params[5, k])
                strong = strength(zn[q, 1, k], s, real(clock(t, p)), p)
                x = weight(zn[q, 0, k], strong, held, p)
                #fade x = faded(x, strong, real(t - last[q]), p)
                out[r, k] += x * v


@njit(cache=True, nogil=True, error_model="numpy", fastmath=True)
def read(zn, reach, last, t, params, out):
    """Write the weight of every coordinate and lane."""
    bias = np.uint64(zn.shape[0] - 1)
    real = zn.dtype.type
    zero, one = real(0), real(1)
    extra = np.uint64(BIAS)
    held = real(total(t))
    for q in range(zn.shape[0]):
        penalized = one if q < bias or BIAS == 0 else zero
        s = zero
        #see s = reach[q]
        for k in range({lanes}):
            l1, l2 = penalized * params[3, k], penalized * params[4, k]
            p = (params[0, k], params[1, k], params[2, k], l1, l2, params[5, k])
            strong = strength(zn[q, 1, k], s, real(clock(t, p)), p)
            x = weight(zn[q, 0, k], strong, held, p)
            #fade x = faded(x, strong, real(t - last[q]), p)
            out[q, k] = x
'''
