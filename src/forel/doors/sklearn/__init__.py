"""The fast learner as scikit-learn estimators: in pipelines, in searches, on arrays, sparse matrices and frames."""

from forel.doors.sklearn.classifier import FTRLClassifier
from forel.doors.sklearn.regressor import FTRLRegressor
from forel.doors.sklearn.stored import estimator_of

__all__ = ["FTRLClassifier", "FTRLRegressor", "estimator_of"]
