"""Convert docstrings to the Markdown with numpy-style sections that mkdocstrings expects.

forel documents parameters as ``name : description``, with types in the signature, where numpy style has types. Doctests
become code blocks, simple reST tables become Markdown tables, and Sphinx roles become plain code. Text after the
parameters that is not an example moves before them, because a numpy-style section extends to the next section.
"""

import re
from typing import Any

import griffe

__all__ = ["Docstrings", "markdown"]

_PARAMETER = re.compile(r"^([*\w][\w, *]*) : (\S.*)$")
_ROLE = re.compile(r":\w+:`~?([^`]+)`")
_RULE = re.compile(r"^=+(?: +=+)+$")
_HEADER = "Parameters\n----------\n"


def markdown(text: str) -> str:
    """Convert one docstring to Markdown.

    >>> print(markdown("See :class:`Panel`.\\n\\nParameters\\n----------\\na : the first"))
    See `Panel`.
    <BLANKLINE>
    Parameters
    ----------
    a
        the first
    """
    parts = _ROLE.sub(r"`\1`", text).split("\n\n")
    given = next((k for k, part in enumerate(parts) if part.startswith(_HEADER)), None)
    if given is None:
        return "\n\n".join(_block(part) for part in parts)
    after = parts[given + 1 :]
    examples = [part for part in after if part.startswith(">>> ")]
    words = [_block(part) for part in (*parts[:given], *(part for part in after if part not in examples))]
    shown = ["Examples\n--------\n" + "\n\n".join(examples)] if examples else []
    return "\n\n".join([*words, _HEADER + _described(parts[given].removeprefix(_HEADER)), *shown])


def _described(parameters: str) -> str:
    """Put the description of each parameter on its own line, so that types come from the signature."""
    return "\n".join(_PARAMETER.sub(r"\1\n    \2", line) for line in parameters.splitlines())


def _block(part: str) -> str:
    if part.startswith(">>> "):
        return f"```pycon\n{part}\n```"
    if part.startswith("    "):  # indented code
        return part
    return _table(part.splitlines()) if _RULE.match(part.partition("\n")[0]) else part


def _table(lines: list[str]) -> str:
    """Convert a simple reST table, whose rules give the column widths, to a Markdown table."""
    starts = [found.start() for found in re.finditer("=+", lines[0])]
    rules = [k for k, line in enumerate(lines) if _RULE.match(line)]
    rows = [_cells(line, starts) for line in lines if not _RULE.match(line)]
    head = rows.pop(0) if len(rules) == 3 else [" "] * len(starts)
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(starts), *rows))


def _cells(line: str, starts: list[int]) -> list[str]:
    fits = all(start > len(line) or not line[start - 1].strip() for start in starts[1:])
    cells = [line[a:b] for a, b in zip(starts, [*starts[1:], None], strict=True)] if fits else re.split(r"\s{2,}", line)
    return [cell.strip().replace("|", "\\|") for cell in cells]


class Docstrings(griffe.Extension):
    """Griffe extension that converts every docstring before it is parsed."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Convert the docstring of one object."""
        if obj.docstring:
            obj.docstring.value = markdown(obj.docstring.value)
