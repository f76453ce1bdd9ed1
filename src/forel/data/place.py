"""Where reading goes on: what a later run, or another pass, needs to begin in the middle of a source."""

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from forel.data.sources import expand

__all__ = ["BEGINNING", "Place", "prints_of", "single_sources"]


class Place(NamedTuple):
    """A place between two blocks; later ones are larger.

    Parameters
    ----------
    file : how many files are behind
    blocks : of the next file, how many are; 0 in text with a line for each example, which is found by bytes
    bytes, line : of that text, how many bytes are behind, uncompressed, and the number of the next line

    >>> Place(0, 0, 90, 3) < Place(1)
    True
    """

    file: int = 0
    blocks: int = 0
    bytes: int = 0
    line: int = 1


BEGINNING = Place()


def single_sources(source: Any) -> list[Any]:
    """Return the single sources of a source: each file by itself."""
    if isinstance(source, str | os.PathLike):
        return list(expand(source))
    if isinstance(source, Sequence) and source and all(isinstance(s, str | os.PathLike) for s in source):
        return [path for one in source for path in expand(one)]
    if isinstance(source, Sequence) and source and all(hasattr(s, "read") for s in source):
        return list(source)
    return [source]


def prints_of(source: Any) -> list[list[Any]] | None:
    """Return path, size and time of the last change of each file; None where something is not a file.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.vw"
    >>> _ = path.write_text("1 |a b")
    >>> [[_, size, _]] = prints_of([path])
    >>> size, prints_of(["-", path])
    (6, None)
    """
    found = single_sources(source)
    if not all(isinstance(one, str) and os.path.isfile(one) for one in found):
        return None
    states = [(os.path.abspath(one), os.stat(one)) for one in found]
    return [[path, state.st_size, state.st_mtime_ns] for path, state in states]
