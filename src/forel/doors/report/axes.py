"""Axes: ranges and ticks."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

__all__ = ["Axis", "Even", "Log", "even", "fitting", "short"]

WIDE = 10.0  # ratio from which an axis is logarithmic


class Axis(Protocol):
    """An axis: its label, its ticks, and the position of a number from 0 to 1."""

    @property
    def label(self) -> str:
        """The quantity, with its unit."""

    @property
    def ticks(self) -> Sequence[tuple[float, str]]:
        """The numbers of ticks, and their text."""

    def place(self, value: float) -> float:
        """Return the position of a number."""


@dataclass(frozen=True)
class Even:
    """An axis with equal steps, from the first to the last tick.

    >>> even("loss", [0.52, 0.69]).ticks
    [(0.5, '0.50'), (0.55, '0.55'), (0.6, '0.60'), (0.65, '0.65'), (0.7, '0.70')]
    """

    label: str
    first: int
    last: int
    step: float

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """The multiples of the step."""
        digits = -math.floor(math.log10(self.step) + 1e-9)
        values = [float(f"{k * self.step:.12g}") for k in range(self.first, self.last + 1)]
        even = "" if not 0 < digits <= 6 else f".{digits}f"
        return [(v, f"{v:{even}}".replace("-", "−", v < 0) if even else short(v)) for v in values]

    def place(self, value: float) -> float:
        """Return the position of a number."""
        return (value / self.step - self.first) / (self.last - self.first)


@dataclass(frozen=True)
class Log:
    """An axis on which equal ratios are equally long.

    >>> [text for _, text in Log("rows", 2_900, 180_000).ticks]
    ['5k', '10k', '20k', '50k', '100k']
    >>> [text for _, text in Log("regret", 0.02, 0.3).ticks]
    ['0.02', '0.05', '0.1', '0.2']
    """

    label: str
    low: float
    high: float

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """The powers of ten in the range, with multiples of 2 and 5 if there are few."""
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for leading in ((1,), (1, 2, 5)):
            values = [float(f"{k}e{p}") for p in powers for k in leading]
            within = [v for v in values if self.low <= v * (1 + 1e-9) and v <= self.high * (1 + 1e-9)]
            if len(within) >= 3:
                break
        few = within[:: math.ceil(len(within) / 7)]
        return [(v, short(v)) for v in few]

    def place(self, value: float) -> float:
        """Return the position of a number."""
        return math.log(value / self.low) / math.log(self.high / self.low)


def even(label: str, values: Iterable[float], steps: int = 5) -> Even:
    """Return a linear axis around some numbers, with about the given number of steps."""
    held = list(values)
    low, high = min(held), max(held)
    reach = (high - low) or abs(high) or 1.0
    rough = reach / steps
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(k * power for k in (1, 2, 5, 10) if k * power >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return Even(label, first, max(last, first + 1), step)


def fitting(label: str, values: Iterable[float]) -> Axis:
    """Return a logarithmic axis for positive numbers of a wide range, and a linear one otherwise."""
    held = list(values)
    low, high = min(held), max(held)
    return Log(label, low, high) if low > 0 and high >= WIDE * low else even(label, held)


def short(value: float) -> str:
    """Return the short text of a number for a tick.

    >>> [short(v) for v in (0.00002, 0.5, -3.0, 2500, 20_000, 5e6, 1e9)]
    ['2e-05', '0.5', '−3', '2.5k', '20k', '5M', '1G']
    """
    size, unit = next(((s, u) for s, u in ((1e9, "G"), (1e6, "M"), (1e3, "k")) if abs(value) >= s), (1.0, ""))
    return f"{value / size:.10g}{unit}".replace("-", "−", value < 0)
