"""More than 2**31 slots: every format gives the last bits of 64-bit hashes, as int64 above 31 bits and int32 below."""

import io
import json
import os
import re
import subprocess
import sys
from contextlib import ExitStack

import numpy as np
import pytest

from forel import Settings, train, validation
from forel.data import Block, Names, ReadOptions, concatenate, cross_slot, pieces, read
from forel.data.block import index_dtype
from forel.data.convert import convert
from forel.data.features.dates import date_features
from forel.data.pieces import ordered_pieces, read_piece
from forel.data.sources.row_cache import CacheWriter
from forel.learner import rows as learner_rows
from forel.training.row_cache import write_cache
from forel.training.shuffle import ShuffledRows
from reference_parsers import full_hash

SIZES = (20, 31, 32, 33, 40)
PLACES = [(b"city", b"Rome"), (b"", b"price"), (b"device", b"old phone")], [(b"city", b"Oslo"), (b"", b"price")]
VALUES = [1, 3.5, 1], [1, 2]
LINES = "1 |city Rome | price:3.5 |u a b:2 a:1 c\n0 |city Oslo | price:2\n"
DATE = "2024-01-31 13:45"

# Reads each source uncompiled, and prints rows and the dtypes of all arrays that compiled functions take.
CHILD = """
import io, json
import numpy as np, pandas, pyarrow as pa, pyarrow.parquet as pq
from scipy import sparse
from forel.data import concatenate, read, scanners
from forel.data.features.ranges import ColumnRanges, Outside

calls, function = set(), scanners.compiled_function

def recorded(module, name):
    found = function(module, name)
    def call(*arguments):
        kinds = [str(one.dtype) if isinstance(one, np.ndarray) else type(one).__name__ for one in arguments]
        calls.add((found.name, *kinds))
        return found(*arguments)
    call.cached = lambda *arguments: True  # small amounts of work are done by the same functions as large ones
    return call

scanners.compiled_function = recorded
DICTS = [{"y": 1, "city": "Rome", "price": 3.5, "device": "old phone"}, {"y": 0, "city": "Oslo", "price": 2.0}]
CSV = "y,city,price,device\\n1,Rome,3.5,old phone\\n0,Oslo,2,\\n"
TABLE = pa.Table.from_pylist(DICTS)
CODED = pa.table({n: c.dictionary_encode() if c.type == pa.string() else c for n, c in zip(TABLE.column_names, TABLE)})

def parquet():
    file = io.BytesIO()
    pq.write_table(TABLE, file)
    return io.BytesIO(file.getvalue())

def text(content):
    return lambda: io.BytesIO(content.encode())

JSON = "\\n".join(map(json.dumps, DICTS)) + "\\n"
dates = [{"when": DATE, "words": "Free entry now"}]
CASES = {
    "vw": (text(LINES), dict(format="vw")),
    "vw with names apart": (text(LINES), dict(format="vw", entry_names=True)),
    "vw sequences": (text("1 |t a b c\\n"), dict(format="vw", ngram=2)),
    "vw crosses": (text(LINES), dict(format="vw", interactions=["cu", "ccu"])),
    "vw constant": (text(LINES), dict(format="vw", constant=True)),
    "svmlight": (text(IDS), dict(format="svmlight")),
    "csv": (text(CSV), dict(format="csv", label="y")),
    "csv crosses": (text(CSV), dict(format="csv", label="y", interactions=["city*device"])),
    "csv buckets": (text("y,price\\n1,3.5\\n"), dict(format="csv", label="y", bucket=["price"])),
    "csv words among numbers": (text("price\\n3.5\\nold\\n"), dict(format="csv", strict=False)),
    "csv text": (text(f"when,words\\n{DATE},Free entry now\\n"),
                 dict(format="csv", text=["words"], ngram=2, date=["when"])),
    "tsv": (text(CSV.replace(",", "\\t")), dict(format="tsv", label="y")),
    "json": (text(JSON), dict(format="jsonl", label="y")),
    "json crosses": (text(JSON), dict(format="jsonl", label="y", interactions=["city*device"])),
    "json buckets": (text('{"price": 3.5}\\n'), dict(format="jsonl", bucket=["price"])),
    "json in another form": (text('{"city":"Rome","price":3.5,"device":["old phone"]}\\n{"city":"Oslo","price":2}\\n'),
                             dict(format="jsonl")),
    "dicts": (lambda: DICTS, dict(label="y")),
    "dicts one at a time": (lambda: [{**one, "none": ()} for one in DICTS], dict(label="y")),
    "dicts with text": (lambda: dates, dict(text=["words"], ngram=2, date=["when"])),
    "arrow": (lambda: TABLE, dict(label="y")),
    "arrow dictionaries": (lambda: CODED, dict(label="y")),
    "arrow crosses": (lambda: TABLE, dict(label="y", interactions=["city*device"])),
    "arrow buckets": (lambda: pa.table({"price": [3.5]}), dict(bucket=["price"])),
    "arrow text": (lambda: pa.Table.from_pylist(dates), dict(text=["words"], ngram=2, date=["when"])),
    "parquet": (parquet, dict(label="y")),
    "frame": (lambda: pandas.DataFrame(DICTS), dict(label="y")),
    "array": (lambda: (np.array([[2.0, 3.0]]), [1]), {}),
    "sparse array": (lambda: (sparse.csr_array([[2.0, 3.0]]), [1]), {}),
}
found = {}
for name, (source, options) in CASES.items():
    for bits in SIZES:
        calls.clear()
        block = concatenate(read(source(), bits=bits, **options))
        ranges, outside = ColumnRanges(bits), Outside({"price": (0.0, 3.0)}, bits)
        ranges.add(block, ["price"])
        outside.add(block)
        rows = [block.indices[a:b].tolist() for a, b in zip(block.indptr, block.indptr[1:])]
        found.setdefault(name, {})[bits] = {
            "dtype": str(block.indices.dtype), "rows": rows, "values": block.values.tolist(),
            "ranges": ranges.pack(), "outside": outside.found, "calls": sorted(map(list, calls)),
        }
print(json.dumps(found))
"""
IDS = f"1 5:1 {2**31}:2 {2**33 - 1}:3\n0 {2**31 + 7}:1 5:1\n"


@pytest.fixture(scope="module")
def found():
    settings = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    given = f"SIZES, LINES, IDS, DATE = {SIZES}, {LINES!r}, {IDS!r}, {DATE!r}\n"
    line = [sys.executable, "-c", given + CHILD]
    done = subprocess.run(line, capture_output=True, text=True, env=settings, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def hashes(*names):
    return [full_hash(namespace, name) for namespace, name in names]


def crossed(*features):
    return [cross_slot(*((name, namespace) for namespace, name in term), bits=64) for term in features]


CITY, PRICE, DEVICE = PLACES[0]
PAIR = [[*hashes(*PLACES[0]), *crossed((CITY, DEVICE))], hashes(*PLACES[1])]
PLAIN = [hashes(*row) for row in PLACES]
A, B, C = ((b"u", name) for name in (b"a", b"b", b"c"))
VW = [hashes(CITY, PRICE, A, B, C), hashes(*PLACES[1])]
WORDS = [(b"words", word) for word in (b"free", b"free entry", b"entry", b"entry now", b"now")]
WHEN = [(b"when", part.encode()) if part else (b"", b"when") for part, _ in date_features(DATE)]
DERIVED = [hashes(*WORDS, *WHEN)]
BUCKET = [hashes((b"price", b"2..4"))]
COLUMNS = [hashes((b"", b"c1"), (b"", b"c2"))]
EXPECTED = {
    "vw": VW,
    "vw with names apart": [hashes(CITY, PRICE, A, B, A, C), hashes(*PLACES[1])],
    "vw sequences": [hashes(*((b"t", name) for name in (b"a", b"b", b"c", b"a b", b"b c")))],
    "vw crosses": [
        [
            *VW[0],
            *crossed(*((CITY, one) for one in (A, B, C))),
            *crossed(*((CITY, CITY, one) for one in (A, B, C))),
        ],
        VW[1],
    ],
    "vw constant": [[*row, *hashes((b"", b"Constant"))] for row in VW],
    **dict.fromkeys(("csv", "tsv", "json", "json in another form", "dicts", "dicts one at a time"), PLAIN),
    **dict.fromkeys(("arrow", "arrow dictionaries", "parquet", "frame"), PLAIN),
    **dict.fromkeys(("csv crosses", "json crosses", "arrow crosses"), PAIR),
    **dict.fromkeys(("csv buckets", "json buckets", "arrow buckets"), BUCKET),
    "csv words among numbers": [hashes(PRICE), hashes((b"price", b"old"))],
    **dict.fromkeys(("csv text", "dicts with text", "arrow text"), DERIVED),
    **dict.fromkeys(("array", "sparse array"), COLUMNS),
}


def test_every_format_gives_the_last_bits_of_64_bit_hashes(found):
    assert found.keys() == EXPECTED.keys() | {"svmlight"}
    for name, rows in EXPECTED.items():
        for bits in SIZES:
            wanted = [sorted(one & ((1 << bits) - 1) for one in row) for row in rows]
            assert [sorted(row) for row in found[name][str(bits)]["rows"]] == wanted, (name, bits)


def test_more_bits_change_nothing_but_the_slots(found):
    for name, sizes in found.items():
        if name == "svmlight":
            continue
        few = sizes["20"]
        for bits in SIZES:
            one = sizes[str(bits)]
            assert [[k & 0xFFFFF for k in row] for row in one["rows"]] == few["rows"], (name, bits)
            for what in ("values", "ranges", "outside"):
                assert one[what] == few[what], (name, bits, what)
    assert found["csv"]["33"]["ranges"] == {"price": [2.0, 3.5, 2, 5.5]}
    assert found["csv"]["33"]["outside"] == {"price": [1, 3.5]}


def test_svmlight_ids_below_the_number_of_slots_are_used_unchanged(found):
    for bits in (33, 40):
        assert found["svmlight"][str(bits)]["rows"] == [[5, 2**31, 2**33 - 1], [2**31 + 7, 5]]
    first, second = found["svmlight"]["32"]["rows"]
    assert (first[:2], second) == ([5, 2**31], [2**31 + 7, 5])  # 2**33 − 1 is hashed
    assert max(found["svmlight"]["31"]["rows"][0]) < 2**31


# The arguments of compiled functions that are arrays of slots.
SLOTS = {
    "vw.parse": (6,), "svmlight.parse": (6,), "merge.merge_rows": (1,), "merge.pack_rows": (0, 5),
    "csv_rows.hash_cells": (7,), "csv_numbers.fill_numbers": (5, 6), "hashing.fill_spans": (6,),
    "hashing.fill_codes": (1, 4), "crosses.cross": (10,), "text.join_rows": (1, 5, 8), "ranges.add_ranges": (0, 2),
    "ranges.count_outside": (0, 2),
}  # fmt: skip


def test_slots_are_int32_up_to_31_bits_and_no_other_code_is_compiled_for_them(found):
    seen = set()
    for name, sizes in found.items():
        for bits in SIZES:
            dtype, calls = sizes[str(bits)]["dtype"], sizes[str(bits)]["calls"]
            assert dtype == ("int32" if bits <= 31 else "int64"), (name, bits)
            for function, *arguments in calls:
                assert {arguments[k] for k in SLOTS.get(function, ())} <= {dtype}, (name, bits, function)
                seen.add(function)
            others = [[a for k, a in enumerate(one) if k - 1 not in SLOTS.get(one[0], ())] for one in calls]
            if bits == SIZES[0]:
                first = others
            assert others == first, (name, bits)  # no other argument depends on the number of bits
    assert seen >= SLOTS.keys()


def test_the_learner_has_indices_of_the_same_dtype():
    for bits in range(1, 41):
        # The bias is one more coordinate, so that 2**31 − 1 features and it fit into int32.
        assert index_dtype(bits) == learner_rows.index_dtype((1 << bits) - 1)


@pytest.fixture
def wide(tmp_path):
    path = tmp_path / "clicks.vw"
    path.write_text("".join(f"{k % 2} |city c{k % 9} |user u{k} | price:{k % 5}\n" for k in range(300)))
    return path, concatenate(read(path, bits=33, block_bytes=1000))


def test_compiled_code_agrees_with_the_reference(wide):
    path, block = wide
    rows = [hashes((b"city", b"c%d" % (k % 9)), (b"user", b"u%d" % k), (b"", b"price")) for k in range(300)]
    assert block.indices.dtype == np.int64
    assert block.indices.tolist() == [one & (2**33 - 1) for row in rows for one in row]
    few = concatenate(read(path, bits=20))
    assert (block.indices & (2**20 - 1)).tolist() == few.indices.tolist()
    assert block.matrix(2**33).tocoo().col.tolist() == block.indices.tolist()


def test_a_cache_gives_the_same_rows(wide, tmp_path):
    path, block = wide
    cache = write_cache(path, tmp_path / "rows.cache", bits=33, block_bytes=1000)
    assert len(cache) > 1
    again = concatenate(read(tmp_path / "rows.cache", bits=33))
    for name in ("indptr", "indices", "values", "labels"):
        one, other = getattr(again, name), getattr(block, name)
        assert (one.dtype, one.tobytes()) == (other.dtype, other.tobytes()), name
    with pytest.raises(ValueError, match=r"bits: got 31, expected 33, as .*rows\.cache was made with"):
        list(read(tmp_path / "rows.cache", bits=31))


def test_the_cache_of_31_bits_has_the_bytes_of_earlier_versions(wide, tmp_path):
    path, _ = wide
    write_cache(path, tmp_path / "rows.cache", bits=31)
    block = concatenate(read(path, bits=31))
    parts = (block.indptr, block.indices, block.values, block.labels, block.importance)
    assert [part.dtype.itemsize for part in parts] == [8, 4, 4, 4, 4]
    assert (tmp_path / "rows.cache").read_bytes()[16:].startswith(b"".join(part.tobytes() for part in parts))


@pytest.mark.parametrize("bits", [31, 33, 41])
def test_a_cache_of_too_many_bits_or_whose_slots_do_not_match_them_is_refused(tmp_path, bits):
    indices = np.array([1, 4, 0], np.int32 if bits == 33 else np.int64)
    block = Block(np.array([0, 2, 3]), indices, np.float32([1, 2, 3]), np.float32([0, 1]))
    with (tmp_path / "c.cache").open("wb") as file:
        writer = CacheWriter(file, {"options": {"bits": bits}, "sources": None})
        writer.add(block)
        writer.close(read([]).problems)
    with pytest.raises(ValueError, match=r"c\.cache, line 1: got .*, expected a whole cache"):
        list(read(tmp_path / "c.cache", bits=min(bits, 40)))


def test_pieces_and_shuffled_rows_keep_the_slots(wide, monkeypatch):
    class Workers:
        number = 2

        def read(self, piece):
            return Results(read_piece(piece))

    class Results(list):
        done = True

        def close(self):
            self.clear()

    path, block = wide
    monkeypatch.setattr(pieces, "PIECE", 1000)
    together = concatenate(ordered_pieces(read(str(path), bits=33), Workers()))
    assert together.indices.dtype == np.int64
    assert together.indices.tobytes() == block.indices.tobytes()
    with ExitStack() as stack:
        mixed = concatenate(ShuffledRows([block], stack, seed=1).blocks(1))
    assert mixed.indices.dtype == np.int64
    assert sorted(mixed.indices.tolist()) == sorted(block.indices.tolist())
    assert mixed.indices.tolist() != block.indices.tolist()


def test_converting_keeps_the_slots(wide, tmp_path):
    path, block = wide
    convert(path, tmp_path / "clicks.svm", bits=33)
    again = concatenate(read(tmp_path / "clicks.svm", bits=33))
    assert again.indices.dtype == np.int64
    assert np.sort(again.indices).tolist() == np.sort(block.indices).tolist()


def test_converting_keeps_large_ids_if_there_are_enough_bits(tmp_path):
    (tmp_path / "a.svm").write_text(f"1 {2**33 - 1}:2\n")
    for bits, kept in ((None, False), (33, True)):
        convert(tmp_path / "a.svm", tmp_path / "a.vw", bits=bits)
        assert ((tmp_path / "a.vw").read_text() == f"1 | {2**33 - 1}:2\n") == kept


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (lambda: ReadOptions(bits=41), "bits: got 41, expected 1 to 40"),
        (
            lambda: ReadOptions(bits=33, names=True),
            "names: got True, expected False for more than 31 bits: their table has an element for each slot; "
            "use bits=31, or forel.data.slot, which returns the slot of a name",
        ),
        (lambda: Names(32), "names: got True, expected False for more than 31 bits"),
        (
            lambda: train(io.BytesIO(b"1 |a b\n"), bits=33, min_count=3),
            "min_count: got 3, expected none for more than 31 bits: there is a count for each slot; use bits=31",
        ),
        (
            lambda: train(io.BytesIO(b"1 |a b\n"), bits=33, include_probability=0.5),
            "include_probability: got 0.5, expected none for more than 31 bits",
        ),
        (lambda: train([{"a": "b", "y": 1}], bits=33, label="y", by="a"), "bits: got 33, expected at most 31 with by"),
    ],
)
def test_what_has_an_element_for_each_slot_is_refused(action, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        action()


def test_training_on_one_machine_says_how_much_memory_it_would_need(monkeypatch):
    monkeypatch.setattr(validation, "total_memory", lambda: 16e9)
    needed = "features: got 8,589,934,592 in 1 lane, which need 68.7 GB of memory, expected at most the 16.0 GB"
    with pytest.raises(MemoryError, match=f"^{re.escape(needed)}.*; use fewer bits"):
        train(io.BytesIO(b"1 |a b\n"), Settings(alpha=0.1), bits=33)
