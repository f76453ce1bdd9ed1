"""Writing and finding caches of parsed rows: files that later passes read instead of the source."""

import errno
import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import Any

from forel.data import Block, Malformed, Problems, Reader, ReadOptions, read
from forel.data.pipeline import ordered_blocks
from forel.data.sources.files import fingerprints, is_one_shot, single_sources
from forel.data.sources.row_cache import HEAD, CacheWriter, RowCache, has_cache_header, open_cache
from forel.store.atomic import Path, temporary_path, try_lock
from forel.validation import refuse

__all__ = [
    "CacheDraft", "CacheWriteError", "cached_options", "find_cache", "is_cache", "temporary_folder",
    "write_cache",
]  # fmt: skip


class CacheWriteError(OSError):
    """A cache could not be written: the errno, and a message."""


def write_cache(source: Any, path: Path, threads: int | None = None, **reading: Any) -> RowCache:
    """Write the parsed blocks of a source to a cache, and return it.

    Parameters
    ----------
    source : as in :func:`forel.data.read`
    path : the file; an existing cache is replaced once the new one is complete
    threads : number of parser threads
    reading : arguments of ``read``

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "clicks.cache"
    >>> cache = write_cache([{"x": 1.0}, {"x": 2.0}], path, bits=10)
    >>> cache.totals["rows"], [block.values.tolist() for block in read(path, bits=10)]
    (2, [[1.0, 2.0]])
    """
    if os.path.exists(path) and not is_cache(path):
        raise refuse("output", os.fspath(path), "a cache, or a path that does not exist")
    reader = read(source, **{**reading, "constant": False})
    with ExitStack() as stack:
        draft, no_problems = CacheDraft(path, reader, stack), Problems()
        for block in ordered_blocks(reader, threads):
            draft.add(block, no_problems)
        return draft.finish(reader.problems, reader)


class CacheDraft:
    """A cache that is being written, under a temporary name or without one.

    Parameters
    ----------
    path : the final name of the file; None for an anonymous temporary file
    reader : the reader of the blocks that are written
    stack : closes the file, and removes the temporary name, at its exit
    """

    def __init__(self, path: Path | None, reader: Reader, stack: ExitStack) -> None:
        self._path = None if path is None else os.path.realpath(path)
        self._problems = Problems("skip")
        with self._write_errors():
            if self._path is None:
                # Unbuffered: a write that failed must not be repeated on closing.
                self._file: Any = tempfile.TemporaryFile(  # noqa: SIM115
                    buffering=0, prefix="forel-", dir=temporary_folder()
                )
            else:
                self._name = temporary_path(self._path)
                self._file = open(self._name, "x+b", buffering=0)  # noqa: SIM115
                try_lock(self._file.fileno())
                stack.callback(_unlink, self._name)
            stack.enter_context(self._file)
            self._writer = CacheWriter(self._file, _fingerprint(reader))

    def add(self, block: Block, problems: Problems) -> "CacheDraft":
        """Write a block, and copy the problems found since the block before."""
        self._problems.absorb(replace(problems, messages=list(problems.messages)))
        with self._write_errors():
            self._writer.add(block)
        return self

    def finish(self, problems: Problems, reader: Reader) -> RowCache:
        """Complete the file with the kinds and classes that the reader found, rename it, and open it for reading."""
        self._problems.absorb(replace(problems, messages=list(problems.messages)))
        with self._write_errors():
            self._writer.close(self._problems, reader.kinds.known, reader.classes.names)
            if self._path is not None:
                os.fsync(self._file.fileno())
                os.replace(self._name, self._path)
            cache = open_cache(self._file, self._path or "cache")
        if cache is None:
            raise CacheWriteError(errno.EIO, "cache: could not be read again")
        return cache

    def _discard(self) -> None:
        """Free the disk space at once: the model may need it."""
        if hasattr(self, "_file"):
            with suppress(OSError):
                self._file.close()
        if self._path is not None:
            _unlink(self._name)

    @contextmanager
    def _write_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._discard()
            where = f"in {temporary_folder()} (set TMPDIR for another folder)" if self._path is None else self._path
            message = f"cache {where}: could not be written ({error.strerror or error})"
            raise CacheWriteError(error.errno, message) from error


def find_cache(path: str, reader: Reader) -> RowCache | None:
    """Return the cache of an earlier run if it has the same options and the files are unchanged; None otherwise."""
    if not os.path.exists(path):
        return None
    if not is_cache(path):
        raise refuse("cache", path, "a cache, or a path that does not exist")
    try:
        with open(path, "rb") as file:
            cache = open_cache(file, path)
    except Malformed as error:
        warnings.warn(str(error), RuntimeWarning, stacklevel=2)
        return None
    expected = _fingerprint(reader)
    if cache is not None and cache.key == expected and expected["sources"] is not None:
        if not cache.problems.count or reader.problems.on_error == "skip":
            return cache
        return None  # reading the source raises the first problem, with its line
    reason = "a cache of other files, of files that have changed, or of other read options; it is written again"
    warnings.warn(f"{path}: {reason}", RuntimeWarning, stacklevel=2)
    return None


def cached_options(source: Any) -> ReadOptions | None:
    """Return the options that a source of caches was written with; None for other sources.

    A model trained on a cache stores them, to read files in the original format.
    """
    paths = [] if is_one_shot(source) else single_sources(source)
    if not paths or not all(is_cache(path) for path in paths):
        return None
    with open(paths[0], "rb") as file:
        cache = open_cache(file, os.fspath(paths[0]))
    if cache is None:
        return None
    found = {
        "format": None,
        "kinds": cache.kinds,
        **({} if cache.classes is None else {"classes": list(cache.classes)}),
    }
    return ReadOptions.from_json({**cache.key["options"], **found}, owner=cache.file)


def is_cache(path: Any) -> bool:
    """Return whether a source is a file with the header of a cache; it may be incomplete."""
    if not isinstance(path, str | os.PathLike) or not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return has_cache_header(file.read(HEAD))


def _fingerprint(reader: Reader) -> dict[str, Any]:
    return {"options": reader.options.meaning, "sources": fingerprints(reader.source)}


def temporary_folder() -> str:
    """Return the folder of large temporary files: not /tmp, which is often in memory, unless TMPDIR is set."""
    if "TMPDIR" not in os.environ and os.access("/var/tmp", os.W_OK):
        return "/var/tmp"
    return tempfile.gettempdir()


def _unlink(name: str) -> None:
    with suppress(OSError):
        os.unlink(name)
