"""Docstrings as the reference wants them: Markdown with sections in numpy's style.

forel's docstrings name parameters as ``name : what it is``, with types in the signature, where numpy's style has types.
Doctests become blocks of code, tables of words tables, references in Sphinx's manner plain names; what stands behind
the parameters and is no example goes before them, since a section goes on until the next.
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
    """Return a docstring in Markdown.

    >>> print(markdown("Add.\\n\\nParameters\\n----------\\na : the first\\n\\n>>> 1 + 1\\n2\\n\\nSurvey: section 1"))
    Add.
    <BLANKLINE>
    Survey: section 1
    <BLANKLINE>
    Parameters
    ----------
    a
        the first
    <BLANKLINE>
    Examples
    --------
    >>> 1 + 1
    2
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
    """Return names and what they are on lines of their own, so that types come from the signature."""
    return "\n".join(_PARAMETER.sub(r"\1\n    \2", line) for line in parameters.splitlines())


def _block(part: str) -> str:
    if part.startswith(">>> "):
        return f"```pycon\n{part}\n```"
    if part.startswith("    "):  # indented code
        return part
    return _table(part.splitlines()) if _RULE.match(part.partition("\n")[0]) else part


def _table(lines: list[str]) -> str:
    """Return a table whose columns are as wide as its rules as a table in Markdown."""
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
    """Rewrites every docstring before it is parsed."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Rewrite one."""
        if obj.docstring:
            obj.docstring.value = markdown(obj.docstring.value)
