"""Files of parsed rows: caches, which later passes read instead of the source, and rows in random order.

In random order, a temporary cache holds the rows in groups, which are mixed in pools, in bounded memory. Each pass
reads the groups in another random order, a pool of them at a time, and shuffles the rows of the pool. Groups have a
fixed number of rows, so that the order depends only on the seed, the pass and the rows.
"""

import errno
import os
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import Any

import numpy as np

from forel.data import Block, Malformed, Position, Problems, Reader, ReadOptions, concatenate, read
from forel.data.block import MOST_BITS, take_rows
from forel.data.pipeline import ordered_blocks
from forel.data.sources.files import fingerprints, is_one_shot, single_sources
from forel.data.sources.row_cache import HEAD, CacheWriter, RowCache, has_cache_header, open_cache
from forel.store.atomic import Path, temporary_path, try_lock
from forel.validation import refuse

__all__ = [
    "CacheDraft", "CacheWriteError", "ShuffledRows", "cache_key", "cached_options", "find_cache", "is_cache",
    "write_cache",
]  # fmt: skip

GROUP = 1 << 13  # rows in random order that stay together in the file
POOL = 16  # groups whose rows are mixed


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
        draft = CacheDraft(path, cache_key(reader), stack)
        for block in ordered_blocks(reader, threads):
            draft.add(block)
        return draft.finish(reader.problems, reader.kinds.known, reader.classes.names)


class CacheDraft:
    """A cache that is being written, under a temporary name or without one.

    Parameters
    ----------
    path : the final name of the file; None for an anonymous temporary file
    key : options and sources that the rows depend on
    stack : closes the file, and removes the temporary name, at its exit
    """

    def __init__(self, path: Path | None, key: Mapping[str, Any], stack: ExitStack) -> None:
        self._path = None if path is None else os.path.realpath(path)
        self._stack = stack.enter_context(ExitStack())
        with self._write_errors():
            # Unbuffered: a write that failed must not be repeated on closing.
            if self._path is None:
                file: Any = tempfile.TemporaryFile(buffering=0, prefix="forel-", dir=temporary_folder())  # noqa: SIM115
            else:
                self._name = temporary_path(self._path)
                file = open(self._name, "x+b", buffering=0)  # noqa: SIM115
                try_lock(file.fileno())
                self._stack.callback(_unlink, self._name)
            self._file = self._stack.enter_context(file)
            self._writer = CacheWriter(self._file, key)

    def add(self, block: Block) -> "CacheDraft":
        """Write a block."""
        with self._write_errors():
            self._writer.add(block)
        return self

    def finish(
        self, problems: Problems, kinds: Mapping[str, str] | None = None, classes: Sequence[str] | None = None
    ) -> RowCache:
        """Complete the file with what reading found, rename it, and open it for reading."""
        with self._write_errors():
            self._writer.close(problems, kinds, classes)
            if self._path is not None:
                os.fsync(self._file.fileno())
                os.replace(self._name, self._path)
            cache = open_cache(self._file, self._path or "cache")
        if cache is None:
            raise CacheWriteError(errno.EIO, "cache: could not be read again")
        return cache

    @contextmanager
    def _write_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._stack.close()  # frees the disk space at once: the model may need it
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
    expected = cache_key(reader)
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
    found = {"format": None, "kinds": cache.kinds, **({} if cache.classes is None else {"classes": [*cache.classes]})}
    return ReadOptions.from_json({**cache.key["options"], **found}, owner=cache.file)


def is_cache(path: Any) -> bool:
    """Return whether a source is a file with the header of a cache; it may be incomplete."""
    if not isinstance(path, str | os.PathLike) or not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return has_cache_header(file.read(HEAD))


def cache_key(reader: Reader) -> dict[str, Any]:
    """Return the options and sources that the rows of a reader depend on."""
    return {"options": reader.options.meaning, "sources": fingerprints(reader.source)}


def temporary_folder() -> str:
    """Return the folder of large temporary files: not /tmp, which is often in memory, unless TMPDIR is set."""
    if "TMPDIR" not in os.environ and os.access("/var/tmp", os.W_OK):
        return "/var/tmp"
    return tempfile.gettempdir()


def _unlink(name: str) -> None:
    with suppress(OSError):
        os.unlink(name)


class ShuffledRows:
    """The rows of blocks in a temporary file, to be read in random orders.

    Parameters
    ----------
    blocks : read to their end at once, with all rows in their order
    stack : removes the file at its exit
    seed : of the orders

    >>> ones = np.ones(100, np.float32)
    >>> block = Block(np.arange(101), np.arange(100, dtype=np.int32), ones, ones)
    >>> with ExitStack() as stack:
    ...     rows = ShuffledRows([block], stack, seed=1)
    ...     once, again = (next(rows.blocks(1)).indices for _ in range(2))
    >>> bool((once == again).all()), sorted(once.tolist()) == list(range(100)), once.tolist() == list(range(100))
    (True, True, False)
    """

    def __init__(self, blocks: Iterable[Block], stack: ExitStack, seed: int = 0) -> None:
        self._seed, rows = seed, [0]
        draft = CacheDraft(None, {"options": {"bits": MOST_BITS}}, stack)
        for group in _groups(blocks):
            draft.add(group)
            rows.append(len(group))
        self._cache, self._starts = draft.finish(Problems()), np.cumsum(rows)

    def blocks(self, pass_number: int, first: int = 0) -> Iterator[Block]:
        """Yield the rows in the order of a pass, with their numbers, from the block number ``first`` on."""
        order = np.random.default_rng([self._seed, pass_number]).permutation(len(self._cache)).tolist()
        for number in range(first, -(-len(order) // POOL)):
            groups = [self._group(k) for k in order[number * POOL : (number + 1) * POOL]]
            pool = concatenate(groups)
            rows = take_rows(pool, np.random.default_rng([self._seed, pass_number, number]).permutation(len(pool)))
            if len({group.file for group in groups}) > 1 or rows.lines is None:
                rows = replace(rows, file="shuffled rows", lines=None)
            yield replace(rows, after=Position(0, blocks=number + 1), size=0)

    def _group(self, number: int) -> Block:
        return replace(self._cache.block(number), numbers=np.arange(*self._starts[number : number + 2]))


def _groups(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield the same rows in blocks of ``GROUP`` rows, except for the last of each file."""
    pending, size = list[Block](), 0
    for block in blocks:
        if pending and pending[0].file != block.file:
            yield concatenate(pending)
            pending, size = [], 0
        pending.append(block)
        size += len(block)
        while size >= GROUP:
            whole = concatenate(pending)
            yield take_rows(whole, np.arange(GROUP))
            rest = take_rows(whole, np.arange(GROUP, size))
            pending, size = ([rest], len(rest)) if len(rest) else ([], 0)
    if pending:
        yield concatenate(pending)
