r"""Lower bounds on the total loss of fixed models from a point of the dual problem.

By the Fenchel-Young inequality, for rows $f_t$ of importance $v_t$, any slopes $a_t$ and $0 \le \theta \le 1$,
$\sum_t v_t \ell_t(f_t \cdot x) \ge E(\theta) - \theta \|x\| \|G\|_\star$ with
$E(\theta) = -\sum_t v_t \ell_t^\star(\theta a_t)$ and $G = \sum_t v_t a_t f_t$. The slopes of every lane of a learner
are such a point. At θ = 1, $E = \sum_t v_t(\ell_t(m_t) - a_t m_t)$ needs no conjugate.

For log-loss and labels 0 and 1, $-\ell^\star(\theta a) = H(\theta|a|)$ with the binary entropy H. It is concave, so
that in each bin of a histogram of |a| its chord bounds its sum from below, and its value at the mean from above. For
several classes and $q = |a_y|$ the entropy of a shrunken point is $H(\theta q) + \theta(-\ell^\star(a) - H(q))$. For
other losses, E exceeds $\theta E(1)$ by a :class:`Concavity`; conjugates that are linear in θ have none, and θ = 1 is
best.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from forel.learner.layout import BINS
from forel.validation import Vector

__all__ = ["Concavity", "DualPoint", "SlopeHistogram"]

EDGES: Vector = (np.arange(BINS + 1) / BINS) ** 4
MAX_THETA = 1 - 1e-6  # up to which rounded slopes times θ are in the domain of the conjugate

THETAS: Vector = np.concatenate([np.logspace(-8, 0, 96, endpoint=False), [1.0]])
REFINED = 33  # number of θ between the neighbors of the best one
REFINEMENTS = 2


def entropy(p: Vector) -> Vector:
    """Return the entropy of a probability, −p log p − (1 − p) log(1 − p).

    >>> entropy(np.array([0.25, 0.5, 0.75])).round(4)
    array([0.5623, 0.6931, 0.5623])
    """
    q = 1 - p
    return -p * np.log(np.where(p > 0, p, 1.0)) - q * np.log1p(np.where(q > 0, -p, 0.0))


@dataclass(frozen=True, eq=False)
class SlopeHistogram:
    """A histogram of the absolute slopes of log-loss, between 0 and 1; rows may be missing.

    Parameters
    ----------
    weights, totals : for each bin the sum of importances, and of importances times |slope|
    slack : a bound on the effect of rounding errors on sums of entropies

    >>> from forel.learner.layout import BINS
    >>> one = np.arange(BINS) == 40
    >>> slopes = SlopeHistogram(100.0 * one, 16.0 * one)
    >>> exact = 100 * entropy(np.array([0.5 * 0.16]))
    >>> bool(0.99 * exact < slopes.energy(np.array([0.5]), 0.0) < exact)
    True
    """

    weights: Vector
    totals: Vector
    slack: float = 0.0

    def energy(self, theta: Vector, lower: float) -> Vector:
        """Return lower bounds on E(θ), given one on E(1)."""
        upper = np.clip((self.totals - self.weights * EDGES[:-1]) / np.diff(EDGES), 0.0, self.weights)
        at_edges = entropy(theta[:, None] * EDGES)
        chords = (self.weights - upper) * at_edges[:, :-1] + upper * at_edges[:, 1:]
        mean = np.divide(self.totals, self.weights, out=np.zeros(BINS), where=self.weights > 0)
        at_means = self.weights * entropy(np.clip(mean, 0.0, 1.0))
        # Missing rows add at least 0 to the first bound, and at least θ times their part of E(1) to the second.
        first = chords.sum(axis=1)
        second = theta * lower + np.maximum(chords - theta[:, None] * at_means, 0.0).sum(axis=1)
        return np.where(theta <= MAX_THETA, np.maximum(first, second) - self.slack, -np.inf)


@dataclass(frozen=True)
class Concavity:
    r"""A lower bound on $E(\theta) - \theta E(1)$, $(1-\theta)c_0 + \theta(1-\theta)c_1 - \theta\log(\theta)c_2$.

    Parameters
    ----------
    least : c₀, a lower bound on the total loss of every model
    curvature, entropy : c₁ and c₂, at least 0

    >>> Concavity(least=1.0, curvature=4.0)(np.array([0.0, 0.5, 1.0]))
    array([1. , 1.5, 0. ])
    """

    least: float = 0.0
    curvature: float = 0.0
    entropy: float = 0.0

    def __call__(self, theta: Vector) -> Vector:
        """Return the bound for each θ."""
        logs: Vector = np.log(np.where(theta > 0, theta, 1.0))
        return (1 - theta) * (self.least + theta * self.curvature) - theta * logs * self.entropy


@dataclass(frozen=True, eq=False)
class DualPoint:
    r"""A point of the dual problem: $E(\theta)$, bounded from below, and $\|G\|_\star$, bounded from above.

    Parameters
    ----------
    lower : a lower bound on E(1)
    gradient_norm : an upper bound on ‖G‖⋆
    concavity : a lower bound on E(θ) − θE(1); None if there is none
    slopes : the histogram of slopes of log-loss; None for other losses. Without it and concavity, only θ = 1 is used

    >>> point = DualPoint(lower=4.0, gradient_norm=1.0)
    >>> point.floor(2.0), point.floor(8.0), point.needed_norm(3.0)
    (2.0, -4.0, 1.0)
    >>> round(DualPoint(4.0, 1.0, Concavity(curvature=5.0)).floor(8.0), 4)  # θ = 0.1
    0.05

    Survey: Corollary 6, of which this is the Fenchel side
    """

    lower: float
    gradient_norm: float
    concavity: Concavity | None = None
    slopes: SlopeHistogram | None = None

    @property
    def shrinks(self) -> bool:
        """Whether there is a bound on E(θ) for θ below 1."""
        return self.concavity is not None or self.slopes is not None

    @property
    def least(self) -> float:
        """A lower bound on the total loss of every model, of any norm: E(0)."""
        return -np.inf if self.concavity is None else self.concavity.least

    def energy(self, theta: Vector) -> Vector:
        """Return lower bounds on E(θ)."""
        found: Vector = theta * self.lower
        if self.slopes is not None:
            found = np.maximum(found, self.slopes.energy(theta, self.lower))
        # Rows in the histogram add nothing to the concavity.
        return found if self.concavity is None else found + self.concavity(theta)

    def floor(self, norm: float) -> float:
        """Return a lower bound on the total loss of every model of at most this norm."""
        product = norm * self.gradient_norm  # at least |⟨G, x⟩|
        return max(self._largest(lambda theta: self.energy(theta) - theta * product), self.least)

    def needed_norm(self, loss: float) -> float:
        """Return a lower bound on the norm of every model whose total loss is smaller than ``loss``."""
        with np.errstate(divide="ignore", invalid="ignore"):
            needed = self._largest(lambda theta: (self.energy(theta) - loss) / (theta * self.gradient_norm))
        return max(needed, 0.0) if needed == needed else 0.0

    def _largest(self, value: Callable[[Vector], Vector]) -> float:
        """Return the largest value over θ; every θ is valid, so that the search affects only tightness."""
        if not self.shrinks:
            return float(value(np.ones(1))[0])
        thetas = THETAS
        for _ in range(REFINEMENTS + 1):
            values = value(thetas)
            best = int(np.argmax(values))
            neighbors = thetas[max(best - 1, 0)], thetas[min(best + 1, thetas.size - 1)]
            thetas = np.append(np.linspace(*neighbors, REFINED), thetas[best])
        return float(values[best])
