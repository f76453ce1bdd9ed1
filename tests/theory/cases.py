"""Combinations with a closed form, and strengths for them: the cases that several tests share."""

import numpy as np

from forel.theory.argmin import SOLVER
from website.combinations import GEOMETRIES, REFUSED, method, penalties, sets

N = 4

# Every combination with a closed form: geometry, penalty and set as one extended convex function.
FUNCTIONS = [
    (g, p, s)
    for g in GEOMETRIES
    for p in penalties(N)
    for s in sets(N)
    if method(GEOMETRIES[g], penalties(N)[p], sets(N)[s]) not in (SOLVER, REFUSED)
]


def strengths(shape, n, rng, spread=1.0):
    """A strength of the given shape, its entries or eigenvalues up to 10^±spread apart from 1."""
    if shape == "scalar":
        return float(10 ** rng.uniform(-spread, spread))
    diagonal = 10 ** rng.uniform(-spread, spread, n)
    if shape == "diagonal":
        return diagonal
    basis, _ = np.linalg.qr(rng.normal(size=(n, n)))
    matrix = basis @ np.diag(diagonal) @ basis.T
    return (matrix + matrix.T) / 2
