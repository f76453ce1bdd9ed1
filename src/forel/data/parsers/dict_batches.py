"""Dicts of numbers and strings in batches: one array for all values of a batch. Other dicts are read key by key."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data.block import Block
from forel.data.compiled.layout import PAD
from forel.data.features.crosses import Entries, block_of_entries
from forel.data.features.hashing import START, hash_buffer, hash_name, slots_of_hashes
from forel.data.features.kinds import DATE, MOST, add_kind, sign_of
from forel.data.features.names import Names
from forel.data.features.rows import Examples
from forel.data.features.transforms import buckets, signed_log1p
from forel.data.parsers.cells import RowProblems, Spans
from forel.data.parsers.column_values import StringColumn
from forel.data.parsers.columns import Columns
from forel.data.parsers.derived_columns import with_derived
from forel.data.parsers.dicts import CROSSED, ENTRIES, LARGEST, dict_blocks
from forel.data.problems import Problems
from forel.data.values import category_of, is_null

__all__ = ["batched_blocks"]

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
        """Replace numbers by categories, their logarithms or buckets, as the options have it."""
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
            elif key in columns.buckets:
                found = _floats(given)
                if np.isnan(found).any():
                    raise _Unlike
                words, which = buckets(found, columns.buckets[key])
                changed = [words[k] for k in which.tolist()]
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
                if len(columns.seen.names) < MOST:
                    columns.seen.names.add(key)
                add_kind(kinds_found, columns.known, key, kind)


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
    return hash_buffer(np.frombuffer(text + bytes(1), np.uint8), ends, starts)


def _record_dates(derived: dict[str, StringColumn], columns: Columns, kinds_found: dict[str, str]) -> None:
    columns.seen.add_keys([name for name, column in derived.items() if column.present.any()])
    for name, column in derived.items():
        if name not in columns.kinds and name in columns.dates and bool(column.present.any()):
            columns.seen.names.add(name)
            add_kind(kinds_found, columns.known, name, DATE)


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
