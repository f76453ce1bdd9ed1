"""The same rows again: a pass over a source writes its parsed blocks to a cache, and later passes read that.

Rows are the same to the bit, wherever they come from.
"""

import errno
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from forel.data import Block, Malformed, Names, Place, Problems, Reader, ReadOptions, read
from forel.data.cached import HEAD, Cache, Writer, begins_cache, cache_in
from forel.data.constant import name_constant, with_constant
from forel.data.kinds import Kinds
from forel.data.pipeline import ordered_blocks
from forel.data.place import BEGINNING, prints_of, single_sources
from forel.store.files import beside
from forel.store.locks import lock
from forel.validation import refuse

__all__ = ["Passes", "Unwritten", "cached_options", "once", "write_cache"]

T = TypeVar("T")
Path = str | os.PathLike[str]


@dataclass
class Passes:
    """Passes over a source, which need not be one that can be read twice.

    Parameters
    ----------
    source : as :func:`forel.data.read` takes it
    options : of reading; with ``tags``, which are not in a cache, every pass reads the source
    number : of passes
    path : of a cache to be kept, and used where it is there already; None for one without a name, gone at the end
    threads : that parse

    >>> with Passes(iter([{"x": 1.0}, {"x": 2.0}]), ReadOptions(), number=2) as passes:
    ...     for turn in (1, 2):
    ...         print([block.values.tolist() for block in passes.blocks(turn, Problems())])
    [[1.0, 2.0]]
    [[1.0, 2.0]]
    """

    source: Any
    options: ReadOptions
    number: int
    path: Path | None = None
    threads: int | None = None
    _cache: Cache | None = field(default=None, init=False, repr=False)
    _open: ExitStack = field(default_factory=ExitStack, init=False, repr=False)

    def __post_init__(self) -> None:
        # Not in a cache, which is the same for models with and without; blocks get it when they come from there.
        self._reader = read(self.source, options=replace(self.options, names=False, constant=False))
        if self.number > 1 and self._reader.options.tags and once(self.source):
            raise refuse("passes", self.number, "1 for a stream with tags, which can be read only once; give a file")
        if self.path is not None:
            self._cache = _kept(os.fspath(self.path), self._reader)

    def __enter__(self) -> "Passes":
        return self

    def __exit__(self, *wrong: Any) -> None:
        self._open.close()

    def blocks(
        self, turn: int, problems: Problems, names: Names | None = None, start: Place | None = BEGINNING,
        kinds: Kinds | None = None,
    ) -> Iterator[Block]:  # fmt: skip
        """Yield the blocks of a pass from a place on; problems, names and kinds are kept in what is given."""
        reader = replace(self._reader, problems=problems, names=names, start=start or BEGINNING)
        reader = reader if kinds is None else replace(reader, kinds=kinds)
        blocks = self._blocks(turn, reader)
        if not self.options.constant:
            yield from blocks
        else:
            if names is not None:
                name_constant(names)
            yield from (with_constant(block, reader.options.bits) for block in blocks)

    def _blocks(self, turn: int, reader: Reader) -> Iterator[Block]:
        if self._cache is not None and reader.names is None:
            yield from ordered_blocks(replace(reader, source=self._cache), self.threads)
        elif self._cache is None and reader.start == BEGINNING and self._worth(turn):
            yield from self._writing(reader)
        else:
            yield from ordered_blocks(reader, self.threads)

    def _worth(self, turn: int) -> bool:
        """Tell whether a cache would be used by a later pass or run, and is not one of a cache."""
        wanted = not self._reader.options.tags and (self.path is not None or turn < self.number)
        return wanted and not all(_begins(one) for one in single_sources(self.source))

    def _writing(self, reader: Reader) -> Iterator[Block]:
        mine = Problems(reader.problems.on_error)
        draft = self._try(lambda: _Draft(self.path, reader, self._open))
        for block in ordered_blocks(replace(reader, problems=mine), self.threads):
            if draft is not None:
                draft = self._try(partial(draft.add, block, mine))
            reader.problems.take(mine)
            yield block
        if draft is not None:
            self._cache = self._try(partial(draft.finish, mine, reader.kinds.known))
        reader.problems.take(mine)

    def _try(self, write: Callable[[], T]) -> T | None:
        """Go on without a cache where it cannot be written, unless there is no other way to read the rows again."""
        try:
            return write()
        except Unwritten as error:
            if self.number > 1 and once(self.source):
                raise Unwritten(error.errno, f"{error.strerror}; a stream cannot be read again without it") from error
            warnings.warn(f"{error.strerror}; each pass reads the source instead", RuntimeWarning, stacklevel=2)
            return None


def write_cache(source: Any, path: Path, threads: int | None = None, **reading: Any) -> Cache:
    """Write the parsed blocks of a source to a cache, and return it.

    Parameters
    ----------
    source : as :func:`forel.data.read` takes it
    path : of the cache; an older one is replaced by a whole one
    threads : that parse
    reading : arguments of ``read``

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "clicks.cache"
    >>> cache = write_cache([{"x": 1.0}, {"x": 2.0}], path, bits=10)
    >>> cache.totals["rows"], [block.values.tolist() for block in read(path, bits=10)]
    (2, [[1.0, 2.0]])
    """
    if os.path.exists(path) and not _begins(path):
        raise refuse("output", os.fspath(path), "a cache, or the name of a file that is not there")
    reader = read(source, **{**reading, "constant": False})
    with ExitStack() as held:
        draft, none = _Draft(path, reader, held), Problems()
        for block in ordered_blocks(reader, threads):
            draft.add(block, none)
        return draft.finish(reader.problems, reader.kinds.known)


class Unwritten(OSError):
    """A cache that could not be written: the system's number, and a sentence."""


class _Draft:
    """A cache that is not yet whole: in a file without a name, or with one that it has only until it is."""

    def __init__(self, path: Path | None, reader: Reader, held: ExitStack) -> None:
        self._path = None if path is None else os.path.realpath(path)
        self._met = Problems("skip")
        with self._sentence():
            if self._path is None:
                # Without a buffer: what could not be written must not be tried again when it is closed.
                self._file: Any = tempfile.TemporaryFile(buffering=0, prefix="forel-", dir=_folder())  # noqa: SIM115
            else:
                self._name = beside(self._path)
                self._file = open(self._name, "x+b", buffering=0)  # noqa: SIM115
                lock(self._file.fileno())
                held.callback(_unlink, self._name)
            held.enter_context(self._file)
            self._writer = Writer(self._file, _told(reader))

    def add(self, block: Block, problems: Problems) -> "_Draft":
        """Write a block, and take note of the problems met on the way to it."""
        self._met.take(replace(problems, messages=list(problems.messages)))
        with self._sentence():
            self._writer.add(block)
        return self

    def finish(self, problems: Problems, kinds: Mapping[str, str]) -> Cache:
        """Write the end, give the file its name, and open it for reading."""
        self._met.take(replace(problems, messages=list(problems.messages)))
        with self._sentence():
            self._writer.close(self._met, kinds)
            if self._path is not None:
                os.fsync(self._file.fileno())
                os.replace(self._name, self._path)
            cache = cache_in(self._file, self._path or "cache")
        if cache is None:
            raise Unwritten(errno.EIO, "cache: could not be read again")
        return cache

    def _abandon(self) -> None:
        """Give its room on the disk back at once: a model may need it."""
        if hasattr(self, "_file"):
            with suppress(OSError):
                self._file.close()
        if self._path is not None:
            _unlink(self._name)

    @contextmanager
    def _sentence(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._abandon()
            where = f"in {_folder()}, or where TMPDIR says" if self._path is None else self._path
            raise Unwritten(error.errno, f"cache {where}: could not be written ({error.strerror or error})") from error


def cached_options(source: Any) -> ReadOptions | None:
    """Return the options that a source of caches was written with; None for other sources.

    A model learned from a cache keeps them, to read in the same way what the cache was made from.
    """
    paths = [] if once(source) else single_sources(source)
    if not paths or not all(_begins(path) for path in paths):
        return None
    with open(paths[0], "rb") as file:
        cache = cache_in(file, os.fspath(paths[0]))
    if cache is None:
        return None
    return ReadOptions.from_json({**cache.told["options"], "format": None, "kinds": cache.kinds}, owner=cache.file)


def once(source: Any) -> bool:
    """Tell whether a source is a stream, which cannot be read again.

    >>> once(["-"]), once([{"x": 1.0}])
    (True, False)
    """
    if isinstance(source, Iterator) or hasattr(source, "read"):
        return True
    return any(
        not os.path.isfile(one) if isinstance(one, str) else hasattr(one, "read") for one in single_sources(source)
    )


def _kept(path: str, reader: Reader) -> Cache | None:
    """Return the cache of an earlier run, if it is of these files as they are now."""
    if not os.path.exists(path):
        return None
    if not _begins(path):
        raise refuse("cache", path, "a cache, or the name of a file that is not there")
    try:
        with open(path, "rb") as file:
            cache = cache_in(file, path)
    except Malformed as wrong:
        warnings.warn(str(wrong), RuntimeWarning, stacklevel=2)
        return None
    now = _told(reader)
    if cache is not None and cache.told == now and now["sources"] is not None:
        if not cache.problems.count or reader.problems.on_error == "skip":
            return cache
        return None  # the source will say what is wrong, and where
    said = "a cache of other files, of what they were before, or read in another way; it is made again"
    warnings.warn(f"{path}: {said}", RuntimeWarning, stacklevel=2)
    return None


def _told(reader: Reader) -> dict[str, Any]:
    return {"options": reader.options.meaning, "sources": prints_of(reader.source)}


def _begins(path: Any) -> bool:
    if not isinstance(path, str | os.PathLike) or not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return begins_cache(file.read(HEAD))


def _folder() -> str:
    """Return where large files without a name go: /tmp often is memory."""
    if "TMPDIR" not in os.environ and os.access("/var/tmp", os.W_OK):
        return "/var/tmp"
    return tempfile.gettempdir()


def _unlink(name: str) -> None:
    with suppress(OSError):
        os.unlink(name)
