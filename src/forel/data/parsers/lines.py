"""VW and svmlight text as blocks: calls the compiled parsers, resolves hard numbers, and reports errors."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from forel.data.block import BEGINNING, Block, Position, Task
from forel.data.buffers import Buffers
from forel.data.compiled import layout, scanner
from forel.data.features.crosses import Crosses, Entries
from forel.data.features.names import Names, recorded_name
from forel.data.problems import Malformed, Problems, excerpt
from forel.data.slices import TAG, line_slices, with_slices
from forel.data.sources.streams import Chunk, chunk_tasks, last_line_end, next_line
from forel.data.values import nearest_float32

__all__ = ["LineFormat", "kept_initials", "malformed", "parse_lines", "scan_lines"]

BAR, COLON, END, SPACE = (ord(c) for c in "|:\n ")
ESCAPE = re.compile(rb"\\x([0-9a-fA-F]{2})")  # as in \x20, the namespace without a name


@dataclass(frozen=True)
class LineFormat:
    """A text format with one example per line, and the arguments of its compiled parser."""

    name: str
    bits: int
    tags: bool = False
    transform: Crosses | None = None
    slices: tuple[str, ...] = ()
    kept: NDArray[np.bool_] | None = None  # first bytes of the namespaces to use; None for all


def parse_lines(
    chunks: Iterable[Chunk],
    form: LineFormat,
    problems: Problems,
    names: Names | None = None,
    file: str = "",
    start: Position = BEGINNING,
) -> Iterator[Task]:
    """Yield a task for each chunk, and at the end the problems of reading chunks."""
    buffers = Buffers()

    def parse(chunk: Chunk, _: int, line: int, gathered: Problems) -> Block:
        block = _parse(chunk, form, gathered, names, file, line, buffers)
        return _with_slices(block, chunk, form, line) if form.slices else block

    yield from chunk_tasks(chunks, start, problems, parse)


def _with_slices(block: Block, chunk: Chunk, form: LineFormat, line: int) -> Block:
    """Return a block with the first features of namespaces, or the tags, that metrics are sliced by."""
    rows, tags = np.asarray(block.lines) - line, list(block.tags or ())
    text = chunk.text[chunk.start : chunk.length].tobytes()
    columns = [tags if name == TAG else line_slices(text, name, rows) for name in form.slices]
    return with_slices(replace(block, tags=block.tags if form.tags else None), np.asarray(block.lines), columns)


def _parse(
    chunk: Chunk, form: LineFormat, problems: Problems, names: Names | None, file: str, line: int, buffers: Buffers
) -> Block:  # fmt: skip
    parse, text, length = scanner(form.name, "parse"), chunk.text, chunk.length
    if form.kept is not None:
        text = without_namespaces(text, chunk.start, length, form.kept)
    # An example takes a line, and a feature at least two bytes; pages that are not written take no memory.
    rows, capacity = chunk.lines, length // 2 + 1
    indptr = np.empty(rows + 1, np.int64)
    indptr[0] = 0
    indices, values = (buffers.empty(capacity, kind) for kind in (np.int32, np.float32))
    labels, importance = np.empty(rows), np.empty(rows, np.float32)
    row_lines = np.empty(rows, np.int64)
    tagging = form.tags or TAG in form.slices
    tags = np.zeros((rows if tagging else 0, 2), np.int64)  # none, unless the general parser finds some
    separate = form.transform is not None  # features are not summed by the parser
    recording = names is not None and not separate
    fingerprints = names.fingerprints if names is not None and recording else np.empty(0, np.uint32)
    records = np.empty((capacity if recording or separate else 0, layout.COLUMNS), np.int64)
    counts = np.zeros(layout.SIZE, np.int64)
    counts[layout.AT] = chunk.start

    def call(hard: NDArray[np.int64], resolved: NDArray[np.float64]) -> int:
        return int(parse(
            text, length, counts, form.bits, indptr, indices, values, labels, importance, row_lines, tags,
            hard, resolved, fingerprints, records,
        ))  # fmt: skip

    def report(status: int) -> None:
        problems.record(malformed(text, chunk.start, length, counts, status, file, line))

    def undo(before: NDArray[np.int64]) -> None:
        if names is not None and recording:
            names.unmark(records[before[layout.NAMES] : counts[layout.NAMES]])

    scan_lines(call, text, length, counts, report, undo)
    n, entries = int(counts[layout.ROWS]), int(counts[layout.ENTRIES])
    if names is not None and recording:
        names.add_records(text, records[: counts[layout.NAMES]])
    kept_tags = _tags(text, tags[:n]) if tagging else None
    block = Block(
        indptr[: n + 1], indices[:entries], values[:entries], labels[:n], importance[:n], kept_tags, file, line,
        lines=row_lines[:n] + line,
    )  # fmt: skip
    if form.transform is None:
        return block
    kept = records[:entries]
    kinds, hashes = form.transform.kinds_of(text, kept), kept[:, 1].astype(np.uint64)
    found = Entries(block.indptr, hashes, block.values, kinds, partial(recorded_name, text, kept))
    block, more = form.transform.apply(found, block, form.bits, names)
    problems.crossed.update(np.flatnonzero(np.bincount(kinds)).tolist())
    for problem in more:
        problems.record(problem)
    return block


def scan_lines(
    call: Callable[[NDArray[np.int64], NDArray[np.float64]], int], text: NDArray[np.uint8], length: int,
    counts: NDArray[np.int64], report: Callable[[int], None], undo: Callable[[NDArray[np.int64]], None] | None = None,
) -> None:  # fmt: skip
    """Call a compiled parser until the end of the text.

    Parameters
    ----------
    call : the parser, from the place in ``counts`` on, with the numbers that need exact arithmetic; first it records
        where these are, and then it parses the same text again with their values
    report : receives the status of each malformed line
    undo : receives the counts before text that is parsed again
    """
    hard, resolved = np.empty((64, 3), np.int64), np.empty(0)
    while counts[layout.AT] < length:
        before = counts.copy()
        status = call(hard, resolved)
        hards = int(counts[layout.HARD])
        if hards > resolved.size:
            if hards > len(hard):
                hard = np.empty((hards, 3), np.int64)
            else:
                words = ((text[a:b].tobytes(), double) for a, b, double in hard[:hards].tolist())
                resolved = np.array([float(word) if double else float(nearest_float32(word)) for word, double in words])
            if undo is not None:
                undo(before)
            counts[:] = before
            continue
        if status == layout.DONE:
            return
        report(status)
        counts[layout.AT], resolved = next_line(text, int(counts[layout.AT]), length), np.empty(0)
        counts[layout.LINES] += 1


def _tags(text: NDArray[np.uint8], spans: NDArray[np.int64]) -> tuple[bytes, ...]:
    if not (spans[:, 1] > spans[:, 0]).any():
        return (b"",) * len(spans)
    content = text.tobytes()
    return tuple([content[a:b] for a, b in spans.tolist()])


def malformed(
    text: NDArray[np.uint8], begin: int, length: int, counts: NDArray[np.int64], status: int, file: str, line: int
) -> Malformed:
    """Return the problem of a line from its status; lines after ``begin`` are numbered from ``line`` on."""
    at = int(counts[layout.AT])
    start, stop = max(last_line_end(text, at), begin), next_line(text, at, length) - 1
    token = text[at : min(stop, at + 200)].tobytes().split()
    blank = token and text[at] <= 32
    got = "the end of the line" if not token else "a space" if blank else excerpt(token[0])
    number = line + int(counts[layout.LINES])
    return Malformed(file, number, at - start + 1, got, layout.EXPECTED[status])


def kept_initials(keep: Iterable[str] | None, ignore: Iterable[str]) -> NDArray[np.bool_] | None:
    r"""Return which first bytes of namespaces are kept; None for all.

    Every letter of ``keep`` or ``ignore`` is the first one of namespaces. With ``keep``, the others are left out,
    whatever ``ignore`` is. A space, or ``\x20``, is the namespace without a name.

    >>> np.flatnonzero(kept_initials(["ab"], ["a"])), np.flatnonzero(~kept_initials(None, ["x", r"\x20"]))
    (array([97, 98]), array([ 32, 120]))
    """
    if keep is None and not ignore:
        return None
    initials = np.full(256, keep is None)
    for letters in ignore if keep is None else keep:
        decoded = ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), letters.encode())
        initials[list(decoded)] = keep is not None
    return initials


def without_namespaces(
    text: NDArray[np.uint8], start: int, length: int, kept: NDArray[np.bool_]
) -> NDArray[np.uint8]:  # fmt: skip
    r"""Return a copy of lines, with spaces in place of the names and features of namespaces that are not kept.

    >>> text = np.frombuffer(b"1 |a x y:2 |b z | w\n", np.uint8)
    >>> without_namespaces(text, 0, text.size, kept_initials(["b"], [])).tobytes()
    b'1 |        |b z |  \n'
    """
    part = text[start:length]
    marks = np.flatnonzero((part == BAR) | (part == END))
    bars = np.flatnonzero(part[marks[:-1]] == BAR)  # the last mark is the end of a line
    first = part[marks[bars] + 1]
    first = np.where((first <= SPACE) | (first == COLON) | (first == BAR), SPACE, first)
    left_out = bars[~kept[first]]
    edges = np.zeros(part.size, np.int8)
    edges[marks[left_out] + 1] = 1
    edges[marks[left_out + 1]] -= 1
    copy = text.copy()
    copy[start:length][np.add.accumulate(edges, dtype=np.int8).view(bool)] = SPACE
    return copy
