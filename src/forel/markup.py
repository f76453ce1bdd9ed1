"""Text for people: elements of a page, escaped when written, clean names, counts and numbers."""

import math
from collections.abc import Iterable, Sequence
from typing import Any
from xml.etree.ElementTree import Element, tostring

__all__ = ["Element", "clean", "counted", "html", "number_text", "table", "tag"]


def tag(kind: str, /, *parts: "str | Element | None", **attributes: Any) -> Element:
    """Return an element; ``class_`` is class, other underscores are hyphens, None is left out.

    >>> html(tag("p", "1 < 2 ", tag("b", "so", class_="loud"), "!"))
    '<p>1 &lt; 2 <b class="loud">so</b>!</p>'
    """
    given = {k.rstrip("_").replace("_", "-"): v for k, v in attributes.items() if v is not None}
    element = Element(kind, {k: f"{v:.2f}" if isinstance(v, float) else clean(str(v)) for k, v in given.items()})
    for part in parts:
        if isinstance(part, Element):
            element.append(part)
        elif part is not None and len(element):
            element[-1].tail = (element[-1].tail or "") + clean(part)
        elif part is not None:
            element.text = (element.text or "") + clean(part)
    return element


def table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[str | Element]], **attributes: Any) -> Element:
    """Return a table that scrolls where the page is too narrow; the first cell of a row is its head.

    >>> html(table("Sizes", ("name", "size"), [("a", "1")])).partition("<tr>")[2]
    '<th scope="col">name</th><th scope="col">size</th></tr><tr><th scope="row">a</th><td>1</td></tr></table></div>'
    """
    head = tag("tr", *(tag("th", one, scope="col") if one else tag("td") for one in columns)) if columns else None
    body = (tag("tr", tag("th", first, scope="row"), *(tag("td", cell) for cell in rest)) for first, *rest in rows)
    shown = tag("table", tag("caption", caption), head, *body, **attributes)
    return tag("div", shown, class_="scroll", tabindex="0", role="region", aria_label="table")


def html(element: Element) -> str:
    """Return an element as HTML."""
    return tostring(element, encoding="unicode", method="html")


def clean(text: str) -> str:
    r"""Return text with a replacement for control characters and lone surrogates.

    >>> clean("a\x00b\ud800c\nd")
    'a�b�c\nd'
    """
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


def counted(number: int, noun: str, rest: str = "") -> str:
    """Return a number with its noun, in the plural unless it is 1.

    >>> counted(1, "row"), counted(2000, "feature", " in all"), counted(0, "class")
    ('1 row', '2,000 features in all', '0 classes')
    """
    plural = "" if number == 1 else "es" if noun.endswith("s") else "s"
    return f"{number:,} {noun}{plural}{rest}"


def number_text(value: float, decimals: int | None = None, digits: int = 6) -> str:
    """Return a number for a table: significant digits, but all of its whole part below 10¹⁵.

    Parameters
    ----------
    decimals : of a number below 1,000 that has at least three digits with them; None for no trailing zeros
    digits : number of significant digits of others

    >>> [number_text(value) for value in (0.25, 1234567.8, -12345.678, 1.5e-9, math.nan)]
    ['0.25', '1,234,568', '-12,345.7', '1.5e-09', '–']
    >>> [number_text(value, decimals=6) for value in (0.25, 1234567.8, 1.5e-9, 0.0)]
    ['0.250000', '1,234,568', '1.5e-09', '0.000000']
    """
    size = abs(value)
    if math.isnan(value):
        return "–"
    if decimals is not None and (size == 0 or 100 * 10.0**-decimals <= size < 1000):
        return f"{value:.{decimals}f}"
    return f"{value:,.0f}" if 10.0**digits <= size < 1e15 else f"{value:,.{digits}g}"
