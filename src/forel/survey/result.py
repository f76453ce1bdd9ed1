"""What a numbered result is, once it can be computed: a measured number, a bound, and a verdict."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

__all__ = ["Outcome", "Result", "largest"]

TIGHT = 0.999


class Outcome(NamedTuple):
    """One evaluation: what was measured, what it is compared with, and in what case."""

    measured: float
    bound: float
    case: str = ""

    @property
    def ratio(self) -> float:
        """Measured over bound, 0 where both are rounding."""
        return self.measured / self.bound if self.bound > 0 else 0.0


@dataclass(frozen=True)
class Result:
    """A numbered result, algorithm or figure of the survey as something to recompute.

    Parameters
    ----------
    key : as the survey numbers it, such as "Theorem 2"
    title : what it says, in a line
    relation : "≤" for a bound, "=" for an identity
    home : the object that implements it, as a dotted name
    run : recomputes it, and returns the case in which it is tightest
    """

    key: str
    title: str
    relation: Literal["≤", "="]
    home: str
    run: Callable[[], Outcome]

    def holds(self, outcome: Outcome) -> bool:
        """Tell whether the outcome is what the survey says, to rounding."""
        if math.isnan(outcome.measured) or math.isnan(outcome.bound):
            return False
        rounding = 1e-8 * max(1.0, abs(outcome.bound))
        if self.relation == "=":
            return abs(outcome.measured - outcome.bound) <= rounding
        return outcome.measured <= outcome.bound + rounding

    def tight(self, outcome: Outcome) -> bool:
        """Tell whether the bound was attained."""
        return self.relation == "=" or outcome.ratio >= TIGHT


def largest(outcomes: Iterable[Outcome]) -> Outcome:
    """Return the outcome that comes closest to its bound, or exceeds it the most."""
    return max(outcomes, key=lambda o: (o.ratio, o.measured - o.bound))
