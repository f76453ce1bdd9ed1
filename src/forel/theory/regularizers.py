r"""Regularizers $r_t$: part of the algorithm, each the Bregman divergence of a geometry around a point.

Around $x_1$ a regularizer is *centered*, around $x_t$ it is *proximal*; both are divergences
$B_{\phi_\sigma}(x, c) = \phi_\sigma(x) - \phi_\sigma(c) - \nabla\phi_\sigma(c) \cdot (x - c)$, non-negative and 0 at c.
For quadratics that is $\frac{\sigma}{2}\|x - c\|^2$; for the entropy around the uniform distribution it is
$\sigma(\log n + \sum_i x_i \log x_i)$. A penalty, which is part of the objective, is something else: see ``penalties``.

``bregman`` and ``conjugate`` take any function with a gradient, or with the gradient of its conjugate
$\psi^\star(g) = \sup_x g \cdot x - \psi(x)$: the point that attains it, so that one function serves both sides of the
theory, $\nabla\psi^\star(-g) = \arg\min_x g \cdot x + \psi(x)$ (Lemma 15).
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from forel.theory.geometries import Geometry
from forel.theory.norms import Norm
from forel.validation import Strength, Vector, refuse, same_length, vector, whole

__all__ = ["Conjugable", "Differentiable", "Regularizer", "bregman", "conjugate", "gradient_at"]


def gradient_at(geometry: Geometry, strength: Strength, x: Vector, image: Vector | None) -> Vector:
    r"""Return $\nabla\phi_\sigma(x)$, from the mirror image $\nabla\phi_1(x)$ where it is known better than x.

    Algorithms also store it where a coordinate of x may underflow, as $x \propto e^\theta$ does; None otherwise.

    >>> from forel.theory.geometries import Entropy
    >>> gradient_at(Entropy(), 2.0, np.array([1.0, 0.0]), np.array([1.0, -999.0]))
    array([    2., -1998.])

    Survey: section 6
    """
    return geometry.gradient(strength, x) if image is None else strength * image


@dataclass(frozen=True, eq=False)
class Regularizer:
    r"""A regularizer or a running sum $r_{0:t}(x) = \phi_\sigma(x) - a \cdot x + c$.

    Sums stay in this form: strengths add, linear parts add. The linear part is what FTRL subtracts from $g_{1:t}$ to
    get the dual state z; the strength is $1/\eta_t$. Where quadratics have a common minimum, known as ``center`` and
    ``least``, values are taken from there: of the terms above nothing would be left where strengths are large.

    >>> from forel.theory.geometries import Euclidean
    >>> proximal = Regularizer.around(Euclidean(), 2.0, np.array([1.0, 0.0]))
    >>> proximal(np.array([1.0, 3.0])), proximal(np.array([1.0, 0.0]))
    (9.0, 0.0)
    >>> total = proximal + Regularizer.around(Euclidean(), 2.0, np.array([0.0, 1.0]))
    >>> total.minimizer
    array([0.5, 0.5])
    >>> total.norm(np.array([3.0, 4.0])), total.dual_norm(np.array([3.0, 4.0]))
    (10.0, 2.5)

    Survey: section 2.2
    """

    geometry: Geometry
    strength: Strength
    linear: Vector
    constant: float
    center: Vector | None = None
    least: float = 0.0

    @classmethod
    def around(
        cls, geometry: Geometry, strength: ArrayLike, point: ArrayLike, image: Vector | None = None
    ) -> "Regularizer":
        """Return B_{φ_σ}(x, point): centered when the point is x_1, proximal when it is x_t.

        A mirror image, if given, determines the point more accurately.
        """
        point = vector("point", point)
        if not np.any(strength):
            return cls.zero(geometry, point.size)
        strength = geometry.check(strength, point.size)
        linear = gradient_at(geometry, strength, point, image)
        constant = float(linear @ point) - geometry.value(strength, point)
        return cls(geometry, strength, linear, constant, point if geometry.quadratic else None)

    @classmethod
    def zero(cls, geometry: Geometry, n: int) -> "Regularizer":
        """Return r = 0, what a round adds that adds no strength."""
        n = whole("n", n, low=1)
        strength = 0.0 if geometry.shape == "scalar" else np.zeros(n if geometry.shape == "diagonal" else (n, n))
        return cls(geometry, strength, np.zeros(n), 0.0, np.zeros(n) if geometry.quadratic else None)

    def __call__(self, x: Vector) -> float:
        """Return r(x)."""
        if self.center is not None:
            return self.geometry.value(self.strength, x - self.center) + self.least
        return self.geometry.value(self.strength, x) - float(self.linear @ x) + self.constant

    def gradient(self, x: Vector) -> Vector:
        """Return ∇r(x)."""
        return self.geometry.gradient(self.strength, x) - self.linear

    def conjugate_gradient(self, g: Vector) -> Vector:
        """Return the x that maximizes g·x − r(x)."""
        return self.geometry.conjugate_gradient(self.strength, g + self.linear)

    @property
    def minimizer(self) -> Vector:
        """The point at which r is smallest."""
        return self.conjugate_gradient(np.zeros_like(self.linear))

    @property
    def norm(self) -> Norm:
        """The norm in which r is 1-strongly convex."""
        return self.geometry.norm(self.strength)

    @property
    def dual_norm(self) -> Norm:
        """The norm in which bounds measure gradients."""
        return self.norm.dual

    def __add__(self, other: "Regularizer") -> "Regularizer":
        """Return the sum; only like geometries add up."""
        if self.geometry != other.geometry:
            raise refuse("other", other.geometry, f"the same geometry, {self.geometry}")
        return Regularizer(
            self.geometry,
            self.strength + other.strength,
            self.linear + other.linear,
            self.constant + other.constant,
            *self._minimum(other),
        )

    def _minimum(self, other: "Regularizer") -> tuple[Vector | None, float]:
        """Return where the sum of two quadratics is smallest and how small, by terms that are never negative."""
        if self.center is None or other.center is None:
            return None, 0.0
        apart, least = other.center - self.center, self.least + other.least
        if not apart.any() or not np.any(other.strength):
            return self.center, least
        if self.geometry.shape == "matrix":
            return None, 0.0
        strength = np.add(self.strength, other.strength)
        share = np.divide(other.strength, strength, out=np.zeros_like(strength), where=strength > 0)
        return self.center + share * apart, least + self.geometry.value(self.strength * share, apart)


class Differentiable(Protocol):
    """A convex function with a gradient."""

    def __call__(self, x: Vector) -> float:
        """Return φ(x)."""
        ...

    def gradient(self, x: Vector) -> Vector:
        """Return ∇φ(x)."""
        ...


class Conjugable(Protocol):
    """A convex function with the gradient of its conjugate."""

    def __call__(self, x: Vector) -> float:
        """Return ψ(x)."""
        ...

    def conjugate_gradient(self, g: Vector) -> Vector:
        """Return ∇ψ⋆(g), the x that maximizes g·x − ψ(x)."""
        ...


def bregman(phi: Differentiable, u: Vector, v: Vector) -> float:
    r"""Return the Bregman divergence $B_\phi(u, v) = \phi(u) - \phi(v) - \nabla\phi(v) \cdot (u - v)$.

    >>> from forel.theory.geometries import Euclidean
    >>> half_square = Regularizer.around(Euclidean(), 1.0, np.zeros(2))
    >>> bregman(half_square, np.array([3.0, 0.0]), np.array([0.0, 4.0]))
    12.5

    Survey: section 6
    """
    same_length(u=u, v=v)
    return phi(u) - phi(v) - float(phi.gradient(v) @ (u - v))


def conjugate(psi: Conjugable, g: Vector) -> float:
    r"""Return $\psi^\star(g) = g \cdot x - \psi(x)$ at $x = \nabla\psi^\star(g)$.

    >>> from forel.theory.geometries import Euclidean
    >>> conjugate(Regularizer.around(Euclidean(), 2.0, np.zeros(2)), np.array([3.0, 4.0]))
    6.25

    Survey: Lemma 15
    """
    x = psi.conjugate_gradient(g)
    return float(g @ x) - psi(x)
