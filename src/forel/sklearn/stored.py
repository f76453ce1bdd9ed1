"""Estimators from files: they have the same predictions, and can continue learning."""

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.learner.learner import Learner
from forel.learner.settings import Settings
from forel.sklearn.estimators import FTRLClassifier, FTRLRegressor
from forel.sklearn.shared import KEPT, OPTIONAL, guard_of
from forel.store import ServingModel
from forel.store.frame_features import FrameFeatures
from forel.training.model import as_model
from forel.training.statements import coverage_of
from forel.validation import refuse

__all__ = ["estimator_of"]

CLASSES: dict[str, Any] = {"FTRLClassifier": FTRLClassifier, "FTRLRegressor": FTRLRegressor}


def estimator_of(source: Any) -> Any:
    """Return the saved estimator, or a new one for a learner that was saved alone.

    ``source`` is a path, or the result of :func:`forel.load` or :func:`forel.train`.

    A learner alone becomes a classifier if its loss is a classification loss, with classes 0, 1, …, or −1 and 1
    for a hinge loss, and a regressor otherwise.

    >>> import pathlib, tempfile
    >>> from forel import save
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.forel"
    >>> save(path, FTRLClassifier(alpha=1.0).fit([[1.0, 0.0], [0.0, 1.0]], ["ham", "spam"]))
    >>> estimator_of(path).predict([[0.0, 1.0]])
    array(['spam'], dtype='<U4')
    """
    stored = as_model(source)
    model = stored.learner
    if isinstance(model, ServingModel):
        raise refuse("stored", "a serving model", "a learner; a serving model only predicts")
    if model.settings.n_settings > 1 and model.guarantee() is None:
        raise refuse("stored", "several models", "one model, or a forel.Learner of several settings")
    known = stored.estimator or {}
    named = isinstance(model.settings.loss, str) and model.settings.loss in FTRLClassifier._losses
    if known.get("class", "FTRLClassifier") not in CLASSES:
        raise refuse("stored", known["class"], "an estimator or a learner; forel.river.model_of returns river models")
    kind = CLASSES[known.get("class", "FTRLClassifier" if model.classes or named else "FTRLRegressor")]
    parameters = {f.name: getattr(model.settings, f.name) for f in fields(Settings) if f.name != "bias"}
    parameters |= dict.fromkeys(name for name in known.get("unset", ()) if name in OPTIONAL)
    kept = {name: known[name] for name in KEPT if name in known}
    estimator = kind(
        **parameters,
        fit_intercept=model.settings.bias,
        dtype=model.dtype.name,
        certified=model.certified,
        **{name: dict(value) if isinstance(value, list) else value for name, value in kept.items()},
    )
    total_loss, total_weight = known.get("progress", (float(np.sum(model.loss)), float(model.rounds)))
    estimator._model, estimator._progress = model, (total_loss, total_weight)
    estimator.n_iter_ = known.get("n_iter", 1)
    estimator.n_features_in_ = model.features
    if (coverage := coverage_of(stored.extra)) is not None:
        estimator._coverage, estimator.interval = coverage, coverage.level
    guard_of(estimator)
    if known.get("columns") is not None:
        estimator._frame_features = FrameFeatures.from_json(known["columns"])
        estimator.n_features_in_ = len(estimator._frame_features.kinds)
    if known.get("feature_names"):
        estimator.feature_names_in_ = np.array(known["feature_names"], dtype=object)
    if kind is FTRLClassifier:
        estimator.classes_ = _classes(model, known.get("classes"))
    return estimator


def _classes(model: Learner, packed: Any) -> NDArray[Any]:
    if packed is None:
        if model.classes is None and model.settings.signed:
            return np.array([-1, 1])
        return np.arange(model.classes or 2)
    if np.dtype(packed["dtype"]).kind not in "biufUO":
        raise refuse("dtype of the classes", packed["dtype"], "numbers or text")
    classes: NDArray[Any] = np.array(packed["values"], dtype=packed["dtype"])
    if classes.shape != (model.classes or 2,):
        raise refuse("classes", packed["values"], f"{model.classes or 2} of them")
    return classes
