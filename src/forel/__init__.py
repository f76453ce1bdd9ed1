"""Adaptive online learning: the FTRL family, its theorems, and learners that carry their proof.

Modules load on first use, so that ``import forel`` costs nothing:

>>> import forel
>>> 0.5 in forel.sets.Box(-1, 1)
True
"""

import importlib
import importlib.metadata
from types import ModuleType

__version__ = importlib.metadata.version("forel")

_MODULES = (
    "argmin",
    "convex",
    "geometries",
    "losses",
    "norms",
    "penalties",
    "rates",
    "regularizers",
    "sets",
    "weights",
)


def __getattr__(name: str) -> ModuleType:
    if name in _MODULES:
        return importlib.import_module(f"forel.{name}")
    raise AttributeError(f"module 'forel' has no attribute {name!r}; it has {', '.join(_MODULES)}")


def __dir__() -> list[str]:
    return [*_MODULES, "__version__"]
