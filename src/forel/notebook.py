"""Summaries of objects: for notebooks a small table with a plot next to it, and the same table as text."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from forel.markup import Element, clean, html, number_text, tag

__all__ = ["card", "plain"]

WIDTH, HEIGHT, POINTS = 240, 80, 200
COLORS = ("#1f77b4", "#d62728")


def card(title: str, rows: Sequence[tuple[str, object]], **curves: ArrayLike) -> str:
    """Return a table with a caption as HTML, and an SVG plot of up to two curves with a common vertical axis.

    >>> card("Trace", [("rounds", 2), ("loss", 0.123456)])
    '<div><table><caption>Trace</caption><tr><th>rounds</th><td>2</td></tr><tr><th>loss</th><td>0.1235</td></tr></table></div>'
    """
    lines = [tag("tr", tag("th", name), tag("td", _text(value))) for name, value in rows if value is not None]
    plot = _plot({name.replace("_", " "): np.asarray(curve, np.float64).ravel() for name, curve in curves.items()})
    return html(tag("div", tag("table", tag("caption", title), *lines), plot))


def plain(title: str, rows: Sequence[tuple[str, object]]) -> str:
    """Return a table with a caption as text.

    >>> print(plain("Trace", [("rounds", 2), ("loss", 0.123456), ("bound", None)]))
    Trace
      rounds: 2
      loss: 0.1235
    """
    return clean("\n".join([title, *(f"  {name}: {_text(value)}" for name, value in rows if value is not None)]))


def _text(value: object) -> str:
    if isinstance(value, float):
        return number_text(value, digits=4)
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _plot(curves: "dict[str, np.ndarray]") -> Element | None:
    """Return the curves as lines of at most ``POINTS`` points; None if there is nothing finite to draw."""
    shown = {
        name: curve[np.linspace(0, curve.size - 1, min(POINTS, curve.size)).astype(int)]
        for name, curve in curves.items()
        if curve.size > 1
    }
    finite = [curve[np.isfinite(curve)] for curve in shown.values()]
    if not any(part.size for part in finite):
        return None
    everything = np.concatenate(finite)
    low, high = float(everything.min()), float(everything.max())
    span = high - low or 1.0
    lines = []
    for (name, curve), color in zip(shown.items(), COLORS, strict=False):
        across = np.linspace(0, WIDTH, curve.size)
        points = " ".join(
            f"{x:.1f},{HEIGHT - HEIGHT * (y - low) / span:.1f}"
            for x, y in zip(across.tolist(), curve.tolist(), strict=True)
            if math.isfinite(y)
        )
        lines.append(tag("polyline", tag("title", name), points=points, fill="none", stroke=color))
    label = f"{' and '.join(shown)}: {low:.4g} to {high:.4g}"
    box = f"-2 -2 {WIDTH + 4} {HEIGHT + 4}"
    return tag(
        "figure", tag("svg", *lines, viewBox=box, width=WIDTH, height=HEIGHT, role="img"), tag("figcaption", label)
    )
