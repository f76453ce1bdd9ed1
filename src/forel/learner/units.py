r"""Units in which scale-free rates keep records, so that features of any scale stay in the range of the type.

With s the largest \|value\| of a coordinate and u its unit, values are v/u, weights are wu, and a record has z/u, n/u²
and g_{1:t}/u, of filters the mean times u. Where the state is the point, the record has the point without a unit. The
unit of ordinary scales is 1; that of others is the largest power of two that is not above the scale. Multiplication by
it is exact.
"""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

__all__ = ["ORDINARY", "largest_unit", "units_of"]

ORDINARY = (2.0**-32, 2.0**16)  # the first scale whose unit is 1, and the first one above these


def largest_unit(dtype: DTypeLike) -> float:
    """Return the largest unit of a type; the smallest is its inverse, and both are normal numbers.

    >>> np.log2(largest_unit(np.float32))
    np.float64(126.0)
    """
    return float(np.ldexp(1.0, np.finfo(np.dtype(dtype)).maxexp - 2))


def units_of(scales: NDArray[Any]) -> NDArray[np.float64]:
    """Return the unit of each scale; 1 for 0.

    >>> np.log2(units_of(np.float32([1.7e18, 0.3, 0])))
    array([60.,  0.,  0.])
    """
    largest = largest_unit(scales.dtype)
    _, exponents = np.frexp(scales.astype(np.float64))
    found: NDArray[np.float64] = np.clip(np.ldexp(1.0, exponents - 1), 1 / largest, largest)
    found[(scales == 0) | ((scales >= ORDINARY[0]) & (scales < ORDINARY[1]))] = 1
    return found
