"""The fast learner as scikit-learn estimators: in pipelines, in searches, on arrays, sparse matrices and frames."""

from forel.sklearn.estimators import FTRLClassifier, FTRLRegressor
from forel.sklearn.stored import estimator_of

__all__ = ["FTRLClassifier", "FTRLRegressor", "estimator_of"]
