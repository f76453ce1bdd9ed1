"""A chart as SVG: axes, lines and dots; the style sheet of the page has the colours."""

from collections.abc import Sequence
from dataclasses import dataclass

from forel.doors.report.axes import Axis
from forel.markup import Element, tag

__all__ = ["Marks", "chart", "legend"]

# Narrow, so that text has the size of the page's text on phones and on half a desktop screen.
WIDTH, HEIGHT = 420.0, 280.0
LEFT, RIGHT, TOP, BOTTOM = 52.0, 20.0, 30.0, 46.0


@dataclass(frozen=True)
class Marks:
    """A series of points, with or without a line; ``look`` is a class of the style sheet."""

    name: str
    look: str
    points: Sequence[tuple[float, float]]
    line: bool = True
    dots: bool = True


def chart(title: str, description: str, x: Axis, y: Axis, marks: Sequence[Marks]) -> Element:
    """Return a chart; title and description are for screen readers."""

    def across(value: float) -> float:
        return LEFT + x.place(value) * (WIDTH - LEFT - RIGHT)

    def down(value: float) -> float:
        return HEIGHT - BOTTOM - y.place(value) * (HEIGHT - TOP - BOTTOM)

    floor, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    grid = [tag("line", x1=LEFT, x2=right, y1=down(v), y2=down(v)) for v, _ in y.ticks]
    grid += [tag("line", x1=across(v), x2=across(v), y1=floor, y2=floor + 5) for v, _ in x.ticks]
    words = [tag("text", text, x=LEFT - 7, y=down(v) + 4.5, text_anchor="end") for v, text in y.ticks]
    words += [tag("text", text, x=across(v), y=floor + 20, text_anchor="middle") for v, text in x.ticks]
    words.append(tag("text", y.label, x=2, y=15, class_="name"))
    words.append(tag("text", x.label, x=(LEFT + right) / 2, y=HEIGHT - 6, text_anchor="middle", class_="name"))
    drawn = []
    for one in marks:
        places = [(across(a), down(b)) for a, b in one.points]
        if one.line and len(places) > 1:
            drawn.append(tag("polyline", points=" ".join(f"{a:.2f},{b:.2f}" for a, b in places), class_=one.look))
        if one.dots:
            for (a, b), (u, v) in zip(places, one.points, strict=True):
                said = f"{v:.4g} at {u:,}" if isinstance(u, int) else f"{v:.4g} at {u:.4g}"
                drawn.append(tag("circle", tag("title", said), cx=a, cy=b, r=3, class_=one.look))
    return tag(
        "svg", tag("title", title), tag("desc", description), tag("g", *grid, class_="grid"), *drawn, *words,
        viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}", role="img",
    )  # fmt: skip


def legend(marks: Sequence[Marks]) -> Element:
    """Return the legend."""
    keys = []
    for one in marks:
        sample = tag("line", x1=0, x2=26, y1=7, y2=7) if one.line else tag("circle", cx=13, cy=7, r=4)
        sample.set("class", one.look)
        box = tag("svg", sample, viewBox="0 0 26 14", class_="key", aria_hidden="true")
        keys.append(tag("li", box, one.name))
    return tag("ul", *keys, class_="legend")
