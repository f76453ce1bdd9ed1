r"""Units in which scale-free rates keep records, so that no scale of a feature leaves the range of a type.

With s the largest \|value\| of a coordinate and u its unit, values are v/u, weights are wu, and a record has z/u, n/u²
and g_{1:t}/u. A record whose state is the point keeps that as it is. Units are powers of two, by which multiplication
is exact, so that results have the same bits as without units. They are far apart: the unit of all ordinary scales is 1,
in float32 of those from 2⁻³² to 2¹⁶, so that kernels without any arithmetic of units learn from most rows.
"""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["powers_and_starts", "units_of"]


@cache
def powers_and_starts(dtype: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the units of a type in order, and the smallest scale of each but the first.

    >>> powers, starts = powers_and_starts(np.float32)
    >>> np.log2(powers), np.log2(starts)
    (array([-96., -48.,   0.,  48.,  96., 126.], dtype=float32), array([-80., -32.,  16.,  64., 112.], dtype=float32))
    """
    most = np.finfo(dtype).maxexp
    step = 3 * most // 8
    exponents = np.minimum(step * np.arange(-2, 4), most - 2)
    starts = step * np.arange(-1, 4) - 2 * step // 3
    one: Any = np.dtype(dtype).type(1)
    return np.ldexp(one, exponents), np.ldexp(one, starts)


def units_of(scales: NDArray[Any]) -> NDArray[np.float64]:
    """Return the unit of each scale; 1 for 0.

    >>> np.log2(units_of(np.float32([1.7e18, 0.3, 0])))
    array([48.,  0.,  0.])
    """
    powers, starts = powers_and_starts(scales.dtype)
    found: NDArray[np.float64] = powers.astype(np.float64)[np.searchsorted(starts, scales, side="right")]
    found[scales == 0] = 1
    return found
