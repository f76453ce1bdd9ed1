"""Coin betting: points without a rate, from the wealth of a gambler."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import digamma, gammaln

from forel.losses import Loss
from forel.theory.algorithms.algorithm import Bound, Round, first_larger
from forel.theory.norms import L2, LINF
from forel.theory.penalties import NONE, Penalty
from forel.theory.rates import Rate, Unregularized
from forel.theory.regularizers import Regularizer
from forel.theory.sets import FeasibleSet, Reals
from forel.theory.weights import Once, Weights
from forel.validation import Unsupported, Vector, positive, whole

if TYPE_CHECKING:
    from forel.theory.analysis import Trace

__all__ = ["CoinBetting", "coin_bound"]


class Wealth(NamedTuple):
    """Σ g/G, and what the gambler has: one number, or one for each coordinate."""

    t: int
    z: Vector
    wealth: Any

    @property
    def x(self) -> Vector:
        """The bet, a fraction of the wealth."""
        x: Vector = -self.z / (self.t + 1) * self.wealth
        return x


@dataclass(frozen=True)
class CoinBetting:
    r"""The Krichevsky–Trofimov bettor, $x_{t+1} = -\frac{z_t}{t + 1}\bigl(\varepsilon - \sum_{s \le t} \frac{g_s}G \cdot x_s\bigr)$.

    Here $z_t = g_{1:t}/G$. No rate is tuned, and regret grows with $\|x^*\|$ times a root of a logarithm of it: as if R had
    been known. At 0 it is at most Gε.

    Parameters
    ----------
    endowment : ε, positive
    lipschitz : G, with $\|g_t\|_2 \le G$, or $|g_{t,i}| \le G$ for each coordinate
    per_coordinate : whether each coordinate has a gambler of its own, with ε/n

    >>> from forel.losses import Linear
    >>> bettor = CoinBetting()
    >>> state = bettor.init(1)
    >>> for _ in range(4):
    ...     state = bettor.update(state, Linear([-1.0]))
    >>> bettor.play(state)
    array([3.5])

    After Orabona and Pál, "Coin betting and parameter-free online learning" (2016).
    """  # noqa: E501

    endowment: float = 1.0
    lipschitz: float = 1.0
    per_coordinate: bool = False

    rate: ClassVar[Rate[Any]] = Unregularized()
    penalty: ClassVar[Penalty] = NONE
    weights: ClassVar[Weights] = Once()
    feasible: ClassVar[FeasibleSet] = Reals()
    proximal: ClassVar[bool] = False

    def __post_init__(self) -> None:
        positive("endowment", self.endowment)
        positive("lipschitz", self.lipschitz)

    def init(self, n: int) -> Wealth:
        """Return the state before round 1."""
        n = whole("n", n, low=1)
        return Wealth(0, np.zeros(n), np.full(n, self.endowment / n) if self.per_coordinate else self.endowment)

    def play(self, state: Wealth) -> Vector:
        """Return x_{t+1}."""
        return state.x

    def update(self, state: Wealth, loss: Loss) -> Wealth:
        """Settle the bet."""
        x = state.x
        g = loss.subgradient(x) / self.lipschitz
        return Wealth(state.t + 1, state.z + g, state.wealth - (g * x if self.per_coordinate else float(g @ x)))

    def initial(self, state: Wealth) -> Regularizer:
        """Raise Unsupported: there is no regularizer."""
        raise Unsupported("coin betting has no regularizer; its bound is CoinBetting.bound")

    def added(self, before: Wealth, loss: Loss, after: Wealth) -> Round:
        """Raise Unsupported: there is no objective."""
        raise Unsupported("coin betting has no objective; its bound is CoinBetting.bound")

    def bound(self, trace: "Trace", x: Vector) -> Bound:
        """Return the exact bound; void as soon as a gradient is larger than G, when wealth may be negative."""
        norm, n = LINF if self.per_coordinate else L2, x.size
        if void := first_larger(trace.gradients, self.lipschitz, norm):
            return Bound("coin betting", void=void)
        rounds = np.arange(1.0, trace.rounds + 1)
        sizes, share = (np.abs(x), self.endowment / n) if self.per_coordinate else ([L2(x)], self.endowment)
        totals = [coin_bound(rounds, float(size), share) for size in sizes]
        return Bound("coin betting", self.lipschitz * np.sum(totals, axis=0), np.zeros(trace.rounds))


def coin_bound(rounds: Vector, size: float, endowment: float) -> Vector:
    r"""Return $\varepsilon + \max_{0 \le z \le T}\,(\|x^*\| z - F_T(z))$, the bettor's regret for gradients up to 1.

    $F_T(z) = \varepsilon 2^T\Gamma(\frac{T+1+z}2)\Gamma(\frac{T+1-z}2)/(\pi T!)$ is what the gambler has at least where
    $\|g_{1:T}\| = z$. It is at most $\|x^*\|\sqrt{T\log(1 + 24T^2\|x^*\|^2/\varepsilon^2)} + \varepsilon$.

    >>> coin_bound(np.array([1.0, 100.0]), 0.0, 1.0).round(3), coin_bound(np.array([100.0]), 2.0, 1.0).round(1)
    (array([0.363, 0.92 ]), array([53.4]))

    After Orabona and Pál, "Coin betting and parameter-free online learning" (2016).
    """
    T = np.asarray(rounds, dtype=np.float64)

    def potential(z: Vector) -> Vector:
        logs = T * np.log(2) + gammaln((T + 1 + z) / 2) + gammaln((T + 1 - z) / 2) - np.log(np.pi) - gammaln(T + 1)
        value: Vector = endowment * np.exp(logs)
        return value

    with np.errstate(over="ignore"):
        low, high = np.zeros_like(T), T.copy()
        for _ in range(64):  # F is convex: its slope, by which the maximum is found, grows
            z = (low + high) / 2
            below = potential(z) * (digamma((T + 1 + z) / 2) - digamma((T + 1 - z) / 2)) / 2 < size
            low, high = np.where(below, z, low), np.where(below, high, z)
        values = [size * z - potential(z) for z in (low, high)]
    best: Vector = endowment + np.maximum(*values)
    return best
