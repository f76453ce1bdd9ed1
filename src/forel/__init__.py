"""Adaptive online learning: the FTRL family, its theorems, and learners that carry their proof.

>>> import forel
>>> visits = [{"site": "news", "click": 1}, {"site": "shop", "click": 0}] * 50
>>> trained = forel.train(visits, label="click", bits=10)  # or files; nothing needs tuning
>>> trained.report.auc > 0.99
True

``train``, ``evaluate``, ``load``, ``save`` and ``open`` are here, all else in modules, which load on first use, so that
``import forel`` costs nothing:

>>> 0.5 in forel.sets.Box(-1, 1)
True
"""

import importlib
from typing import Any

_MODULES = (
    "algorithms",
    "analysis",
    "argmin",
    "certificate",
    "checkpoint",
    "clicks",
    "convex",
    "estimators",
    "experts",
    "formats",
    "geometries",
    "gradients",
    "grid",
    "history",
    "linear",
    "losses",
    "mixture",
    "norms",
    "passes",
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
    "settings",
    "store",
    "survey",
    "targets",
    "training",
    "weights",
)
_FUNCTIONS = {
    "evaluate": "scoring.evaluate",
    "load": "store.load",
    "open": "formats.open_blocks",
    "save": "store.save",
    "train": "training.train",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"forel.{name}")
    if name in _FUNCTIONS:
        home, function = _FUNCTIONS[name].split(".")
        return getattr(importlib.import_module(f"forel.{home}"), function)
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("forel")
    raise AttributeError(f"module 'forel' has no attribute {name!r}; it has {', '.join((*_MODULES, *_FUNCTIONS))}")


def __dir__() -> list[str]:
    return [*_MODULES, *_FUNCTIONS, "__version__"]
