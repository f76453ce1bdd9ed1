r"""Geometries: the strongly convex functions $\phi_\sigma$ that regularizers are made of.

A geometry together with a strength σ is a function; the running sum of an algorithm's regularizers is one geometry with
a growing strength, plus something linear. That is why algorithms keep a strength and a vector, and nothing else.

============== ===================== ===================================== ==============================
geometry       strength              function                              1-strongly convex in
============== ===================== ===================================== ==============================
Euclidean      σ ≥ 0                 (σ/2) ‖x‖₂²                           √σ ‖x‖₂
Diagonal       σ ∈ Rⁿ, σ ≥ 0         ½ Σ σ_i x_i²                          √(Σ σ_i x_i²)
FullMatrix     Q ⪰ 0                 ½ xᵀQx                                √(xᵀQx)
Entropy        σ > 0                 σ Σ x_i log x_i                       √σ ‖x‖₁, on the simplex
SquaredPNorm   σ > 0                 σ/(2(p−1)) ‖x‖_p², 1 < p ≤ 2          √σ ‖x‖_p
============== ===================== ===================================== ==============================
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlogy

from forel.cvx import cvxpy
from forel.theory.norms import L1, L2, DiagonalNorm, MatrixNorm, Norm, PNorm, ScaledNorm, eigen, rotate
from forel.validation import Matrix, Shape, Strength, Vector, matrix, non_negative, positive, refuse, vector

__all__ = ["Diagonal", "Entropy", "Euclidean", "FullMatrix", "Geometry", "SquaredPNorm"]


class Geometry(Protocol):
    """A family of convex functions φ_σ, additive in σ."""

    shape: ClassVar[Shape]
    quadratic: ClassVar[bool]
    separable: ClassVar[bool]
    on_simplex: ClassVar[bool]

    def check(self, strength: ArrayLike, n: int) -> Strength:
        """Return a valid strength for points in R^n; raise ValueError otherwise."""
        ...

    def value(self, strength: Strength, x: Vector) -> float:
        """Return φ_σ(x)."""
        ...

    def gradient(self, strength: Strength, x: Vector) -> Vector:
        """Return ∇φ_σ(x)."""
        ...

    def conjugate_gradient(self, strength: Strength, g: Vector) -> Vector:
        """Return the x that maximizes g·x − φ_σ(x)."""
        ...

    def norm(self, strength: Strength) -> Norm:
        """Return the norm in which φ_σ is 1-strongly convex."""
        ...

    def local_dual_norm(self, strength: Strength, x: Vector, g: Vector) -> float:
        """Return ‖g‖ in the dual of the norm of the Hessian of φ_σ at x, or of one in which φ_σ is strongly convex."""
        ...

    def factor(self, strength: Strength) -> Any:
        """Return the parameter that ``expression`` multiplies by, so that a solver's program is compiled only once."""
        ...

    def expression(self, factor: Any, x: Any) -> Any:
        """Return φ_σ(x) as a cvxpy expression."""
        ...


def _scaled(norm: Norm, strength: float) -> Norm:
    # A strength of 0 is the zero seminorm, whose dual is infinite: DiagonalNorm(0).
    return ScaledNorm(norm, math.sqrt(strength)) if strength > 0 else DiagonalNorm(0.0)


def safe_divide(numerator: Vector, strength: float | Vector) -> Vector:
    """Return numerator / strength in place, with 0/0 = 0, the minimizer nearest the origin."""
    if (strength if isinstance(strength, float) else np.min(strength)) > 0:  # for one number np.min takes longest
        numerator /= strength
        return numerator
    zero = np.broadcast_to(np.equal(strength, 0), numerator.shape)
    np.divide(numerator, strength, out=numerator, where=~zero)
    unmoved = zero & (numerator != 0)
    numerator[unmoved] = np.copysign(math.inf, numerator[unmoved])
    return numerator


@dataclass(frozen=True)
class Euclidean:
    r"""The isotropic quadratic, $\phi_\sigma(x) = \frac{\sigma}{2}\|x\|_2^2$.

    >>> Euclidean().value(2.0, np.array([3.0, 4.0]))
    25.0

    Survey: section 3.1
    """

    shape: ClassVar[Shape] = "scalar"
    quadratic: ClassVar[bool] = True
    separable: ClassVar[bool] = True
    on_simplex: ClassVar[bool] = False

    def check(self, strength: ArrayLike, n: int) -> float:
        """Return the strength as a number of at least 0."""
        return non_negative("strength", strength)

    def value(self, strength: float, x: Vector) -> float:
        """Return (σ/2)‖x‖²."""
        return 0.5 * strength * float(x @ x)

    def gradient(self, strength: float, x: Vector) -> Vector:
        """Return σx."""
        return strength * x

    def conjugate_gradient(self, strength: float, g: Vector) -> Vector:
        """Return g/σ."""
        return safe_divide(g.copy(), strength)

    def norm(self, strength: float) -> Norm:
        """Return √σ‖·‖₂."""
        return _scaled(L2, strength)

    def local_dual_norm(self, strength: float, x: Vector, g: Vector) -> float:
        """Return the dual norm, the same at every x."""
        return self.norm(strength).dual(g)

    def factor(self, strength: float) -> float:
        """Return σ."""
        return strength

    def expression(self, factor: Any, x: Any) -> Any:
        """Return (σ/2)‖x‖²."""
        return 0.5 * factor * cvxpy().sum_squares(x)


@dataclass(frozen=True)
class Diagonal:
    r"""The quadratic with a strength per coordinate, $\phi_\sigma(x) = \frac12 \sum_i \sigma_i x_i^2$.

    >>> Diagonal().gradient(np.array([2.0, 0.5]), np.array([3.0, 4.0]))
    array([6., 2.])

    Survey: section 3.4
    """

    shape: ClassVar[Shape] = "diagonal"
    quadratic: ClassVar[bool] = True
    separable: ClassVar[bool] = True
    on_simplex: ClassVar[bool] = False

    def check(self, strength: ArrayLike, n: int) -> Vector:
        """Return the strengths as a vector of length n with no negative entry; one number stands for n equal ones."""
        checked = vector("strength", np.full(n, strength) if np.ndim(strength) == 0 else strength, n)
        if checked.min() < 0:
            index = int(np.argmax(checked < 0))
            raise ValueError(f"strength: got {checked[index]} at index {index}, expected numbers of at least 0")
        return checked

    def value(self, strength: Vector, x: Vector) -> float:
        """Return ½Σσ_i x_i²."""
        return 0.5 * float((strength * x) @ x)

    def gradient(self, strength: Vector, x: Vector) -> Vector:
        """Return σ_i x_i."""
        return strength * x

    def conjugate_gradient(self, strength: Vector, g: Vector) -> Vector:
        """Return g_i/σ_i."""
        return safe_divide(g.copy(), strength)

    def norm(self, strength: Vector) -> Norm:
        """Return √(Σσ_i x_i²)."""
        return DiagonalNorm(strength)

    def local_dual_norm(self, strength: Vector, x: Vector, g: Vector) -> float:
        """Return the dual norm, the same at every x."""
        return self.norm(strength).dual(g)

    def factor(self, strength: Vector) -> Vector:
        """Return √σ_i."""
        root: Vector = np.sqrt(strength)
        return root

    def expression(self, factor: Any, x: Any) -> Any:
        """Return ½Σσ_i x_i²."""
        cp = cvxpy()
        return 0.5 * cp.sum_squares(cp.multiply(factor, x))


@dataclass(frozen=True)
class FullMatrix:
    r"""The quadratic with a full matrix as its strength, $\phi_Q(x) = \frac12 x^\top Q x$.

    >>> FullMatrix().value(np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([1.0, 1.0]))
    3.0

    Survey: section 3.4
    """

    shape: ClassVar[Shape] = "matrix"
    quadratic: ClassVar[bool] = True
    separable: ClassVar[bool] = False
    on_simplex: ClassVar[bool] = False

    def check(self, strength: ArrayLike, n: int) -> Matrix:
        """Return the strength as an n×n matrix; one number stands for that multiple of the identity."""
        checked = matrix("strength", np.multiply(np.eye(n), strength) if np.ndim(strength) == 0 else strength, n)
        eigen("strength", checked)
        return checked

    def value(self, strength: Matrix, x: Vector) -> float:
        """Return ½xᵀQx."""
        return 0.5 * float(x @ strength @ x)

    def gradient(self, strength: Matrix, x: Vector) -> Vector:
        """Return Qx."""
        product: Vector = strength @ x
        return product

    def conjugate_gradient(self, strength: Matrix, g: Vector) -> Vector:
        """Return Q⁻¹g, infinite when g has a part outside the range of Q."""
        eigenvalues, basis = eigen("strength", strength)
        scaled = safe_divide(rotate(basis, g), eigenvalues)
        return basis @ scaled if np.isfinite(scaled).all() else np.full_like(g, math.inf)

    def norm(self, strength: Matrix) -> Norm:
        """Return √(xᵀQx)."""
        return MatrixNorm(strength)

    def local_dual_norm(self, strength: Matrix, x: Vector, g: Vector) -> float:
        """Return the dual norm, the same at every x."""
        return self.norm(strength).dual(g)

    def factor(self, strength: Matrix) -> Matrix:
        """Return an F with FᵀF = Q."""
        eigenvalues, basis = eigen("strength", strength)
        root: Matrix = np.sqrt(eigenvalues)[:, None] * basis.T
        return root

    def expression(self, factor: Any, x: Any) -> Any:
        """Return ½‖Fx‖²."""
        return 0.5 * cvxpy().sum_squares(factor @ x)


@dataclass(frozen=True)
class Entropy:
    r"""Negative entropy, $\phi_\sigma(x) = \sigma \sum_i x_i \log x_i$, for points on the simplex.

    Around the uniform distribution its Bregman divergence is the survey's $\log n + \sum_i x_i \log x_i$, whose minimum
    is 0. On a simplex of another total than 1 the modulus of strong convexity is divided by that total.

    >>> Entropy().conjugate_gradient(2.0, np.array([0.0, 2 * np.log(3)]))
    array([0.25, 0.75])

    Survey: section 3.6
    """

    shape: ClassVar[Shape] = "scalar"
    quadratic: ClassVar[bool] = False
    separable: ClassVar[bool] = True
    on_simplex: ClassVar[bool] = True

    def check(self, strength: ArrayLike, n: int) -> float:
        """Return the strength as a positive number."""
        return positive("strength", strength)

    def value(self, strength: float, x: Vector) -> float:
        """Return σΣx log x, infinite off the positive orthant."""
        return strength * float(np.sum(xlogy(x, x))) if x.min() >= 0 else math.inf

    def gradient(self, strength: float, x: Vector) -> Vector:
        """Return σ(1 + log x); at a zero coordinate, where there is none, that of the smallest positive number."""
        result: Vector = strength * (1 + np.log(np.maximum(x, np.finfo(np.float64).tiny)))
        return result

    def conjugate_gradient(self, strength: float, g: Vector) -> Vector:
        """Return exp(g/σ) normalized to a total of 1."""
        exponents = g / strength
        weights: Vector = np.exp(exponents - exponents.max())
        weights /= weights.sum()
        return weights

    def norm(self, strength: float) -> Norm:
        """Return √σ‖·‖₁."""
        return _scaled(L1, strength)

    def local_dual_norm(self, strength: float, x: Vector, g: Vector) -> float:
        """Return √(Σ x_i g_i²/σ)."""
        return math.sqrt(float(x @ g**2) / strength)

    def factor(self, strength: float) -> float:
        """Return σ."""
        return strength

    def expression(self, factor: Any, x: Any) -> Any:
        """Return σΣx log x."""
        cp = cvxpy()
        return -factor * cp.sum(cp.entr(x))


@dataclass(frozen=True)
class SquaredPNorm:
    r"""Half the squared p-norm, $\phi_\sigma(x) = \frac{\sigma}{2(p-1)}\|x\|_p^2$ for $1 < p \le 2$.

    Parameters
    ----------
    p : between the geometry of mirror descent in high dimension (p near 1) and Euclidean (p = 2)

    >>> SquaredPNorm(2).value(2.0, np.array([3.0, 4.0]))
    25.0

    Survey: section 2.3
    """

    p: float

    shape: ClassVar[Shape] = "scalar"
    quadratic: ClassVar[bool] = False
    separable: ClassVar[bool] = False
    on_simplex: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 1 < self.p <= 2:
            raise refuse("p", self.p, "1 < p ≤ 2; for p near 1 in dimension n, 1 + 1/log(n) is usual")

    def check(self, strength: ArrayLike, n: int) -> float:
        """Return the strength as a positive number."""
        return positive("strength", strength)

    def value(self, strength: float, x: Vector) -> float:
        """Return σ‖x‖_p²/(2(p−1))."""
        return strength * PNorm(self.p)(x) ** 2 / (2 * (self.p - 1))

    def gradient(self, strength: float, x: Vector) -> Vector:
        """Return σ/(p−1) · sign(x)|x|^(p−1) ‖x‖_p^(2−p)."""
        return strength / (self.p - 1) * _half_square_gradient(x, self.p)

    def conjugate_gradient(self, strength: float, g: Vector) -> Vector:
        """Return the gradient of (p−1)‖g‖_q²/(2σ), with q the dual exponent."""
        return (self.p - 1) / strength * _half_square_gradient(g, PNorm(self.p).dual.p)

    def norm(self, strength: float) -> Norm:
        """Return √σ‖·‖_p."""
        return _scaled(PNorm(self.p), strength)

    def local_dual_norm(self, strength: float, x: Vector, g: Vector) -> float:
        """Return the dual norm, the same at every x."""
        return self.norm(strength).dual(g)

    def factor(self, strength: float) -> float:
        """Return σ."""
        return strength

    def expression(self, factor: Any, x: Any) -> Any:
        """Return σ‖x‖_p²/(2(p−1))."""
        cp = cvxpy()
        return factor * cp.square(cp.pnorm(x, self.p)) / (2 * (self.p - 1))


def _half_square_gradient(x: Vector, p: float) -> Vector:
    """Return ∇(½‖x‖_p²), from ratios to the norm so that no power overflows."""
    norm = PNorm(p)(x)
    if norm == 0:
        return np.zeros_like(x)
    result: Vector = norm * np.copysign((np.abs(x) / norm) ** (p - 1), x)
    return result
