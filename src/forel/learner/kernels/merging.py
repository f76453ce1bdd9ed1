"""Merging of records: what each shard added to a coordinate, and the record of all of them.

Formulas are those of :mod:`forel.learner.merge_states`. Records are converted to float64, and to the unit of the merged
scale by factors of z and g; n has the factor twice, and the mean of a filter none.
"""

import numpy as np

from forel.jit.compiling import cached_njit

__all__ = ["ADDED", "KEPT", "add_shard", "merge_records"]

compiled = cached_njit(__file__)
inlined = cached_njit(__file__, forceinline=True)
ADDED = 5  # sums of each coordinate and lane
# Of settings: D, the exponents a, and what they make of points and of gradients within the penalty; of centered ones G²
# in place of these. Of filters: D, the share of the information that was kept, and the information vector.
INFORMATION, EXPONENT, POINT, WITHIN, GRADIENT = range(ADDED)
KEPT, MOVED, SQUARE = EXPONENT, POINT, WITHIN
RATE, BETA, L1, L2, RADIUS = range(5)
LARGEST_EXPONENT = 1e30  # so that products with points are finite


@inlined
def strength(n, scale, p, k, scale_free):
    """Return the strength of a coordinate, or the prior precision of a filter with the rate in place of its inverse."""
    if scale_free:
        return scale * (p[BETA, k] * scale + np.sqrt(n)) * p[RATE, k]
    return (p[BETA, k] + np.sqrt(n)) * p[RATE, k]


@inlined
def point(z, s, l1, l2, radius):
    """Return the weight of a coordinate of strength s."""
    size = max(abs(z) - l1, 0.0)
    if size == 0 or not s + l2 > 0:
        return 0.0
    x = min(size / (s + l2), radius)
    return -x if z > 0 else x


@inlined
def growth(a):
    """Return a/(1 − e⁻ᵃ)."""
    return a / -np.expm1(-a) if a > 0 else 1.0


@compiled
def add_shard(
    at, owners, records, factors, start, start_factors, scales, merged_scales, units, p, free, first_filter, proximal,
    curvature, added,
):  # fmt: skip
    """Add the changes of a shard to the sums of its coordinates.

    Parameters
    ----------
    at : the place of each coordinate of the shard among all
    owners : the number of shards that have a coordinate; those of one are left out
    records, start : by coordinate, part and lane, after the shard's rows and before them
    factors, start_factors : into the unit of the merged scale
    scales, merged_scales : of the shard, and of all shards, in that unit
    units : that unit; negative for a coordinate without penalty
    p : parameters, a row each and a column for each lane
    free : whether rates are scale-free
    first_filter : the first lane of a filter
    proximal : whether regularizers are centered at points
    curvature : of losses, for each squared gradient; infinite for averages of points
    added : the sums
    """
    parts, lanes = records.shape[1], records.shape[2]
    gradient = 2 if parts > 2 else 0
    for j in range(at.size):
        c = at[j]
        if owners[c] < 2:
            continue
        f, s, unit = factors[j], start_factors[j], abs(units[j])
        penalized = 1.0 if units[j] > 0 else 0.0
        for k in range(lanes):
            n, n0 = f * f * np.float64(records[j, 1, k]), s * s * np.float64(start[j, 1, k])
            g = f * np.float64(records[j, gradient, k]) - s * np.float64(start[j, gradient, k])
            added[c, GRADIENT, k] += g
            added[c, INFORMATION, k] += max(n - n0, 0.0)
            if k >= first_filter:
                prior = scales[j] * scales[j] * p[RATE, k]
                after, before = np.float64(records[j, 0, k]), np.float64(start[j, 0, k])
                added[c, KEPT, k] *= min(n / n0, 1.0) if n0 > 0 else 1.0
                added[c, MOVED, k] += (prior + n) * after - (prior + n0) * before
            elif proximal:
                now, before = strength(n, scales[j], p, k, free), strength(n0, scales[j], p, k, free)
                l1, l2 = penalized * p[L1, k] / unit, penalized * p[L2, k] / unit / unit
                z, z0, radius = f * np.float64(records[j, 0, k]), s * np.float64(start[j, 0, k]), p[RADIUS, k] * unit
                x, x0 = point(z, now, l1, l2, radius), point(z0, before, l1, l2, radius)
                within, within0 = min(max(z, -l1), l1), min(max(z0, -l1), l1)
                a = now - before
                r = a
                if np.isfinite(curvature):
                    own = 0.0
                    if (x != 0 or x0 != 0) and now + l2 > 0:
                        own = min(curvature * max(n - n0, 0.0) / (now + l2), LARGEST_EXPONENT)
                    ratio = (now + l2) / (strength(n, merged_scales[j], p, k, free) + l2) if own > 0 else 1.0
                    a, r = own * ratio, growth(own) * ratio
                added[c, EXPONENT, k] += a
                added[c, POINT, k] += a * x0 + r * (x - x0)
                added[c, WITHIN, k] += a * within0 + r * (within - within0)
            else:
                added[c, SQUARE, k] += g * g


@compiled
def merge_records(
    owners, base, factors, scales, units, p, free, first_filter, proximal, curvature, largest, added, out
):
    """Write the records of coordinates of several shards.

    Parameters
    ----------
    owners, units, p, free, first_filter, proximal, curvature, added : as in :func:`add_shard`
    scales : of all shards
    base, factors : the common records, and their factors
    largest : number of the type of records
    out : the merged records, in which those of one shard are set already
    """
    parts, lanes = base.shape[1], base.shape[2]
    gradient = 2 if parts > 2 else 0
    for c in range(owners.size):
        if owners[c] < 2:
            continue
        f, unit = factors[c], abs(units[c])
        penalized = 1.0 if units[c] > 0 else 0.0
        for k in range(lanes):
            n0, g = f * f * np.float64(base[c, 1, k]), f * np.float64(base[c, gradient, k]) + added[c, GRADIENT, k]
            n, a = n0 + added[c, INFORMATION, k], added[c, EXPONENT, k]
            if k >= first_filter:
                prior, z = scales[c] * scales[c] * p[RATE, k], np.float64(base[c, 0, k])
                n = n0 * added[c, KEPT, k] + added[c, INFORMATION, k]
                if prior + n > 0:
                    z = ((prior + n0) * z + added[c, MOVED, k]) / (prior + n)
            elif proximal:
                z = f * np.float64(base[c, 0, k])
                average = not np.isfinite(curvature)
                # Strengths may not grow although n does, by rounding.
                if added[c, INFORMATION, k] > 0 and (a > 0 or not average):
                    l1, l2 = penalized * p[L1, k] / unit, penalized * p[L2, k] / unit / unit
                    x = point(z, strength(n0, scales[c], p, k, free), l1, l2, p[RADIUS, k] * unit)
                    within = min(max(z, -l1), l1)
                    part = 1 / a if average else 1 / growth(a)
                    x += part * (added[c, POINT, k] - a * x)
                    within += part * (added[c, WITHIN, k] - a * within)
                    if average and x != 0:
                        within = -l1 if x > 0 else l1
                    z = within - x * (strength(n, scales[c], p, k, free) + l2)
            else:
                z, total = g, added[c, GRADIENT, k]
                n += max(total * total - added[c, SQUARE, k], 0.0)
            out[c, 0, k] = min(max(z, -largest), largest)
            out[c, 1, k] = min(n, largest)
            if gradient > 0:
                out[c, gradient, k] = min(max(g, -largest), largest)
