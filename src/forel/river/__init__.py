"""The fast learner as river models: learn from dicts or frames, in river's pipelines and evaluations.

Needs the extra ``river``, but only when a model is used: without it this module is importable and empty.
"""

from typing import TYPE_CHECKING

from forel.extras import lazy

if TYPE_CHECKING:
    from forel.river.classifier import LinearClassifier
    from forel.river.regressor import LinearRegressor
    from forel.river.stored import model_of

__all__ = ["LinearClassifier", "LinearRegressor", "model_of"]

_HOMES = {"LinearClassifier": "classifier", "LinearRegressor": "regressor", "model_of": "stored"}
__getattr__, __dir__ = lazy(__name__, _HOMES, ("river", "narwhals"))
