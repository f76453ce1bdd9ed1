"""Curves of columns and heat maps of pairs, as small plots that a screen of a phone has two of side by side."""

import re

from forel.markup import Element, number_text, tag
from forel.report.plots import linear_axis
from forel.store.column_curves import ColumnCurve, Curves, PairSpread, ends, short
from forel.training.model import Model

__all__ = ["curves"]

MAX_CURVES, MAX_PAIRS = 12, 4
WIDTH, HEIGHT = 180.0, 140.0
RIGHT, TOP, BOTTOM = 5.0, 8.0, 24.0
LETTER = 8.3  # width of a character
CROWDED = 0.1  # of the range, with half of the knots


def curves(trained: Model) -> Element | None:
    """Return the section of the curves and pairs of the best expert on them; None without one."""
    inspected = trained.inspect()
    found = inspected.curves
    if found is None or inspected.mixture is None:
        return None
    own = next(one for one in inspected.mixture.experts if one.name == found.expert)
    text = (
        f"What each column adds to a margin, relative to its mean over its knots, which are the dots. These "
        f"are the curves of one expert ({found.expert}) with an average {inspected.mixture.title} of "
        f"{number_text(own.loss, decimals=4)}; the mixture has {number_text(inspected.mixture.loss, decimals=4)}."
    )
    return tag("section", tag("h2", "Curves of columns"), tag("p", text), _curves(found), *_pairs(found))


def _curves(found: Curves) -> Element:
    shown = found.columns[:MAX_CURVES]
    values = [value for one in shown for value in one.centered]
    low, high = min(values), max(values)
    total = sum(one.spread**2 for one in found.columns) or 1.0
    figures = [_curve(one, low, high, one.spread**2 / total) for one in shown]
    return tag("div", *figures, class_="small figures")


def _curve(curve: ColumnCurve, low: float, high: float, share: float) -> Element:
    """Return the plot of a curve; all have the same vertical axis."""
    knots, values = curve.knots, curve.centered
    first, reach, middle = knots[0], knots[-1] - knots[0], knots[len(knots) // 2]
    # A curve is linear between knots on an axis with evenly spaced knots, too.
    crowded = reach > 0 and len(knots) > 2 and not CROWDED < (middle - first) / reach < 1 - CROWDED
    y = linear_axis("", (low, high), 4)
    left = _left([text for _, text in y.ticks])

    def to_x(k: int) -> float:
        part = k / (len(knots) - 1) if crowded else (knots[k] - first) / reach if reach else 0.5
        return left + part * (WIDTH - left - RIGHT)

    def to_y(value: float) -> float:
        return HEIGHT - BOTTOM - y.position(value) * (HEIGHT - TOP - BOTTOM)

    points = [(to_x(k), to_y(value)) for k, value in enumerate(values)]
    grid = tag(
        "g", *(tag("line", x1=left, x2=WIDTH - RIGHT, y1=to_y(v), y2=to_y(v)) for v, _ in y.ticks), class_="grid"
    )
    line = tag("polyline", points=" ".join(f"{a:.2f},{b:.2f}" for a, b in points), class_="line one")
    dots = [
        tag("circle", tag("title", f"{_signed(value)} at {number_text(knot)}"), cx=a, cy=b, r=2, class_="line one",
            data_x=repr(knot), data_y=repr(value))
        for (a, b), knot, value in zip(points, knots, values, strict=True)
    ]  # fmt: skip
    ticks = [tag("text", text, x=left - 5, y=to_y(v) + 4, text_anchor="end") for v, text in y.ticks]
    ticks += _across([short(one) for one in knots], [x for x, _ in points], left)
    caption = f"std. dev. {_size(curve.spread)}, {share:.1%} of the variance of all curves"
    if curve.missing:
        caption += f"; a missing value adds {_signed(curve.missing - sum(curve.values) / len(curve.values))}"
    caption += "; knots evenly spaced" if crowded else ""
    return _figure(curve.column, caption, grid, line, *dots, *ticks)


def _signed(value: float) -> str:
    return ("−" if value < 0 else "+") + _size(abs(value))


def _size(value: float) -> str:
    """Return a number with four decimals, or with six digits if it is large or tiny."""
    return number_text(value, decimals=4)


def _pairs(found: Curves) -> list[Element]:
    shown = [_pair(one) for one in found.pairs[:MAX_PAIRS] if one.spread > 0]
    text = (
        "What two columns or categories add together, beyond their curves, for each pair of coarse knots: blue "
        "increases a margin, orange decreases it. Linear between these knots, 0 on average over those of a column and "
        "where a row is without the category."
    )
    return [tag("h2", "Strongest pairs"), tag("p", text), tag("div", *shown, class_="small figures")] if shown else []


def _pair(pair: PairSpread) -> Element:
    """Return the heat map of a pair: the first column from left to right, the second upwards."""
    most = max(abs(value) for row in pair.values for value in row) or 1.0
    (across, up), bottom = pair.labels, HEIGHT - BOTTOM
    left = _left(up)
    width, height = (WIDTH - left - RIGHT) / len(across), (bottom - TOP) / len(up)
    cells = []
    for i, row in enumerate(pair.values):
        for j, value in enumerate(row):
            at = f"{_signed(value)} at {across[i]}, {up[j]}"
            box = {"x": left + i * width, "y": bottom - (j + 1) * height, "width": width, "height": height}
            style = {
                "class_": "down" if value < 0 else "up",
                "fill_opacity": abs(value) / most,
                "data_value": repr(value),
            }
            cells.append(tag("rect", tag("title", at), **box, **style))
    frame = tag("rect", x=left, y=TOP, width=WIDTH - left - RIGHT, height=bottom - TOP, class_="frame")
    ticks = _across(across, [left + (i + 0.5) * width for i in range(len(across))], left)
    ticks += [tag("text", up[j], x=left - 4, y=bottom - (j + 0.5) * height + 4, text_anchor="end") for j in ends(up)]
    names = f"{pair.first} × {pair.second}"
    caption = (
        f"{pair.first} to the right, {pair.second} upwards; full color: ±{_size(most)}; std. dev. {_size(pair.spread)}"
    )
    return _figure(names, caption, *cells, frame, *ticks)


def _left(labels: list[str]) -> float:
    """Return the width of labels to the left of a plot."""
    return 8.0 + LETTER * max(map(len, labels))


def _across(labels: list[str], places: list[float], left: float) -> list[Element]:
    """Return the labels below a plot: the first and the last one, and the middle one where there is room."""
    first, middle, last = labels[0], labels[len(labels) // 2], labels[-1]
    right = WIDTH - RIGHT
    start, stop = max(min(left, right - LETTER * (len(first) + len(last) + 1)), 0.0), right - LETTER * len(last)
    x, half = places[len(labels) // 2], LETTER * (len(middle) + 1) / 2
    found = [tag("text", first, x=start, y=HEIGHT - 6)]
    if start + LETTER * len(first) < x - half and x + half < stop:
        found.append(tag("text", middle, x=x, y=HEIGHT - 6, text_anchor="middle"))
    return [*found, tag("text", last, x=right, y=HEIGHT - 6, text_anchor="end")] if len(labels) > 1 else found


def _figure(name: str, caption: str, *drawn: Element) -> Element:
    described = tag("title", name), tag("desc", caption)
    plot = tag("svg", *described, *drawn, viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}", role="img")
    first, *rest = re.split("(?<=_)", name)  # where long names may be broken
    heading = tag("h3", first, *(part for word in rest for part in (tag("wbr"), word)))
    return tag("figure", heading, plot, tag("figcaption", caption))
