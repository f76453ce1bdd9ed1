"""Losses as functions of the point, the survey's f_t: their sums, and lower bounds that are tight at a point."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from forel.cvx import cvxpy
from forel.validation import (
    Strength,
    Unsupported,
    Vector,
    constants,
    frozen,
    matrix,
    non_negative,
    number,
    refuse,
    same_length,
    vector,
)

__all__ = ["Convex", "Linear", "Loss", "Quadratic", "Total", "linear_bound", "quadratic_bound"]


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


def times(strength: Strength, x: Vector) -> Vector:
    """Return the product of a strength, a number, a vector of a diagonal or a matrix, with a vector.

    >>> times(2.0, np.ones(2)), times(np.array([2.0, 3.0]), np.ones(2)), times(np.eye(2), np.ones(2))
    (array([2., 2.]), array([2., 3.]), array([1., 1.]))
    """
    product: Vector = strength @ x if np.ndim(strength) == 2 else strength * x
    return product


def plus(one: Strength, other: Strength) -> Strength:
    """Return the sum of two strengths, in the shape that holds both.

    >>> plus(1.0, 2.0), plus(1.0, np.array([1.0, 2.0])), plus(1.0, np.eye(2)).tolist()
    (3.0, array([2., 3.]), [[2.0, 0.0], [0.0, 2.0]])
    """
    n = max((len(s) for s in (one, other) if np.ndim(s) == 2), default=0)
    if n:
        one, other = (s if np.ndim(s) == 2 else np.diag(np.broadcast_to(s, n)) for s in (one, other))
    return one + other


def _least(strength: Strength) -> float:
    return max(0.0, float(np.linalg.eigvalsh(strength)[0])) if np.ndim(strength) == 2 else float(np.min(strength))


def _curvature(curvature: ArrayLike) -> Strength:
    if np.ndim(curvature) == 0:
        return non_negative("curvature", curvature)
    if np.ndim(curvature) == 1:
        return constants("curvature", curvature, "numbers of at least 0", low=0.0)
    return frozen(matrix("curvature", curvature))


@dataclass(frozen=True, eq=False)
class Quadratic:
    r"""A quadratic loss, $f(x) = b + g \cdot (x - c) + \frac\sigma2 \|x - c\|_2^2$.

    Both the squared distance to a point and the lower bound of a strongly convex loss have this form. With a vector or
    a matrix as σ it ends in $\frac12 (x - c)^\top \sigma (x - c)$, as that of an exp-concave loss does.

    Parameters
    ----------
    center : the point c
    curvature : σ, at least 0: a number, a vector for the coordinates, or a positive semi-definite matrix
    g : the gradient at c; None for 0
    constant : the value b at c

    >>> loss = Quadratic([1.0, 0.0], curvature=2.0)
    >>> loss(np.array([1.0, 3.0])), loss.subgradient(np.array([1.0, 3.0]))
    (9.0, array([0., 6.]))

    Survey: section 3.7
    """

    center: Vector
    curvature: Strength
    g: Vector
    constant: float

    def __init__(
        self, center: ArrayLike, curvature: ArrayLike = 1.0, g: ArrayLike | None = None, constant: float = 0.0
    ) -> None:
        center = vector("center", center)
        g = np.zeros_like(center) if g is None else vector("g", g)
        same_length(center=center, g=g)
        object.__setattr__(self, "center", frozen(center))
        object.__setattr__(self, "curvature", _curvature(curvature))
        object.__setattr__(self, "g", frozen(g))
        object.__setattr__(self, "constant", number("constant", constant))

    @property
    def strong_convexity(self) -> float:
        """The curvature, or the least of it in any direction."""
        return _least(self.curvature)

    def __call__(self, x: Vector) -> float:
        """Return b + g·(x − c) + σ/2 ‖x − c‖²."""
        d = x - self.center
        return self.constant + float((self.g + 0.5 * times(self.curvature, d)) @ d)

    def subgradient(self, x: Vector) -> Vector:
        """Return g + σ(x − c)."""
        return self.g + times(self.curvature, x - self.center)

    def expression(self, x: Any) -> Any:
        """Return b + g·(x − c) + σ/2 ‖x − c‖² as a cvxpy expression."""
        d = x - self.center
        return self.constant + self.g @ d + _half_square(self.curvature, d)


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


class Total(NamedTuple):
    r"""A sum of losses, $f_{1:t}(x) = b + g \cdot x + \frac\sigma2\|x\|_2^2 + \sum_k w_k f_k(x)$.

    Linear and quadratic losses are accumulated in g, σ and b; other losses are kept individually, each with its weight.

    >>> total = Total.zero(2).plus(Linear([1.0, 0.0])).plus(Quadratic([0.0, 1.0]))
    >>> total(np.array([2.0, 1.0])), total.quadratic, total.strong_convexity
    (4.0, True, 1.0)

    Survey: section 1
    """

    g: Vector
    curvature: Strength
    constant: float
    others: tuple[tuple[float, Loss], ...]

    @classmethod
    def zero(cls, n: int) -> "Total":
        """Return the empty sum on R^n."""
        return cls(np.zeros(n), 0.0, 0.0, ())

    @property
    def quadratic(self) -> bool:
        """Whether the sum is linear or quadratic."""
        return not self.others

    @property
    def strong_convexity(self) -> float:
        """The sum of the terms' constants."""
        return _least(self.curvature) + sum(w * f.strong_convexity for w, f in self.others)

    def plus(self, loss: Loss, weight: float = 1.0) -> "Total":
        """Return the sum with one more term."""
        if isinstance(loss, Linear):
            return self._replace(g=self.g + weight * loss.g, constant=self.constant + weight * loss.constant)
        if isinstance(loss, Quadratic):
            pulled = times(loss.curvature, loss.center)
            gradient_at_0 = loss.g - pulled
            value_at_0 = loss.constant - float((loss.g - 0.5 * pulled) @ loss.center)
            return Total(
                self.g + weight * gradient_at_0,
                plus(self.curvature, weight * loss.curvature),
                self.constant + weight * value_at_0,
                self.others,
            )
        if any(f is loss for _, f in self.others):
            return self._replace(others=tuple((w + weight if f is loss else w, f) for w, f in self.others))
        return self._replace(others=(*self.others, (weight, loss)))

    def __call__(self, x: Vector) -> float:
        """Return f_{1:t}(x)."""
        smooth = float(self.g @ x) + 0.5 * float(times(self.curvature, x) @ x) + self.constant
        return smooth + sum(w * f(x) for w, f in self.others)

    def subgradient(self, x: Vector) -> Vector:
        """Return a subgradient of the sum."""
        g: Vector = self.g + times(self.curvature, x)
        for w, f in self.others:
            g = g + w * f.subgradient(x)
        return g

    def expression(self, x: Any) -> Any:
        """Return f_{1:t}(x) as a cvxpy expression."""
        smooth = self.g @ x + _half_square(self.curvature, x) + self.constant
        return smooth + sum(w * f.expression(x) for w, f in self.others)


def _half_square(curvature: Strength, x: Any) -> Any:
    cp = cvxpy()
    if np.ndim(curvature) == 2:
        return 0.5 * cp.quad_form(x, cp.psd_wrap(curvature))
    return 0.5 * cp.sum_squares(cp.multiply(np.sqrt(curvature), x))


def linear_bound(loss: Loss, x: ArrayLike) -> Linear:
    r"""Return the linearization $\bar f(u) = f(x) + g \cdot (u - x)$ with $g \in \partial f(x)$.

    An algorithm may be run on a lower bound that is tight at $x_t$ in place of the loss: regret is never less.

    Parameters
    ----------
    loss : any convex f
    x : where the bound is tight

    >>> import numpy as np
    >>> bound = linear_bound(Quadratic([0.0], curvature=2.0), [3.0])
    >>> bound(np.array([3.0])), bound(np.array([0.0]))
    (9.0, -9.0)

    Survey: section 2.1
    """
    at = vector("x", x)
    g = vector("subgradient(x)", loss.subgradient(at), n=at.size)
    return Linear(g, number("loss(x)", loss(at)) - float(g @ at))


def quadratic_bound(loss: Loss, x: ArrayLike, curvature: float | None = None) -> Quadratic:
    r"""Return $\bar f(u) = f(x) + g \cdot (u - x) + \frac\sigma2 \|u - x\|_2^2$ with $g \in \partial f(x)$.

    Parameters
    ----------
    loss : a strongly convex f
    x : where the bound is tight
    curvature : σ; the strong convexity of the loss if None. A larger value must hold at all points that are played

    >>> import numpy as np
    >>> loss = Quadratic([0.0], curvature=2.0)
    >>> quadratic_bound(loss, [3.0])(np.array([0.0])), quadratic_bound(loss, [3.0], curvature=1.0)(np.array([0.0]))
    (0.0, -4.5)

    Survey: section 3.7
    """
    at = vector("x", x)
    expected = "a positive number; a loss without strong convexity has no such bound, so use linear_bound"
    sigma = number("curvature", loss.strong_convexity if curvature is None else curvature, expected)
    if sigma <= 0:
        raise refuse("curvature", sigma, expected)
    g = vector("subgradient(x)", loss.subgradient(at), n=at.size)
    return Quadratic(at, sigma, g, number("loss(x)", loss(at)))
