r"""Polynomial approximations of the exponential and the logarithm that losses need.

Loops with calls to the mathematical library are not vectorized; loops with these are. The polynomials are Chebyshev
approximations with an error of at most two units in the last place.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import extending, types

__all__ = ["exp_minus", "log1p"]

intrinsic: Any = extending.intrinsic
INLINED: Any = {"forceinline": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "nogil": True}

ZERO, ONE, LIMIT = np.float32(0), np.float32(1), np.float32(87)  # e⁻⁸⁷ is a normal number, e⁻⁸⁸ is not
# Adding it rounds a number to an integer, which is then in the last bits.
ROUNDER, MINUS_LOG2_E = np.float32(3 * 2.0**22), np.float32(-1 / np.log(2))
LN2_HIGH, LN2_LOW = np.float32(0.693359375), np.float32(np.log(2) - 0.693359375)  # 127 times the first is exact
# Coefficients of (eʳ − 1 − r)/r², and of (e − log(1 + e))/e², the latter in two parts.
EXP = tuple(map(np.float32, (0.5, 0.16666576, 0.041666463, 0.008363236, 0.0013933734)))
LOG = tuple(map(np.float32, (0.5, -0.33333248, 0.24997024, -0.19959356, 0.16378509)))
LOG_TAIL = tuple(map(np.float32, (-0.13071328, 0.09202963, -0.04993118, 0.017512243, -0.0028738838)))
# Those of float64; 1,024 times the first part of log 2 is exact. ATANH has (atanh(s) − s)/s³ in s².
LIMIT_64, ROUNDER_64, MINUS_LOG2_E_64 = 708.0, 3 * 2.0**51, -1 / np.log(2)  # e⁻⁷⁰⁸ is a normal number
LN2_HIGH_64 = round(np.log(2) * 2.0**32) / 2.0**32
LN2_LOW_64 = np.log(2) - LN2_HIGH_64 + 2.3190468138462996e-17
EXP_64 = (
    0.5000000000000001, 0.16666666666666669, 0.041666666666623824, 0.008333333333330039, 0.0013888888917367081,
    0.00019841269863171557, 2.4801521057868204e-05, 2.7557268276905696e-06, 2.7620201591031547e-07,
    2.5100472505694996e-08,
)  # fmt: skip
ATANH_64 = (
    0.3333333333333333, 0.20000000000007292, 0.1428571428355438, 0.11111111358713932, 0.09090894718066429,
    0.07692785032479312, 0.06657072104827468, 0.06000536404795356, 0.04400369243072337, 0.08082022805971766,
)  # fmt: skip


@intrinsic
def multiply_by_power_of_two(typing_context: Any, x: Any, rounded: Any) -> Any:
    """Return x 2ᵏ, where k is in the last bits of ``rounded``, by adding k to the exponent bits of x."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        integer, exponent_bit = (ir.IntType(32), 23) if x == types.float32 else (ir.IntType(64), 52)
        bits, shift = (builder.bitcast(argument, integer) for argument in arguments)
        return builder.bitcast(builder.add(bits, builder.shl(shift, integer(exponent_bit))), arguments[0].type)

    return x(x, x), codegen


def exp_minus(a):
    """Return e⁻ᵃ for a ≥ 0; the compiled version returns 0 where that is not a normal number.

    >>> float(exp_minus(0.0))
    1.0
    """
    return np.exp(-a)


@extending.overload(exp_minus, jit_options=INLINED)
def _exp_minus(a):
    return _exp_minus_32 if a == types.float32 else _exp_minus_64


def _exp_minus_32(a):
    clipped = min(a, LIMIT)
    rounded = clipped * MINUS_LOG2_E + ROUNDER
    k = rounded - ROUNDER
    r = (-clipped - k * LN2_HIGH) - k * LN2_LOW
    tail = EXP[0] + r * (EXP[1] + r * (EXP[2] + r * (EXP[3] + r * EXP[4])))
    return multiply_by_power_of_two(ONE + (r + r * r * tail), rounded) if a <= LIMIT else ZERO


def _exp_minus_64(a):
    clipped = min(a, LIMIT_64)
    rounded = clipped * MINUS_LOG2_E_64 + ROUNDER_64
    k = rounded - ROUNDER_64
    r = (-clipped - k * LN2_HIGH_64) - k * LN2_LOW_64
    tail = EXP_64[5] + r * (EXP_64[6] + r * (EXP_64[7] + r * (EXP_64[8] + r * EXP_64[9])))
    tail = EXP_64[0] + r * (EXP_64[1] + r * (EXP_64[2] + r * (EXP_64[3] + r * (EXP_64[4] + r * tail))))
    return multiply_by_power_of_two(1.0 + (r + r * r * tail), rounded) if a <= LIMIT_64 else 0.0


def log1p(e):
    """Return log(1 + e) for 0 ≤ e ≤ 1.

    >>> float(log1p(0.0)), round(float(log1p(1.0)), 4)
    (0.0, 0.6931)
    """
    return np.log1p(e)


@extending.overload(log1p, jit_options=INLINED)
def _log1p(e):
    return _log1p_32 if e == types.float32 else _log1p_64


def _log1p_32(e):
    tail = LOG_TAIL[0] + e * (LOG_TAIL[1] + e * (LOG_TAIL[2] + e * (LOG_TAIL[3] + e * LOG_TAIL[4])))
    return e - e * e * (LOG[0] + e * (LOG[1] + e * (LOG[2] + e * (LOG[3] + e * (LOG[4] + e * tail)))))


def _log1p_64(e):
    s = e / (2.0 + e)  # log(1 + e) = 2 atanh(s), and s is at most 1/3
    t = s * s
    tail = ATANH_64[5] + t * (ATANH_64[6] + t * (ATANH_64[7] + t * (ATANH_64[8] + t * ATANH_64[9])))
    tail = ATANH_64[0] + t * (ATANH_64[1] + t * (ATANH_64[2] + t * (ATANH_64[3] + t * (ATANH_64[4] + t * tail))))
    return 2.0 * (s + s * t * tail)
