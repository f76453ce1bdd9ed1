"""The survey as code: parts, argmins, algorithms, the game, regret, bounds and their proofs.

Modules load on first use:

>>> import forel
>>> 0.5 in forel.theory.sets.Box(-1, 1)
True
"""

import importlib
from types import ModuleType

__all__ = [
    "algorithms",
    "analysis",
    "argmin",
    "convex",
    "geometries",
    "norms",
    "penalties",
    "plot",
    "rates",
    "regularizers",
    "sets",
    "survey",
    "weights",
]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return importlib.import_module(f"forel.theory.{name}")
    raise AttributeError(f"module 'forel.theory' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return __all__
