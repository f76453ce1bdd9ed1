r"""Units in which scale-free rates keep records, so that features of any scale stay in the range of the type.

With s the largest \|value\| of a coordinate and u its unit, values are v/u, weights are wu, and a record has z/u, n/u²
and g_{1:t}/u. Where the state is the point, the record has the point without a unit. Units are powers of two, by which
multiplication is exact, so that results have the same bits as without units. They are far apart: the unit of all
ordinary scales is 1 (in float32, of scales from 2⁻³² to 2¹⁶), so that kernels without unit arithmetic can learn from
most rows.
"""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["units_and_thresholds", "units_of"]


@cache
def units_and_thresholds(dtype: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the units of a type in order, and the smallest scale of each but the first.

    >>> powers, thresholds = units_and_thresholds(np.float32)
    >>> np.log2(powers), np.log2(thresholds)
    (array([-96., -48.,   0.,  48.,  96., 126.], dtype=float32), array([-80., -32.,  16.,  64., 112.], dtype=float32))
    """
    max_exponent = np.finfo(dtype).maxexp
    step = 3 * max_exponent // 8
    exponents = np.minimum(step * np.arange(-2, 4), max_exponent - 2)
    thresholds = step * np.arange(-1, 4) - 2 * step // 3
    one: Any = np.dtype(dtype).type(1)
    return np.ldexp(one, exponents), np.ldexp(one, thresholds)


def units_of(scales: NDArray[Any]) -> NDArray[np.float64]:
    """Return the unit of each scale; 1 for 0.

    >>> np.log2(units_of(np.float32([1.7e18, 0.3, 0])))
    array([48.,  0.,  0.])
    """
    powers, thresholds = units_and_thresholds(scales.dtype)
    found: NDArray[np.float64] = powers.astype(np.float64)[np.searchsorted(thresholds, scales, side="right")]
    found[scales == 0] = 1
    return found
