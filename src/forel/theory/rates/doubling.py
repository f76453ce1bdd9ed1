"""The doubling trick: constant rates for horizons 1, 2, 4, …, with restarts."""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from forel.theory.norms import L2, Norm
from forel.theory.rates.presets import tuned_rate
from forel.theory.rates.schedule import Constant
from forel.validation import positive, whole

__all__ = ["Doubling", "Epoch"]


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
