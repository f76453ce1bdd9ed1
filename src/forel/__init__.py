"""Adaptive online learning: the FTRL family, its theorems, and learners that carry their proof.

>>> import forel
>>> visits = [{"site": "news", "click": 1}, {"site": "shop", "click": 0}] * 50
>>> trained = forel.train(visits, label="click", bits=10)  # or files; nothing needs tuning
>>> trained.report.auc > 0.99
True
>>> forel.predict(trained, [{"site": "news"}]).round()
array([1.])

Everything loads on first use, so that ``import forel`` takes no time:

>>> 0.5 in forel.theory.sets.Box(-1, 1)
True
"""

import importlib
import sys
from typing import TYPE_CHECKING, Any

from forel.version import __version__ as __version__

if TYPE_CHECKING:
    from forel import cli as cli
    from forel import data as data
    from forel import evidence as evidence
    from forel import experts as experts
    from forel import learner as learner
    from forel import losses as losses
    from forel import mlflow as mlflow
    from forel import onnx as onnx
    from forel import optax as optax
    from forel import ray as ray
    from forel import report as report
    from forel import river as river
    from forel import sklearn as sklearn
    from forel import store as store
    from forel import theory as theory
    from forel import torch as torch
    from forel import training as training
    from forel.data import read as read
    from forel.learner.learner import Learner as Learner
    from forel.learner.settings import Settings as Settings
    from forel.sklearn import FTRLClassifier as FTRLClassifier
    from forel.sklearn import FTRLRegressor as FTRLRegressor
    from forel.training.compare import compare as compare
    from forel.training.model import Model as Model
    from forel.training.model import evaluate as evaluate
    from forel.training.model import load as load
    from forel.training.model import predict as predict
    from forel.training.model import save as save
    from forel.training.train import train as train

# The modules of names, and packages, as imported above for type checkers.
_MODULES = {
    **dict.fromkeys(("FTRLClassifier", "FTRLRegressor"), "forel.sklearn"),
    **dict.fromkeys(("Model", "evaluate", "load", "predict", "save"), "forel.training.model"),
    "Learner": "forel.learner.learner",
    "Settings": "forel.learner.settings",
    "compare": "forel.training.compare",
    "read": "forel.data",
    "train": "forel.training.train",
}
_PACKAGES = (
    *("cli", "data", "evidence", "experts", "learner", "losses", "mlflow", "onnx", "optax"),
    *("ray", "report", "river", "sklearn", "store", "theory", "torch", "training"),
)
__all__ = sorted([*_MODULES, *_PACKAGES])


if not TYPE_CHECKING:  # type checkers know the names above, and that there are no others

    def __getattr__(name: str) -> Any:
        if name in _PACKAGES:
            return importlib.import_module(f"forel.{name}")
        if name not in _MODULES:
            message = f"module 'forel' has no attribute {name!r}; it has {', '.join(__all__)}"
            raise AttributeError(message, name=name, obj=sys.modules[__name__])  # Python suggests a name like it
        return getattr(importlib.import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
