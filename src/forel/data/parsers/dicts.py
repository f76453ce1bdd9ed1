"""Dicts as blocks: numbers are values, strings are categories, and objects are namespaces.

Dicts of numbers and strings are read in batches, with one array for all values of a batch; others key by key.
"""

import io
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from functools import partial
from itertools import chain, compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data.block import Block
from forel.data.compiled.layout import PAD
from forel.data.features.crosses import Entries, block_of_entries
from forel.data.features.dates import date_features, expected_date
from forel.data.features.hashing import START, hash_name, hash_names, hash_spans, slots_of_hashes
from forel.data.features.kinds import DATE, MOST, add_kind, sign_of
from forel.data.features.names import Names
from forel.data.features.rows import Examples
from forel.data.parsers.column_blocks import with_derived
from forel.data.parsers.column_values import RowProblems, Spans, StringColumn
from forel.data.parsers.columns import Columns
from forel.data.parsers.label_codes import LabelCodes
from forel.data.problems import OTHER_ENCODING, Malformed, Problems, excerpt
from forel.data.sources.streams import Chunk
from forel.data.values import JSON_NAN, NEVER_NULL, category_of, is_null, parse_number, signed_log1p

__all__ = [
    "DictRows", "JsonDicts", "batched_blocks", "dict_blocks", "hashes_of", "parse_objects", "parse_row",
]  # fmt: skip

NUMERIC = (int, float, np.number, np.bool_)
LARGEST = float(np.finfo(np.float32).max)
KINDS = "a number, a string, true or false, null, an object, or a list of strings"
DECODER = json.JSONDecoder(parse_constant={"NaN": JSON_NAN, "Infinity": math.inf, "-Infinity": -math.inf}.get)
ENTRIES, CROSSED = 1 << 16, 1 << 13  # approximate entries of a block; fewer with crosses, which multiply them


class _Wrong(Exception):
    """A malformed value: its key, the value, and what was expected."""


class DictRows:
    """The rows of the next block so far; ``record_kind`` receives keys and the kinds of their values."""

    def __init__(self, columns: Columns, record_kind: Callable[[str, str], None]) -> None:
        self.columns, self.record_kind, self.transform = columns, record_kind, columns.options.transform
        self.unseen = columns.named.keys() - (columns.seen.keys or ())
        self.kinds: list[int] = []
        self.words: Counter[str] = Counter()
        self.names: list[tuple[bytes, bytes]] = []
        self.values: list[float] = []
        self.indptr = [0]
        self.labels: list[float] = []
        self.importance: list[float] = []
        self.lines: list[int] = []

    def add(self, item: Any, line: int) -> None:
        """Add an example; if it is malformed, raise and leave no trace of it."""
        start, columns, words = len(self.names), self.columns, Counter(self.words) if self.words else None
        try:
            if not isinstance(item, Mapping):
                raise _Wrong(None, type(item).__name__, "a dict of features" + _instead_of(item))
            label = item.get(columns.label)
            wanted = getattr(label, "expected", "a number")
            label = np.nan if is_null(label) else _number(columns.label, label, np.nan, wanted)
            importance = _number(columns.importance, item.get(columns.importance), 1.0, "a number")
            if importance < 0:
                raise _Wrong(columns.importance, importance, "an importance of at least 0")
            for key, given in item.items():
                plain = type(given) in NEVER_NULL
                value = None if not plain and is_null(given) else given
                if (not plain and isinstance(value, date)) or key in columns.dates:
                    self._add_date(key, value)
                elif columns.uses(key):
                    changed = _transformed(key, value, columns)
                    self._feature(b"", key, changed)
                    if key not in columns.kinds and key not in columns.options.text:
                        self._record_kind(key, changed)
                    if self.transform is not None:
                        kind = self.transform.kind(_bytes(key))
                        self.kinds += [kind] * (len(self.names) - len(self.kinds))
        except _Wrong:
            del self.names[start:], self.values[start:], self.kinds[start:]
            self.words = Counter() if words is None else words
            raise
        if self.unseen or columns.seen.keys is None:
            columns.seen.add_keys(found := [key for key in self.unseen if key in item])
            self.unseen -= set(found)
        self.indptr.append(len(self.names))
        self.labels.append(label)
        self.importance.append(importance)
        self.lines.append(line)

    def _feature(self, namespace: bytes, key: Any, value: Any) -> None:
        if not isinstance(key, str):
            raise _Wrong(None, f"the key {key!r}", "a string")
        name = _bytes(key)
        if isinstance(value, Mapping):
            within = namespace + b"^" + name if namespace else name
            for inner, content in value.items():
                self._feature(within, inner, None if is_null(content) else content)
        elif isinstance(value, str | list | tuple):
            within = namespace + b"^" + name if namespace else name
            for word in (value,) if isinstance(value, str) else value:
                if not isinstance(word, str):
                    raise _Wrong(key, f"{word!r} in a list", "a string; ignore (--ignore) leaves out the column")
                if word:
                    self.names.append((within, _bytes(word)))
                    self.values.append(1.0)
        elif value is not None:
            self.values.append(_number(key, value, 0.0))
            self.names.append((namespace, name))

    def _add_date(self, key: str, value: Any) -> None:
        """Add the features of a date."""
        if not self.columns.uses(key) or value is None:
            return
        if self.transform is not None:
            raise _Wrong(key, f"the date {value!r:.40}", "no dates with interactions; or ignore the key")
        order = self.columns.dates.get(key, "")
        try:
            found = date_features(value, order)
        except (ValueError, TypeError, OverflowError):
            if self.columns.strict:
                raise _Wrong(key, f"{type(value).__name__} {value!r:.40}", expected_date(key, order)) from None
            self.words[key] += 1
            return
        name = _bytes(key)
        self.names += [(name, part.encode()) if part else (b"", name) for part, _ in found]
        self.values += [number for _, number in found]
        if key not in self.columns.kinds:
            self.record_kind(key, DATE)

    def _record_kind(self, key: str, value: Any) -> None:
        """Record the kind of a key's value."""
        if isinstance(value, str):
            self.record_kind(key, "category")
            if sign_of(self.columns.known.get(key)) is not None:
                self.words[key] += 1
        elif isinstance(value, NUMERIC):
            self.record_kind(key, "number")

    def block(self, names: Names | None, problems: Problems, file: str) -> Block:
        """Return the rows as a block."""
        problems.words.update(self.words)
        hashes = hashes_of(self.names)
        columns = columns_of(self.names, hashes, self.columns) if self.columns.options.columns else None
        indptr, values, kinds = np.array(self.indptr), np.array(self.values, np.float32), np.array(self.kinds, np.int64)
        entries = Entries(indptr, hashes, values, kinds, self.names.__getitem__, columns)
        labels, importance = np.array(self.labels, np.float64), np.array(self.importance, np.float32)
        examples = Examples(labels, importance, np.array(self.lines, np.int64), problems, file)
        return block_of_entries(entries, examples, self.transform, self.columns.options.bits, names)


def hashes_of(names: list[tuple[bytes, bytes]]) -> NDArray[np.uint64]:
    """Return the hashes of names with their namespaces."""
    seeds = {space: hash_name(space) if space else START for space in {space for space, _ in names}}
    starts = np.array([seeds[space] for space, _ in names], np.uint64)
    return hash_names([name for _, name in names], starts)


def columns_of(names: list[tuple[bytes, bytes]], hashes: NDArray[np.uint64], columns: Columns) -> NDArray[np.int32]:
    """Return the slots of the columns of entries: those of their namespaces, -1 for text, or their own."""
    text = {_bytes(name) for name in columns.options.text}
    spaces = {space: hash_name(space) for space in {space for space, _ in names}}
    own = [spaces[space] if space else hashed for (space, _), hashed in zip(names, hashes.tolist(), strict=True)]
    slots = slots_of_hashes(np.array(own, np.uint64), columns.options.bits)
    slots[[space in text for space, _ in names]] = -1
    return slots


def _transformed(key: str, value: Any, columns: Columns) -> Any:
    """Return the transformed value of a key, the category that it stands for, or the tokens of text."""
    if key in columns.options.text and isinstance(value, str | int | float):
        return columns.options.text_features.tokens(value if isinstance(value, str) else category_of(value))
    kind = columns.kinds.get(key) or columns.known.get(key)
    if kind == "category" and isinstance(value, NUMERIC):
        return category_of(value)
    sign = sign_of(kind)
    if sign is not None and isinstance(value, str) and (key in columns.known or not columns.strict):
        with suppress(ValueError):  # other strings remain categories
            value = parse_number(_bytes(value), sign, columns.options.decimal)
        if isinstance(value, str):
            return value
    if value is None or columns.kinds.get(key) != "number":
        return value
    return float(signed_log1p(_number(key, value, 0.0, "a number, or null")))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _number(key: Any, value: Any, missing: float, expected: str = KINDS) -> float:
    if value is None:
        return missing
    if not isinstance(value, NUMERIC):
        kind = "str" if isinstance(value, str) else type(value).__name__
        raise _Wrong(key, f"{kind} {value!r:.40}", expected)
    if value != value:
        hint = "; where a value is missing, leave the key out or use null" if value is JSON_NAN else ""
        raise _Wrong(key, "nan", f"a number{hint}")
    if not -LARGEST <= value <= LARGEST:
        raise _Wrong(key, f"{value!r:.40}", "a number within the range of float32")
    return float(value)


def dict_blocks(
    items: Iterable[tuple[int, Any]], columns: Columns, problems: Problems, names: Names | None, file: str,
    kinds_found: dict[str, str],
) -> Iterator[Block]:  # fmt: skip
    """Yield blocks of numbered dicts; ``kinds_found`` receives the kinds of keys."""
    record_kind = partial(_record, kinds_found, columns)
    rows, most = DictRows(columns, record_kind), ENTRIES if columns.options.transform is None else CROSSED
    gathered = Problems("later")  # infinite sums of earlier rows are found once the block is complete
    for line, item in items:
        _add(rows, item, line, gathered, file)
        stopped = bool(gathered.waiting) and problems.on_error == "raise"
        if stopped or len(rows.names) + len(rows.labels) >= most:
            block = rows.block(names, gathered, file)
            problems.absorb(gathered)
            yield block
            rows, gathered = DictRows(columns, record_kind), Problems("later")
    last = [rows.block(names, gathered, file)] if rows.labels else []
    problems.absorb(gathered)
    yield from last


def _record(found: dict[str, str], columns: Columns, key: str, kind: str) -> None:
    """Record a key and the kind of its value."""
    if len(columns.seen.names) < MOST:
        columns.seen.names.add(key)
    add_kind(found, columns.known, key, kind)


def _add(rows: DictRows, item: Any, line: int, problems: Problems, file: str) -> None:
    try:
        rows.add(item, line)
    except _Wrong as wrong:
        key, got, expected = wrong.args
        problems.record(Malformed(file, line, key, got, expected))


def parse_row(
    text: bytes, line: int, columns: Columns, labels: LabelCodes, record_kind: Callable[[str, str], None],
    problems: Problems, file: str,
) -> DictRows:  # fmt: skip
    """Return the example of a line of JSON; no row if the line is blank or malformed."""
    rows = DictRows(columns, record_kind)
    for item in parse_objects(text, line, problems, file):
        _add(rows, labels.encode(item), line, problems, file)
    problems.words.update(rows.words)
    return rows


class JsonDicts:
    """The objects of JSON lines with their line numbers; the last value of a repeated key counts.

    ``complete`` is true while the last object of a chunk is in use: the next one may not have arrived yet.
    """

    def __init__(self, chunks: Iterable[Chunk], problems: Problems, file: str) -> None:
        self._chunks, self._problems, self._file = chunks, problems, file
        self.complete = False

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        line = 0
        for chunk in self._chunks:
            last = None
            for text in io.BytesIO(chunk.text.data[chunk.start : chunk.length]):  # the first lines may do
                line += 1
                for item in parse_objects(text[:-1], line, self._problems, self._file):
                    if last is not None:
                        yield last
                    last = line, item
            if last is not None:
                self.complete = True
                yield last
                self.complete = False


def parse_objects(text: bytes, line: int, problems: Problems, file: str) -> Iterator[Any]:
    """Yield what a line of JSON contains; nothing if the line is blank or malformed."""
    if not text.strip():
        return
    try:
        item = DECODER.decode(text.decode("utf-8"))
    except json.JSONDecodeError as wrong:
        got = excerpt(text.decode()[wrong.pos :].encode().split(b" ")[0].rstrip())
        problems.record(
            Malformed(
                file,
                line,
                wrong.colno,
                got,
                "one object, without a comma after it" if wrong.msg == "Extra data" else f"JSON ({wrong.msg})",
            )
        )
    except UnicodeDecodeError as wrong:
        got = excerpt(text[wrong.start : wrong.end])
        problems.record(Malformed(file, line, wrong.start + 1, got, f"UTF-8; {OTHER_ENCODING}"))
    except (ValueError, RecursionError) as wrong:
        problems.record(Malformed(file, line, 1, f"what Python refuses ({wrong})", "JSON of a reasonable size"))
    else:
        yield item


def _instead_of(item: Any) -> str:
    """Return what to use for an item that is not a dict."""
    if hasattr(item, "columns"):
        return "; give one frame, such as pandas.concat(frames)"
    if isinstance(item, tuple) and item and isinstance(item[0], Mapping):
        return "; labels are values of a key, such as {**x, 'y': y} with label='y'"
    if hasattr(item, "to_dict"):
        return "; its to_dict() is one"
    return "; rows of numbers are a numpy array X, or (X, y)" if isinstance(item, list | tuple) else ""


STRINGS = frozenset((str, type(None)))
STRING, NUMBER = 1, 2
TYPES = {type(None): 0, str: STRING, **dict.fromkeys((int, float, bool, np.float64), NUMBER)}


class _Unlike(Exception):
    """Values that are read key by key: they may be malformed, nested, or of other types."""


def batched_blocks(
    items: Iterable[tuple[int, Any]], columns: Columns, problems: Problems, names: Names | None, file: str,
    kinds_found: dict[str, str], complete: Callable[[], bool] = lambda: False,
) -> Iterator[Block]:  # fmt: skip
    """Yield blocks of numbered dicts, with the rows of :func:`dict_blocks`; ``kinds_found`` receives kinds of keys.

    A block ends with the dict during which ``complete`` returns True.
    """
    for batch in _batches(items, ENTRIES if columns.options.transform is None else CROSSED, complete):
        lines, dicts = zip(*batch, strict=True)
        found = Problems("later")
        try:
            derived, others = _derived(dicts, columns)
            batch_values = _Batch(others, columns)
            block = batch_values.block(np.array(lines, np.int64), names, found, file)
            if derived:
                row_problems = RowProblems(np.array(lines, np.int64), found, file)
                block = with_derived(block, derived, columns, row_problems, names)
        except _Unlike:
            pass
        else:
            if not found.waiting:
                problems.absorb(found)
                batch_values.record_kinds(kinds_found)
                _record_dates(derived, columns, kinds_found)
                yield block
                continue
        yield from dict_blocks(batch, columns, problems, names, file, kinds_found)


class _Batch:
    """The values of some dicts in the order of their keys, without those of keys that are no features.

    Parameters
    ----------
    dicts : of strings as keys, and values of plain types
    columns : roles of keys
    """

    def __init__(self, dicts: Sequence[Any], columns: Columns) -> None:
        if not all(type(one) is dict for one in dicts):
            raise _Unlike
        self.columns = columns
        sizes = list(map(len, dicts))
        keys = list(chain.from_iterable(dicts))
        self.values = list(chain.from_iterable(map(dict.values, dicts)))
        self.keys = list(dict.fromkeys(keys))
        if not all(type(key) is str for key in self.keys) or set(map(type, self.values)) - TYPES.keys():
            raise _Unlike
        numbers = {key: number for number, key in enumerate(self.keys)}
        self.ids = np.fromiter(map(numbers.__getitem__, keys), np.int64, len(keys))
        rows = np.repeat(np.arange(len(dicts)), sizes)
        self.labels, importance = np.full(len(dicts), np.nan), np.ones(len(dicts))
        for name, array in ((columns.label, self.labels), (columns.importance, importance)):
            at = np.flatnonzero(self.ids == numbers[name]).tolist() if name in numbers else []
            at = [k for k in at if self.values[k] is not None]
            given = [self.values[k] for k in at]
            if str in set(map(type, given)):
                raise _Unlike
            array[rows[at]] = _floats(given)
        if np.isnan(importance).any() or (importance < 0).any():
            raise _Unlike
        self.importance = importance.astype(np.float32)
        self._change(numbers)
        types = np.frombuffer(bytes(map(TYPES.__getitem__, map(type, self.values))), np.uint8)
        used = np.array([columns.uses(key) for key in self.keys], bool)[self.ids]
        self.strings, there = (types == STRING) & used, (types == NUMBER) & used
        self.words = list(compress(self.values, self.strings.tobytes()))
        self.floats = _floats(list(compress(self.values, there.tobytes())))
        there[there] = ~np.isnan(self.floats)
        self.floats = self.floats[~np.isnan(self.floats)]
        valued = self.strings | there
        self.kinds = np.flatnonzero(np.bincount(2 * self.ids[valued] + self.strings[valued]))
        if not all(self.words):
            self.strings[self.strings] = list(map(bool, self.words))
            self.words = list(filter(None, self.words))
        self.kept = np.flatnonzero(self.strings | there)
        self.indptr = np.append(0, np.cumsum(np.bincount(rows[self.kept], minlength=len(dicts))))

    def _change(self, numbers: dict[str, int]) -> None:
        """Replace numbers by categories, or their logarithms, as the options have it."""
        columns = self.columns
        for key, number in numbers.items():
            kind = columns.kinds.get(key) or columns.known.get(key)
            if (kind != "category" and sign_of(kind) is None) or not columns.uses(key):
                continue
            at = [k for k in np.flatnonzero(self.ids == number).tolist() if self.values[k] is not None]
            given = [self.values[k] for k in at]
            if kind == "category":
                changed: Sequence[Any] = [one if type(one) is str else _category(one) for one in given]
            elif str in set(map(type, given)):
                raise _Unlike
            elif key in columns.log:
                changed = [None if one != one else float(signed_log1p(one)) for one in _floats(given).tolist()]
            else:
                continue
            for k, value in zip(at, changed, strict=True):
                self.values[k] = value

    def block(
        self, lines: NDArray[np.int64], names: Names | None, problems: Problems, file: str
    ) -> Block:  # fmt: skip
        """Return the rows as a block."""
        options, ids, strings = self.columns.options, self.ids[self.kept], self.strings[self.kept]
        encoded = [key.encode("utf-8", "surrogatepass") for key in self.keys]
        as_number = np.array([hash_name(key) for key in encoded], np.uint64)
        as_namespace = np.array([hash_name(key) if key else START for key in encoded], np.uint64)
        hashes, values = as_number[ids], np.ones(ids.size, np.float32)
        hashes[strings], values[~strings] = _hashes(self.words, as_namespace[ids[strings]]), self.floats

        def word(k: int) -> tuple[bytes, bytes]:
            key, value = encoded[ids[k]], self.values[self.kept[k]]
            return (key, value.encode("utf-8", "surrogatepass")) if strings[k] else (b"", key)

        seen = self.columns.named.keys() & set(self.keys)
        self.columns.seen.add_keys(seen)
        transform, bits = options.transform, options.bits
        kinds = None if transform is None else np.array([transform.kind(key) for key in encoded], np.int64)[ids]
        columns = slots_of_hashes(as_number[ids], bits) if options.columns else None
        entries = Entries(self.indptr, hashes, values, kinds, word, columns)
        examples = Examples(self.labels, self.importance, lines, problems, file)
        return block_of_entries(entries, examples, transform, bits, names)

    def record_kinds(self, kinds_found: dict[str, str]) -> None:
        """Record the kinds of the values of each feature."""
        columns = self.columns
        for number in self.kinds.tolist():
            key, kind = self.keys[number // 2], "category" if number % 2 else "number"
            if key not in columns.kinds:
                _record(kinds_found, columns, key, kind)


def _category(number: Any) -> str | None:
    return None if number != number else category_of(number)


def _floats(values: Sequence[Any]) -> NDArray[np.float64]:
    """Return numbers as doubles; none may be a string, or out of the range of float32."""
    try:
        found = np.array(values, np.float64)
    except (ValueError, OverflowError):
        raise _Unlike from None
    if (np.abs(found) > LARGEST).any():
        raise _Unlike
    return found


def _hashes(words: Sequence[str], starts: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the hashes of words, each with that of its namespace."""
    joined = "".join(words)
    text = joined.encode("utf-8", "surrogatepass")
    parts: Sequence[Any] = words if len(text) == len(joined) else [w.encode("utf-8", "surrogatepass") for w in words]
    ends = np.zeros(len(words) + 1, np.int64)
    np.cumsum(list(map(len, parts)), out=ends[1:])
    return hash_spans(np.frombuffer(text or b"\0", np.uint8), ends[:-1], ends[1:], starts)


def _record_dates(derived: dict[str, StringColumn], columns: Columns, kinds_found: dict[str, str]) -> None:
    columns.seen.add_keys([name for name, column in derived.items() if column.present.any()])
    for name, column in derived.items():
        if name not in columns.kinds and name in columns.dates and bool(column.present.any()):
            _record(kinds_found, columns, name, DATE)


def _derived(dicts: Sequence[Any], columns: Columns) -> tuple[dict[str, StringColumn], Sequence[Any]]:
    """Return the strings of keys of text and dates, and dicts without these."""
    strings = dict[str, StringColumn]()
    for name in sorted(filter(columns.uses, columns.derived)):
        values: list[Any] = [one.get(name) if isinstance(one, dict) else 0 for one in dicts]
        values = [None if is_null(value) else value for value in values]
        if not STRINGS.issuperset(map(type, values)):
            raise _Unlike
        try:
            texts = [b"" if value is None else value.encode() for value in values]
        except UnicodeEncodeError:
            raise _Unlike from None
        ends = np.cumsum([0, *map(len, texts)])
        joined = np.frombuffer(b"".join(texts) + bytes(PAD), np.uint8)
        present = np.array([value is not None for value in values], bool)
        strings[name] = StringColumn(Spans(joined, ends[:-1], ends[1:]), present)
    if not strings:
        return strings, dicts
    return strings, [{key: value for key, value in one.items() if key not in strings} for one in dicts]


def _batches(
    items: Iterable[tuple[int, Any]], entries: int, complete: Callable[[], bool]
) -> Iterator[list[tuple[int, Any]]]:
    """Yield lists of dicts with about ``entries`` keys, or as many as have arrived."""
    batch, size = list[tuple[int, Any]](), 0
    for numbered in items:
        batch.append(numbered)
        size += 1 + (len(numbered[1]) if isinstance(numbered[1], dict) else 0)
        if size >= entries or complete():
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
