"""Latencies, counted in a histogram of constant size."""

import math

__all__ = ["Latency"]

LOWEST, PER_DOUBLING, BINS = 1e-6, 4, 112  # seconds; from a microsecond to four minutes


class Latency:
    """How long something took, to within 19 %.

    >>> latency = Latency()
    >>> for k in range(1, 101):
    ...     latency.add(k / 1e6)
    >>> 40e-6 < latency.quantile(0.5) < 60e-6, latency.count
    (True, 100)
    """

    def __init__(self) -> None:
        self.bins, self.total = [0] * BINS, 0.0

    def add(self, seconds: float, count: int = 1) -> None:
        """Count a latency."""
        place = int(PER_DOUBLING * math.log2(seconds / LOWEST)) + 1 if seconds > LOWEST else 0
        self.bins[min(place, BINS - 1)] += count
        self.total += count * seconds

    @property
    def count(self) -> int:
        """The number of latencies."""
        return sum(self.bins)

    def quantile(self, share: float) -> float | None:
        """Return an upper bound of a quantile in seconds; None without any."""
        below, limit = 0, share * self.count
        for place, count in enumerate(self.bins):
            below += count
            if count and below >= limit:
                return float(LOWEST * 2 ** (place / PER_DOUBLING))
        return None

    def cumulative(self) -> list[tuple[float, int]]:
        """Return upper limits, one for each doubling, and the number of latencies up to each."""
        found, below = [], 0
        for place, count in enumerate(self.bins):
            below += count
            if place % PER_DOUBLING == 0:
                found.append((LOWEST * 2 ** (place / PER_DOUBLING), below))
        return found
