"""The calibration of a model: an affine map of its margins, which every prediction uses."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.store.header import damaged

__all__ = ["Calibration", "calibration_of", "calibration_state"]


@dataclass(frozen=True)
class Calibration:
    """Maps a margin m to ``slope`` m + ``offset``, whose probability is calibrated; it keeps the order of rows.

    >>> str(Calibration(0.5, -0.25)), Calibration(0.5, -0.25).margins(2.0)
    ('0.5 × margin − 0.25', 0.75)
    """

    slope: float
    offset: float

    def margins(self, margins: Any) -> Any:
        """Return calibrated margins."""
        return self.slope * margins + self.offset

    def __str__(self) -> str:
        return f"{self.slope:.4g} × margin {'−' if self.offset < 0 else '+'} {abs(self.offset):.4g}"


def calibration_of(extra: Mapping[str, Any]) -> Calibration | None:
    """Return the calibration in the stored content of a model, None if it has none."""
    known = extra.get("calibration")
    if known is None:
        return None
    slope, offset = (known.get("slope"), known.get("offset")) if isinstance(known, dict) else (None, None)
    if isinstance(slope, float) and isinstance(offset, float) and 0 < slope < math.inf and math.isfinite(offset):
        return Calibration(slope, offset)
    raise damaged("the calibration is not two numbers, of which the first is positive")


def calibration_state(numbers: NDArray[np.float64]) -> tuple[Calibration, dict[str, Any]]:
    """Return a calibration, and the stored content from which its training continues.

    >>> calibration_state(np.array([0.5, 0.25, 10.0, 0.0, 10.0]))
    (Calibration(slope=0.5, offset=0.25), {'slope': 0.5, 'offset': 0.25, 'precision': [10.0, 0.0, 10.0]})
    """
    slope, offset, *precision = numbers.tolist()
    return Calibration(slope, offset), {"slope": slope, "offset": offset, "precision": precision}
