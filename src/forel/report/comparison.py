"""The page of a comparison: the statement, the interval over rows, slices, and the predictions that differ most."""

import re
from typing import Any

from forel.markup import Element, number_text, table, tag
from forel.report.page import document
from forel.report.plots import ROWS, Series, axis_for, figure, linear_axis
from forel.store.atomic import Path, atomic_writer
from forel.training.compare import Compared

__all__ = ["comparison_page", "write_comparison"]


def write_comparison(path: Path, found: Compared) -> None:
    """Write the page of a comparison to a file atomically."""
    text = comparison_page(found)
    with atomic_writer(path) as write:
        write(text)


def comparison_page(found: Compared) -> str:
    """Return the page of a comparison.

    >>> from forel.training.compare import compare
    >>> page = comparison_page(compare([0.9, 0.2] * 100, [0.6, 0.4] * 100, [1, 0] * 100))
    >>> "A is better than B by" in page, "<polyline" in page
    (True, True)
    """
    a, b = found.names
    average = ((name, number_text(loss, decimals=6)) for name, loss in zip(found.names, found.losses, strict=True))
    main = tag(
        "main",
        tag("h1", f"{a} and {b}"),
        tag("p", re.sub(r"^after ", "After ", f"{found}."), class_="verdict"),
        table("Average loss", ("", "loss"), list(average)),
        tag("div", _curve(found), class_="figures"),
        *(_table(f"By {column}", ("value", "rows", "from", "to"), values) for column, values in found.slices.items()),
        _table("Predictions that differ most", ("row, from 0", a, b, "label"), found.rows),
        _table("Features whose contribution differs most", ("feature", a, b), found.features),
    )
    return document("Comparison", main)


def _curve(found: Compared) -> Element:
    """Return the plot of the interval over rows."""
    rows = [row for row, _, _ in found.shown_curve]
    ends = [[(row, value[k]) for row, *value in found.shown_curve] for k in (0, 1)]
    series = [
        Series("lower end", "line one", ends[0], dots=False),
        Series("upper end", "line two", ends[1], dots=False),
        Series("no difference", "line faint", [(rows[0], 0.0), (rows[-1], 0.0)], dots=False),
    ]
    unit = "in log-loss" if found.comparison.kind == "log" else "as a fraction of the sum of their losses"
    text = (
        f"By how much {found.names[0]} is better than {found.names[1]} on average, {unit}. The probability that "
        f"the interval ever fails, at any row, is at most {found.comparison.level:g}."
    )
    y = linear_axis("difference", [0.0, *(value for _, *both in found.shown_curve for value in both)])
    return figure(
        "Difference over rows", text, axis_for(ROWS.removesuffix(" learned from"), map(float, rows)), y, series
    )


def _table(title: str, columns: tuple[str, ...], rows: Any) -> Element | None:
    cells = [
        [value if isinstance(value, str) else number_text(float(value), digits=4).replace("-", "−") for value in row]
        for row in rows
    ]
    return tag("section", table(title, columns, cells)) if cells else None
