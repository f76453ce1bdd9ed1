"""Keys and namespaces that options name and that no row has: an error for importances, otherwise a warning."""

import io
import json
import warnings

import pyarrow as pa
import pytest

import forel
from forel import Settings
from forel.data import read
from forel.data.pieces import ordered_pieces
from forel.data.pipeline import ordered_blocks
from tests.data.test_pieces import Eager

ROWS = [{"y": k % 2, "weight": 2.0, "n": k, "city": "Rome", "when": "2024-01-31"} for k in range(40)]
LATE = [*({"y": 1, "n": 3} for _ in range(40)), {"y": 0, "n": 1, "weight": 5}]
ODD = [{**row, "n": float("inf") if k == 3 else row["n"]} for k, row in enumerate(ROWS)]  # not read as JSON lines


def source(form, rows, tmp_path):
    """Return rows as dicts, as a stream of JSON lines, or as files of these."""
    text = "".join(json.dumps(row) + "\n" for row in rows)
    if form == "files":
        half = len(rows) // 2
        for k, part in enumerate((rows[:half], rows[half:])):
            (tmp_path / f"{k}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in part))
        return [str(tmp_path / f"{k}.jsonl") for k in range(2)]
    return {"dicts": rows, "generator": iter(rows), "jsonl": io.BytesIO(text.encode())}[form]


def read_all(form, rows, tmp_path, **options):
    """Read rows in small blocks, on threads, or by workers if they are in files; return their importances."""
    reader = read(source(form, rows, tmp_path), **({"format": "jsonl"} if form == "jsonl" else {}), label="y",
                  block_bytes=200, bits=10, **options)  # fmt: skip
    blocks = ordered_pieces(reader, Eager(2)) if form == "files" else ordered_blocks(reader, 2)
    return [weight for block in blocks for weight in block.importance.tolist()]


@pytest.mark.parametrize("form", ["dicts", "generator", "jsonl", "files"])
@pytest.mark.parametrize("rows", [ROWS, ODD], ids=["plain", "odd"])
def test_importance(form, rows, tmp_path):
    skip = {"on_error": "skip"}
    with pytest.raises(ValueError, match="got 'wieght', which no row has, expected a key of the rows, such as weight"):
        read_all(form, rows, tmp_path, importance="wieght", **skip)
    assert set(read_all(form, rows, tmp_path, importance="weight", **skip)) == {2.0}


@pytest.mark.parametrize("size", [1, 1 << 20])
def test_keys_of_damaged_lines_do_not_count(size):
    options = {"label": "y", "importance": "w", "on_error": "skip", "block_bytes": size}
    damaged = b'{"y": 1, "w": 2.0, "n": "x}\n{"y": 1}\n'
    for text in (damaged, b'{"y": 1}\n' + damaged, damaged + b"{}\n", b"\n" + damaged):
        with pytest.raises(ValueError, match="importance: got 'w', which no row has"):
            list(read(io.BytesIO(text), "jsonl", **options))
        rows = list(read(io.BytesIO(text + b'{"w": 3}\n' + damaged), "jsonl", **options))
        assert sum(map(len, rows)) == text.count(b"}\n") + 2 - text.count(b"x}")


@pytest.mark.parametrize("form", ["dicts", "jsonl", "files"])
def test_importance_of_some_rows(form, tmp_path):
    assert read_all(form, LATE, tmp_path, importance="weight") == [1.0] * 40 + [5.0]


@pytest.mark.parametrize("form", ["dicts", "jsonl", "files"])
@pytest.mark.parametrize("option", ["keep", "ignore", "categories", "log", "text", "date"])
def test_other_options_warn(form, option, tmp_path):
    given = "when" if option == "date" else "city" if option == "text" else "n"
    with pytest.warns(UserWarning, match=f"{option}: got 'nosuch', which no row has, expected a key of the rows"):
        read_all(form, ROWS, tmp_path, **{option: [given, "nosuch"]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_all(form, ROWS, tmp_path, **{option: [given]})


ABSENT = r"interactions: got 'nosuch', of which no row has a feature, expected a namespace or column of the rows"
LETTER = (
    r"interactions: got 'q', with which no namespace or column of a feature begins, expected the first letter of one"
)


@pytest.mark.parametrize("form", ["dicts", "generator", "jsonl", "files"])
def test_crosses_warn(form, tmp_path):
    rows = [{key: row[key] for key in ("y", "n", "city")} for row in ROWS]
    with pytest.warns(UserWarning, match=ABSENT + ", such as city, n$"):
        read_all(form, rows, tmp_path, interactions=["city*nosuch"])
    with pytest.warns(UserWarning, match=LETTER):
        read_all(form, rows if form != "generator" else [*rows], tmp_path, interactions=["nq"])
    with pytest.warns(UserWarning, match="interactions: got 'y', of which no row has a feature"):  # the label
        read_all(form, rows, tmp_path, interactions=["city*y"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_all(form, rows, tmp_path, interactions=["city*n", "c:", "nc"])


@pytest.mark.parametrize("workers", [False, True])
def test_crosses_of_namespaces_warn(workers, tmp_path):
    path = tmp_path / "a.vw"
    path.write_text("1 |ab x | y\n" * 30 + "-1 |c z\n" * 30)

    def read_text(*terms):
        reader = read(str(path), interactions=terms, block_bytes=100)
        return sum(map(len, ordered_pieces(reader, Eager(2)) if workers else ordered_blocks(reader, 2)))

    with pytest.warns(UserWarning, match=ABSENT + "$"):
        read_text("ab*nosuch")
    with pytest.warns(UserWarning, match=LETTER + "$"):
        read_text("aq")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_text("ab*c", "ac", "a ", "::") == 60


def test_crosses_of_letters_warn_for_tables():
    with pytest.warns(UserWarning, match=LETTER):
        list(read(pa.table({"a": [1.0], "b": ["x"]}), interactions=["aq"]))


def test_no_rows():
    assert list(read([], importance="nosuch", ignore=["id"])) == []


def test_a_resumed_reader_does_not_know_earlier_rows():
    rows = [{"n": 1, "weight": 2}, *({"n": k} for k in range(200))]
    text = "".join(json.dumps(row) + "\n" for row in rows).encode()
    first, *_ = read(io.BytesIO(text), "jsonl", importance="weight", block_bytes=100)
    reader = read(io.BytesIO(text), "jsonl", importance="weight", block_bytes=100)
    object.__setattr__(reader, "start", first.after)
    assert sum(map(len, reader)) == len(rows) - len(first)


@pytest.mark.usefixtures("interpreted")
def test_training_and_evaluation(tmp_path):
    settings = Settings(alpha=0.5)
    with pytest.raises(ValueError, match="importance: got 'wieght', which no row has"):
        forel.train(ROWS, settings, label="y", importance="wieght", bits=10)
    stored = forel.train(ROWS, settings, label="y", importance="weight", ignore=["when"], bits=10)
    unweighted = [{key: row[key] for key in ("y", "n", "city")} for row in ROWS]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # neither importances nor ignored keys are needed for a stored model
        assert forel.evaluate(stored, unweighted).report.weight == 40
        assert len(forel.predict(stored, unweighted)) == 40
    with pytest.raises(ValueError, match="importance: got 'weight', which no row has"):
        forel.evaluate(stored, unweighted, importance="weight")


@pytest.mark.usefixtures("interpreted")
def test_stored_crosses_do_not_warn():
    stored = forel.train(ROWS, Settings(alpha=0.5), label="y", interactions=["city*n"], ignore=["when"], bits=10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(forel.predict(stored, [{"n": 1.0, "weight": 2.0}])) == 1
