"""Saving, logging and loading of models in MLflow's format: a folder with the model file and its environment."""

import os
import pathlib
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from forel.training.model import Model, load, save
from forel.version import __version__

__all__ = ["load_model", "log_model", "save_model"]

LOADER = "forel.mlflow"
FILE = "model.forel"


def save_model(model: Any, path: str | os.PathLike[str], **options: Any) -> None:
    """Save a model as a folder that ``mlflow.pyfunc.load_model`` reads.

    Parameters
    ----------
    model : a path, a result of training or of :func:`forel.load`, an estimator or a river model
    path : the folder, which must not exist
    options : of ``mlflow.pyfunc.save_model``, such as ``signature``, ``input_example`` or ``pip_requirements``, which
        is this version of forel by default

    No signature is inferred: MLflow would refuse whole numbers in a column that also has fractions. The model compares
    rows with its own schema, and warns of those that differ.
    """
    mlflow = _mlflow()
    with _file(model) as file:
        mlflow.pyfunc.save_model(os.fspath(path), loader_module=LOADER, data_path=file, **_with_requirements(options))


def log_model(model: Any, name: str, **options: Any) -> Any:
    """Log a model in the active run, or in a new one, and return MLflow's description of it.

    Parameters
    ----------
    model : as in :func:`save_model`
    name : of the model in the run
    options : of ``mlflow.pyfunc.log_model``, such as ``registered_model_name``
    """
    mlflow = _mlflow()
    with _file(model) as file:
        options = _with_requirements(options)
        return mlflow.pyfunc.log_model(name=name, loader_module=LOADER, data_path=file, **options)


def load_model(uri: str | os.PathLike[str]) -> Model:
    """Return a model as :func:`forel.load` does, to predict or to continue learning.

    Parameters
    ----------
    uri : a folder, or an address of MLflow such as ``models:/churn/1``
    """
    mlflow = _mlflow()
    folder = pathlib.Path(os.fspath(uri))
    if not folder.is_dir():
        folder = pathlib.Path(mlflow.artifacts.download_artifacts(artifact_uri=os.fspath(uri)))
    flavor = mlflow.models.Model.load(os.fspath(folder)).flavors.get("python_function", {})
    if flavor.get("loader_module") != LOADER:
        raise ValueError(f"uri: got a model of {flavor.get('loader_module')}, expected one of forel.mlflow")
    return load(folder / flavor["data"])


def _mlflow() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # MLflow warns of its own type hints
            import mlflow.artifacts
            import mlflow.models
            import mlflow.pyfunc
    except ImportError as error:
        raise ImportError("mlflow is not installed; pip install 'forel[mlflow]'") from error
    return mlflow


def _with_requirements(options: dict[str, Any]) -> dict[str, Any]:
    given = {"pip_requirements", "extra_pip_requirements", "conda_env"} & options.keys()
    return options if given else {**options, "pip_requirements": [f"forel=={__version__}"]}


@contextmanager
def _file(model: Any) -> Iterator[str]:
    """Yield the path of a temporary file with the model."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / FILE
        if isinstance(model, str | os.PathLike):
            load(model)  # a sentence about a file that is not a model
            shutil.copyfile(model, path)
        else:
            save(path, model)
        yield os.fspath(path)
