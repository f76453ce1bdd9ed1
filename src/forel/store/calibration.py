"""The calibration of a model: an affine map of its margins, which every prediction uses."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from forel.store.versions import damaged

__all__ = ["Calibration", "calibration_of"]


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
