"""``read``: blocks of examples from files, streams, tables and dicts."""

import os
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Any, Unpack

import numpy as np

from forel.data.block import BEGINNING, Block, Position, Task, completed_task
from forel.data.features.crosses import SeparateFeatures
from forel.data.features.kinds import Kinds
from forel.data.features.names import Names
from forel.data.features.rows import add_constant, drop_rows, record_constant
from forel.data.labels import ClassNames, class_name, shown_names
from forel.data.options import COLUMNS, ReadKeywords, ReadOptions
from forel.data.parsers.lines import LineFormat, kept_initials, parse_lines
from forel.data.problems import Malformed, Problems
from forel.data.sources.arriving import follow
from forel.data.sources.detect import BINARY, LINE_FORMATS, detect_format
from forel.data.sources.files import is_url, single_sources
from forel.data.sources.row_cache import RowCache
from forel.data.sources.streams import READ_ERRORS, broken_file, chunks, open_stream, skip
from forel.validation import refuse

__all__ = ["Reader", "format_of", "names_for", "read"]


@dataclass(frozen=True, eq=False)
class Reader:
    """An iterator over the blocks of one pass, which fills ``problems``, ``names``, ``kinds`` and ``classes``.

    To parse on several threads, run :meth:`tasks` on any of them and pass the results to :meth:`finish` in order; with
    ``names``, tasks have to run in order too.

    Parameters
    ----------
    source, options : as in :func:`read`
    problems, names, kinds, classes : updated while blocks are read; names may have been recorded before
    start : where to start: the position after a block of another reader with the same source and options
    ended : with the option ``follow``, ends reading after the lines that are there when it is set
    """

    source: Any
    options: ReadOptions
    problems: Problems
    names: Names | None = field(default=None, repr=False)
    start: Position = BEGINNING
    kinds: Kinds = field(default_factory=Kinds, repr=False)
    classes: ClassNames = field(default_factory=ClassNames, repr=False)
    ended: Event = field(default_factory=Event, repr=False)

    def __iter__(self) -> Iterator[Block]:
        for task in self.tasks():
            yield from self.finish(*task())
        self.check_keys()

    def tasks(self) -> Iterator[Task]:
        """Yield a task for each block, in order."""
        if self.options.constant and self.names is not None:
            record_constant(self.names)
        if isinstance(self.source, RowCache):
            self.kinds.of_file(0).update(self.source.kinds)
            self.kinds.seen.names.update(self.source.kinds)
            yield from self.source.tasks(self.source.find(self.start) if self.start > BEGINNING else 0)
            return
        sources = single_sources(self.source)
        if self.options.follow and (len(sources) > 1 or not isinstance(sources[0], str) or is_url(sources[0])):
            raise refuse(
                "follow",
                f"{len(sources)} sources" if len(sources) > 1 else type(sources[0]).__name__,
                "the path of one file or pipe, or -",
            )
        for number, one in enumerate(sources):
            if number >= self.start.file:
                yield from self.file_tasks(one, self.start if number == self.start.file else Position(number))

    def file_tasks(self, source: Any, start: Position, name: str | None = None) -> Iterator[Task]:
        """Yield a task for each block of one file from a position on; ``name`` is its name in messages."""
        yield from _tasks(source, self, Problems(self.problems.on_error), start, name)

    def finish(self, block: Block | None, problems: Problems) -> Iterator[Block]:
        """Record the problems of a task, number the classes of its block, and yield it if it has examples."""
        self.problems.absorb(problems)
        if block is not None and (block.label_words is not None or self.options.classes is not None):
            block = self._with_class_numbers(block)
        if block is not None and len(block):
            yield add_constant(block, self.options.bits) if self.options.constant else block

    def check_keys(self) -> None:
        """Raise or warn, after the last block, about odd data, and about keys in options that no row has."""
        for message in (*self.problems.warnings.values(), *self._misspelled()):
            warnings.warn(message, UserWarning, stacklevel=2)
        options, crossed = self.options, self.problems.crossed
        crosses = options.transform if crossed and options.strict and not options.entry_names else None
        if (self.kinds.seen.keys is None and crosses is None) or self.start != BEGINNING:  # earlier rows may have them
            return
        from forel.data.parsers.columns import Columns, check_crosses, check_keys  # not needed for VW text

        columns = Columns(options, self.kinds.known, self.kinds.seen)
        check_keys(columns)
        if crosses is not None:
            check_crosses(crosses, columns, crossed)

    def _misspelled(self) -> Iterator[str]:
        """Yield a warning for each class that may be another one, misspelled."""
        for name, other in self.classes.misspelled().items():
            remedy = "if it is misspelled, correct it; with the names of classes (--classes), rows of others are errors"
            yield f"label: got the class {name!r} in very few rows, close to {other!r}, expected none such; {remedy}"

    def _with_class_numbers(self, block: Block) -> Block:
        """Return a block with the numbers of classes as labels; a row of an unknown class is malformed."""
        numbers = self.classes.number(block.labels, block.label_words)
        unknown, named = numbers == -1, replace(block, labels=numbers, label_words=None)
        if not unknown.any():
            return named
        if self.options.unlabelled:
            return replace(named, labels=np.where(unknown, np.nan, numbers))
        for row in np.flatnonzero(unknown).tolist():
            label = block.labels[row] if block.label_words is None else block.label_words[int(block.labels[row])]
            line = block.line if block.lines is None else int(block.lines[row])
            got, expected = f"the class {class_name(label)!r}", f"one of {shown_names(self.classes.names)}"
            self.problems.record(Malformed(block.file, line, self.options.label, got, expected))
        return drop_rows(named, np.flatnonzero(unknown))


def read(
    source: Any, format: str | None = None, *, options: ReadOptions | None = None, **keywords: Unpack[ReadKeywords]
) -> Reader:
    r"""Read examples in blocks, in constant memory.

    Parameters
    ----------
    source : a path, a glob pattern, "-" for standard input, a binary file object, or a list of these, plain or
        compressed by gzip, zstd or zip; or a frame of pandas, polars or another library that narwhals knows, or a table
        with the Arrow PyCapsule interface; or a numpy array, or a sparse array or matrix of scipy, whose columns are
        named c1, c2, ...; or a tuple (X, y) or (X, y, importance) of such a table or array and its labels; or a
        ``ray.data.Dataset``, in its own order; or an iterable of dicts
    format : as in :class:`ReadOptions`
    options : to start from; defaults if None
    keywords : options by name, which override those; see :class:`ReadOptions`. ``names`` may be names to add to

    >>> import io
    >>> reader = read(io.BytesIO(b"1 2.0 |a x:3 y\n-1 |a y\n"))
    >>> [(b.labels.tolist(), b.importance.tolist(), b.values.tolist()) for b in reader]
    [([1.0, -1.0], [2.0, 1.0], [3.0, 1.0, 1.0])]
    """
    chosen = (options or ReadOptions()).updated({"format": format, **keywords})
    names = names_for(chosen, keywords.get("names"))
    kinds, classes = Kinds(chosen.kinds), ClassNames(chosen.classes)
    return Reader(source, chosen, Problems(chosen.on_error), names, kinds=kinds, classes=classes)


def names_for(options: ReadOptions, names: bool | Names | None = None) -> Names | None:
    """Return the object that records names: ``names`` itself, a new one if the options enable it, or None."""
    if not isinstance(names, Names):
        return Names(options.bits) if options.names else None
    if names.bits != options.bits:
        raise refuse("names", f"names of {names.bits} bits", f"names of {options.bits}, the number of bits of slots")
    return names


def _tasks(source: Any, reader: Reader, problems: Problems, start: Position, name: str | None = None) -> Iterator[Task]:
    if isinstance(source, str) or hasattr(source, "read"):
        file = name or _name(source)
        with _opened(source, reader) as stream:
            yield from _stream_tasks(stream, file, reader, problems, start)
    else:
        from forel.data.column_tasks import object_tasks

        yield from object_tasks(source, reader, problems, start)


def _opened(source: Any, reader: Reader) -> AbstractContextManager[Any]:
    if not reader.options.follow:
        return open_stream(source, reader.options.encoding)
    return follow(source, reader.ended, reader.options.idle)


def _stream_tasks(stream: Any, file: str, reader: Reader, problems: Problems, start: Position) -> Iterator[Task]:
    options = reader.options
    try:
        beginning = stream.peek(1 << 12) if options.format in ("auto", "csv") else b""
        form = format_of(file, options, beginning)
    except READ_ERRORS as wrong:
        problems.record(broken_file(file, 1, wrong))
        yield completed_task(None, problems)
        return
    if options.encoding is not None and form in BINARY:
        raise refuse("encoding", options.encoding, f"none for {form}, which is not text")
    if options.follow and form in BINARY:
        raise refuse("follow", form, "lines of text")
    if form in LINE_FORMATS:
        yield from _line_tasks(stream, form, file, reader, problems, start)
    else:
        from forel.data.column_tasks import stream_tasks  # not needed for VW text

        yield from stream_tasks(stream, form, beginning, file, reader, problems, start)


def format_of(file: str, options: ReadOptions, beginning: bytes) -> str:
    r"""Return the format of a file: the given one, CSV where options of CSV are given, or the detected one.

    >>> format_of("data", ReadOptions(), b"1 |2\n"), format_of("data", ReadOptions(separator="|"), b"1 |2\n")
    ('vw', 'csv')
    """
    if options.format != "auto":
        return options.format
    if options.separator is None and options.header:
        return detect_format(file, beginning)
    try:
        found = detect_format(file, beginning)
    except ValueError:
        return "csv"
    by_name = detect_format(file, b",")
    return "csv" if found in LINE_FORMATS and by_name == "csv" else found


def _line_tasks(
    stream: Any, form: str, file: str, reader: Reader, problems: Problems, start: Position
) -> Iterator[Task]:
    options, defaults, syntax = reader.options, ReadOptions(), LINE_FORMATS[form]
    taken: tuple[str, ...] = ("keep", "ignore") if syntax.namespaces else ()
    for name in COLUMNS:
        given = getattr(options, name)
        if name not in taken and given != getattr(defaults, name):
            shown = ", ".join(given) if isinstance(given, tuple) else given
            if options.unlabelled or options.unweighted:  # options of a stored model
                expected = f"one with columns, such as csv or jsonl: the model was trained with {name} {shown}"
                raise refuse("format", form, expected)
            guessed = options.format == "auto" and not {*file.lower().split(".")} & {*syntax.suffixes}
            table = "; format='csv' reads a table" if guessed else ""
            raise refuse(name, shown, f"none for {form}, which has no columns{table}")
    separate = isinstance(options.transform, SeparateFeatures)
    transform = None if separate and not syntax.namespaces else options.transform
    if transform is not None and not syntax.namespaces:
        raise refuse("interactions", "crosses", f"none for {form}, which has no namespaces")
    if options.slices and not syntax.namespaces:
        raise refuse("slices", ", ".join(options.slices), f"none for {form}, which has no columns or namespaces")
    kept = kept_initials(options.keep, options.ignore)
    line_format = LineFormat(
        form, options.bits, options.tags and syntax.namespaces, transform, options.slices, kept
    )  # fmt: skip
    size = options.block_bytes if transform is None else options.chunk_bytes
    skip(stream, start.bytes)
    found_lines = chunks(stream, size, problems, file, start.line, limit=options.longest_line(form))
    yield from parse_lines(found_lines, line_format, problems, reader.names, file, start)


def _name(stream: Any) -> str:
    if isinstance(stream, str):
        return "standard input" if stream == "-" else stream
    with suppress(AttributeError):
        return os.fspath(stream.name) if not isinstance(stream.name, int) else f"file {stream.name}"
    return "stream"
