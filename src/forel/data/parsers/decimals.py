"""Decimal numbers to float32 in exact arithmetic, for those that compiled code leaves to Python."""

import math
from decimal import Decimal

import numpy as np

__all__ = ["nearest_float32"]

TOP = 2.0**128  # the successor of the largest float32, if it had one


def nearest_float32(text: bytes) -> np.float32:
    """Return the float32 nearest to a decimal number, ties to even; infinity if it is too large.

    Conversion through float64 would round some numbers twice:

    >>> below = b"1.00000005960464477539062499999"  # a little less than half-way from 1 to the next float32
    >>> float(nearest_float32(below)), float(nearest_float32(b"1.0000000596046448"))
    (1.0, 1.0000001192092896)
    """
    word = text.decode("ascii")
    double = float(word)
    with np.errstate(all="ignore"):
        found = np.float32(double)
        near = TOP * math.copysign(1, double) if np.isinf(found) else float(found)
        if near == double or math.isinf(double):
            return found
        other = np.nextafter(found, np.float32(math.copysign(np.inf, double - near)))
    beyond = TOP * math.copysign(1, double) if np.isinf(other) else float(other)
    middle = (near + beyond) / 2
    if double != middle:
        return found
    # The double is a midpoint; the number itself may be on either side of it, or equal, where ``found`` is correct.
    side = Decimal(word).compare(Decimal(middle))
    if side == 0:
        return found
    return max(found, other) if side > 0 else min(found, other)
