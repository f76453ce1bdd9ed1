"""The fast learner as river models: learn from dicts or frames, in river's pipelines and evaluations.

Needs the extra ``river``, but only when a model is used: without it this module is importable and empty.
"""

import importlib
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forel.river.classifier import LinearClassifier
    from forel.river.regressor import LinearRegressor
    from forel.river.stored import model_of

__all__ = ["LinearClassifier", "LinearRegressor", "model_of"]

_HOMES = {"LinearClassifier": "classifier", "LinearRegressor": "regressor", "model_of": "stored"}
_REQUIRED = ("river", "narwhals")


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'forel.river' has no attribute {name!r}; it has {', '.join(__all__)}")
    missing = _missing()
    if missing:
        raise ModuleNotFoundError(
            f"forel.river needs {' and '.join(missing)}; install the extra: pip install 'forel[river]'"
        )
    return getattr(importlib.import_module(f"forel.river.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    # Completion and help read every name listed here.
    return [] if _missing() else __all__


def _missing() -> list[str]:
    return [package for package in _REQUIRED if find_spec(package) is None]
