r"""The exponential and the logarithm that losses need, short enough to go side by side in float32.

A call to the library's functions keeps lanes from going side by side. These are polynomials, near the best of their
degree (Chebyshev), whose error is at most two units in the last place; doubles are left to the library.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import extending, types

__all__ = ["decay", "log1p"]

intrinsic: Any = extending.intrinsic

ZERO, ONE, MOST = np.float32(0), np.float32(1), np.float32(87)  # e⁻⁸⁷ is the last before numbers get denormal
# Adding it leaves a number's whole part in the last bits.
WHOLE, PER_TWO = np.float32(3 * 2.0**22), np.float32(-1 / np.log(2))
COARSE, FINE = np.float32(0.693359375), np.float32(np.log(2) - 0.693359375)  # log 2, the first part exact times 127
E = tuple(map(np.float32, (0.5, 0.16666576, 0.041666463, 0.008363236, 0.0013933734)))  # of (eʳ − 1 − r)/r²
L = tuple(map(np.float32, (0.5, -0.33333248, 0.24997024, -0.19959356, 0.16378509)))  # of (e − log(1 + e))/e²
M = tuple(map(np.float32, (-0.13071328, 0.09202963, -0.04993118, 0.017512243, -0.0028738838)))  # and on


@intrinsic
def doubled(typing_context: Any, x: Any, times: Any) -> Any:
    """Return x 2ᵏ, where k is in the last bits of the other number, by adding to the exponent of x."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bits, shift = (builder.bitcast(argument, ir.IntType(32)) for argument in arguments)
        return builder.bitcast(builder.add(bits, builder.shl(shift, ir.IntType(32)(23))), arguments[0].type)

    return types.float32(types.float32, types.float32), codegen


def decay(a):
    """Return e⁻ᵃ for a ≥ 0; in float32 0 where that would no longer be a normal number.

    >>> float(decay(0.0))
    1.0
    """
    return np.exp(-a)


@extending.overload(decay, inline="always")
def _decay(a):
    return _decay_single if a == types.float32 else decay


def _decay_single(a):
    near = min(a, MOST)
    turns = near * PER_TWO + WHOLE
    k = turns - WHOLE
    r = (-near - k * COARSE) - k * FINE
    tail = E[0] + r * (E[1] + r * (E[2] + r * (E[3] + r * E[4])))
    return doubled(ONE + (r + r * r * tail), turns) if a <= MOST else ZERO


def log1p(e):
    """Return log(1 + e) for 0 ≤ e ≤ 1, half as long as the library's takes: the error of 1 + e cancels.

    >>> float(log1p(0.0)), round(float(log1p(1.0)), 4)
    (0.0, 0.6931)
    """
    u = 1 + e
    return np.log(u) * (e / (u - 1)) if u != 1 else e


@extending.overload(log1p, inline="always")
def _log1p(e):
    return _log1p_single if e == types.float32 else log1p


def _log1p_single(e):
    tail = M[0] + e * (M[1] + e * (M[2] + e * (M[3] + e * M[4])))
    return e - e * e * (L[0] + e * (L[1] + e * (L[2] + e * (L[3] + e * (L[4] + e * tail)))))
