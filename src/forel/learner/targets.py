"""Labels and importances, validated for the kernels."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forel.losses import Interval, Labels
from forel.validation import all_finite, real, refuse

__all__ = ["importances_of", "labels_and_scale", "labels_of", "not_finite"]


def labels_of(y: ArrayLike, count: int, domain: Labels, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return one label for each row in the dtype of the model, or raise for those outside the domain.

    Parameters
    ----------
    y : the labels
    count : the number of rows
    domain : domain of the labels
    dtype : dtype of the model; an array that has it is not copied

    >>> labels_of([0, 1], 2, Interval(0, 1), np.dtype(np.float32))
    array([0., 1.], dtype=float32)
    """
    labels = np.asarray(real("y", y))
    if labels.shape != (count,):
        raise ValueError(f"y: got shape {labels.shape}, expected one label for each of {count} rows")
    if labels.dtype.kind not in "fiub":
        raise refuse("y", labels.dtype, "numbers; encode classes as numbers first")
    if isinstance(domain, Interval) and _usable(labels, domain.low, domain.high, dtype):
        return labels
    return _narrowed("y", domain.check("y", labels), dtype)


def importances_of(importance: ArrayLike | None, count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the importance of each row in the dtype of the model, 1 by default, or raise for negative ones.

    >>> importances_of(None, 2, np.dtype(np.float32))
    array([1., 1.], dtype=float32)
    """
    if importance is None:
        ones: NDArray[Any] = np.ones(count, dtype)
        return ones
    given = np.asarray(real("importance", importance))
    if given.shape != (count,):
        raise ValueError(f"importance: got shape {given.shape}, expected one number for each of {count} rows")
    if _usable(given, 0.0, np.inf, dtype):
        return given
    exact = given.astype(np.float64)
    if not all_finite(exact) or exact.min(initial=0.0) < 0:
        k = int(np.argmax(~(exact >= 0) | ~np.isfinite(exact)))
        raise ValueError(f"importance: got {exact[k]} in row {k}, expected finite numbers of at least 0")
    return _narrowed("importance", exact, dtype)


def _usable(given: NDArray[Any], low: float, high: float, dtype: np.dtype[Any]) -> bool:
    """Return whether an array needs no conversion: of the right type, contiguous, finite, and in [low, high]."""
    fits = given.dtype == dtype and given.flags.c_contiguous and given.flags.writeable
    largest = np.finfo(dtype).max
    low, high = dtype.type(max(low, -largest)), dtype.type(min(high, largest))
    return bool(fits and given.min(initial=high) >= low and given.max(initial=low) <= high)  # False for NaN


def _narrowed(name: str, exact: NDArray[np.float64], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return numbers in the dtype of the model, or raise for those out of its range."""
    with np.errstate(over="ignore"):
        narrow: NDArray[Any] = exact.astype(dtype)
    if not all_finite(narrow):
        k = int(np.argmin(np.isfinite(narrow)))
        raise ValueError(f"{name}: got {exact[k]} in row {k}, expected numbers within the range of {dtype}")
    return narrow


def labels_and_scale(
    y: ArrayLike, importance: ArrayLike | None, held_out: NDArray[np.bool_] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return labels and importances, −1 of rows that are held out."""
    labels = np.asarray(y, np.float64)
    scale = np.ones(len(labels)) if importance is None else np.array(importance, np.float64)
    if held_out is not None:
        scale[held_out] = -1.0
    return labels, scale


def not_finite(row: int, label: float) -> ValueError:
    """Return the error for a row whose loss is not finite."""
    return ValueError(
        f"loss: got a value or slope that is not finite in row {row}, whose label is {label:g}, "
        "expected finite numbers; the rows before it were learned from"
    )
