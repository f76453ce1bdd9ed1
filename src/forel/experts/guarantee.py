"""What is proved of a mixture, as numbers and in words."""

import math
from dataclasses import dataclass

__all__ = ["Guarantee"]


@dataclass(frozen=True)
class Guarantee:
    """How much more than a comparator a mixture has lost, and how much it can have lost at most.

    Parameters
    ----------
    result : what proves it
    against : who the comparator is, in words
    rounds : T
    loss, other : what the mixture and the comparator lost in all
    limit : the bound on the difference, as ``bound`` unless void
    void : why there is no bound, if so
    weight : what averages are taken over, the sum of the rows' importances; the rounds where None

    >>> print(Guarantee("log K", "the best of 16 experts, which is b", 92000, 25000.9, 25000.0, 2.77))
    within 0.000031 per example of the best of 16 experts, which is b (0.27174 per example)

    Survey: section 3.6
    """

    result: str
    against: str
    rounds: int
    loss: float
    other: float
    limit: float
    void: str = ""
    weight: float | None = None

    @property
    def measured(self) -> float:
        """The regret; NaN where both lost infinitely much."""
        return self.loss - self.other

    @property
    def bound(self) -> float:
        """The most that the theorem allows."""
        if self.void:
            raise ValueError(f"{self.result}: void, because {self.void}; it has no number")
        return self.limit

    @property
    def pair(self) -> tuple[float, float]:
        """Measured and bound."""
        return self.measured, self.bound

    def __str__(self) -> str:
        if self.void:
            return f"nothing is proved against {self.against}, because {self.void}"
        weight = float(self.rounds) if self.weight is None else self.weight
        over, each = weight or 1.0, "per example" if weight == self.rounds else "per unit of importance"
        return f"within {_plain(self.bound / over)} {each} of {self.against} ({self.other / over:.5g} {each})"


def _plain(value: float) -> str:
    """Return the number rounded up to two digits, so that the sentence stays true, and without an exponent."""
    if not (math.isfinite(value) and value > 0):
        return f"{value + 0.0:g}"
    places = max(0, 1 - math.floor(math.log10(value)))
    scale = 10.0**places
    up = math.ceil(value * scale) / scale
    return f"{up:.{places}f}"
