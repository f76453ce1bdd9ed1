r"""Figures drawn by the code of the page they are on.

A page of doctests may define a function without arguments that returns a figure, and show
``![words](figures/name.svg)`` with the function's name. To build the page, its code is run and the figure drawn, once
for light pages and once for dark ones. So no figure can differ from the code above it.
"""

import contextlib
import doctest
import io
import pathlib
import re
import tempfile
from typing import Any

from forel.theory.plot import save_both

__all__ = ["FIGURE", "drawn", "shown"]

THEMES = (("", "light"), ("_dark", "dark"))
FIGURE = re.compile(r"!\[([^\]]*)\]\(figures/(\w+)\.svg\)")


def drawn(text: str) -> dict[str, bytes]:
    """Return the figures of a page as files, by name, each drawn where it stands among the page's code."""
    files: dict[str, bytes] = {}
    if not FIGURE.search(text):
        return files
    namespace: dict[str, Any] = {}
    for part in doctest.DocTestParser().parse(text):
        if isinstance(part, doctest.Example):
            expected = (Exception,) if part.exc_msg else ()  # a page may show what is refused
            with contextlib.suppress(*expected), contextlib.redirect_stdout(io.StringIO()):
                exec(compile(part.source, "<page>", "exec"), namespace)
        else:
            for _, name in FIGURE.findall(part):
                files |= _both(name, namespace)
    return files


def _both(name: str, namespace: dict[str, Any]) -> dict[str, bytes]:
    if name not in namespace:
        raise LookupError(f"figures/{name}.svg: the code above it defines no function {name}()")
    with tempfile.TemporaryDirectory() as folder:
        paths = save_both(namespace[name], pathlib.Path(folder) / f"{name}.svg")
        return {path.name: path.read_bytes() for path in paths}


def shown(text: str) -> str:
    """Return a page in which each figure is there for light and for dark, and opens in full size.

    >>> print(shown("![regret](figures/game.svg)"))
    [![regret](figures/game.svg#only-light)](figures/game.svg)
    [![regret](figures/game_dark.svg#only-dark)](figures/game_dark.svg)
    """
    pair = (rf"[![\1](figures/\2{dark}.svg#only-{theme})](figures/\2{dark}.svg)" for dark, theme in THEMES)
    return FIGURE.sub("\n".join(pair), text)
