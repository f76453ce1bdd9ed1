"""A rate that adds strength only where the losses lack curvature."""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from forel.theory.norms import L2, Norm
from forel.validation import Shape, Vector, non_negative, positive, vector, whole

__all__ = ["CurvatureAdaptive", "CurvatureState"]


class CurvatureState(NamedTuple):
    """The length of gradients, the strength added, and the curvature the losses brought."""

    n: int
    added: float
    given: float


@dataclass(frozen=True)
class CurvatureAdaptive:
    r"""The strength $\lambda_{1:t}$ that balances both terms of the proximal bound, round by round.

    $$D^2 \lambda_t = \frac{\|g_t\|_2^2}{\sigma_{1:t} + \lambda_{1:t}}, \qquad
    \tfrac12 D^2 \lambda_{1:T} + \tfrac12 \sum_t \frac{\|g_t\|_2^2}{\sigma_{1:t} + \lambda_{1:t}}
    \le 2 \inf_{\lambda^\star} \text{(the same of } \lambda^\star)$$

    with $\sigma_t$ the strong convexity of $f_t$: logarithmic regret where losses curve, $\sqrt{T}$ where they do not,
    without knowing which. After Bartlett, Hazan and Rakhlin, "Adaptive online gradient descent" (2007).

    Only curvature that stays in the objective counts, so losses may not be linearized: FTRL has to run with
    ``surrogate=QuadraticBound()`` or ``Exact()``; Mirror Descent does not accept this rate.

    Parameters
    ----------
    diameter : D, positive; no two points of the feasible set are further apart, in the L2 norm

    >>> import numpy as np
    >>> rate = CurvatureAdaptive(diameter=2.0)
    >>> state = rate.update(rate.init(1), np.array([3.0]), curvature=0.8)
    >>> round(rate.strength(state), 12), round(rate.total(state), 12)
    (1.152..., 1.952...)

    Survey: Theorem 2 and section 3.7
    """

    shape: ClassVar[Shape] = "scalar"
    gradient_bound: ClassVar[float] = math.inf
    gradient_norm: ClassVar[Norm] = L2
    needs_curvature: ClassVar[bool] = True
    diameter: float

    def __post_init__(self) -> None:
        positive("diameter", self.diameter)

    def init(self, n: int) -> CurvatureState:
        """Return no strength and no curvature."""
        return CurvatureState(whole("n", n, low=1), 0.0, 0.0)

    def update(self, state: CurvatureState, g: Vector, curvature: float = 0.0) -> CurvatureState:
        r"""Add $\lambda_t = \frac12(\sqrt{A^2 + b^2} - A)$: $A = \sigma_{1:t} + \lambda_{1:t-1}$, $b = 2\|g_t\|/D$."""
        given = state.given + non_negative("curvature", curvature)
        b = 2 * L2(vector("g", g, state.n)) / self.diameter
        if b == 0:
            return CurvatureState(state.n, state.added, given)
        present = given + state.added
        # As ½b²/(√(A² + b²) + A): the difference has no digits left where A ≫ b, and b² none where b is tiny.
        return CurvatureState(state.n, state.added + b / 2 * (b / (math.hypot(present, b) + present)), given)

    def strength(self, state: CurvatureState) -> float:
        """Return λ_{1:t}, what the regularizer adds."""
        return state.added

    def total(self, state: CurvatureState) -> float:
        """Return λ_{1:t} + σ_{1:t}, the strength of the objective: regularizer and losses together."""
        return state.added + state.given
