r"""Lower bounds on the total loss of fixed models from a point of the dual problem.

By the Fenchel-Young inequality, for rows $f_t$ of importance $v_t$, any slopes $a_t$ and $0 \le \theta \le 1$,
$\sum_t v_t \ell_t(f_t \cdot x) \ge E(\theta) - \theta \|x\| \|G\|_\star$ with
$E(\theta) = -\sum_t v_t \ell_t^\star(\theta a_t)$ and $G = \sum_t v_t a_t f_t$. The slopes of every lane of a learner
are such a point. At θ = 1, $E = \sum_t v_t(\ell_t(m_t) - a_t m_t)$ needs no conjugate.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from forel.validation import Vector

__all__ = ["DualPoint"]

THETAS: Vector = np.concatenate([np.logspace(-8, 0, 96, endpoint=False), [1.0]])
REFINED = 33  # values of θ between the neighbours of the best one
REFINEMENTS = 2


@dataclass(frozen=True, eq=False)
class DualPoint:
    r"""A point of the dual problem: $E(\theta)$, bounded from below, and $\|G\|_\star$, bounded from above.

    Parameters
    ----------
    lower : a lower bound on E(1)
    gradient_norm : an upper bound on the dual norm of G
    curvature : E(θ) is at least θ lower + θ(1 − θ) curvature; 0 where only θ = 1 is used

    >>> point = DualPoint(lower=4.0, gradient_norm=1.0)
    >>> point.floor(2.0), point.floor(8.0), point.needed_norm(3.0)
    (2.0, -4.0, 1.0)
    >>> round(DualPoint(4.0, 1.0, curvature=5.0).floor(8.0), 4)  # θ = 0.1
    0.05

    Survey: Corollary 6, of which this is the Fenchel side
    """

    lower: float
    gradient_norm: float
    curvature: float = 0.0

    @property
    def shrinks(self) -> bool:
        """Whether E(θ) is known for θ below 1."""
        return self.curvature > 0

    def energy(self, theta: Vector) -> Vector:
        """Return lower bounds on E(θ)."""
        return theta * self.lower + theta * (1 - theta) * self.curvature

    def floor(self, norm: float) -> float:
        """Return a lower bound on the total loss of every model of at most this norm."""
        return self._largest(lambda theta: self.energy(theta) - theta * norm * self.gradient_norm)

    def needed_norm(self, loss: float) -> float:
        """Return a lower bound on the norm of every model whose total loss is smaller than ``loss``."""
        with np.errstate(divide="ignore", invalid="ignore"):
            needed = self._largest(lambda theta: (self.energy(theta) - loss) / (theta * self.gradient_norm))
        return max(needed, 0.0) if needed == needed else 0.0

    def _largest(self, value: Callable[[Vector], Vector]) -> float:
        """Return the largest value over θ; every θ is valid, so that the search decides about tightness only."""
        if not self.shrinks:
            return float(value(np.ones(1))[0])
        thetas = THETAS
        for _ in range(REFINEMENTS + 1):
            values = value(thetas)
            best = int(np.argmax(values))
            around = thetas[max(best - 1, 0)], thetas[min(best + 1, thetas.size - 1)]
            thetas = np.append(np.linspace(*around, REFINED), thetas[best])
        return float(values[best])
