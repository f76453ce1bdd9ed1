"""The files of a source, and their fingerprints."""

import os
from collections.abc import Sequence
from typing import Any

from forel.data.sources.remote import absolute, file_state, is_file
from forel.data.sources.streams import expand_paths

__all__ = ["fingerprints", "single_sources"]


def single_sources(source: Any) -> list[Any]:
    """Return the parts of a source: each file by itself."""
    if isinstance(source, str | os.PathLike):
        return list(expand_paths(source))
    if isinstance(source, Sequence) and source and all(isinstance(s, str | os.PathLike) for s in source):
        return [path for one in source for path in expand_paths(one)]
    if isinstance(source, Sequence) and source and all(hasattr(s, "read") for s in source):
        return list(source)
    return [source]


def fingerprints(source: Any) -> list[list[Any]] | None:
    """Return path, size and modification time of each file; None if a part is not a file.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.vw"
    >>> _ = path.write_text("1 |a b")
    >>> [[_, size, _]] = fingerprints([path])
    >>> size, fingerprints(["-", path])
    (6, None)
    """
    found = single_sources(source)
    if not all(is_file(one) for one in found):
        return None
    return [[absolute(one), *file_state(one)] for one in found]
