"""JSON lines read by compiled code: the same blocks, names, kinds and problems as Python's own parser gives."""

import io
import json
import random
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forel import Settings, train
from forel.data import concatenate, read
from forel.data.features.kinds import OrderedKinds
from forel.data.labels import ClassNames
from forel.data.options import ReadOptions
from forel.data.parsers import json_lines
from forel.data.parsers.columns import Columns
from forel.data.parsers.dicts import JsonDicts, dict_blocks
from forel.data.parsers.label_codes import LabelCodes
from forel.data.pipeline import ordered_blocks
from forel.data.problems import Problems
from forel.data.reader import names_for
from forel.data.sources.streams import chunks

pytestmark = pytest.mark.filterwarnings("ignore:.*which no row has")
BITS = 9
OPTIONS = (
    {},
    {"label": "y"},
    {"label": "y", "importance": "w", "names": True},
    {"label": "y", "importance": "w", "ignore": ["in", "n"]},
    {"label": "y", "keep": ["city", "n", "tags"]},
    {"label": "n", "categories": ["y", "w", "city", "in"], "names": True},
    {"label": "y", "log": ["n"]},
    {"label": "y", "log": ["n", "w"], "names": True},
    {"label": "y", "interactions": ["ci", "city*tags", "n*w"], "log": ["w"]},
    {"label": "y", "interactions": ["city*in", "tags*in"], "names": True},
    {"label": "y", "entry_names": True, "log": ["w"]},
    {"label": "y", "kinds": {"city": "number", "n": "category", "w": "either"}},
    {"label": "y", "log": ["n"], "strict": False},
    {"label": "y", "importance": "y"},
    {"label": "city", "positive": "Rome 1"},
    {"label": "n", "positive": "-1"},
    {"label": "flag", "unlabelled": True},
    {"label": "city", "unlabelled": True},
    {"label": "city", "names": True},
    {"label": "n", "classes": "auto"},
    {"label": "y", "bits": 2, "names": True},
)
ROWS = [
    {
        "y": k % 2, "w": k + 0.5, "n": -0.25 * k, "city": f"Rome {k % 3}", "tags": ["a", f"b{k % 2}", ""],
        "in": {"x": k, "s": None, "deep": {"t": "u", "v": [f"w{k}"], "": 2}}, "flag": k % 3 == 0,
        "é": "\u00fc\n\U0001f600",
    }
    for k in range(7)
]  # fmt: skip
LINES = b"".join(json.dumps(row, ensure_ascii=k % 2 == 0).encode() + b"\n" for k, row in enumerate(ROWS))


def reference(data, size=1 << 20, **keywords):
    """Read JSON lines by Python's own parser; return a block, names, kinds and problems."""
    options = ReadOptions(**{"bits": BITS, **keywords})
    problems, names, kinds = Problems(options.on_error), names_for(options), {}
    columns = Columns(options, options.kinds)
    text = chunks(io.BytesIO(data), size, problems, "stream", limit=options.longest_line("jsonl"))
    items = JsonDicts(text, problems, "stream")
    labels = LabelCodes(columns)
    if columns.label is not None:
        items = labels.encode_all(items, kinds)
    block = concatenate(list(dict_blocks(items, columns, problems, names, "stream", kinds)))
    if labels.classes:
        block = replace(block, labels=ClassNames("auto").number(block.labels, tuple(labels.classes)))
    return block, names, {**options.kinds, **kinds}, problems


def bits_of(block):
    """Return all that a block contains, exactly."""
    arrays = (block.indptr, block.indices, block.values, block.labels, block.importance)
    lines = None if block.lines is None or not len(block) else block.lines.tolist()
    return [(a.dtype, a.tobytes()) for a in arrays], lines, block.entry_names if len(block) else None


def check(data, size=1 << 20, **keywords):
    """Compare a text with the reference, block by block of any size; return the problems."""
    options = {"on_error": "skip", "unweighted": True, **keywords}  # no row need have the key of importances
    try:
        block, names, kinds, problems = reference(data, **options)
    except ValueError as wrong:
        with pytest.raises(ValueError, match=re.escape(str(wrong))):
            list(read(io.BytesIO(data), "jsonl", block_bytes=size, **{"bits": BITS, **options}))
        return None
    reader = read(io.BytesIO(data), "jsonl", block_bytes=size, **{"bits": BITS, **options})
    assert bits_of(concatenate(list(reader))) == bits_of(block)
    assert reader.kinds.known == dict(sorted(kinds.items()))
    assert reader.problems.count == problems.count
    if problems.count <= problems.max_messages:
        assert sorted(reader.problems.messages) == sorted(problems.messages)
    if names is not None:
        for found, expected in zip(reader.names.pack(), names.pack(), strict=True):
            assert np.array_equal(found, expected)
    return problems


def slow_lines(monkeypatch, action):
    """Return how many lines Python's own parser reads while an action runs."""
    seen, parse = [], json_lines.parse_row

    def counted(*arguments):
        seen.append(arguments[0])
        return parse(*arguments)

    monkeypatch.setattr(json_lines, "parse_row", counted)
    action()
    return len(seen)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("size", [1, 100, 1 << 20])
def test_options(options, size):
    check(LINES, size, **options)


ODD = (
    b'{"a": 1, "a": 2}',
    b'{"a": {"x": 1, "x": "s"}}',
    b'{"a": 1, "b": {"a": 1}}',
    b"{}",
    b'{"": {}}',
    b'{"": {"": ""}}',
    b'{"": "x", "b": {"": "x"}}',
    b'{"": 3}',
    b'{"a": -0}',
    b'{"a": -0.0}',
    b'{"a": 0.0, "b": 1E5, "c": 1e-5, "d": 1e+5}',
    b'{"a": 01}',
    b'{"a": 1.}',
    b'{"a": .5}',
    b'{"a": +1}',
    b'{"a": 1.e5}',
    b'{"a": 1e}',
    b'{"a": -}',
    b'{"a": - 1}',
    b'{"a": 1e-40}',
    b'{"a": 1e39}',
    b'{"a": 3.4028235e38}',
    b'{"a": 3.4028234663852886e38}',
    b'{"a": 340282346638528859811704183484516925440}',
    b'{"a": 16777217, "b": 9007199254740993, "c": 1.00000005960464477539062499999}',
    b'{"a": 1.0000000596046448}',
    b'{"a": ' + b"1" * 400 + b"}",
    b'{"a": 0.' + b"1" * 400 + b"}",
    b'{"a": ' + b"1" * 5000 + b"}",
    b'{"a": NaN}',
    b'{"a": -Infinity}',
    b'{"a": nul}',
    b'{"a": nullx}',
    b'{"a": truetrue}',
    b'{"a": True}',
    b'{"a": true,}',
    b'{"a": true} x',
    b'{"a" 1}',
    b"{,}",
    b"{",
    b"[1]",
    b'"x"',
    b"3",
    b'{"a": "\\ud83d\\ude00 \\ud83d \\ude00 \\ud83d\\u0041"}',
    b'{"\\ud800": "\\udc00"}',
    b'{"a": "\\x"}',
    b'{"a": "\\u12g4"}',
    b'{"a": "\\u12"}',
    b'{"a": "\\"\\\\\\/\\b\\f\\n\\r\\t"}',
    b'{"\\u0061": 1, "a": 2}',
    b'{"\\u0061": "x"}',
    b'{"\\u00e9": "\xc3\xa9"}',
    b'{"a": "tab\there"}',
    b'{"a": "\x00"}',
    b'{"a": "\x7f"}',
    b'{"a": "\xff"}',
    b'{"a": "\xed\xa0\x80"}',
    b'{"a": "\xc3"}',
    b'{"a": "x',
    b'{"a": "x\\',
    b'{"a": "x\\"}',
    b'{"a": ["x", 1]}',
    b'{"a": ["x", ["y"]]}',
    b'{"a": [null]}',
    b'{"a": []}',
    b'{"a": [ ] }',
    b'{"a": ["x" "y"]}',
    b'{"a": ["x",]}',
    b'{"a": ["x"}',
    b'{"a": [1.5, -2, 3e4]}',
    b'{"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": {"i": {"j": 1}}}}}}}}}}',
    b'{"a": {"b": "x"}, "a^b": "x", "a^b^c": "y"}',
    b'{"a^b": {"x": 1}, "a": {"b": {"x": 1}}}',
    b'  {  "a"  :  1  ,  "b"  :  [  "x"  ,  "y"  ]  }  \r',
    b"\t",
    b" \r",
    b"\x0b",
    b"\x0c{}",
    b'{"a": 1}\x0c',
    b"\xef\xbb\xbf{}",
    b'{"a": 3e38, "b": 3e38}',
    b'{"y": "1"}',
    b'{"y": null, "w": null}',
    b'{"y": true, "w": false}',
    b'{"w": -1}',
    b'{"w": -0.0}',
    b'{"y": {}}',
    b'{"y": []}',
    b'{"y": 1e39}',
    b'{"a": "NA", "b": "12", "c": " 1e3 "}',
    b'{"a": 7, "b": 7.0, "c": 0.5, "d": true, "e": 1e3, "f": 12345678901234567890, "g": -7}',
)
ODD_OPTIONS = (
    {}, {"names": True, "label": "y", "importance": "w"}, {"ignore": ["a"]}, {"keep": ["b"]}, {"bits": 1},
    {"categories": list("abcdefg")}, {"log": ["a", "b", "c"]}, {"kinds": dict.fromkeys("abc", "number")},
    {"kinds": dict.fromkeys("abc", "category")}, {"log": ["a"], "strict": False}, {"interactions": ["ab", "a:"]},
    {"entry_names": True}, {"names": True, "interactions": ["a*b"]},
)  # fmt: skip


@pytest.mark.filterwarnings("ignore:interactions")  # of namespaces that no row has
@pytest.mark.parametrize("options", ODD_OPTIONS, ids=str)
def test_odd_lines(options):
    for line in ODD:
        check(line, **options)
        check(b'{"a": 1}\n' + line + b'\n{"b": "x", "a": "z"}\n', **options)
    check(b"\n".join(ODD), **options)
    check(b"\n".join(ODD), 300, **options)


@pytest.mark.filterwarnings("ignore:interactions")  # of namespaces that no row has
@given(st.lists(st.sampled_from([*ODD, *LINES.splitlines()]), max_size=8), st.integers(1, 400), st.integers(0, 999))
@settings(max_examples=150, deadline=None)
def test_lines_in_any_order(lines, size, seed):
    rng = random.Random(seed)
    check(rng.choice([b"\n", b"\r\n"]).join(lines), size, **rng.choice([*OPTIONS, *ODD_OPTIONS]))


@given(st.integers(0, 10**9))
@settings(max_examples=200, deadline=None)
def test_mutated_lines(seed):
    rng = random.Random(seed)
    data = bytearray(LINES)
    for _ in range(rng.choice([1, 2, 5])):
        k = rng.randrange(len(data))
        piece = rng.choice(
            [b'"', b"\\", b"{", b"}", b",", b":", b"[", b"]", b"\n", b"0", b"-", b"\xff", b"\\u0041", b""]
        )
        data[k : k + rng.choice([0, 1, 3, 20])] = piece
    check(bytes(data), rng.choice([1, 50, 1 << 20]), **rng.choice(OPTIONS))


def test_lines_cut_at_every_byte():
    for end in range(len(LINES) // 4):
        check(LINES[:end], label="y")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.lists(st.text(max_size=3)),
    lambda inner: st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(st.text(max_size=9), JSON, max_size=5), max_size=6), st.booleans(), st.booleans())
@settings(max_examples=150, deadline=None)
def test_generated_objects(rows, ascii_only, names):
    text = "\n".join(json.dumps(row, ensure_ascii=ascii_only) for row in rows)
    check(text.encode("utf-8", "surrogatepass"), 60, names=names)


def test_numbers_are_those_of_python():
    rng = np.random.default_rng(1)
    doubles = rng.standard_normal(3000) * 10.0 ** rng.integers(-50, 38, 3000)
    texts = [repr(float(v)) for v in doubles] + [f"{v:.{k % 12}g}" for k, v in enumerate(doubles)]
    texts += [str(int(v)) for v in rng.integers(-(2**62), 2**62, 500)]
    check("\n".join(f'{{"a": {text}}}' for text in texts).encode())


def test_ordinary_lines_are_read_by_compiled_code(monkeypatch):
    data = LINES * 20
    assert slow_lines(monkeypatch, lambda: list(read(io.BytesIO(data), "jsonl", label="y", importance="w"))) == 0


def test_labels_that_are_words_are_read_by_compiled_code(monkeypatch):
    words = [f"w{k % 70}" if k % 3 else f'a "quoted" w\u00f6rd {k % 30}' for k in range(400)]
    data = b"".join(b'{"x": %d, "y": %s}\n' % (k, json.dumps(word).encode()) for k, word in enumerate(words))
    given = ({}, {"positive": "w2"}, {"classes": "auto"}, {"unlabelled": True, "kinds": {"y": "classes"}})
    for options in given:
        assert (
            slow_lines(monkeypatch, lambda options=options: list(read(io.BytesIO(data), "jsonl", label="y", **options)))
            == 0
        )
        for size in (300, 1 << 20):
            check(data, size, label="y", names=True, **options)


def test_labels_of_words_mixed_with_numbers_and_booleans():
    rows = ['"7"', "7", "7.0", "70e-1", "true", '"True"', "1", "null", '" 7 "', '"x"', "123456789", '"NA"', '""', "0.1"]
    data = "".join(f'{{"a": 1, "y": {row}}}\n' for row in ('"w"', *rows, *rows)).encode()
    for options in ({}, {"positive": "7"}, {"positive": "1"}, {"positive": "123456789"}, {"classes": "auto"}):
        for size in (1, 60, 1 << 20):
            check(data, size, label="y", **options)
    (block,) = read(io.BytesIO(data), "jsonl", label="y", positive="123456789")
    assert np.nansum(block.labels) == 2


def test_tables_of_keys_grow(monkeypatch):
    wide = {f"k{k}": k for k in range(3000)} | {"deep": {f"k{k}": k for k in range(3000)}}
    many = [{f"k{k + j}": 1, "in": {f"n{k}": 2}} for k in range(0, 9000, 3) for j in range(3)]
    data = "\n".join(json.dumps(row) for row in (wide, *many, wide)).encode()
    options = {"line_limit": 1 << 20, "bits": 16}
    assert slow_lines(monkeypatch, lambda: check(data, **options)) == 0
    check(data, 5000, names=True, **options)


def test_kinds_of_repeated_and_escaped_keys():
    text = b'{"\\u0061\\u0062": 1}\n{"ab": "x"}\n{"c\\n": 2, "\\u0041": "s"}\n{"d": 1, "d": "x"}\n{"e": 1, "f": [1]}\n'
    check(text)
    reader = read(io.BytesIO(text), "jsonl", on_error="skip")
    list(reader)
    wanted = {"A": "category", "ab": "either", "c\n": "number", "d": "category", "e": "number"}
    assert reader.kinds.known == wanted


@pytest.mark.parametrize("value", ["[]", "{}", "1" * 400])
def test_a_label_that_is_no_word_is_malformed(value):
    text = f'{{"y": "a", "x": 1}}\n{{"y": {value}}}\n'.encode()
    for positive in (None, "a"):
        keywords = {"label": "y", "positive": positive}
        assert check(text if positive else text.replace(b'"a"', b"1"), **keywords).count == 1


def test_kinds_in_order_of_tasks():
    found = {}
    kinds = OrderedKinds(found, {"z": "number"})
    kinds.add(2, [("c", "number"), ("a", "category")])
    kinds.add(1, [("b", "number")])
    assert not found
    kinds.add(0, [("a", "number"), ("z", "category")])
    assert list(found.items()) == [("a", "either"), ("z", "either"), ("b", "number"), ("c", "number")]


@pytest.mark.parametrize("options", [{}, {"interactions": ["city*in"]}, {"log": ["n", "w"]}], ids=str)
def test_any_number_of_threads_and_block_size(options):
    data = b"".join(LINES + b'{"a": 1, "a": 2}\n{"y": 3, \n' for _ in range(40))
    whole = None
    for threads, size in ((0, 1 << 20), (1, 3000), (2, 3000), (3, 700)):
        keywords = {"label": "y", "bits": BITS, "on_error": "skip", "block_bytes": size, **options}
        reader = read(io.BytesIO(data), "jsonl", **keywords)
        found = bits_of(concatenate(list(ordered_blocks(reader, threads)))), reader.kinds.known, reader.problems.count
        whole = whole or found
        assert found == whole


def test_reading_continues_after_a_block():
    blocks = list(read(io.BytesIO(LINES), "jsonl", label="y", block_bytes=300))
    assert len(blocks) > 3
    for k, block in enumerate(blocks[:-1]):
        reader = read(io.BytesIO(LINES), "jsonl", label="y", block_bytes=300)
        rest = type(reader)(reader.source, reader.options, reader.problems, start=block.after)
        assert bits_of(concatenate(list(rest))) == bits_of(concatenate(blocks[k + 1 :]))


def test_the_first_error_is_raised():
    text = b'{"a": 1}\n\n{"a": 3e38, "b": 3e38, "c": 3e38}\n{"a": }\n'
    with pytest.raises(ValueError, match="line 3: got values of one slot that are too large"):
        list(read(io.BytesIO(text), "jsonl", bits=1))
    with pytest.raises(ValueError, match="line 4, column 7: got '}', expected JSON"):
        list(read(io.BytesIO(text), "jsonl"))


def test_models_are_the_same_from_dicts_and_lines(tmp_path):
    rows = [{**row, "id": k} for k, row in enumerate(ROWS * 30)]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    options = {"label": "y", "ignore": ["id"], "bits": 12, "names": True}
    one, two = (train(source, Settings(), **options) for source in (rows, tmp_path / "a.jsonl"))
    assert one.learner.state.numbers.tobytes() == two.learner.state.numbers.tobytes()
