"""The loader that MLflow calls: a model file as an object with ``predict``."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from forel.sklearn import estimator_of
from forel.training.model import Model, load, predict
from forel.validation import refuse

__all__ = ["PyfuncModel"]

PARAMS = ("margins", "probabilities")


@dataclass(frozen=True)
class PyfuncModel:
    """A stored model with the ``predict`` of MLflow.

    >>> from forel.learner.learner import Learner
    >>> from forel.learner.settings import Settings
    >>> PyfuncModel(Model(Learner(16, Settings()))).predict([{"city": "Rome"}])
    array([0.5])
    """

    stored: Model

    def predict(self, model_input: Any, params: Mapping[str, Any] | None = None) -> Any:
        """Return the prediction for each row: a probability or a mean, or the name of a class.

        An estimator predicts as its own ``predict`` does.

        Parameters
        ----------
        model_input : a frame, or other rows that :func:`forel.predict` takes
        params : ``margins`` or ``probabilities``, as in :func:`forel.predict`
        """
        chosen = dict(params or {})
        for name in chosen.keys() - set(PARAMS):
            raise refuse("params", name, " or ".join(PARAMS))
        if self.stored.estimator is not None and "reading" not in self.stored.extra:
            estimator = estimator_of(self.stored)
            method = next((name for name, given in chosen.items() if given), None)
            by_param = {"margins": "decision_function", "probabilities": "predict_proba", None: "predict"}
            return getattr(estimator, by_param[method])(model_input)
        return predict(self.stored, model_input, **chosen)


def _load_pyfunc(path: str) -> PyfuncModel:
    """Return the model of a file; MLflow calls it by this name."""
    return PyfuncModel(load(path))
