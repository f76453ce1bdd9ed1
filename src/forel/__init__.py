"""Adaptive online learning: the FTRL family, its theorems, and learners that carry their proof.

>>> import forel
>>> visits = [{"site": "news", "click": 1}, {"site": "shop", "click": 0}] * 50
>>> trained = forel.train(visits, label="click", bits=10)  # or files; nothing needs tuning
>>> trained.report.auc > 0.99
True

``train``, ``evaluate``, ``load``, ``save`` and ``open`` are here, all else in packages, loaded on first use:

>>> 0.5 in forel.theory.sets.Box(-1, 1)
True
"""

import importlib
from typing import Any

_PACKAGES = ("data", "doors", "experts", "learner", "losses", "store", "theory", "training")
_FUNCTIONS = {
    "evaluate": "training.scoring.evaluate",
    "load": "store.load",
    "open": "data.open_blocks",
    "save": "store.save",
    "train": "training.train.train",
}


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(f"forel.{name}")
    if name in _FUNCTIONS:
        home, _, function = _FUNCTIONS[name].rpartition(".")
        return getattr(importlib.import_module(f"forel.{home}"), function)
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("forel")
    raise AttributeError(f"module 'forel' has no attribute {name!r}; it has {', '.join((*_PACKAGES, *_FUNCTIONS))}")


def __dir__() -> list[str]:
    return [*_PACKAGES, *_FUNCTIONS, "__version__"]
