"""Interfaces: command line, scikit-learn, river, Ray, MLflow, ONNX, and training report. Each loads on first use."""

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forel.doors import cli, cluster, mlflow, onnx, report, river, sklearn

__all__ = ["cli", "cluster", "mlflow", "onnx", "report", "river", "sklearn"]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return importlib.import_module(f"forel.doors.{name}")
    raise AttributeError(f"module 'forel.doors' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return __all__
