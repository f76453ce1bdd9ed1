"""Sets given by linear inequalities and equations."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog

from forel.theory.sets.feasible import TOLERANCE
from forel.validation import Infeasible, Matrix, Vector, frozen, matrix, number, vector


def _scale(rows: Matrix, side: Vector, x: Vector) -> Vector:
    """Return the size of each row's terms; a side at 0 has no size but the point's."""
    terms: Vector = np.abs(rows) @ np.abs(x) + np.abs(side)
    return np.where(side == 0, np.abs(rows).sum(axis=1) * np.abs(x).max(), terms)


@dataclass(frozen=True, eq=False)
class HalfSpace:
    r"""A half-space, $\{x : a \cdot x \le b\}$.

    >>> half = HalfSpace([1.0, 1.0], 1.0)
    >>> [0.0, 1.0] in half, half.support(np.array([2.0, 2.0])), half.support(np.array([1.0, 0.0]))
    (True, 2.0, inf)

    Survey: section 2.4
    """

    normal: Vector
    offset: float

    separable: ClassVar[bool] = False
    on_simplex: ClassVar[bool] = False
    rotatable: ClassVar[bool] = True

    def __init__(self, normal: ArrayLike, offset: float) -> None:
        checked = vector("normal", normal)
        if not checked.any():
            raise ValueError("normal: got zeros, expected at least one entry that is not 0")
        object.__setattr__(self, "normal", frozen(checked))
        object.__setattr__(self, "offset", number("offset", offset))

    @property
    def dimension(self) -> int:
        """The length of a."""
        return self.normal.size

    def contains(self, x: ArrayLike, tolerance: float = TOLERANCE) -> bool:
        """Return whether a·x ≤ b."""
        x = vector("x", x, self.dimension)
        scale = float(_scale(self.normal[None], np.array([self.offset]), x)[0])
        return float(self.normal @ x) <= self.offset + tolerance * scale

    def __contains__(self, x: ArrayLike) -> bool:
        return self.contains(x)

    def support(self, g: Vector) -> float:
        """Return μb when g = μa with μ ≥ 0, and ∞ otherwise."""
        g = vector("g", g, self.dimension)
        multiple = float(g @ self.normal / (self.normal @ self.normal))
        along = bool(np.linalg.norm(g - multiple * self.normal) <= 1e-12 * np.linalg.norm(g))
        return multiple * self.offset if along and multiple >= 0 else math.inf

    def largest_norm(self, n: int) -> float:
        """Return ∞."""
        return math.inf

    def diameter(self, n: int) -> float:
        """Return ∞."""
        return math.inf

    def constraints(self, x: Any) -> list[Any]:
        """Return a·x ≤ b."""
        return [self.normal @ x <= self.offset]

    def rotated(self, basis: Matrix) -> "HalfSpace":
        """Return the half-space with normal Vᵀa."""
        return HalfSpace(basis.T @ self.normal, self.offset)


@dataclass(frozen=True, eq=False)
class Affine:
    r"""An affine subspace, $\{x : Cx = d\}$; redundant rows are dropped, contradictory ones refused.

    >>> plane = Affine([[1.0, 1.0, 1.0]], [1.0])
    >>> [0.5, 0.5, 0.0] in plane, plane.support(np.array([2.0, 2.0, 2.0]))
    (True, 2.0...)

    Survey: section 2.4
    """

    matrix: Matrix
    target: Vector

    separable: ClassVar[bool] = False
    on_simplex: ClassVar[bool] = False
    rotatable: ClassVar[bool] = True

    def __init__(self, matrix_: ArrayLike, target: ArrayLike) -> None:
        rows = matrix("matrix", matrix_)
        target = vector("target", target, rows.shape[0])
        left, values, right = np.linalg.svd(rows, full_matrices=False)
        rank = int(np.sum(values > values[0] * max(rows.shape) * np.finfo(np.float64).eps))
        if rank == 0:
            raise ValueError("matrix: got zeros, expected at least one equation")
        # Orthonormal rows with the same solutions: well scaled, and of full rank.
        reduced = left[:, :rank].T @ target
        if np.linalg.norm(left[:, :rank] @ reduced - target) > 1e-9 * (np.linalg.norm(target) + 1e-300):
            raise Infeasible("matrix, target: got equations that contradict each other, expected a solution")
        object.__setattr__(self, "matrix", frozen(right[:rank]))
        object.__setattr__(self, "target", frozen(reduced / values[:rank]))

    @property
    def dimension(self) -> int:
        """The number of columns of C."""
        return int(self.matrix.shape[1])

    def contains(self, x: ArrayLike, tolerance: float = TOLERANCE) -> bool:
        """Return whether Cx = d, with the rows of C made orthonormal."""
        x = vector("x", x, self.dimension)
        scale = _scale(self.matrix, self.target, x)
        return bool((np.abs(self.matrix @ x - self.target) <= tolerance * scale).all())

    def __contains__(self, x: ArrayLike) -> bool:
        return self.contains(x)

    def support(self, g: Vector) -> float:
        """Return ν·d when g = Cᵀν, and ∞ otherwise."""
        g = vector("g", g, self.dimension)
        multiples = self.matrix @ g
        along = bool(np.linalg.norm(g - self.matrix.T @ multiples) <= 1e-12 * np.linalg.norm(g))
        return float(multiples @ self.target) if along else math.inf

    def largest_norm(self, n: int) -> float:
        """Return ∞, or the norm of the only point."""
        return float(np.linalg.norm(self.target)) if self.matrix.shape[0] == n else math.inf

    def diameter(self, n: int) -> float:
        """Return ∞, or 0 for a single point."""
        return 0.0 if self.matrix.shape[0] == n else math.inf

    def constraints(self, x: Any) -> list[Any]:
        """Return Cx = d."""
        return [self.matrix @ x == self.target]

    def rotated(self, basis: Matrix) -> "Affine":
        """Return the subspace with matrix CV."""
        return Affine(self.matrix @ basis, self.target)


@dataclass(frozen=True, eq=False)
class Polyhedron:
    r"""A polyhedron, $\{x : Ax \le b, Cx = d\}$; flows on a graph are one.

    Parameters
    ----------
    A, b : inequalities, or None
    C, d : equations, or None

    >>> flow = Polyhedron(C=[[1.0, 1.0, 0.0], [1.0, 0.0, -1.0]], d=[1.0, 0.0], A=-np.eye(3), b=np.zeros(3))
    >>> [0.5, 0.5, 0.5] in flow, flow.support(np.array([0.0, 0.0, 1.0]))
    (True, 1.0)

    Survey: section 2.4
    """

    A: Matrix
    b: Vector
    C: Matrix
    d: Vector

    separable: ClassVar[bool] = False
    on_simplex: ClassVar[bool] = False
    rotatable: ClassVar[bool] = False

    def __init__(
        self,
        A: ArrayLike | None = None,
        b: ArrayLike | None = None,
        C: ArrayLike | None = None,
        d: ArrayLike | None = None,
    ) -> None:
        if A is None and C is None:
            raise ValueError("A, C: got None for both, expected inequalities, equations or both; or use Reals()")
        n = np.atleast_1d(np.asarray(C if A is None else A)).shape[-1]
        for rows_name, rows, side_name, side in (("A", A, "b", b), ("C", C, "d", d)):
            if (rows is None) != (side is None):
                raise ValueError(f"{rows_name}, {side_name}: got only one of the two, expected both or neither")
            checked = np.zeros((0, n)) if rows is None else matrix(rows_name, rows, n)
            object.__setattr__(self, rows_name, frozen(checked))
            object.__setattr__(
                self, side_name, frozen(np.zeros(0) if side is None else vector(side_name, side, checked.shape[0]))
            )
        if self._linear_program(np.zeros(n)) is None:
            raise Infeasible("A, b, C, d: got constraints that no point satisfies, expected a feasible system")

    def _linear_program(self, cost: Vector) -> float | None:
        """Return min cost·x, −∞ when unbounded, None when there is no point."""
        found = linprog(cost, self.A, self.b, self.C, self.d, bounds=(None, None), method="highs")
        if found.status == 3:
            return -math.inf
        return float(found.fun) if found.status == 0 else None

    @property
    def dimension(self) -> int:
        """The number of columns."""
        return int(self.A.shape[1])

    def contains(self, x: ArrayLike, tolerance: float = TOLERANCE) -> bool:
        """Return whether Ax ≤ b and Cx = d, each row up to its scale."""
        x = vector("x", x, self.dimension)
        pairs = ((self.A, self.b), (self.C, self.d))
        scale = [_scale(rows, side, x) for rows, side in pairs]
        below = self.A @ x - self.b <= tolerance * scale[0]
        level = np.abs(self.C @ x - self.d) <= tolerance * scale[1]
        return bool(below.all() and level.all())

    def __contains__(self, x: ArrayLike) -> bool:
        return self.contains(x)

    def support(self, g: Vector) -> float:
        """Return the value of the linear program max g·x."""
        least = self._linear_program(-vector("g", g, self.dimension))
        if least is None:
            raise ValueError("g: got a linear program that the solver could not finish; rescale the inputs")
        return -least

    def largest_norm(self, n: int) -> float:
        """Return that of the smallest box around it."""
        ends = np.array([[self.support(sign * e) for e in np.eye(n)] for sign in (1.0, -1.0)])
        return float(np.linalg.norm(np.abs(ends).max(axis=0)))

    def diameter(self, n: int) -> float:
        """Return the diagonal of the smallest box around it."""
        return float(np.linalg.norm([self.support(e) + self.support(-e) for e in np.eye(n)]))

    def constraints(self, x: Any) -> list[Any]:
        """Return Ax ≤ b and Cx = d."""
        limits = [self.A @ x <= self.b] if self.b.size else []
        return [*limits, self.C @ x == self.d] if self.d.size else limits
