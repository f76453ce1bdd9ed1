"""Operations of compiled code only: prefetch, vectors of records and gradients, exponent bits, raw memory.

Each has an equivalent of the same name in ``plain``, which uncompiled kernels use. The equivalents of those that use
private parts of numba (``gradients``, ``prefetch``, ``memory``, ``records``, ``vectors``) can be compiled by numba:
kernels fall back to them if an intrinsic cannot be built with the installed numba, or if the environment variable
``FOREL_INTRINSICS`` is 0.
"""

import importlib
import os
from functools import cache
from typing import Any

from forel.learner.kernels.intrinsics import plain

__all__ = ["available"]

PUBLIC = {"address": ("carray", "pointer"), "exponents": ("binade", "inverse_power")}
PRIVATE = {
    "gradients": ("add_gradients",),
    "prefetch": ("prefetch",),
    "memory": ("allocate", "release"),
    "records": ("gather_records", "load_values", "scatter_records"),
    "vectors": ("load_lanes", "store_lanes"),
}


def available() -> dict[str, Any]:
    """Return the intrinsics by name, or their compiled plain equivalents where they cannot be built."""
    return _available(os.environ.get("FOREL_INTRINSICS") != "0")


@cache
def _available(private: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for home, names in {**PUBLIC, **PRIVATE}.items():
        try:
            if home in PRIVATE and not private:
                raise ImportError(home)
            module = importlib.import_module(f"{__name__}.{home}")
            found |= {name: getattr(module, name) for name in names}
        except (ImportError, AttributeError):
            if home in PUBLIC:
                raise
            found |= {name: plain.compiled(name) for name in names}
    return found
