"""A regret guarantee of a mixture, as numbers and as a sentence."""

import math
from dataclasses import dataclass

from forel.markup import number_text
from forel.notebook import card

__all__ = ["Guarantee"]


@dataclass(frozen=True)
class Guarantee:
    """The regret of a mixture against a comparator, and the bound on it.

    Parameters
    ----------
    result : the result that proves it
    against : a description of the comparator
    rounds : T
    loss, other : total loss of the mixture and of the comparator
    limit : the bound on the difference; ``bound`` raises if it is void
    void : the reason why the bound is void, empty if it holds
    weight : the denominator of averages, the sum of importances; the number of rounds if None

    >>> print(Guarantee("log K", "the best of 16 experts, which is b", 92000, 25000.9, 25000.0, 2.77))
    within 0.000031 per example of the best of 16 experts, which is b (0.271740 per example)
    >>> print(Guarantee("log K", "the mean", 100, 4.5e12, 4.4e12, 1.234e11))
    within 1,234,000,000 per example of the mean (44,000,000,000 per example)

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
        """The regret; NaN if both losses are infinite."""
        return self.loss - self.other

    @property
    def bound(self) -> float:
        """The bound on the regret."""
        if self.void:
            raise ValueError(f"{self.result}: the bound is void, because {self.void}")
        return self.limit

    @property
    def pair(self) -> tuple[float, float]:
        """Measured and bound."""
        return self.measured, self.bound

    def _repr_html_(self) -> str:
        limit = ("void", self.void) if self.void else ("bound", self.bound)
        rows = [("result", self.result), ("rounds", self.rounds), ("regret", self.measured), limit]
        return card(f"Guarantee against {self.against}", rows)

    def __str__(self) -> str:
        if void := self.void or ("" if self.weight != 0 else "no row has a positive importance"):
            return f"nothing is proved against {self.against}, because {void}"
        weight = float(self.rounds) if self.weight is None else self.weight
        total, unit = weight or 1.0, "per example" if self.weight is None else "per unit of importance"
        within, other = _rounded_up(self.bound / total), self.other / total
        # With more digits where the bound has more: as printed, the loss is at most their sum.
        places = 0 if "e" in within else len(within.partition(".")[2])
        exact = places >= 5 and math.isfinite(other)
        shown = f"{other + 0.5 * 10.0**-places:.{places}f}" if exact else number_text(other, digits=5)
        return f"within {within} {unit} of {self.against} ({shown} {unit})"


def _rounded_up(value: float) -> str:
    """Return at least two significant digits, rounded up so that the sentence is true; an exponent from 10¹⁵ on."""
    if not (math.isfinite(value) and value > 0):
        return f"{value + 0.0:g}"
    if value >= 1e15:
        scale = 10.0 ** (math.floor(math.log10(value)) - 1)
        return f"{math.ceil(value / scale) * scale:.1e}"
    places = max(0, 1 - math.floor(math.log10(value)))
    scale = 10.0**places
    return f"{math.ceil(value * scale) / scale:,.{places}f}"
