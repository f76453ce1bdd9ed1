r"""Penalties Ψ: part of the objective, kept in closed form, with a weight α_t from ``weights``.

========================= ========================================== =========================
penalty                   Ψ(x)                                       effect
========================= ========================================== =========================
``l1(λ)``                 λ ‖x‖₁                                     exact zeros
``squared_l2(λ)``         (λ/2) ‖x‖₂²                                shrinks
``ElasticNet(λ1, λ2)``    λ1 ‖x‖₁ + (λ2/2) ‖x‖₂²                     both
``l2(λ)``                 λ ‖x‖₂                                     all zero or none
``GroupL2(λ, groups)``    Σ_g λ_g ‖x_g‖₂                             whole groups of zeros
``Indicator(X)``          0 on X, ∞ elsewhere                        a constraint, every round
sums of these             with ``+``
========================= ========================================== =========================

The squared norm carries a half, as in the closed form of the ad-click paper (McMahan et al. 2013), so that λ simply
adds to the strength. Every penalty is non-negative and 0 at the origin, except an indicator of a set without it. An
indicator constrains for every weight.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forel.cvx import cvxpy
from forel.theory.sets import FeasibleSet, Reals, intersect
from forel.validation import Vector, constants, refuse

__all__ = ["NONE", "ElasticNet", "GroupL2", "Indicator", "Penalty", "Sum", "l1", "l2", "split_penalty", "squared_l2"]


class Penalty(Protocol):
    """A convex function Ψ ≥ 0 that the objective contains."""

    @property
    def strong_convexity(self) -> float:
        """The largest σ for which it is σ-strongly convex in the L2 norm."""
        ...

    def __call__(self, x: Vector) -> float:
        """Return Ψ(x)."""
        ...

    def expression(self, x: Any) -> Any:
        """Return Ψ(x) as a cvxpy expression."""
        ...


@dataclass(frozen=True, eq=False)
class ElasticNet:
    r"""The elastic net, $\Psi(x) = \sum_i \lambda_{1,i}|x_i| + \frac{\lambda_{2,i}}{2}x_i^2$.

    Parameters
    ----------
    l1, l2 : one number, or one per coordinate (0 leaves a coordinate, such as a bias, alone)

    >>> ElasticNet(l1=1.0, l2=2.0)(np.array([3.0, -1.0]))
    14.0

    Survey: sections 3.2 and 5
    """

    l1: float | Vector = 0.0
    l2: float | Vector = 0.0

    def __init__(self, l1: ArrayLike = 0.0, l2: ArrayLike = 0.0) -> None:
        object.__setattr__(self, "l1", constants("l1", l1, "numbers of at least 0", low=0.0))
        object.__setattr__(self, "l2", constants("l2", l2, "numbers of at least 0", low=0.0))

    @property
    def strong_convexity(self) -> float:
        """The smallest λ2."""
        return float(np.min(self.l2))

    def __call__(self, x: Vector) -> float:
        """Return Ψ(x)."""
        return float((self.l1 * np.abs(x)).sum() + 0.5 * (self.l2 * x * x).sum())  # np.sum takes twice the time

    def __add__(self, other: Penalty) -> Penalty:
        return _add(self, other)

    def expression(self, x: Any) -> Any:
        """Return Ψ(x)."""
        cp = cvxpy()
        l1, l2 = np.broadcast_to(self.l1, x.shape), np.broadcast_to(self.l2, x.shape)
        return cp.sum(cp.multiply(l1, cp.abs(x))) + 0.5 * cp.sum(cp.multiply(l2, cp.square(x)))


NONE = ElasticNet()


def l1(factor: ArrayLike) -> ElasticNet:
    r"""Return $\Psi(x) = \lambda\|x\|_1$.

    >>> l1(0.5)(np.array([3.0, -1.0]))
    2.0

    Survey: section 6.2
    """
    return ElasticNet(l1=factor)


def squared_l2(factor: ArrayLike) -> ElasticNet:
    r"""Return $\Psi(x) = \frac{\lambda}{2}\|x\|_2^2$.

    >>> squared_l2(2.0)(np.array([3.0, -1.0]))
    10.0

    Survey: section 5
    """
    return ElasticNet(l2=factor)


@dataclass(frozen=True, eq=False)
class GroupL2:
    r"""The sum of the (unsquared) L2 norms of groups of coordinates, $\Psi(x) = \sum_g \lambda_g\|x_g\|_2$.

    Parameters
    ----------
    factor : λ, one for all groups or one per group
    groups : the group of each coordinate, 0, 1, 2, …, or -1 for none; None puts all into one group

    >>> GroupL2(1.0, groups=[0, 0, 1, -1])(np.array([3.0, 4.0, -2.0, 9.0]))
    7.0

    Survey: section 5
    """

    factor: float | Vector
    groups: NDArray[np.int64] | None

    strong_convexity: ClassVar[float] = 0.0

    def __init__(self, factor: ArrayLike, groups: ArrayLike | None = None) -> None:
        factor = constants("factor", factor, "numbers of at least 0", low=0.0)
        labels = None if groups is None else np.asarray(groups)
        if labels is not None:
            if labels.ndim != 1 or labels.size == 0 or not np.issubdtype(labels.dtype, np.integer) or labels.min() < -1:
                raise refuse("groups", groups, "one whole number of at least -1 per coordinate")
            if isinstance(factor, np.ndarray) and factor.size != labels.max() + 1:
                raise refuse("factor", factor, f"one number, or one for each of the {labels.max() + 1} groups")
            labels = labels.astype(np.int64)
            labels.setflags(write=False)
        elif isinstance(factor, np.ndarray):
            raise refuse("factor", factor, "one number when all coordinates are one group")
        object.__setattr__(self, "factor", factor)
        object.__setattr__(self, "groups", labels)

    def norms(self, x: Vector) -> Vector:
        """Return ‖x_g‖₂ for every group."""
        if self.groups is None:
            return np.sqrt([x @ x])
        squares = np.bincount(self.groups + 1, weights=x * x)
        roots: Vector = np.sqrt(squares[1:])
        return roots

    def spread(self, per_group: Vector, ungrouped: float, n: int) -> Vector:
        """Return the n-vector that has each group's number at its coordinates."""
        if self.groups is None:
            return np.broadcast_to(per_group, n)
        spread: Vector = np.append(per_group, ungrouped)[self.groups]
        return spread

    def __call__(self, x: Vector) -> float:
        """Return Ψ(x)."""
        return float(np.sum(self.factor * self.norms(x)))

    def __add__(self, other: Penalty) -> Penalty:
        return _add(self, other)

    def expression(self, x: Any) -> Any:
        """Return Ψ(x)."""
        cp = cvxpy()
        if self.groups is None:
            return self.factor * cp.norm2(x)
        count = int(self.groups.max()) + 1
        members = [np.flatnonzero(self.groups == g) for g in range(count)]
        factors = np.broadcast_to(self.factor, count)
        return cp.sum([factors[g] * cp.norm2(x[m]) for g, m in enumerate(members) if m.size] or [0.0])


def l2(factor: float) -> GroupL2:
    r"""Return $\Psi(x) = \lambda\|x\|_2$, the norm and not its square.

    >>> l2(2.0)(np.array([3.0, 4.0]))
    10.0

    Survey: section 5
    """
    return GroupL2(factor)


@dataclass(frozen=True)
class Indicator:
    r"""The indicator of a set, $\Psi(x) = I_X(x)$: 0 on X, ∞ elsewhere.

    >>> from forel.theory.sets import Box
    >>> Indicator(Box(0, 1))(np.array([0.5, 2.0]))
    inf

    Survey: sections 2.4 and 5
    """

    feasible: FeasibleSet

    strong_convexity: ClassVar[float] = 0.0

    def __call__(self, x: Vector) -> float:
        """Return 0 or ∞."""
        return 0.0 if self.feasible.contains(x) else math.inf

    def __add__(self, other: Penalty) -> Penalty:
        return _add(self, other)

    def expression(self, x: Any) -> Any:
        """Return the indicator."""
        return cvxpy().transforms.indicator(self.feasible.constraints(x))


@dataclass(frozen=True)
class Sum:
    r"""A sum of penalties, $\Psi(x) = \sum_k \Psi_k(x)$; made by ``+``.

    >>> (l1(1.0) + l2(1.0))(np.array([3.0, 4.0]))
    12.0

    Survey: section 5
    """

    terms: tuple[Penalty, ...]

    @property
    def strong_convexity(self) -> float:
        """The sum of the terms' constants."""
        return sum(t.strong_convexity for t in self.terms)

    def __call__(self, x: Vector) -> float:
        """Return Ψ(x)."""
        return sum(t(x) for t in self.terms)

    def __add__(self, other: Penalty) -> Penalty:
        return _add(self, other)

    def expression(self, x: Any) -> Any:
        """Return Ψ(x)."""
        return sum(t.expression(x) for t in self.terms)


def _add(*penalties: Penalty) -> Penalty:
    flat = [t for p in penalties for t in (p.terms if isinstance(p, Sum) else (p,))]
    nets = [t for t in flat if isinstance(t, ElasticNet)]
    rest = [t for t in flat if not isinstance(t, ElasticNet)]
    net = ElasticNet(sum(t.l1 for t in nets), sum(t.l2 for t in nets))
    if not rest:
        return net
    return Sum((net, *rest) if nets else tuple(rest))


class PenaltyParts(NamedTuple):
    """A penalty split into the terms that closed forms handle, and the others."""

    l1: float | Vector
    l2: float | Vector
    groups: tuple[GroupL2, ...]
    feasible: FeasibleSet
    others: tuple[Penalty, ...]


def split_penalty(penalty: Penalty) -> PenaltyParts:
    """Split a penalty into its terms.

    >>> from forel.theory.sets import Box
    >>> split_penalty(l1(1.0) + squared_l2(2.0) + Indicator(Box(0, 1)))
    PenaltyParts(l1=1.0, l2=2.0, groups=(), feasible=Box(0.0, 1.0), others=())

    Survey: section 5
    """
    total = _add(NONE, penalty)
    terms = total.terms if isinstance(total, Sum) else (total,)
    net = next(t for t in terms if isinstance(t, ElasticNet))
    return PenaltyParts(
        net.l1,
        net.l2,
        tuple(t for t in terms if isinstance(t, GroupL2)),
        intersect(Reals(), *(t.feasible for t in terms if isinstance(t, Indicator))),
        tuple(t for t in terms if not isinstance(t, ElasticNet | GroupL2 | Indicator)),
    )
