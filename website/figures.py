r"""Draw figures from the code of the page that shows them.

A page of doctests may define a function without arguments that returns a figure, and show
``![caption](figures/name.svg)`` with the function's name. Building the page runs its code and draws the figure for the
light and for the dark theme, so a figure always matches the code above it.
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
    """Draw the figures of a page, each at its position in the page's code; map file names to contents."""
    files: dict[str, bytes] = {}
    if not FIGURE.search(text):
        return files
    namespace: dict[str, Any] = {}
    for part in doctest.DocTestParser().parse(text):
        if isinstance(part, doctest.Example):
            expected = (Exception,) if part.exc_msg else ()  # a page may show an error
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
    """Show each figure of a page for light and dark themes, with a link to the full size.

    >>> print(shown("![regret](figures/game.svg)"))
    [![regret](figures/game.svg#only-light)](figures/game.svg)
    [![regret](figures/game_dark.svg#only-dark)](figures/game_dark.svg)
    """
    pair = (rf"[![\1](figures/\2{dark}.svg#only-{theme})](figures/\2{dark}.svg)" for dark, theme in THEMES)
    return FIGURE.sub("\n".join(pair), text)
