"""Dicts in batches: the same rows, names, kinds and problems as key by key, for all values."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from forel.data import concatenate
from forel.data.options import ReadOptions
from forel.data.parsers import dicts
from forel.data.parsers.columns import Columns
from forel.data.parsers.dicts import batched_blocks, dict_blocks
from forel.data.problems import Problems
from forel.data.reader import names_for

OPTIONS = (
    {"label": "y"},
    {"label": "y", "importance": "w", "names": True},
    {"label": "y", "keep": ["city", "n"], "categories": ["n"]},
    {"label": "y", "log": ["n"], "names": True},
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
    for batched in (True, False):
        chosen = ReadOptions(bits=8, on_error="skip", **options)
        problems, names, kinds = Problems("skip"), names_for(chosen), {}
        columns, items = Columns(chosen, chosen.kinds), enumerate(rows, 1)
        if batched:
            blocks = list(batched_blocks(items, columns, problems, names, "dicts", kinds))
        else:
            blocks = list(dict_blocks(items, columns, problems, names, "dicts", kinds))
        results.append((*contents(blocks, names, kinds, problems), sorted(columns.seen.names)))
    return results


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@given(rows=rows_of(PLAIN), odd=rows_of(st.one_of(PLAIN, ODD), st.one_of(KEYS, st.integers(0, 3))))
@example(rows=[{"w": -1e-286}], odd=[])  # an importance that float32 rounds to -0
@example(rows=[{"n": 4147, "city": 8.3e34}], odd=[{0: []}])  # a product that overflows before a wrong key
@settings(max_examples=60)
def test_rows_are_the_same_as_key_by_key(options, rows, odd):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dicts, "ENTRIES", 15)
        patch.setattr(dicts, "CROSSED", 15)
        fast, slow = read_in_all_ways([*rows, *odd], options)
    assert fast == slow


def test_plain_dicts_are_not_read_key_by_key(monkeypatch):
    rows = [{"y": k % 2, "n": k / 7, "city": f"c{k % 5}"} for k in range(50)]
    monkeypatch.delattr(dicts, "dict_blocks")
    chosen = ReadOptions(bits=8, label="y")
    blocks = list(batched_blocks(enumerate(rows, 1), Columns(chosen), Problems(), None, "dicts", {}))
    assert sum(map(len, blocks)) == 50
