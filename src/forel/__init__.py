"""Adaptive online learning: the FTRL family, its theorems, and learners that carry their proof.

Modules load on first use, so that ``import forel`` costs nothing:

>>> import forel
>>> 0.5 in forel.sets.Box(-1, 1)
True
"""

import importlib
from typing import Any

_MODULES = (
    "algorithms",
    "analysis",
    "argmin",
    "clicks",
    "convex",
    "estimators",
    "experts",
    "formats",
    "geometries",
    "history",
    "linear",
    "losses",
    "norms",
    "penalties",
    "pipeline",
    "plot",
    "progressive",
    "rates",
    "regularizers",
    "report",
    "river",
    "scoring",
    "sets",
    "store",
    "survey",
    "targets",
    "training",
    "weights",
)
_FUNCTIONS = {"evaluate": "scoring", "load": "store", "save": "store", "train": "training"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"forel.{name}")
    if name in _FUNCTIONS:
        return getattr(importlib.import_module(f"forel.{_FUNCTIONS[name]}"), name)
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("forel")
    raise AttributeError(f"module 'forel' has no attribute {name!r}; it has {', '.join((*_MODULES, *_FUNCTIONS))}")


def __dir__() -> list[str]:
    return [*_MODULES, *_FUNCTIONS, "__version__"]
