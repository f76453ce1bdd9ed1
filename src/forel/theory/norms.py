r"""Norms and their duals.

The dual of a norm is $\|g\|_\star = \sup_{\|x\| \le 1} g \cdot x$, so that $g \cdot x \le \|x\| \, \|g\|_\star$.
Bounds measure gradients in the dual of the norm in which the regularizer is strongly convex.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from forel.validation import Matrix, Strength, Vector, constants, frozen, matrix, positive, refuse

__all__ = ["L1", "L2", "LINF", "DiagonalNorm", "MatrixNorm", "Norm", "PNorm", "ScaledNorm"]


class Norm(Protocol):
    """A norm with its dual norm."""

    def __call__(self, x: Vector) -> float:
        """Return ‖x‖."""
        ...

    @property
    def dual(self) -> "Norm":
        """The norm ‖·‖⋆."""
        ...


@dataclass(frozen=True)
class PNorm:
    r"""The p-norm, $\|x\|_p = (\sum_i |x_i|^p)^{1/p}$; its dual has exponent p/(p-1).

    Parameters
    ----------
    p : at least 1, and may be infinite

    >>> L2(np.array([3.0, 4.0])), L1.dual == LINF, PNorm(3).dual
    (5.0, True, PNorm(p=1.5))

    Survey: section 2.3
    """

    p: float

    def __post_init__(self) -> None:
        if not self.p >= 1:
            raise refuse("p", self.p, "a number of at least 1")

    def __call__(self, x: Vector) -> float:
        """Return ‖x‖_p, scaled so that no power overflows."""
        if self.p == 2 and 1e-280 < (square := float(np.vdot(x, x))) < 1e280:
            return math.sqrt(square)
        largest = float(np.max(np.abs(x), initial=0.0))
        if self.p == math.inf or largest in (0.0, math.inf):
            return largest
        return largest * float(np.sum((np.abs(x) / largest) ** self.p) ** (1 / self.p))

    @property
    def dual(self) -> "PNorm":
        """The conjugate exponent's norm."""
        if self.p in (1, math.inf):
            return PNorm(math.inf if self.p == 1 else 1)
        return PNorm(self.p / (self.p - 1))


L1, L2, LINF = PNorm(1), PNorm(2), PNorm(math.inf)


@dataclass(frozen=True)
class ScaledNorm:
    r"""A norm times a factor, $c\|x\|$; its dual is $\frac1c\|g\|_\star$.

    A function that is σ-strongly convex in a norm is 1-strongly convex in that norm scaled by √σ.

    >>> norm = ScaledNorm(L2, factor=2)
    >>> norm(np.array([3.0, 4.0])), norm.dual(np.array([3.0, 4.0]))
    (10.0, 2.5)

    Survey: Lemma 3
    """

    norm: Norm
    factor: float

    def __post_init__(self) -> None:
        positive("factor", self.factor)

    def __call__(self, x: Vector) -> float:
        """Return c‖x‖."""
        return self.factor * self.norm(x)

    @property
    def dual(self) -> "ScaledNorm":
        """The dual norm over the factor."""
        return ScaledNorm(self.norm.dual, 1 / self.factor)


@dataclass(frozen=True, eq=False)
class DiagonalNorm:
    r"""The quadratic norm of a diagonal matrix, $\|x\| = \sqrt{\sum_i q_i x_i^2}$; its dual has entries $1/q_i$.

    A zero entry leaves its coordinate unmeasured; the dual is then infinite unless that coordinate of g is zero, which
    is what adaptive rates need: a coordinate that has seen no gradient has no strength yet.

    >>> norm = DiagonalNorm([4.0, 0.0])
    >>> norm(np.array([1.0, 5.0])), norm.dual(np.array([1.0, 0.0])), norm.dual(np.array([1.0, 5.0]))
    (2.0, 0.5, inf)

    Survey: section 3.4
    """

    entries: float | Vector

    def __init__(self, entries: ArrayLike) -> None:
        checked = constants("entries", entries, "numbers of at least 0", low=0.0, infinite=True)
        object.__setattr__(self, "entries", checked)

    def __call__(self, x: Vector) -> float:
        """Return √(Σ q x²), with ∞·0 = 0."""
        squares = np.zeros_like(x, dtype=np.float64)
        np.multiply(self.entries, x, out=squares, where=x != 0)
        return math.sqrt(float(squares @ x)) if np.isfinite(squares).all() else math.inf

    @property
    def dual(self) -> "DiagonalNorm":
        """The norm of the inverse."""
        with np.errstate(divide="ignore"):
            return DiagonalNorm(np.divide(1.0, self.entries))


@dataclass(frozen=True, eq=False)
class MatrixNorm:
    r"""The quadratic norm of a matrix $Q \succeq 0$, $\|x\| = \sqrt{x^\top Q x}$; its dual is that of $Q^{-1}$.

    Kept as Q = V diag(q) Vᵀ, a :class:`DiagonalNorm` in the eigenbasis.

    >>> norm = MatrixNorm([[2.0, 0.0], [0.0, 8.0]])
    >>> norm(np.array([1.0, 1.0])) ** 2, norm.dual(np.array([0.0, 4.0])) ** 2
    (10.0..., 2.0...)

    Survey: section 3.4
    """

    basis: Matrix
    diagonal: DiagonalNorm

    def __init__(self, matrix: ArrayLike) -> None:
        eigenvalues, basis = eigen("matrix", matrix)
        object.__setattr__(self, "basis", frozen(basis))
        object.__setattr__(self, "diagonal", DiagonalNorm(eigenvalues))

    def __call__(self, x: Vector) -> float:
        """Return √(xᵀQx)."""
        return self.diagonal(rotate(self.basis, x))

    @property
    def dual(self) -> "MatrixNorm":
        """The norm of the inverse, infinite off the range of Q."""
        norm = object.__new__(MatrixNorm)
        object.__setattr__(norm, "basis", self.basis)
        object.__setattr__(norm, "diagonal", self.diagonal.dual)
        return norm


def eigen(name: str, value: ArrayLike) -> tuple[Vector, Matrix]:
    """Return eigenvalues and eigenvectors of a positive semi-definite matrix; rounding-sized eigenvalues become 0."""
    array = matrix(name, value)
    square = array.shape[0] == array.shape[1]
    if not square or np.max(np.abs(array - array.T)) > 1e-10 * np.max(np.abs(array)):
        raise ValueError(f"{name}: got shape {array.shape}, expected a symmetric matrix")
    eigenvalues, basis = np.linalg.eigh(array)
    rounding = np.finfo(np.float64).eps * array.shape[0] * max(abs(eigenvalues[-1]), abs(eigenvalues[0]))
    if eigenvalues[0] < -8 * rounding:
        raise ValueError(f"{name}: got the eigenvalue {eigenvalues[0]}, expected none below 0")
    eigenvalues[eigenvalues < 8 * rounding] = 0.0
    return eigenvalues, basis


def rotate(basis: Matrix, x: Vector) -> Vector:
    """Return Vᵀx, with rounding errors set to 0, so that a vector in the range of Q has no part outside it."""
    rotated: Vector = basis.T @ x
    rotated[np.abs(rotated) < 1e-13 * float(np.max(np.abs(x), initial=0.0))] = 0.0
    return rotated


def without_rounding(z: Vector, strength: Strength, terms: ArrayLike) -> Vector:
    """Return the sum z without what rounding left of it outside of the range of a matrix, which has its terms.

    Where terms cancel, that may be all of z; it is small relative to the terms, or to the root of their squares.
    """
    if np.ndim(strength) < 2:
        return z
    eigenvalues, basis = eigen("strength", strength)
    outside = np.where(eigenvalues > 0, 0.0, basis.T @ z)
    rounding = np.abs(outside).max() <= 1e-13 * np.max(np.abs(terms))
    return z - basis @ outside if rounding else z
