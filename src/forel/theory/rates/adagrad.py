r"""AdaGrad: rates that fall with the gradients seen, as one number, per coordinate, or as a matrix.

The states keep $\sqrt{\sum g_s^2}$ rather than the sum, and add to it by ``hypot``: squares of gradients below 1e-162
vanish and those above 1e154 overflow, where their roots do neither.
"""

import math
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from forel.theory.norms import L2, LINF, Norm
from forel.theory.rates.rate import check_gradient_bound
from forel.validation import Matrix, Shape, Vector, constants, non_negative, positive, vector, whole

__all__ = [
    "DiagonalAdaGrad",
    "DiagonalRoot",
    "MatrixAdaGrad",
    "MatrixRoot",
    "ScalarAdaGrad",
    "ScalarRoot",
    "sum_over_roots",
]


class ScalarRoot(NamedTuple):
    """The length of gradients, and √(offset² + Σ‖g‖²)."""

    n: int
    root: float


class DiagonalRoot(NamedTuple):
    """√(offset² + Σg²) of each coordinate."""

    root: Vector


class MatrixRoot(NamedTuple):
    """(offset²·I + Σggᵀ)^½."""

    root: Matrix


@dataclass(frozen=True)
class ScalarAdaGrad:
    r"""One rate for all coordinates, $\eta_t = c / \sqrt{\delta^2 + \sum_{s \le t} \|g_s\|^2}$.

    Parameters
    ----------
    scale : c, positive
    offset : δ, at least 0
    norm : in which gradients are measured: the dual of the one in which the regularizer is strongly convex

    >>> rate = ScalarAdaGrad(scale=1.0)
    >>> rate.strength(rate.update(rate.init(2), np.array([3.0, 4.0])))
    5.0

    Survey: section 3.6
    """

    shape: ClassVar[Shape] = "scalar"
    scale: float
    offset: float = 0.0
    norm: Norm = L2
    gradient_bound: float = field(default=math.inf, kw_only=True)

    def __post_init__(self) -> None:
        positive("scale", self.scale)
        non_negative("offset", self.offset)
        check_gradient_bound(self.gradient_bound)

    @property
    def gradient_norm(self) -> Norm:
        """The norm in which gradients are measured."""
        return self.norm

    def init(self, n: int) -> ScalarRoot:
        """Return the root δ, before any gradient."""
        return ScalarRoot(whole("n", n, low=1), float(self.offset))

    def update(self, state: ScalarRoot, g: Vector, curvature: float = 0.0) -> ScalarRoot:
        """Add ‖g‖² under the root."""
        return ScalarRoot(state.n, math.hypot(state.root, self.norm(vector("g", g, state.n))))

    def strength(self, state: ScalarRoot) -> float:
        """Return √(δ² + Σ‖g‖²)/c."""
        return state.root / self.scale


@dataclass(frozen=True, eq=False)
class DiagonalAdaGrad:
    r"""A rate for each coordinate, $\eta_{t,i} = c / \bigl(\beta + \sqrt{\delta^2 + \sum_{s \le t} g_{s,i}^2}\bigr)$.

    With $\beta > 0$ and $\delta = 0$ it is the rate of McMahan et al., "Ad click prediction" (2013), with their α as c.

    Parameters
    ----------
    scale : c, positive; one number or one per coordinate, like the others
    offset : δ, at least 0
    beta : β, at least 0

    >>> rate = DiagonalAdaGrad(scale=0.5, beta=1.0)
    >>> rate.strength(rate.update(rate.init(2), np.array([3.0, 0.0])))
    array([8., 2.])

    Survey: section 3.4
    """

    shape: ClassVar[Shape] = "diagonal"
    gradient_norm: ClassVar[Norm] = LINF
    scale: float | Vector
    offset: float | Vector
    beta: float | Vector
    gradient_bound: float

    def __init__(
        self, scale: ArrayLike, offset: ArrayLike = 0.0, beta: ArrayLike = 0.0, *, gradient_bound: float = math.inf
    ) -> None:
        check_gradient_bound(gradient_bound)
        arguments = {
            "scale": constants("scale", scale, "positive numbers", low=math.ulp(0.0)),
            "offset": constants("offset", offset, "numbers of at least 0", low=0.0),
            "beta": constants("beta", beta, "numbers of at least 0", low=0.0),
            "gradient_bound": gradient_bound,
        }
        for name, value in arguments.items():
            object.__setattr__(self, name, value)

    def init(self, n: int) -> DiagonalRoot:
        """Return the root δ in every coordinate, before any gradient."""
        whole("n", n, low=1)
        for name in ("scale", "offset", "beta"):
            size = np.size(getattr(self, name))
            if size != n and np.ndim(getattr(self, name)):
                raise ValueError(f"{name}: got a vector of length {size}, expected one number or length {n}")
        return DiagonalRoot(np.zeros(n) + self.offset)

    def update(self, state: DiagonalRoot, g: Vector, curvature: float = 0.0) -> DiagonalRoot:
        """Add g² under the root."""
        return DiagonalRoot(np.hypot(state.root, vector("g", g, state.root.size)))

    def strength(self, state: DiagonalRoot) -> Vector:
        """Return (β + √(δ² + Σg²))/c."""
        return (self.beta + state.root) / self.scale


@dataclass(frozen=True)
class MatrixAdaGrad:
    r"""A matrix as rate, $\eta_t^{-1} = \frac1c \bigl(\delta^2 I + \sum_{s \le t} g_s g_s^\top\bigr)^{1/2}$.

    Parameters
    ----------
    scale : c, positive
    offset : δ, at least 0

    >>> rate = MatrixAdaGrad(scale=1.0)
    >>> rate.strength(rate.update(rate.init(2), np.array([0.0, 2.0])))
    array([[0., 0.],
           [0., 2.]])

    Survey: section 3.4
    """

    shape: ClassVar[Shape] = "matrix"
    gradient_bound: ClassVar[float] = math.inf
    gradient_norm: ClassVar[Norm] = L2
    scale: float
    offset: float = 0.0

    def __post_init__(self) -> None:
        positive("scale", self.scale)
        non_negative("offset", self.offset)

    def init(self, n: int) -> MatrixRoot:
        """Return the root δI, before any gradient."""
        return MatrixRoot(self.offset * np.eye(whole("n", n, low=1)))

    def update(self, state: MatrixRoot, g: Vector, curvature: float = 0.0) -> MatrixRoot:
        """Add ggᵀ under the root."""
        return MatrixRoot(_matrix_hypot(state.root, vector("g", g, len(state.root))))

    def strength(self, state: MatrixRoot) -> Matrix:
        """Return (δ²I + Σggᵀ)^½/c."""
        return state.root / self.scale


def _matrix_hypot(root: Matrix, g: Vector) -> Matrix:
    r"""Return $(H^2 + gg^\top)^{1/2}$, exactly symmetric.

    Its eigenvalues are the singular values of H with g as one more row. The root of the eigenvalues of H² + ggᵀ would
    turn their rounding, 1e-16 of the largest, into 1e-8 of its strength in directions that no gradient ever had.
    """
    if not g.any():
        return root
    _, values, rows = np.linalg.svd(np.vstack((root, g)), full_matrices=False)
    values[values < np.finfo(np.float64).eps * len(values) * values[0]] = 0.0
    product: Matrix = (rows.T * values) @ rows
    return (product + product.T) / 2


def sum_over_roots(a: ArrayLike) -> tuple[float, float]:
    r"""Return both sides of $\sum_i a_i / \sqrt{\sum_{j \le i} a_j} \le 2 \sqrt{\sum_i a_i}$, with 0/0 = 0.

    With $a_i = 1$ it is $\sum_t 1/\sqrt{t} \le 2\sqrt{T}$.

    Parameters
    ----------
    a : numbers of at least 0

    >>> sum_over_roots([1.0, 3.0, 0.0])
    (2.5, 4.0)

    Survey: Lemma 4
    """
    terms = vector("a", a)
    if terms.min() < 0:
        i = int(np.argmin(terms))
        raise ValueError(f"a: got {terms[i]} at index {i}, expected numbers of at least 0")
    largest = float(terms.max())
    if largest == 0:
        return 0.0, 0.0
    # Both sides grow like a root, so that the sums can be taken of numbers below 4, which do not overflow.
    half_exponent = (math.frexp(largest)[1] - 1) // 2
    terms, root = terms / 4.0**half_exponent, 2.0**half_exponent
    sums = np.cumsum(terms)
    fractions = np.divide(terms, np.sqrt(sums), out=np.zeros_like(terms), where=terms > 0)
    return root * float(fractions.sum()), 2 * root * math.sqrt(float(sums[-1]))
