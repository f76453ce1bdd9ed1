"""Elements of a page. Text is escaped when the tree of elements is written."""

from typing import Any
from xml.etree.ElementTree import Element, tostring

__all__ = ["Element", "clean", "html", "tag"]


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


def html(element: Element) -> str:
    """Return an element as HTML."""
    return tostring(element, encoding="unicode", method="html")


def clean(text: str) -> str:
    r"""Return text with a replacement for control characters and lone surrogates.

    >>> clean("a\x00b\ud800c\nd")
    'a�b�c\nd'
    """
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)
