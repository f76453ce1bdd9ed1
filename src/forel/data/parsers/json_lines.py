"""JSON lines as blocks: compiled code reads lines in the common form, and Python's parser all others."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data.block import Block, Position, Task
from forel.data.buffers import Buffers
from forel.data.compiled import json_layout as layout
from forel.data.compiled import scanner
from forel.data.compiled.layout import COLUMNS, PAD
from forel.data.features.crosses import Entries, block_of_entries
from forel.data.features.hashing import START, hash_name, hash_spans, slots_of_hashes
from forel.data.features.kinds import OrderedKinds, sign_of
from forel.data.features.names import Names, recorded_name
from forel.data.features.rows import Examples, block_from_entries
from forel.data.parsers.columns import Columns
from forel.data.parsers.dicts import DictRows, JsonDicts, hashes_of, parse_row
from forel.data.parsers.label_codes import LabelCodes
from forel.data.problems import Problems
from forel.data.sources.streams import Chunk, chunk_tasks, next_line
from forel.data.values import signed_log1p

__all__ = ["SpecialKeys", "parse_json", "special_keys"]

KEYS = 1 << 10  # minimum number of rows of the table
INNER = 1 << 8  # rows of the set of nested keys at first
KINDS = {int(layout.NUMBER): "number", int(layout.CATEGORY): "category"}


@dataclass(frozen=True, eq=False)
class SpecialKeys:
    """The keys that are named by options or known kinds.

    Parameters
    ----------
    keys : in order of their IDs, the first of which is 1
    table : as ``forel.data.compiled.json_rows`` uses it; it refers to ``text``
    text : bytes of the keys
    default : role of all other keys
    transformed : whether the numbers of any key are transformed
    """

    keys: tuple[str, ...]
    table: NDArray[np.uint64]
    text: NDArray[np.uint8]
    default: np.uint64
    transformed: bool


def special_keys(columns: Columns) -> SpecialKeys:
    """Return the keys with a special role.

    >>> from forel.data.options import ReadOptions
    >>> special_keys(Columns(ReadOptions(label="y", ignore=["id"]))).keys
    ('y', 'id')
    """
    options = columns.options
    roles = (columns.label, columns.importance, *(options.keep or ()), *options.ignore)
    given = (*roles, *columns.kinds, *columns.known, *columns.named)
    keys = tuple(dict.fromkeys(key for key in given if key is not None))
    names = [key.encode("utf-8", "surrogatepass") for key in keys]
    text = np.frombuffer(b"".join(names) + bytes(PAD), np.uint8)
    table = np.zeros((1 << (max(KEYS, 4 * len(keys)) - 1).bit_length(), layout.KEY_COLUMNS), np.uint64)
    at = text.ctypes.data
    for number, (key, name) in enumerate(zip(keys, names, strict=True), 1):
        hashed = hash_name(name)
        place = hashed % len(table)
        while table[place, layout.START]:
            place = (place + 1) % len(table)
        table[place, : layout.ID + 1] = np.array([hashed, at, len(name), _role(columns, key), 0, 0, number], np.uint64)
        at += len(name)
    default = layout.USED | layout.RECORDED if options.keep is None else np.uint64(0)
    return SpecialKeys(keys, table, text, default, bool(columns.log))


def _role(columns: Columns, key: str) -> np.uint64:
    kind = columns.kinds.get(key) or columns.known.get(key)
    used, labels = columns.uses(key), LabelCodes(columns)
    flags = {
        layout.USED: used,
        layout.LABEL: key == columns.label and not labels.worded,
        layout.WORD: key == columns.label and (labels.worded or labels.optional),
        layout.IMPORTANCE: key == columns.importance,
        layout.CODED: used and kind == "category",
        layout.NUMERIC: used and sign_of(kind) is not None,
        layout.LOGARITHM: used and key in columns.log,
        layout.RECORDED: used and key not in columns.kinds,
        layout.NAMED: key in columns.named,
    }
    return np.uint64(sum(int(flag) for flag, holds in flags.items() if holds))


def _labels(labels: LabelCodes, chunk: Chunk) -> Iterator[Any]:
    """Yield the labels of a chunk; most chunks without any are not parsed."""
    text = chunk.text.data[: chunk.length].tobytes()
    if str(labels.key).encode("utf-8", "surrogatepass") in text or b"\\" in text:
        yield from (labels.of(item) for _, item in JsonDicts([chunk], Problems("skip"), ""))


def parse_json(
    chunks: Iterable[Chunk], columns: Columns, problems: Problems, names: Names | None, file: str, start: Position,
    kinds_found: dict[str, str],
) -> Iterator[Task]:  # fmt: skip
    """Yield a task for each chunk, and at the end the problems of reading chunks.

    ``kinds_found`` receives the kinds of keys.
    """
    buffers, options, labels = Buffers(), columns.options, LabelCodes(columns)
    kinds = OrderedKinds(kinds_found, columns.known, columns.seen)
    recording = names is not None or options.transform is not None or options.columns
    if not (start.bytes and kinds_found):  # labels that are words have a kind by now
        chunks = labels.decided(chunks, partial(_labels, labels), kinds_found)

    @cache
    def special(kind: str | None) -> tuple[Columns, SpecialKeys]:
        known = columns if kind is None else replace(columns, known={str(columns.label): kind, **columns.known})
        return known, special_keys(known)

    def parse(chunk: Chunk, number: int, line: int, gathered: Problems) -> Block:
        # Chunks before the first label have none, and so do not depend on the kind that is found later.
        rows = _Rows(chunk, *special(kinds_found.get(str(columns.label))), buffers, recording)
        rows.scan(gathered, file, line)
        block = rows.block(gathered, names, file, line)
        kinds.add(number, rows.kinds)
        return block

    yield from chunk_tasks(chunks, start, problems, parse)


class _Rows:
    """The rows of a chunk; ``recording`` keeps where the names of their entries are."""

    def __init__(
        self, chunk: Chunk, columns: Columns, keys: SpecialKeys, buffers: Buffers, recording: bool
    ) -> None:  # fmt: skip
        self.chunk, self.columns, self.special, self.label_of = chunk, columns, keys, LabelCodes(columns)
        rows, most = chunk.lines, chunk.length // 4 + 1  # an entry has at least two quotes, a letter and a comma
        self.text, self.scratch = chunk.text, buffers.empty(2 * chunk.length + layout.RESERVED + PAD, np.uint8)
        self.counts = np.zeros(layout.SIZE, np.int64)
        self.counts[layout.AT] = chunk.start
        if recording:
            # One array for text and scratch memory, because records are offsets in it.
            size = chunk.length + PAD
            self.text = np.empty(size + 4 * chunk.length + layout.RESERVED + PAD, np.uint8)
            self.text[:size] = chunk.text[:size]
            self.scratch = self.text[size:]
        self.scratch[-PAD - layout.RESERVED :][: len(layout.WORDS)] = np.frombuffer(layout.WORDS, np.uint8)
        self.keys, self.events = keys.table.copy(), np.empty((3 * len(keys.table), 4), np.uint64)
        self.inner = np.zeros((INNER, 2), np.uint64)
        self.indptr = np.zeros(rows + 1, np.int64)
        self.hashes, self.values = buffers.empty(most, np.uint64), buffers.empty(most, np.float32)
        self.labels, self.importance = np.empty(rows), np.empty(rows, np.float32)
        self.lines = np.empty(rows, np.int64)
        self.records = np.empty((most if recording else 0, COLUMNS), np.int64)
        pending = most if keys.transformed else 0
        self.pending, self.doubles = np.empty(pending, np.int64), np.empty(pending)
        self.marks = np.empty((2 * most, 2), np.uint64)
        most_words = 1 << (2 * rows).bit_length()  # a table for one word per row
        self.words, self.word_labels = np.zeros(most_words, np.uint64), np.empty(most_words)
        self.kinds: list[tuple[str, str]] = []
        self.extra: list[tuple[int, int, bytes, bytes]] = []  # entry, kind, namespace and name

    def scan(self, problems: Problems, file: str, line: int) -> None:
        """Read all lines."""
        counts, valid, done = self.counts, _is_utf8(self.chunk), 0
        read = scanner("json_rows", "scan")
        while True:
            status = read(
                self.text, self.chunk.length, self.scratch, valid, counts, self.special.default, self.keys, self.inner,
                self.events, self.indptr, self.hashes, self.values, self.labels, self.importance, self.lines,
                self.records, self.pending, self.doubles, self.marks, self.words, self.word_labels,
            )  # fmt: skip
            events = int(counts[layout.EVENTS])
            self._take_events(self.events[done:events].view(np.int64).tolist())
            done = events
            if status == layout.DONE:
                return
            if status == layout.MORE_KEYS:
                larger = np.zeros((4 * len(self.keys), layout.KEY_COLUMNS), np.uint64)
                scanner("json_rows", "rebuild")(self.keys, larger)
                self.keys, smaller = larger, self.events
                self.events = np.empty((3 * len(larger), 4), np.uint64)
                self.events[:done] = smaller[:done]
            elif status == layout.MORE_NAMES:
                self.inner = np.zeros((4 * len(self.inner), 2), np.uint64)
            elif status == layout.NEW_WORD:
                self._add_word()
            else:
                self._add_odd_line(problems, file, line)

    def _take_events(self, events: list[list[int]]) -> None:
        """Record kinds of values, and which of the keys that options name occur."""
        seen = []
        for number, start, length, kind in events:
            key = (
                self.special.keys[number - 1]
                if number
                else self._string(start, length).decode("utf-8", "surrogatepass")
            )
            if kind == layout.SEEN:
                seen.append(key)
            else:
                self.kinds.append((key, KINDS[kind]))
        if self.counts[layout.ROWS]:
            self.columns.seen.add_keys(seen)

    def _string(self, start: int, length: int) -> bytes:
        """Return a string by its offset from the text; one without its escapes is in scratch memory."""
        offset = start + self.text.ctypes.data - self.scratch.ctypes.data
        memory, start = (self.scratch, offset) if 0 <= offset < self.scratch.size else (self.text, start)
        return memory[start : start + length].tobytes()

    def _add_word(self) -> None:
        """Interpret a word that is a label, for all rows that have it."""
        start, stop, literal = self.counts[[layout.WORD_START, layout.WORD_STOP, layout.LITERAL]].tolist()
        word = self._string(start, stop - start)
        text = word.decode("utf-8", "surrogatepass")
        try:
            label = self.label_of.number(_literal(text) if literal else text)
            number = np.nan if label is None else label
        except ValueError:
            number = np.inf  # its rows are read by Python's parser, which reports it
        place = (hashed := hash_name(word, 1 if literal else START) | 1) % self.words.size
        while self.words[place]:
            place = (place + 1) % self.words.size
        self.words[place], self.word_labels[place] = hashed, number

    def _add_odd_line(self, problems: Problems, file: str, line: int) -> None:
        """Read the next line by Python's own parser."""
        counts = self.counts
        at, done = int(counts[layout.AT]), int(counts[layout.LINES])
        after = next_line(self.text, at, self.chunk.length)
        rows = parse_row(
            self.text[at : after - 1].tobytes(), line + done, self.columns, self.label_of, self._record_kind, problems,
            file,
        )  # fmt: skip
        counts[layout.AT], counts[layout.LINES] = after, done + 1
        if rows.labels:
            self._append(rows, done)

    def _record_kind(self, key: str, kind: str) -> None:
        self.kinds.append((key, kind))

    def _append(self, row: DictRows, line: int) -> None:
        number, start = int(self.counts[layout.ROWS]), int(self.counts[layout.ENTRIES])
        stop = start + len(row.names)
        self.hashes[start:stop], self.values[start:stop] = hashes_of(row.names), row.values
        self.labels[number], self.importance[number], self.lines[number] = row.labels[0], row.importance[0], line
        self.indptr[number + 1] = stop
        self.counts[layout.ROWS], self.counts[layout.ENTRIES] = number + 1, stop
        if len(self.records):
            kinds = row.kinds or [0] * len(row.names)
            self.extra += [(start + k, kind, *row.names[k]) for k, kind in enumerate(kinds)]

    def block(self, problems: Problems, names: Names | None, file: str, line: int) -> Block:
        """Return the rows as a block."""
        options, rows, size = self.columns.options, int(self.counts[layout.ROWS]), int(self.counts[layout.ENTRIES])
        waiting = int(self.counts[layout.PENDING])
        self.values[self.pending[:waiting]] = signed_log1p(self.doubles[:waiting])
        indptr, hashes, values = self.indptr[: rows + 1], self.hashes[:size], self.values[:size]
        lines = self.lines[:rows] + line
        classes = None if self.label_of.classes is None else tuple(self.label_of.classes)
        examples = Examples(self.labels[:rows], self.importance[:rows], lines, problems, file, classes)
        if not len(self.records):
            return block_from_entries(indptr, slots_of_hashes(hashes, options.bits), values, examples)
        records, text, kinds, columns = self.records[:size], self._add_extra(), None, None
        if options.transform is not None:
            kinds = options.transform.kinds_of(text, _outermost(records))
            kinds[[entry for entry, *_ in self.extra]] = [kind for _, kind, *_ in self.extra]
        elif options.columns:
            spaces = hash_spans(text, records[:, 2], records[:, 3], START)
            columns = slots_of_hashes(np.where(records[:, 2] < records[:, 3], spaces, hashes), options.bits)
        if names is not None and kinds is None:
            records[:, 0], records[:, 1] = slots_of_hashes(hashes, options.bits), hashes.view(np.int64)
            kept = scanner("hashing", "claim_slots")(names.fingerprints, records, 0, size)
            names.add_records(text, _without_empty_names(records[:kept]))
        entries = Entries(indptr, hashes, values, kinds, partial(recorded_name, text, records), columns)
        return block_of_entries(entries, examples, options.transform, options.bits, None if kinds is None else names)

    def _add_extra(self) -> NDArray[np.uint8]:
        """Return the text with the names of entries that are not in it, and record where they are."""
        at, added = self.text.size, []
        for entry, _, namespace, name in self.extra:
            middle = at + len(namespace)
            self.records[entry] = 0, 0, at, middle, middle, middle + len(name)
            at = middle + len(name)
            added += [namespace, name]
        return np.concatenate([self.text, np.frombuffer(b"".join(added), np.uint8)]) if added else self.text


def _literal(text: str) -> bool | float:
    return text == "True" if text in ("True", "False") else float(text)


def _outermost(records: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return records with the outermost keys as namespaces."""
    tops = records.copy()
    tops[:, 2:4] = records[:, :2]
    return tops


def _without_empty_names(records: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return records where the namespace of an empty name is the name."""
    empty = records[:, 4] == records[:, 5]
    records[empty, 4:] = records[empty, 2:4]
    records[empty, 2:4] = 0
    return records


def _is_utf8(chunk: Chunk) -> bool:
    try:
        str(chunk.text.data[: chunk.length], "utf-8")
    except UnicodeDecodeError:
        return False
    return True
