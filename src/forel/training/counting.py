"""Progressive metrics by numpy, with the bits of :mod:`forel.learner.kernels.counting`, until compiling that pays."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.jit.deferred import Deferred
from forel.learner.kernels.kernel import routine
from forel.learner.kernels.polynomials import ATANH, EXP, LIMIT, LN2_HIGH, LN2_LOW, MINUS_LOG2_E, ROUNDER

__all__ = ["log_losses", "tally"]

Floats = NDArray[np.float64]
ROWS = 1 << 18  # from which compiling takes less time than numpy


def _polynomial(x: Floats, coefficients: tuple[float, ...]) -> Floats:
    total = np.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = coefficient + x * total
    return total


def _exp_minus(a: Floats) -> Floats:
    """Return e⁻ᵃ for a ≥ 0, 0 where that is not a normal number."""
    clipped = np.minimum(a, LIMIT)
    rounded = clipped * MINUS_LOG2_E + ROUNDER
    k = rounded - ROUNDER
    r = (-clipped - k * LN2_HIGH) - k * LN2_LOW
    mantissa = 1.0 + (r + r * r * _polynomial(r, EXP))
    # The last bits of ``rounded`` are k, which is added to the exponent.
    powers = (mantissa.view(np.int64) + (rounded.view(np.int64) << 52)).view(np.float64)
    return np.where(a <= LIMIT, powers, 0.0)


def _log1p(e: Floats) -> Floats:
    """Return log(1 + e) for 0 ≤ e ≤ 1."""
    s = e / (2.0 + e)
    t = s * s
    return 2.0 * (s + s * t * _polynomial(t, ATANH))


def _log_losses(margins: NDArray[Any], labels: NDArray[Any], losses: Floats, predictions: Floats) -> None:
    m, y = margins.astype(np.float64), labels.astype(np.float64)
    with np.errstate(all="ignore"):  # as compiled code does
        e = _exp_minus(np.abs(m))
        # Comparisons with NaN are false: its loss is NaN.
        losses[:] = y * np.where(m >= 0, 0.0, -m) + (1.0 - y) * np.where(m <= 0, 0.0, m) + _log1p(e)
    predictions[:] = np.where(m < 0, e, 1.0) / (1.0 + e)


def _tally(
    margins: NDArray[Any], labels: NDArray[Any], positives: NDArray[Any], importance: NDArray[Any], losses: Floats,
    predictions: Floats, sums: Floats, bins: Floats, reach: float,
) -> None:  # fmt: skip
    w, last = importance.astype(np.float64), bins.shape[0] - 1
    sums[0] += labels.size
    for k, terms in enumerate((w, w * losses, w * labels, w * predictions), start=1):
        sums[k] = np.add.accumulate(np.append(sums[k], terms))[-1]  # one term at a time
    if last > 0:
        position = (margins.astype(np.float64) + reach) * ((last + 1) / (2 * reach))
        found = np.where(position > 0, np.minimum(position, float(last)), 0.0).astype(np.intp)
        for k, terms in enumerate((w, w * positives, w * predictions)):
            np.add.at(bins[:, k], found, terms)


log_losses = Deferred(partial(routine, "counting", "log_losses"), _log_losses, ROWS)
tally = Deferred(partial(routine, "counting", "tally"), _tally, ROWS)
