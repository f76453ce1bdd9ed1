"""Pieces of files that are read elsewhere, such as on other machines, and combined in order.

A piece is a file. A worker opens, decompresses and parses it, and its blocks are used in the order of the source. The
kinds of columns, which depend on earlier files, are predicted when a piece is sent and checked when its results are
used: if they differ, the piece is read again. Rows, problems, names and kinds are therefore the same as in one process,
for any number of workers.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from forel.data.block import Block, Position
from forel.data.features.kinds import Kinds
from forel.data.features.names import Names, PackedNames
from forel.data.features.rows import record_constant
from forel.data.options import ReadOptions
from forel.data.problems import Problems
from forel.data.reader import Reader
from forel.data.sources.files import absolute, is_file, single_sources
from forel.validation import refuse

__all__ = ["Parsed", "Piece", "Results", "Workers", "ordered_pieces", "pieces_of", "read_piece"]

AHEAD = 2  # pieces that are sent at most, times the number that is read at the same time


@dataclass(frozen=True)
class Piece:
    """A part of a source for one worker, with everything needed to read it.

    Parameters
    ----------
    path : the file, as an absolute path or URL
    name : its name in messages
    start : position of its beginning
    options : reading options
    kinds : kinds of columns found before it
    names : whether to record names
    """

    path: str
    name: str
    start: Position
    options: ReadOptions
    kinds: Kinds
    names: bool = False


@dataclass(frozen=True, eq=False)
class Parsed:
    """The result of a worker for one block: the block, and the kinds, names and problems found with it.

    Parameters
    ----------
    block, problems : as tasks of a reader return them
    kinds : kinds of columns found in this file up to the block
    names : names recorded in this block; None if names are not kept
    error : an exception in place of a block
    keys : keys that options name, as in :class:`forel.data.features.kinds.SeenColumns`
    """

    block: Block | None
    problems: Problems
    kinds: dict[str, str]
    names: PackedNames | None = None
    error: Exception | None = None
    keys: frozenset[str] | None = None


class Results(Protocol):
    """The results of reading a piece, which may be stopped."""

    def __iter__(self) -> Iterator[Parsed]: ...

    @property
    def done(self) -> bool:
        """Whether the worker has read the whole piece; its results may still wait."""
        ...

    def close(self) -> None:
        """Stop reading."""
        ...


class Workers(Protocol):
    """Anything that reads pieces elsewhere."""

    @property
    def number(self) -> int:
        """The number of pieces that are read at the same time."""
        ...

    def read(self, piece: Piece) -> Results:
        """Start :func:`read_piece` on a worker, and return its results in order."""
        ...


def read_piece(piece: Piece) -> Iterator[Parsed]:
    r"""Read a piece, on a worker; an error is the last result.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.vw"
    >>> _ = path.write_text("1 |a b\n-1 |a c\n")
    >>> piece = Piece(str(path), "a.vw", Position(), ReadOptions(), Kinds())
    >>> [parsed.block.labels.tolist() for parsed in read_piece(piece) if parsed.block is not None]
    [[1.0, -1.0]]
    """
    options, start = piece.options, piece.start
    names = Names(options.bits) if piece.names else None
    reader = Reader(piece.path, options, Problems(options.on_error), names, start, piece.kinds)
    found = piece.kinds.of_file(start.file)
    try:
        for task in reader.file_tasks(piece.path, start, piece.name):
            block, problems = task()
            keys = None if piece.kinds.seen.keys is None else frozenset(piece.kinds.seen.keys)
            yield Parsed(block, problems, dict(found), None if names is None else names.drain(), keys=keys)
    except Exception as error:  # raised by the caller, in the order of the source
        yield Parsed(None, Problems(options.on_error), dict(found), error=error)


def ordered_pieces(reader: Reader, workers: Workers) -> Iterator[Block]:
    """Yield a reader's blocks in order, read and parsed by workers.

    Parameters
    ----------
    reader : a reader of files; its names, kinds and problems are updated as if it read them itself
    workers : read at most ``workers.number`` pieces at the same time
    """
    if reader.options.constant and reader.names is not None:
        record_constant(reader.names)
    progress = _Progress(reader, workers)
    try:
        progress.send(1, 1)  # later pieces depend on the kinds of columns in its first block
        while progress.sent:
            for parsed in progress.results():
                if parsed.error is not None:
                    raise parsed.error
                yield from progress.finish(parsed)
                progress.send(workers.number, AHEAD * workers.number)
            progress.sent.popleft()
            progress.send(1, 1)
        reader.check_keys()
    finally:
        for _, results in progress.sent:
            results.close()


class _Progress:
    """Pieces that were sent to workers, and the position in the source that their results have reached."""

    def __init__(self, reader: Reader, workers: Workers) -> None:
        self.reader, self.workers = reader, workers
        self.position = reader.start
        self.sent = deque[tuple[Piece, Results]]()
        self._pieces = pieces_of(reader)

    def send(self, reading: int, limit: int) -> None:
        """Send pieces until the given number is being read, or ``limit`` of them are waiting or being read."""
        while len(self.sent) < limit and sum(not results.done for _, results in self.sent) < reading:
            if (piece := next(self._pieces, None)) is None:
                break
            self.sent.append((piece, self.workers.read(piece)))

    def results(self) -> Iterator[Parsed]:
        """Yield the results of the first piece."""
        piece, results = self.sent[0]
        if piece.start.file > self.position.file:
            self.position = piece.start
        if piece.kinds.before(piece.start.file) != self.reader.kinds.before(piece.start.file):
            results.close()
            piece = replace(piece, start=self.position, kinds=self.reader.kinds.copied())
            results = self.workers.read(piece)
            self.sent[0] = piece, results
        yield from results

    def finish(self, parsed: Parsed) -> Iterator[Block]:
        """Record the kinds, names and problems of a block, and yield it if it has examples."""
        if parsed.names is not None and self.reader.names is not None:
            self.reader.names.absorb(parsed.names)
        self.reader.kinds.of_file(self.position.file).update(parsed.kinds)
        if parsed.keys is not None:
            self.reader.kinds.seen.add_keys(parsed.keys)
        if parsed.block is not None and parsed.block.after is not None:
            self.position = parsed.block.after
        yield from self.reader.finish(parsed.block, parsed.problems)


def pieces_of(reader: Reader) -> Iterator[Piece]:
    """Yield the pieces of a reader's source, with the kinds of columns known so far."""
    for number, name in enumerate(single_sources(reader.source)):
        if not is_file(name):
            got = repr(name) if isinstance(name, str) else type(name).__name__
            raise refuse("source", got, "files, which workers of a cluster can open")
        if number < reader.start.file:
            continue
        start = reader.start if number == reader.start.file else Position(number)
        yield Piece(absolute(name), name, start, reader.options, reader.kinds.copied(), reader.names is not None)
