"""Operations of compiled code only: prefetch, vectors of records and gradients, exponent bits, raw memory.

Each has an equivalent of the same name in ``plain``, which uncompiled kernels use. The equivalents of those that use
private parts of numba (``memory`` and ``vectors``) can be compiled by numba: kernels fall back to them if an intrinsic
cannot be built with the installed numba, or if the environment variable ``FOREL_INTRINSICS`` is 0.
"""

import importlib
import os
from contextlib import suppress
from functools import cache
from typing import Any

from forel.learner.kernels.intrinsics import plain

__all__ = ["available"]


def available() -> dict[str, Any]:
    """Return the intrinsics by name, or their compiled plain equivalents where they cannot be built."""
    return _available(os.environ.get("FOREL_INTRINSICS") != "0")


@cache
def _available(private: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for home in ("scalars", "memory", "vectors") if private else ("scalars",):
        with suppress(ImportError, AttributeError):
            module = importlib.import_module(f"{__name__}.{home}")
            found |= {name: getattr(module, name) for name in module.__all__}
    return {name: found.get(name) or plain.compiled(name) for name in plain.__all__}
