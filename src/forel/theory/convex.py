r"""Bregman divergences and conjugates, for functions with a gradient or a conjugate gradient.

The conjugate is $\psi^\star(g) = \sup_x g \cdot x - \psi(x)$. Its gradient is the point that attains it, which is why
one function serves both sides of the theory: $\nabla\psi^\star(-g) = \arg\min_x g \cdot x + \psi(x)$ (Lemma 15).
"""

from typing import Protocol

from forel.validation import Vector, same_length

__all__ = ["Conjugable", "Differentiable", "bregman", "conjugate"]


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

    >>> import numpy as np
    >>> from forel.theory.geometries import Euclidean
    >>> from forel.theory.regularizers import Regularizer
    >>> half_square = Regularizer.around(Euclidean(), 1.0, np.zeros(2))
    >>> bregman(half_square, np.array([3.0, 0.0]), np.array([0.0, 4.0]))
    12.5

    Survey: section 6
    """
    same_length(u=u, v=v)
    return phi(u) - phi(v) - float(phi.gradient(v) @ (u - v))


def conjugate(psi: Conjugable, g: Vector) -> float:
    r"""Return $\psi^\star(g) = g \cdot x - \psi(x)$ at $x = \nabla\psi^\star(g)$.

    >>> import numpy as np
    >>> from forel.theory.geometries import Euclidean
    >>> from forel.theory.regularizers import Regularizer
    >>> conjugate(Regularizer.around(Euclidean(), 2.0, np.zeros(2)), np.array([3.0, 4.0]))
    6.25

    Survey: Lemma 15
    """
    x = psi.conjugate_gradient(g)
    return float(g @ x) - psi(x)
