"""Conversion of records of version 2, whose units are the powers of two at or below the scale of their coordinate."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.learner.lanes import BLOCK, Lanes

__all__ = ["from_fine_units"]


def from_fine_units(lanes: Lanes) -> None:
    """Convert records from the units of version 2 to the current ones, exactly, by powers of two."""
    if lanes.layout.rate != "scale_free":
        return
    largest = np.finfo(lanes.dtype).max
    for start in range(0, lanes.features + 1, BLOCK):
        some = slice(start, start + BLOCK)
        factors = _fine_units(lanes.scales[some]) / lanes.units(some)
        changed = np.flatnonzero(factors != 1)
        records = lanes.state[some][changed].astype(np.float64)
        records[:, 1:] *= factors[changed][:, None, None]
        records[:, 1] *= factors[changed][:, None]
        if not lanes.layout.primal:
            records[:, 0, : lanes.lanes - lanes.layout.filters] *= factors[changed][:, None]  # filters keep the mean
        lanes.state[some][changed] = np.clip(records, -largest, largest)
        if lanes.layout.gradient_lanes:
            gradients = lanes.gradients[some][changed] * factors[changed][:, None]
            lanes.gradients[some][changed] = np.clip(gradients, -largest, largest)


def _fine_units(scales: NDArray[Any]) -> NDArray[np.float64]:
    kind = np.finfo(scales.dtype)
    exponents = np.where(scales > 0, np.frexp(scales)[1] - 1, 0)
    units: NDArray[np.float64] = np.ldexp(1.0, np.clip(exponents, kind.minexp, kind.maxexp - 2))
    return units
