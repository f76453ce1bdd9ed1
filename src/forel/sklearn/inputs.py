"""Validation of rows and labels: by scikit-learn, and of frames with words."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d, validate_data

from forel.store.frame_features import FrameFeatures, frame_of, words_frame
from forel.validation import real, refuse

__all__ = ["dtype_of", "validate"]


def dtype_of(estimator: Any) -> np.dtype[Any]:
    """Return the dtype of the estimator's state."""
    try:
        dtype: np.dtype[Any] = np.dtype(estimator.dtype)
    except TypeError:
        raise refuse("dtype", estimator.dtype, "float32 or float64") from None
    if dtype not in (np.float32, np.float64):
        raise refuse("dtype", estimator.dtype, "float32 or float64")
    return dtype


def validate(estimator: Any, X: Any, y: Any = "no_validation", reset: bool = False, **options: Any) -> Any:
    """Return X, or X and y, validated by scikit-learn; feature names and counts are set or checked."""
    known: FrameFeatures | None = None if reset else vars(estimator).get("_frame_features")
    learns = not isinstance(y, str)
    if learns:
        estimator._next_frame_features = None
    if known is not None or (frame := words_frame(X)) is not None:
        frame = frame if known is None else frame_of(X)
        return _validate_frame(estimator, X, y, frame, known, reset, learns, **options)
    if isinstance(X, list) and X and isinstance(X[0], Mapping):
        expected = (
            "a frame, an array or a sparse matrix; pandas.DataFrame(X) makes a frame, and forel.train learns dicts"
        )
        raise refuse("X", "a list of dicts", expected)
    # float32 and float64 are not converted here, because the learner converts its own copy.
    dtypes = [dtype_of(estimator), np.float32, np.float64]
    for name, given in (("X", X), ("y", y)):
        if isinstance(given, np.ma.MaskedArray):
            real(name, given)  # scikit-learn ignores the mask, and refuses complex numbers itself
    return validate_data(estimator, X, y, reset=reset, accept_sparse="csr", dtype=dtypes, **options)


def _validate_frame(
    estimator: Any, X: Any, y: Any, frame: Any, known: FrameFeatures | None, reset: bool, learns: bool, **options: Any
) -> Any:
    """Return the rows of a frame with words, which decide the features in ``fit``, and y if it is given."""
    if frame is None:
        raise ValueError(f"X: got {type(X).__name__}, expected a frame with the columns of fit")
    if known is None and not reset:
        raise ValueError("X: got a frame with words, expected numbers as in fit; convert the words to numbers")
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    if not len(frame):
        raise ValueError("X: got a frame without rows, expected at least one")
    features = FrameFeatures.of(frame) if known is None else known.extended(frame) if learns else known
    count = len(features.features) if known is None else max(estimator._model.features, len(features.features))
    rows = features.matrix(frame, count, dtype_of(estimator))
    if not learns:
        return rows
    estimator._next_frame_features = features
    y = check_array(y, ensure_2d=False, dtype=None, input_name="y", ensure_all_finite=not options)
    y = column_or_1d(y.astype(np.float64) if options.get("y_numeric") else y, warn=True)
    check_consistent_length(X, y)
    return rows, y
