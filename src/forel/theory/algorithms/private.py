"""Differentially private FTRL: noise on prefix sums, by a binary tree, as a hint."""

import math
from dataclasses import dataclass

import numpy as np

from forel.theory.algorithms.ftrl import FTRL
from forel.theory.geometries import Euclidean
from forel.theory.rates import Constant
from forel.theory.sets import FeasibleSet, Reals
from forel.validation import Vector, non_negative, positive, whole

__all__ = ["TreeNoise", "private_ftrl", "private_regret", "zero_concentrated_privacy"]

EVERYWHERE = Reals()


def tree_nodes(t: int) -> list[tuple[int, int]]:
    """Return the dyadic intervals (start, length) whose union is the rounds 1 to t, one for each bit of t.

    >>> tree_nodes(6)
    [(0, 4), (4, 2)]
    """
    found, start = [], 0
    for bit in reversed(range(t.bit_length())):
        if t >> bit & 1:
            found.append((start, 1 << bit))
            start += 1 << bit
    return found


@dataclass(frozen=True)
class TreeNoise:
    r"""The hint $m_{t+1} = b_t$: the noise on $g_{1:t}$ if every node of a binary tree has its own, $N(0, \sigma^2 I)$.

    Parameters
    ----------
    scale : σ, at least 0
    seed : of the noise, which depends on the node and nothing else

    >>> noise = TreeNoise(1.0)
    >>> noise(1, np.zeros(2)), bool(np.array_equal(noise(4, np.ones(2)), noise(4, np.zeros(2))))
    (array([0., 0.]), True)

    After Chan, Shi and Song, "Private and continual release of statistics" (2011), and Dwork, Naor, Pitassi and
    Rothblum, "Differential privacy under continual observation" (2010).
    """

    scale: float
    seed: int = 0

    def __post_init__(self) -> None:
        non_negative("scale", self.scale)

    def __call__(self, t: int, g: Vector) -> Vector:
        """Return the noise on the sum of the first t − 1 gradients."""
        draws = (np.random.default_rng((self.seed, *node)).normal(size=g.size) for node in tree_nodes(t - 1))
        return self.scale * sum(draws, np.zeros(g.size))


def private_ftrl(
    strength: float, noise: float, lipschitz: float = 1.0, feasible: FeasibleSet = EVERYWHERE, seed: int = 0
) -> FTRL:
    r"""Return $x_{t+1} = \arg\min_X\ (g_{1:t} + b_t) \cdot x + \frac\lambda2\|x\|^2$, private if $\|g_t\|_2 \le L$.

    Its bound holds for every outcome of the noise, as that of a hint. It clips no gradients: losses whose gradients are
    larger than L are less private.

    Parameters
    ----------
    strength : λ, positive
    noise : σ, the noise of a node over L
    lipschitz : L
    feasible : X
    seed : of the noise

    >>> private_ftrl(2.0, noise=1.0, lipschitz=0.5).hint
    TreeNoise(scale=0.5, seed=0)

    After Kairouz et al., "Practical and private (deep) learning without sampling or shuffling" (2021).
    """
    hint = TreeNoise(non_negative("noise", noise) * positive("lipschitz", lipschitz), seed)
    return FTRL(Constant(1 / positive("strength", strength)), Euclidean(), feasible=feasible, hint=hint)


def zero_concentrated_privacy(rounds: int, noise: float, delta: float = 0.0) -> float:
    r"""Return the ρ of zCDP, $h/(2\sigma^2)$ with $h = \lfloor\log_2 T\rfloor + 1$; given δ, $\varepsilon = \rho + 2\sqrt{\rho\log(1/\delta)}$.

    A gradient, added or removed, is in at most h nodes that are read: the release is a Gaussian of sensitivity L√h.

    >>> zero_concentrated_privacy(1023, noise=10.0), round(zero_concentrated_privacy(1023, 10.0, delta=1e-6), 3)
    (0.05, 1.712)

    After Bun and Steinke, "Concentrated differential privacy: simplifications, extensions, and lower bounds" (2016).
    """  # noqa: E501
    rho = whole("rounds", rounds, low=1).bit_length() / (2 * positive("noise", noise) ** 2)
    return rho if delta == 0 else rho + 2 * math.sqrt(rho * math.log(1 / positive("delta", delta)))


def private_regret(
    rounds: int, n: int, radius: float, strength: float, noise: float, lipschitz: float = 1.0, oblivious: bool = False
) -> float:
    r"""Return the bound on expected regret, $\frac\lambda2R^2 + \frac{L^2}\lambda\sum_t(\frac12 + \sigma\sqrt{n\,\mathrm{ones}(t - 1)})$.

    ``ones`` counts the bits of t − 1 that are 1. Against linear losses that do not depend on the points, and without a
    feasible set, the noise is free: the last term is 0.

    >>> round(private_regret(63, 3, 1.0, 5.0, noise=2.0), 1), private_regret(63, 3, 1.0, 5.0, 2.0, oblivious=True)
    (81.7, 8.8)

    After Kairouz et al., "Practical and private (deep) learning without sampling or shuffling" (2021); the constants are
    our own.
    """  # noqa: E501
    bits = sum(math.sqrt(n * t.bit_count()) for t in range(rounds))
    terms = rounds / 2 + (0.0 if oblivious else noise * bits)
    return strength / 2 * radius**2 + lipschitz**2 / strength * terms
