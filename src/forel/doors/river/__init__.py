"""The fast learner as river models: a dict at a time or a frame at a time, in river's pipelines and evaluations.

Needs the extra ``river``. The names say what the models are: river itself has no ``LinearClassifier``, and the
``FTRL...`` estimators are scikit-learn's kind.
"""

try:
    import river as _river  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("forel.doors.river needs river; install the extra: pip install 'forel[river]'") from error

from forel.doors.river.classifier import LinearClassifier
from forel.doors.river.regressor import LinearRegressor

__all__ = ["LinearClassifier", "LinearRegressor"]
