"""The fast learner as scikit-learn estimators: in pipelines, in searches, on arrays, sparse matrices and frames."""

from forel.estimators.classifier import FTRLClassifier
from forel.estimators.regressor import FTRLRegressor

__all__ = ["FTRLClassifier", "FTRLRegressor"]
