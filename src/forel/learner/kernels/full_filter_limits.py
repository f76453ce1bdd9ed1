"""Limits of full-covariance filters, of the compiled kernel and of its equivalent in numpy."""

__all__ = ["BIAS", "FARTHEST", "FARTHEST_LOGISTIC", "LARGEST", "LEAST_CURVATURE", "SMALLEST"]

BIAS = 0  # the place of the constant feature
SMALLEST, LARGEST = 1e-38, 1e38  # of values, so that products of their squares are finite
FARTHEST, FARTHEST_LOGISTIC = 1e100, 30.0  # margin
LEAST_CURVATURE = 1e-6
