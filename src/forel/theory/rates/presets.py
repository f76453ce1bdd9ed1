r"""The rates of the survey with their constants, and doubling, a sequence of them, with their regret bounds."""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from forel.theory.norms import L2, LINF, Norm
from forel.theory.rates.adagrad import DiagonalAdaGrad, ScalarAdaGrad
from forel.theory.rates.schedule import Constant, InverseSqrt
from forel.validation import Vector, constants, positive, whole

__all__ = [
    "Doubling",
    "Epoch",
    "adagrad_dual_averaging_rate",
    "adagrad_proximal_rate",
    "dual_averaging_rate",
    "entropic_rate",
    "proximal_rate",
    "tuned_rate",
]


def tuned_rate(radius: float, lipschitz: float, horizon: int) -> Constant:
    r"""Return the constant rate $\eta = R/(G\sqrt{T'})$, best when $T = T'$.

    Regret is then at most $\frac{RG}{2}\sqrt{T'} + \frac{RG}{2}\frac{T}{\sqrt{T'}}$, which is $RG\sqrt{T}$ at T = T'.

    Parameters
    ----------
    radius : R, positive; the comparator's L2 norm is at most R
    lipschitz : G, positive; no gradient's L2 norm is larger
    horizon : T', the round for which to tune

    >>> tuned_rate(radius=1.0, lipschitz=2.0, horizon=100).eta
    0.05

    Survey: section 3.1
    """
    scale = positive("radius", radius) / positive("lipschitz", lipschitz)
    return Constant(scale / math.sqrt(whole("horizon", horizon, low=1)), gradient_bound=lipschitz)


def dual_averaging_rate(radius: float, lipschitz: float) -> InverseSqrt:
    r"""Return $\eta_t = \frac{R}{\sqrt2 G \sqrt{t+1}}$, for centered regularizers: regret at most $\sqrt2 RG\sqrt{T}$.

    Parameters
    ----------
    radius : R, positive; the comparator's L2 norm is at most R
    lipschitz : G, positive; no gradient's L2 norm is larger

    >>> rate = dual_averaging_rate(radius=1.0, lipschitz=1.0)
    >>> round(rate.strength(rate.init(2)), 4)
    1.4142

    Survey: section 3.2
    """
    scale = positive("radius", radius) / (math.sqrt(2) * positive("lipschitz", lipschitz))
    return InverseSqrt(scale, offset=1.0, gradient_bound=lipschitz)


def proximal_rate(radius: float, lipschitz: float) -> InverseSqrt:
    r"""Return $\eta_t = \frac{\sqrt2 R}{G\sqrt{t}}$, for proximal regularizers: regret at most $2\sqrt2 RG\sqrt{T}$.

    Parameters
    ----------
    radius : R, positive; the feasible set lies in the L2 ball of radius R
    lipschitz : G, positive; no gradient's L2 norm is larger

    >>> rate = proximal_rate(radius=1.0, lipschitz=1.0)
    >>> rate.strength(rate.init(2))
    0.0

    Survey: section 3.3
    """
    scale = math.sqrt(2) * positive("radius", radius) / positive("lipschitz", lipschitz)
    return InverseSqrt(scale, gradient_bound=lipschitz)


def adagrad_proximal_rate(radius: ArrayLike) -> DiagonalAdaGrad:
    r"""Return $\eta_{t,i} = \sqrt2 R_\infty / \sqrt{\sum_{s \le t} g_{s,i}^2}$, for proximal regularizers.

    Regret is at most $2\sqrt2 R_\infty \sum_i \sqrt{\sum_t g_{t,i}^2}$, for any gradients: no bound on them is assumed.

    Parameters
    ----------
    radius : R∞, positive; the feasible set lies in [−R∞, R∞]ⁿ; one number or one per coordinate

    >>> rate = adagrad_proximal_rate(radius=1.0)
    >>> rate.strength(rate.init(2))
    array([0., 0.])

    Survey: section 3.4
    """
    return DiagonalAdaGrad(math.sqrt(2) * np.asarray(_radius(radius)))


def adagrad_dual_averaging_rate(radius: ArrayLike, lipschitz: float) -> DiagonalAdaGrad:
    r"""Return $\eta_{t,i} = R / \sqrt{G^2 + \sum_{s \le t} g_{s,i}^2}$, for centered regularizers.

    The bound of a centered algorithm has $g_t$ with the rate $\eta_{t-1}$, which does not depend on it; G² replaces it.

    Parameters
    ----------
    radius : R, positive; no coordinate of the comparator is larger; one number or one per coordinate
    lipschitz : G, positive; no coordinate of a gradient is larger

    >>> rate = adagrad_dual_averaging_rate(radius=0.5, lipschitz=1.0)
    >>> rate.strength(rate.init(2))
    array([2., 2.])

    Survey: section 3.5
    """
    return DiagonalAdaGrad(_radius(radius), offset=positive("lipschitz", lipschitz), gradient_bound=lipschitz)


def _radius(radius: ArrayLike) -> float | Vector:
    return constants("radius", radius, "positive numbers", low=math.ulp(0.0))


def entropic_rate(n: int, lipschitz: float) -> ScalarAdaGrad:
    r"""Return $\eta_t = \sqrt{\log n} / \sqrt{G_\infty^2 + \sum_{s \le t} \|g_s\|_\infty^2}$, for the entropy.

    Regret is at most $2\sqrt{(G_\infty^2 + \sum_{t<T} \|g_t\|_\infty^2) \log n} \le 2 G_\infty \sqrt{T \log n}$.

    Parameters
    ----------
    n : the number of actions, at least 2
    lipschitz : G∞, positive; no coordinate of a gradient is larger

    >>> rate = entropic_rate(n=8, lipschitz=1.0)
    >>> round(rate.strength(rate.init(8)) ** -2, 4) == round(math.log(8), 4)
    True

    Survey: section 3.6
    """
    scale = math.sqrt(math.log(whole("n", n, low=2)))
    return ScalarAdaGrad(scale, offset=positive("lipschitz", lipschitz), norm=LINF, gradient_bound=lipschitz)


class Epoch(NamedTuple):
    """A stretch of rounds between restarts; ``number`` counts from 0, rounds from 1."""

    number: int
    first_round: int
    length: int


@dataclass(frozen=True)
class Doubling:
    r"""Epochs of 1, 2, 4, … rounds, each with the constant rate tuned for its length, $\eta = R/(G\sqrt{2^k})$.

    The algorithm restarts at each epoch, so this is not one rate but a sequence of them: a strength
    that decreases at a restart is not part of the FTRL family.

    Parameters
    ----------
    radius : R, positive; the comparator's L2 norm is at most R
    lipschitz : G, positive; no gradient's L2 norm is larger

    >>> doubling = Doubling(radius=1.0, lipschitz=1.0)
    >>> doubling.epoch(6)
    Epoch(number=2, first_round=4, length=4)
    >>> doubling.rate(2).eta
    0.5

    Survey: section 3.1
    """

    gradient_norm: ClassVar[Norm] = L2
    radius: float
    lipschitz: float

    def __post_init__(self) -> None:
        positive("radius", self.radius)
        positive("lipschitz", self.lipschitz)

    @property
    def gradient_bound(self) -> float:
        """G, the bound on the gradients that the rates were tuned for."""
        return self.lipschitz

    def epoch(self, t: int) -> Epoch:
        """Return the epoch to which round t belongs."""
        number = whole("t", t, low=1).bit_length() - 1
        return Epoch(number, first_round=2**number, length=2**number)

    def rate(self, number: int) -> Constant:
        """Return the rate of an epoch."""
        return tuned_rate(self.radius, self.lipschitz, 2 ** whole("number", number))

    def bound(self, rounds: int) -> float:
        r"""Return the sum of the epochs' bounds on regret, at most $\frac{\sqrt2}{\sqrt2 - 1} RG\sqrt{T}$.

        A full epoch brings $RG\sqrt{T'}$, the last $\frac{RG}{2}(\sqrt{T'} + T/\sqrt{T'})$ after T of its T' rounds.

        >>> Doubling(radius=1.0, lipschitz=1.0).bound(2)
        2.06...
        """
        if whole("rounds", rounds) == 0:
            return 0.0
        number, first, length = self.epoch(rounds)
        full = sum(math.sqrt(2**k) for k in range(number))
        last = (math.sqrt(length) + (rounds - first + 1) / math.sqrt(length)) / 2
        return self.radius * self.lipschitz * (full + last)
