r"""The exponential and the logarithm that losses need, as polynomials, so that loops over lanes or rows vectorise.

Calls to the mathematical library would prevent that. The polynomials are Chebyshev approximations with an error of at
most two units in the last place.
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


# The same in doubles: e⁻⁷⁰⁸; log 2, the first part exact times 1,024; and of (atanh(s) − s)/s³ in s².
MOST_2, WHOLE_2, PER_TWO_2 = 708.0, 3 * 2.0**51, -1 / np.log(2)
COARSE_2 = round(np.log(2) * 2.0**32) / 2.0**32
FINE_2 = np.log(2) - COARSE_2 + 2.3190468138462996e-17
E_2 = (
    0.5000000000000001, 0.16666666666666669, 0.041666666666623824, 0.008333333333330039, 0.0013888888917367081,
    0.00019841269863171557, 2.4801521057868204e-05, 2.7557268276905696e-06, 2.7620201591031547e-07,
    2.5100472505694996e-08,
)  # fmt: skip
A_2 = (
    0.3333333333333333, 0.20000000000007292, 0.1428571428355438, 0.11111111358713932, 0.09090894718066429,
    0.07692785032479312, 0.06657072104827468, 0.06000536404795356, 0.04400369243072337, 0.08082022805971766,
)  # fmt: skip


@intrinsic
def doubled(typing_context: Any, x: Any, times: Any) -> Any:
    """Return x 2ᵏ, where k is in the last bits of the other number, by adding to the exponent of x."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        whole, last = (ir.IntType(32), 23) if x == types.float32 else (ir.IntType(64), 52)
        bits, shift = (builder.bitcast(argument, whole) for argument in arguments)
        return builder.bitcast(builder.add(bits, builder.shl(shift, whole(last))), arguments[0].type)

    return x(x, x), codegen


def decay(a):
    """Return e⁻ᵃ for a ≥ 0; compiled, 0 where that would no longer be a normal number.

    >>> float(decay(0.0))
    1.0
    """
    return np.exp(-a)


@extending.overload(decay, inline="always")
def _decay(a):
    return _decay_single if a == types.float32 else _decay_double


def _decay_single(a):
    near = min(a, MOST)
    turns = near * PER_TWO + WHOLE
    k = turns - WHOLE
    r = (-near - k * COARSE) - k * FINE
    tail = E[0] + r * (E[1] + r * (E[2] + r * (E[3] + r * E[4])))
    return doubled(ONE + (r + r * r * tail), turns) if a <= MOST else ZERO


def _decay_double(a):
    near = min(a, MOST_2)
    turns = near * PER_TWO_2 + WHOLE_2
    k = turns - WHOLE_2
    r = (-near - k * COARSE_2) - k * FINE_2
    tail = E_2[5] + r * (E_2[6] + r * (E_2[7] + r * (E_2[8] + r * E_2[9])))
    tail = E_2[0] + r * (E_2[1] + r * (E_2[2] + r * (E_2[3] + r * (E_2[4] + r * tail))))
    return doubled(1.0 + (r + r * r * tail), turns) if a <= MOST_2 else 0.0


def log1p(e):
    """Return log(1 + e) for 0 ≤ e ≤ 1.

    >>> float(log1p(0.0)), round(float(log1p(1.0)), 4)
    (0.0, 0.6931)
    """
    return np.log1p(e)


@extending.overload(log1p, inline="always")
def _log1p(e):
    return _log1p_single if e == types.float32 else _log1p_double


def _log1p_single(e):
    tail = M[0] + e * (M[1] + e * (M[2] + e * (M[3] + e * M[4])))
    return e - e * e * (L[0] + e * (L[1] + e * (L[2] + e * (L[3] + e * (L[4] + e * tail)))))


def _log1p_double(e):
    s = e / (2.0 + e)  # log(1 + e) = 2 atanh(s), and s is at most 1/3
    t = s * s
    tail = A_2[5] + t * (A_2[6] + t * (A_2[7] + t * (A_2[8] + t * A_2[9])))
    tail = A_2[0] + t * (A_2[1] + t * (A_2[2] + t * (A_2[3] + t * (A_2[4] + t * tail))))
    return 2.0 * (s + s * t * tail)
