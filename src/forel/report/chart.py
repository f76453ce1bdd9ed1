"""A chart as SVG: axes, lines and dots; the style sheet of the page has the colors."""

from collections.abc import Sequence
from dataclasses import dataclass

from forel.markup import Element, tag
from forel.report.axes import Axis

__all__ = ["Series", "chart", "legend"]

# Narrow, so that text is as large as that of the page on phones and on half a desktop screen.
WIDTH, HEIGHT = 420.0, 280.0
LEFT, RIGHT, TOP, BOTTOM = 52.0, 20.0, 30.0, 46.0


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
