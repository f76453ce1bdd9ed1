"""Dicts as JSON lines: the same rows, names, kinds and problems as key by key, for all values."""

import math
import sys

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from forel.data import concatenate
from forel.data.options import ReadOptions
from forel.data.parsers import dict_batches
from forel.data.parsers.columns import Columns
from forel.data.parsers.dict_batches import batched_blocks, fast_encoder, json_lines_of
from forel.data.parsers.dicts import dict_blocks
from forel.data.parsers.json_lines import JsonFormat
from forel.data.problems import Problems
from forel.data.reader import names_for

OPTIONS = (
    {"label": "y"},
    {"label": "y", "importance": "w", "names": True},
    {"label": "y", "keep": ["city", "n"], "categories": ["n"]},
    {"label": "y", "log": ["n"], "bucket": ["w:2"], "names": True},
    {"label": "y", "interactions": ["city*n"], "kinds": {"city": "number", "w": "either"}},
    {"label": "y", "kinds": {"city": "number", "n": "number"}, "strict": False},
)
PLAIN = st.one_of(
    st.integers(-(2**70), 2**70),
    st.floats(-1e38, 1e38),
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(np.float64),
    st.booleans(),
    st.none(),
    st.text(max_size=6),
    st.sampled_from(["Rome", "3.5", "é", '"\\\n', "\ud800", ""]),
)
ODD = st.one_of(
    st.sampled_from(
        [math.nan, math.inf, 1e39, -(10**400), np.float32(0.1), np.int64(3), np.bool_(True), b"x", 1j, {3: 1}]
    ),
    st.lists(st.text(max_size=3), max_size=3),
    st.dictionaries(st.text(max_size=3), PLAIN, max_size=2),
)
KEYS = st.sampled_from(["y", "w", "n", "city", "flag", "é", ""])


def rows_of(values, keys=KEYS):
    return st.lists(st.dictionaries(keys, values, max_size=6), max_size=12)


def contents(blocks, names, kinds, problems):
    """Return everything that reading dicts results in."""
    arrays = ()
    if blocks:
        block = concatenate(blocks)
        arrays = tuple(a.tobytes() for a in (block.indptr, block.indices, block.values, block.labels, block.importance))
        arrays += (block.lines.tolist(),)
    kept = None if names is None else [part.tolist() if hasattr(part, "tolist") else part for part in names.pack()]
    return arrays, kept, kinds, problems.count, problems.messages, problems.words


def read_in_all_ways(rows, options):
    results = []
    for compiled, encoder in ((True, fast_encoder()), (True, None), (False, None)):
        chosen = ReadOptions(bits=8, on_error="skip", **options)
        problems, names, kinds = Problems("skip"), names_for(chosen), {}
        columns, items = Columns(chosen, chosen.kinds), enumerate(rows, 1)
        form = JsonFormat(columns, chosen.bits, chosen.transform)
        if compiled:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(dict_batches, "fast_encoder", lambda encoder=encoder: encoder)
                blocks = list(batched_blocks(items, form, problems, names, "dicts", kinds))
        else:
            blocks = list(dict_blocks(items, columns, 8, problems, names, "dicts", chosen.transform, kinds))
        results.append((*contents(blocks, names, kinds, problems), sorted(columns.seen.names)))
    return results


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@given(rows=rows_of(PLAIN), odd=rows_of(st.one_of(PLAIN, ODD), st.one_of(KEYS, st.integers(0, 3))))
@example(rows=[{"w": -1e-286}], odd=[])  # an importance that float32 rounds to -0
@example(rows=[{"n": 4147, "city": 8.3e34}], odd=[{0: []}])  # a product that overflows before a wrong key
@settings(max_examples=60)
def test_rows_are_the_same_as_key_by_key(options, rows, odd):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dict_batches, "ENTRIES", 15)
        patch.setattr(dict_batches, "CROSSED", 15)
        fast, plain, slow = read_in_all_ways([*rows, *odd], options)
    assert plain == slow
    assert fast == slow


def test_plain_dicts_are_read_by_compiled_code(monkeypatch):
    rows = [{"y": k % 2, "n": k / 7, "city": f"c{k % 5}"} for k in range(50)]
    monkeypatch.delattr(dict_batches, "dict_blocks")
    chosen = ReadOptions(bits=8, label="y")
    form = JsonFormat(Columns(chosen), 8)
    blocks = list(batched_blocks(enumerate(rows, 1), form, Problems(), None, "dicts", {}))
    assert sum(map(len, blocks)) == 50


@pytest.mark.parametrize("encoder", [True, False])
@pytest.mark.parametrize("value", [np.float32(1), [1], {"a": 1}, math.inf, "\ud800", 1j])
def test_other_values_are_left_to_python(value, encoder, monkeypatch):
    if not encoder:
        monkeypatch.setattr(dict_batches, "fast_encoder", lambda: None)
    assert json_lines_of([{"a": 1}]) == b'{"a":1}\n'
    assert json_lines_of([{"a": 1}, {"a": value}]) is None
    assert json_lines_of([{value if isinstance(value, complex) else 3: 1}]) is None


@pytest.mark.parametrize("encoder", [True, False])
def test_nan_is_null(encoder, monkeypatch):
    if not encoder:
        monkeypatch.setattr(dict_batches, "fast_encoder", lambda: None)
    rows = ({"a": math.nan, "b": None, "c": ":null"}, {"a": np.float64("nan"), "b": 2})
    assert json_lines_of(rows) == b'{"a":null,"b":null,"c":":null"}\n{"a":null,"b":2}\n'
    assert json_lines_of(rows, importance="b") == json_lines_of(rows)
    assert json_lines_of(rows[:1], importance="a") is None
    assert json_lines_of([{"a": math.nan, "b": math.inf}]) is None


def test_msgspec_encodes_dicts_without_infinite_numbers():
    pytest.importorskip("msgspec")
    encode = fast_encoder()
    assert encode([{"a": 1.5, "b": None}, {"c": "é"}]) == '{"a":1.5,"b":null}\n{"c":"é"}\n'.encode()
    assert encode([{"a": None, "b": math.nan}]) == b'{"a":null,"b":null}\n'
    assert encode([{"a": None, "b": math.nan}], "b") is None
    assert encode([{"a": None, "b": math.inf}]) is None
    assert encode([{"a": np.float64(1)}]) is None


def test_dicts_are_encoded_by_python_without_msgspec(monkeypatch):
    monkeypatch.setitem(sys.modules, "msgspec", None)
    assert fast_encoder.__wrapped__() is None
