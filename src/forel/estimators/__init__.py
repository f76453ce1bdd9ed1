"""The fast learner as scikit-learn estimators: in pipelines, in searches, on arrays, sparse matrices and frames."""

from forel.estimators.classifier import FTRLClassifier
from forel.estimators.regressor import FTRLRegressor
from forel.estimators.stored import estimator_of

__all__ = ["FTRLClassifier", "FTRLRegressor", "estimator_of"]
