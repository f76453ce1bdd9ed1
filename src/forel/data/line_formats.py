"""Text formats with one example per line: how they are recognized, and what their examples have."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["LINE_FORMATS", "LineSyntax"]

SVMLIGHT = re.compile(rb"\s*[-+]?[0-9.]+(e[-+]?[0-9]+)?(\s+qid:\d+)?(\s+\d+:[-+0-9.e]+)*\s*(#.*)?", re.IGNORECASE)


@dataclass(frozen=True)
class LineSyntax:
    """A text format, whose parser is the module of its name in ``forel.data.compiled``.

    Parameters
    ----------
    suffixes : suffixes of the names of files
    matches : whether a line, the first one of a file, may be of this format
    namespaces : whether features have namespaces, by which they are crossed and sliced
    tags : whether examples have tags
    ids : whether features are integers, which may be numbered from 1
    """

    suffixes: tuple[str, ...]
    matches: Callable[[bytes], Any]
    namespaces: bool = False
    tags: bool = False
    ids: bool = False


def _is_vw(line: bytes) -> bool:
    return b"|" in line and not SVMLIGHT.fullmatch(line)  # a comment of svmlight may have a bar


LINE_FORMATS = {
    "vw": LineSyntax(("vw",), _is_vw, namespaces=True, tags=True),
    "svmlight": LineSyntax(("svm", "svmlight", "libsvm"), SVMLIGHT.fullmatch, ids=True),
}
