"""Losses as functions of the point, the survey's f_t."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike

from forel.cvx import cvxpy
from forel.validation import Unsupported, Vector, frozen, non_negative, number, refuse, same_length, vector

__all__ = ["Convex", "Linear", "Loss", "Quadratic"]


class Loss(Protocol):
    """A convex function f on R^n."""

    def __call__(self, x: Vector) -> float:
        """Return f(x)."""
        ...

    def subgradient(self, x: Vector) -> Vector:
        """Return a g with f(u) ≥ f(x) + g·(u − x) for all u."""
        ...

    def expression(self, x: Any) -> Any:
        """Return f(x) as a cvxpy expression."""
        ...

    @property
    def strong_convexity(self) -> float:
        """The largest known σ with f − σ/2 ‖·‖² convex, in the Euclidean norm; 0 if none."""
        ...


@dataclass(frozen=True, eq=False)
class Linear:
    r"""A linear loss, $f(x) = g \cdot x + b$.

    Parameters
    ----------
    g : the gradient
    constant : the value b at 0

    >>> loss = Linear([1.0, -2.0], constant=3.0)
    >>> loss(np.array([1.0, 1.0])), loss.subgradient(np.array([1.0, 1.0]))
    (2.0, array([ 1., -2.]))

    Survey: section 2.1
    """

    g: Vector
    constant: float
    strong_convexity: ClassVar[float] = 0.0

    def __init__(self, g: ArrayLike, constant: float = 0.0) -> None:
        object.__setattr__(self, "g", frozen(vector("g", g)))
        object.__setattr__(self, "constant", number("constant", constant))

    def __call__(self, x: Vector) -> float:
        """Return g·x + b."""
        return float(self.g @ x) + self.constant

    def subgradient(self, x: Vector) -> Vector:
        """Return g."""
        return self.g

    def expression(self, x: Any) -> Any:
        """Return g·x + b as a cvxpy expression."""
        return self.g @ x + self.constant


@dataclass(frozen=True, eq=False)
class Quadratic:
    r"""A quadratic loss, $f(x) = b + g \cdot (x - c) + \frac\sigma2 \|x - c\|_2^2$.

    Both the squared distance to a point and the lower bound of a strongly convex loss have this form.

    Parameters
    ----------
    center : the point c
    curvature : σ, at least 0
    g : the gradient at c; None for 0
    constant : the value b at c

    >>> loss = Quadratic([1.0, 0.0], curvature=2.0)
    >>> loss(np.array([1.0, 3.0])), loss.subgradient(np.array([1.0, 3.0]))
    (9.0, array([0., 6.]))

    Survey: section 3.7
    """

    center: Vector
    curvature: float
    g: Vector
    constant: float

    def __init__(
        self, center: ArrayLike, curvature: float = 1.0, g: ArrayLike | None = None, constant: float = 0.0
    ) -> None:
        center = vector("center", center)
        g = np.zeros_like(center) if g is None else vector("g", g)
        same_length(center=center, g=g)
        object.__setattr__(self, "center", frozen(center))
        object.__setattr__(self, "curvature", non_negative("curvature", curvature))
        object.__setattr__(self, "g", frozen(g))
        object.__setattr__(self, "constant", number("constant", constant))

    @property
    def strong_convexity(self) -> float:
        """The curvature."""
        return self.curvature

    def __call__(self, x: Vector) -> float:
        """Return b + g·(x − c) + σ/2 ‖x − c‖²."""
        d = x - self.center
        return self.constant + float((self.g + 0.5 * self.curvature * d) @ d)

    def subgradient(self, x: Vector) -> Vector:
        """Return g + σ(x − c)."""
        return self.g + self.curvature * (x - self.center)

    def expression(self, x: Any) -> Any:
        """Return b + g·(x − c) + σ/2 ‖x − c‖² as a cvxpy expression."""
        d = x - self.center
        return self.constant + self.g @ d + 0.5 * self.curvature * cvxpy().sum_squares(d)


@dataclass(frozen=True)
class Convex:
    """A user-defined loss, from its value and a subgradient; that it is convex is not checked.

    Parameters
    ----------
    value : x ↦ f(x), a number, or infinity where f is not defined
    subgradient : x ↦ a subgradient of f at x
    strong_convexity : a σ with f − σ/2 ‖·‖² convex, in the Euclidean norm
    expression : x ↦ f(x) as a cvxpy expression; needed only where there is no closed form

    >>> loss = Convex(lambda x: float(np.max(np.abs(x))), lambda x: np.sign(x) * (np.abs(x) == np.max(np.abs(x))))
    >>> loss(np.array([1.0, -2.0])), loss.subgradient(np.array([1.0, -2.0]))
    (2.0, array([ 0., -1.]))

    Survey: section 1
    """

    value: Callable[[Vector], float]
    rule: Callable[[Vector], ArrayLike]
    strong_convexity: float
    program: Callable[[Any], Any] | None

    def __init__(
        self,
        value: Callable[[Vector], float],
        subgradient: Callable[[Vector], ArrayLike],
        strong_convexity: float = 0.0,
        expression: Callable[[Any], Any] | None = None,
    ) -> None:
        for name, function in (("value", value), ("subgradient", subgradient), ("expression", expression)):
            if not callable(function) and not (name == "expression" and function is None):
                raise refuse(name, function, "a function of x")
        object.__setattr__(self, "value", value)
        object.__setattr__(self, "rule", subgradient)
        object.__setattr__(self, "strong_convexity", non_negative("strong_convexity", strong_convexity))
        object.__setattr__(self, "program", expression)

    def __call__(self, x: Vector) -> float:
        """Return value(x), which must be one number."""
        result = np.asarray(self.value(x))
        if result.shape != () or result.dtype.kind not in "fiub" or not result > -np.inf:
            raise refuse("value(x)", result.tolist(), "one number, or infinity where f is not defined")
        return float(result)

    def subgradient(self, x: Vector) -> Vector:
        """Return subgradient(x), which must be a finite vector as long as x."""
        return vector("subgradient(x)", self.rule(x), n=x.size)

    def expression(self, x: Any) -> Any:
        """Return expression(x), or raise without one."""
        if self.program is None:
            raise Unsupported("this loss has no expression for the solver; pass one, as in Convex(..., expression=...)")
        return self.program(x)
