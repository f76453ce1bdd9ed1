"""How pieces are compiled: into the loop that uses them."""

from numba import njit

from forel.learner.kernels.recipe import FLAGS

__all__ = ["fast"]

fast = njit(error_model="numpy", nogil=True, fastmath=set(FLAGS), inline="always")
