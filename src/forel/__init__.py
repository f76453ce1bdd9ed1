"""Adaptive online learning: the FTRL family, its theorems, and learners that carry their proof.

>>> import forel
>>> visits = [{"site": "news", "click": 1}, {"site": "shop", "click": 0}] * 50
>>> trained = forel.train(visits, label="click", bits=10)  # or files; nothing needs tuning
>>> trained.report.auc > 0.99
True
>>> forel.predict(trained, [{"site": "news"}]).round()
array([1.], dtype=float32)

Everything loads on first use, so that ``import forel`` takes no time:

>>> 0.5 in forel.theory.sets.Box(-1, 1)
True
"""

import importlib
from typing import TYPE_CHECKING, Any

from forel.version import __version__ as __version__

if TYPE_CHECKING:
    from forel import (
        cli,
        data,
        experts,
        learner,
        losses,
        mlflow,
        onnx,
        ray,
        report,
        river,
        sklearn,
        store,
        theory,
        training,
    )
    from forel.data import read
    from forel.learner.learner import Learner
    from forel.learner.settings import Settings
    from forel.sklearn import FTRLClassifier, FTRLRegressor
    from forel.training.model import Model, evaluate, load, predict, save
    from forel.training.train import train

__all__ = [
    "FTRLClassifier",
    "FTRLRegressor",
    "Learner",
    "Model",
    "Settings",
    "cli",
    "data",
    "evaluate",
    "experts",
    "learner",
    "load",
    "losses",
    "mlflow",
    "onnx",
    "predict",
    "ray",
    "read",
    "report",
    "river",
    "save",
    "sklearn",
    "store",
    "theory",
    "train",
    "training",
]

# The module and the name of what is not a package, as imported above for type checkers.
_HOMES = {
    "FTRLClassifier": ("sklearn", "FTRLClassifier"),
    "FTRLRegressor": ("sklearn", "FTRLRegressor"),
    "Learner": ("learner.learner", "Learner"),
    "Settings": ("learner.settings", "Settings"),
    "evaluate": ("training.model", "evaluate"),
    "Model": ("training.model", "Model"),
    "load": ("training.model", "load"),
    "predict": ("training.model", "predict"),
    "read": ("data", "read"),
    "save": ("training.model", "save"),
    "train": ("training.train", "train"),
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'forel' has no attribute {name!r}; it has {', '.join(__all__)}")
    if name not in _HOMES:
        return importlib.import_module(f"forel.{name}")
    module, attribute = _HOMES[name]
    return getattr(importlib.import_module(f"forel.{module}"), attribute)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
