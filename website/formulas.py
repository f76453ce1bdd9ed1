"""Convert formulas to MathML, which browsers render without scripts, fonts or downloads."""

import html
import re

from latex2mathml.converter import convert

__all__ = ["mathml"]

# Output of the Markdown extension arithmatex for $…$ and $$…$$.
_INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
_DISPLAY = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)
_OPERATOR = re.compile(r"\\arg\\(min|max)")


def mathml(page: str) -> str:
    r"""Convert the LaTeX formulas of a page to MathML.

    >>> mathml(r'<span class="arithmatex">\(x\)</span>').startswith("<math")
    True
    """
    page = _INLINE.sub(lambda found: _converted(found[1], "inline"), page)
    return _DISPLAY.sub(lambda found: _converted(found[1], "block"), page)


def _converted(escaped: str, display: str) -> str:
    latex = _OPERATOR.sub(r"\\operatorname{arg\1}", html.unescape(escaped))
    found = convert(latex, display=display)
    if "\\" in found:
        raise ValueError(f"formula: got {latex}, expected LaTeX that has an equivalent in MathML")
    return str(found)
