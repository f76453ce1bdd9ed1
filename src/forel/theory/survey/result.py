"""A numbered result as a computation: a measured number, a bound, and a verdict."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

__all__ = ["Outcome", "Result", "largest"]

TIGHT = 0.999
RELATIVE, ABSOLUTE = 1e-8, 1e-12  # what rounding leaves of a bound, and of one that is 0


class Outcome(NamedTuple):
    """One evaluation: the measured value, the bound, and the case.

    >>> Outcome(1.0, 2.0).ratio, Outcome(1.0, 0.0).ratio, Outcome(1e-15, 0.0).ratio
    (0.5, inf, 0.0)
    """

    measured: float
    bound: float
    case: str = ""

    @property
    def rounding(self) -> float:
        """By how much both sides may differ and still be equal."""
        return max(RELATIVE * abs(self.bound), ABSOLUTE)

    @property
    def excess(self) -> float:
        """How far measured is above the bound, 0 where it is only rounding, infinite where one is not a number."""
        above = self.measured - self.bound
        if math.isnan(above):
            return math.inf
        return above if above > self.rounding else 0.0

    @property
    def ratio(self) -> float:
        """Measured over bound; of bounds that are not positive, infinite where they are exceeded and 0 elsewhere."""
        if math.isnan(self.measured) or math.isnan(self.bound):
            return math.nan
        if self.bound > 0:
            return self.measured / self.bound
        return math.inf if self.excess else 0.0


@dataclass(frozen=True)
class Result:
    """A numbered result, algorithm or figure of the survey as something to recompute.

    Parameters
    ----------
    key : as the survey numbers it, such as "Theorem 2"
    title : the statement, in one line
    implementation : the dotted name of the object that implements it
    run : recomputes it, and returns the case in which it is tightest
    relation : "≤" for a bound, "=" for an identity
    """

    key: str
    title: str
    implementation: str
    run: Callable[[], Outcome]
    relation: Literal["≤", "="] = "≤"

    def holds(self, outcome: Outcome) -> bool:
        """Return whether the outcome agrees with the survey, up to rounding."""
        if self.relation == "=":
            return abs(outcome.measured - outcome.bound) <= outcome.rounding
        return outcome.excess == 0

    def tight(self, outcome: Outcome) -> bool:
        """Return whether the bound was attained."""
        return self.relation == "=" or outcome.ratio >= TIGHT


def largest(outcomes: Iterable[Outcome]) -> Outcome:
    """Return the outcome that comes closest to its bound; where bounds are exceeded, the one that does so the most.

    NaN counts as the largest excess, so that it is never hidden by a valid outcome.
    """
    return max(outcomes, key=lambda o: (o.excess, -math.inf if math.isnan(o.ratio) else o.ratio))
