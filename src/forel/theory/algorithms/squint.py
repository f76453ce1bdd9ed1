"""Squint: experts with a prior on learning rates, whose bound is in the variance of regret."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erf, erfcx, logsumexp, xlogy

from forel.losses import Loss
from forel.theory.algorithms.algorithm import Bound, Round
from forel.theory.penalties import NONE, Penalty
from forel.theory.rates import Rate, Unregularized
from forel.theory.regularizers import Regularizer
from forel.theory.sets import FeasibleSet, Simplex
from forel.theory.weights import Once, Weights
from forel.validation import Matrix, Unsupported, Vector, constants, refuse, vector, whole

if TYPE_CHECKING:
    from forel.theory.analysis import Trace

__all__ = ["Squint"]


class SquintState(NamedTuple):
    """Σ r and Σ r² of each expert, r being what the player lost more in a round, and the distribution to play."""

    regret: Vector
    variance: Vector
    x: Vector


@dataclass(frozen=True, eq=False)
class Squint:
    r"""$x_{t+1,k} \propto \pi_k \mathrm{E}_\gamma[\eta e^{\eta R^k_t - \eta^2 V^k_t}]$, a prior γ on learning rates.

    Here $R^k = \sum r^k$, $V^k = \sum (r^k)^2$ and $r^k_t = g_t \cdot x_t - g_{t,k}$. All rates η are
    tried at once, and the player learns which one was right.

    Parameters
    ----------
    prior : π, one number for each expert; uniform by default
    rates : a grid of η ≤ ½, each as likely as the others; without one, the improper prior dη/η on [0, ½]

    >>> from forel.losses import Linear
    >>> experts = Squint(rates=[0.5, 0.25])
    >>> experts.play(experts.update(experts.init(2), Linear([1.0, 0.0]))).round(3)
    array([0.398, 0.602])

    After Koolen and van Erven, "Second-order quantile methods for experts and combinatorial games" (2015).
    """

    prior: Vector | None = None
    rates: Vector | None = None

    rate: ClassVar[Rate[Any]] = Unregularized()
    penalty: ClassVar[Penalty] = NONE
    weights: ClassVar[Weights] = Once()
    feasible: ClassVar[FeasibleSet] = Simplex()
    proximal: ClassVar[bool] = False

    def __init__(self, prior: ArrayLike | None = None, rates: ArrayLike | None = None) -> None:
        given = None if prior is None else constants("prior", prior, "positive numbers", low=math.ulp(0.0))
        grid = None if rates is None else np.atleast_1d(constants("rates", rates, "numbers in (0, ½]", low=1e-300))
        if grid is not None and grid.max() > 0.5:
            raise refuse("rates", grid.max(), "numbers in (0, ½]")
        object.__setattr__(self, "prior", None if given is None else given / np.sum(given))
        object.__setattr__(self, "rates", grid)

    def _prior(self, n: int) -> Vector:
        return np.full(n, 1 / n) if self.prior is None else vector("prior", self.prior, n)

    def init(self, n: int) -> SquintState:
        """Return the state before round 1."""
        return self._state(np.zeros(whole("n", n, low=1)), np.zeros(n))

    def play(self, state: SquintState) -> Vector:
        """Return the distribution over experts."""
        return state.x

    def _state(self, regret: Vector, variance: Vector) -> SquintState:
        if self.rates is None:
            logs = _log_integral(regret, variance)
        else:
            powers = np.outer(regret, self.rates) - np.outer(variance, self.rates**2)
            logs = logsumexp(powers, b=self.rates, axis=1)
        logs = logs + np.log(self._prior(regret.size))
        return SquintState(regret, variance, np.exp(logs - logsumexp(logs)))

    def update(self, state: SquintState, loss: Loss) -> SquintState:
        """Count what each expert would have saved."""
        g = loss.subgradient(state.x)
        r = float(g @ state.x) - g
        return self._state(state.regret + r, state.variance + r * r)

    def initial(self, state: SquintState) -> Regularizer:
        """Raise Unsupported: there is no regularizer."""
        raise Unsupported("Squint has no regularizer; its bound is Squint.bound")

    def added(self, before: SquintState, loss: Loss, after: SquintState) -> Round:
        """Raise Unsupported: there is no objective."""
        raise Unsupported("Squint has no objective; its bound is Squint.bound")

    def bound(self, trace: "Trace", x: Vector) -> Bound:
        r"""Return $\min_\eta\ \eta V + (\mathrm{KL}(x^*, \pi) - \log\gamma(\eta))/\eta$ with $V = x^* \cdot V_t$.

        With the improper prior, Theorem 4 of the paper: with $L = 1 + 2\log(T+1)$, for a comparator that is one expert,
        $\sqrt{2V}(1 + \sqrt{2\log(L/(2\pi))}) + 5\log(1 + L/\pi)$. Losses of two experts may be at most 1 apart.
        """
        name, prior, g = "Squint", self._prior(x.size), trace.gradients
        if (wide := np.ptp(g, axis=1) > 1 + 1e-12).any():
            t = int(np.argmax(wide)) + 1
            return Bound(name, void=f"losses of round {t} are more than 1 apart")
        if not self.feasible.contains(x):
            return Bound(name, void="the comparator lies outside X")
        r: Matrix = np.einsum("ti,ti->t", g, trace.points[:-1])[:, None] - g
        variance = np.cumsum(r**2, axis=0) @ x
        if self.rates is not None:
            apart = float(np.sum(xlogy(x, x) - xlogy(x, prior))) + math.log(self.rates.size)
            total = np.min(np.outer(variance, self.rates) + apart / self.rates, axis=1)
        elif x.max() < 1 - 1e-12:
            return Bound(name, void="the comparator is not one expert; use a grid of rates")
        else:
            logs, share = np.log(np.arange(2.0, trace.rounds + 2)), prior[int(np.argmax(x))]
            lead = np.sqrt(2 * np.maximum(np.log((0.5 + logs) / share), 0.0))
            total = np.sqrt(2 * variance) * (1 + lead) + 5 * np.log1p((1 + 2 * logs) / share)
        return Bound(name, total, np.zeros(trace.rounds))


def _log_integral(regret: Vector, variance: Vector) -> Vector:
    r"""Return $\log\int_0^{1/2} e^{\eta R - \eta^2 V} d\eta$, by error functions scaled so that none overflows."""
    small = variance < 1e-12
    root = 2 * np.sqrt(np.where(small, 1.0, variance))
    b, a, apart = regret / root, (variance - regret) / root, regret / 2 - variance / 4  # b² − a²
    with np.errstate(all="ignore"):
        inside = np.log(erf(a) + erf(b)) + b * b  # the peak is in [0, ½]
        falls = np.log(erfcx(-b) - erfcx(a) * np.exp(apart))
        rises = np.log(erfcx(-a) - erfcx(b) * np.exp(-apart)) + apart
        logs = np.where(b < 0, falls, np.where(a < 0, rises, inside)) + np.log(np.sqrt(np.pi) / root)
        flat = np.where(np.abs(regret) > 1e-9, np.log(np.expm1(regret / 2) / regret), np.log(0.5) + regret / 4)
    return np.where(small, flat, logs)
