"""Charts as SVG: axes with their ticks, lines and dots; the style sheet of the page has the colors."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from forel.markup import Element, tag

__all__ = ["Axis", "LinearAxis", "LogAxis", "Series", "axis_for", "chart", "legend", "linear_axis", "tick_text"]

LOG_RATIO = 10.0  # an axis is logarithmic from this ratio of its ends on
# Narrow, so that text is as large as that of the page on phones and on half a desktop screen.
WIDTH, HEIGHT = 420.0, 280.0
LEFT, RIGHT, TOP, BOTTOM = 52.0, 20.0, 30.0, 46.0


class Axis(Protocol):
    """An axis: its label, its ticks, and the position of a number from 0 to 1."""

    @property
    def label(self) -> str:
        """The quantity, with its unit."""

    @property
    def ticks(self) -> Sequence[tuple[float, str]]:
        """The numbers at the ticks, and their text."""

    def position(self, value: float) -> float:
        """Return the position of a number."""


@dataclass(frozen=True)
class LinearAxis:
    """A linear axis, from the first to the last tick.

    >>> linear_axis("loss", [0.52, 0.69]).ticks
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
        fixed = f".{digits}f" if 0 < digits <= 6 else ""
        return [(v, f"{v:{fixed}}".replace("-", "−", v < 0) if fixed else tick_text(v)) for v in values]

    def position(self, value: float) -> float:
        """Return the position of a number."""
        return (value / self.step - self.first) / (self.last - self.first)


@dataclass(frozen=True)
class LogAxis:
    """A logarithmic axis.

    >>> [text for _, text in LogAxis("rows", 2_900, 180_000).ticks]
    ['5k', '10k', '20k', '50k', '100k']
    >>> [text for _, text in LogAxis("regret", 0.02, 0.3).ticks]
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
            in_range = [v for v in values if self.low <= v * (1 + 1e-9) and v <= self.high * (1 + 1e-9)]
            if len(in_range) >= 3:
                break
        return [(v, tick_text(v)) for v in in_range[:: math.ceil(len(in_range) / 7)]]

    def position(self, value: float) -> float:
        """Return the position of a number."""
        return math.log(value / self.low) / math.log(self.high / self.low)


def linear_axis(label: str, values: Iterable[float], steps: int = 5) -> LinearAxis:
    """Return a linear axis around some numbers, with about the given number of steps."""
    numbers = list(values)
    low, high = min(numbers), max(numbers)
    span = (high - low) or abs(high) or 1.0
    rough = span / steps
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(k * power for k in (1, 2, 5, 10) if k * power >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return LinearAxis(label, first, max(last, first + 1), step)


def axis_for(label: str, values: Iterable[float]) -> Axis:
    """Return a logarithmic axis for positive numbers with a wide range, and a linear one otherwise."""
    numbers = list(values)
    low, high = min(numbers), max(numbers)
    return LogAxis(label, low, high) if low > 0 and high >= LOG_RATIO * low else linear_axis(label, numbers)


def tick_text(value: float) -> str:
    """Return the text of a number at a tick.

    >>> [tick_text(v) for v in (0.00002, 0.5, -3.0, 2500, 20_000, 5e6, 1e9)]
    ['2e-05', '0.5', '−3', '2.5k', '20k', '5M', '1G']
    """
    size, unit = next(((s, u) for s, u in ((1e9, "G"), (1e6, "M"), (1e3, "k")) if abs(value) >= s), (1.0, ""))
    return f"{value / size:.10g}{unit}".replace("-", "−", value < 0)


@dataclass(frozen=True)
class Series:
    """A series of points, with or without a line; ``style`` is a class of the style sheet."""

    name: str
    style: str
    points: Sequence[tuple[float, float]]
    line: bool = True
    dots: bool = True


def chart(title: str, description: str, x: Axis, y: Axis, series: Sequence[Series]) -> Element:
    """Return a chart; title and description are for screen readers."""

    def to_x(value: float) -> float:
        return LEFT + x.position(value) * (WIDTH - LEFT - RIGHT)

    def to_y(value: float) -> float:
        return HEIGHT - BOTTOM - y.position(value) * (HEIGHT - TOP - BOTTOM)

    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    grid = [tag("line", x1=LEFT, x2=right, y1=to_y(v), y2=to_y(v)) for v, _ in y.ticks]
    grid += [tag("line", x1=to_x(v), x2=to_x(v), y1=bottom, y2=bottom + 5) for v, _ in x.ticks]
    texts = [tag("text", text, x=LEFT - 7, y=to_y(v) + 4.5, text_anchor="end") for v, text in y.ticks]
    texts += [tag("text", text, x=to_x(v), y=bottom + 20, text_anchor="middle") for v, text in x.ticks]
    texts.append(tag("text", y.label, x=2, y=15, class_="name"))
    texts.append(tag("text", x.label, x=(LEFT + right) / 2, y=HEIGHT - 6, text_anchor="middle", class_="name"))
    drawn = []
    for one in series:
        positions = [(to_x(a), to_y(b)) for a, b in one.points]
        if one.line and len(positions) > 1:
            drawn.append(tag("polyline", points=" ".join(f"{a:.2f},{b:.2f}" for a, b in positions), class_=one.style))
        if one.dots:
            for (a, b), (u, v) in zip(positions, one.points, strict=True):
                tooltip = f"{v:.4g} at {u:,}" if isinstance(u, int) else f"{v:.4g} at {u:.4g}"
                drawn.append(tag("circle", tag("title", tooltip), cx=a, cy=b, r=3, class_=one.style))
    return tag(
        "svg", tag("title", title), tag("desc", description), tag("g", *grid, class_="grid"), *drawn, *texts,
        viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}", role="img",
    )  # fmt: skip


def legend(series: Sequence[Series]) -> Element:
    """Return the legend."""
    keys = []
    for one in series:
        sample = tag("line", x1=0, x2=26, y1=7, y2=7) if one.line else tag("circle", cx=13, cy=7, r=4)
        sample.set("class", one.style)
        box = tag("svg", sample, viewBox="0 0 26 14", class_="key", aria_hidden="true")
        keys.append(tag("li", box, one.name))
    return tag("ul", *keys, class_="legend")
