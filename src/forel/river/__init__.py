"""The fast learner as river models: learn from dicts or frames, in river's pipelines and evaluations.

Needs the extra ``river``, but only when a model is used: without it this module is importable and empty.
"""

from typing import TYPE_CHECKING

from forel.extras import lazy

if TYPE_CHECKING:
    from forel.river.files import model_of
    from forel.river.models import LinearClassifier, LinearRegressor

__all__ = ["LinearClassifier", "LinearRegressor", "model_of"]

_HOMES = {"LinearClassifier": "models", "LinearRegressor": "models", "model_of": "files"}
__getattr__, __dir__ = lazy(__name__, _HOMES, ("river", "narwhals"))
