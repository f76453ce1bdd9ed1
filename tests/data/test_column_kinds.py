"""A model stores the kind of each column, and later input is read accordingly."""

import gzip
import io
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import forel
from forel.data import read
from forel.learner.settings import Settings
from forel.training.scoring import predict_blocks

SETTINGS = Settings(alpha=1.0)
BITS = 12
ROWS = [(31, "b", 1), (2, "a", 0), (45, "7", 1), (3, "a", 0)] * 20  # numbers above 20 are clicks; "7" is a code


def csv(rows):
    return ("age,code,click\n" + "".join(f"{age},{code},{click}\n" for age, code, click in rows)).encode()


def trained(source=None, form="csv", **reading):
    source = io.BytesIO(csv(ROWS)) if source is None else source
    return forel.train(source, SETTINGS, format=form, label="click", bits=BITS, **reading)


def scores(stored, source, form="auto"):
    return np.concatenate([margins for _, margins in predict_blocks(stored, source, format=form)]).tolist()


def as_dicts(rows):
    return [{"age": age, "code": code, "click": click} for age, code, click in rows]


def test_a_model_stores_the_kind_of_every_column():
    stored = trained()
    assert stored.extra["reading"]["kinds"] == {"age": "number", "code": "category"}


@pytest.mark.filterwarnings("ignore:the rows differ")
def test_the_first_cell_of_a_file_does_not_decide_what_is_predicted():
    stored = trained()
    rows = [(31, "b", 1), (2, "7", 0)]
    there = scores(stored, io.BytesIO(csv(rows)), "csv")
    assert scores(stored, io.BytesIO(csv(rows[::-1])), "csv") == there[::-1]
    assert there == scores(stored, io.BytesIO(csv([("unknown", "", ""), *rows])), "csv")[1:]


@pytest.mark.filterwarnings("ignore:the rows differ")
def test_a_word_in_a_column_of_numbers_adds_nothing_to_a_score():
    stored = trained()
    word, nothing = scores(stored, io.BytesIO(csv([("unknown", "b", 1), ("", "b", 1)])), "csv")
    assert word == nothing
    table = pa.table({"age": ["unknown", "31", None], "code": ["b"] * 3})
    assert scores(stored, table) == [nothing, scores(stored, io.BytesIO(csv([(31, "b", 1)])), "csv")[0], nothing]


@pytest.mark.parametrize("form", ["csv", "jsonl", "strings", "frame", "parquet", "dictionary", "dicts", "gzip"])
def test_every_format_gives_the_same_scores(form, tmp_path):
    stored, rows = trained(), [(7, "7", 0), (31, "b", 1), (2, "a", 0)]
    wanted = scores(stored, io.BytesIO(csv(rows)), "csv")
    codes = [(age, int(code) if code == "7" else code, click) for age, code, click in rows]
    if form == "csv":
        source = io.BytesIO(csv(rows[::-1]))
        wanted = wanted[::-1]
    elif form == "gzip":
        source = io.BytesIO(gzip.compress(csv(rows)))
    elif form == "jsonl":
        source = io.BytesIO("".join(json.dumps(row) + "\n" for row in as_dicts(codes)).encode())
    elif form == "strings":
        source = [{key: str(value) for key, value in row.items() if key != "click"} for row in as_dicts(rows)]
    elif form == "dicts":
        source = as_dicts(codes)
    elif form == "frame":
        source = pd.DataFrame({"age": ["7", "31", "2"], "code": ["7", "b", "a"]})
    elif form == "dictionary":
        source = pa.table({"age": pa.array(["7", "31", "2"]).dictionary_encode(), "code": ["7", "b", "a"]})
    else:
        source = tmp_path / "rows.parquet"
        pq.write_table(pa.table({"age": ["7", "31", "2"], "code": ["7", "b", "a"]}), source)
    name = {"gzip": "csv", "strings": "auto", "dicts": "auto", "frame": "auto", "dictionary": "auto"}.get(form, form)
    assert scores(stored, source, name) == wanted


def test_numbers_in_a_column_of_categories_are_codes_in_tables_too():
    stored = trained()
    (wanted,) = scores(stored, io.BytesIO(csv([(3, "7", 0)])), "csv")
    for codes in (pa.array([7]), pa.array([7.0]), pa.array([7], pa.uint8())):
        assert scores(stored, pa.table({"age": [3], "code": codes})) == [wanted]
    assert scores(stored, [{"age": 3, "code": 7.0}]) == [wanted]


@pytest.mark.parametrize("source", [as_dicts(ROWS), pd.DataFrame(as_dicts(ROWS)), pa.Table.from_pylist(as_dicts(ROWS))])
def test_kinds_are_kept_of_dicts_and_tables_too(source):
    stored = trained(source, "auto")
    assert stored.extra["reading"]["kinds"] == {"age": "number", "code": "category"}
    rows = [(31, "7", 1), (2, "a", 0)]
    assert scores(stored, io.BytesIO(csv(rows)), "csv") == scores(stored, as_dicts(rows))


def test_keys_with_values_of_both_kinds_are_read_by_each_value():
    mixed = [{"age": 31, "click": 1}, {"age": "young", "click": 0}] * 20
    stored = trained(mixed, "auto")
    assert stored.extra["reading"]["kinds"] == {"age": "either"}
    got = scores(stored, io.BytesIO(b"age\nyoung\n31\n"), "csv")
    assert got == scores(stored, [mixed[1], mixed[0]])
    assert got[0] < 0 < got[1]


def test_strings_in_dicts_are_what_they_were_without_a_model():
    (block,) = read([{"age": 31}, {"age": "31"}], entry_names=True)
    assert block.entry_names == ((b"", b"age"), (b"age", b"31"))


def test_later_files_are_read_as_the_first(tmp_path):
    (tmp_path / "1.csv").write_bytes(csv(ROWS))
    (tmp_path / "2.csv").write_bytes(csv([(31, "7", 1), *ROWS]))
    one = trained(io.BytesIO(csv([*ROWS, (31, "7", 1), *ROWS])))
    two = trained(str(tmp_path / "*.csv"))
    assert scores(one, as_dicts(ROWS[:4])) == scores(two, as_dicts(ROWS[:4]))


def test_continued_training_uses_the_stored_kinds():
    more = [(2, "7", 0), (31, "b", 1)]
    stored = forel.train(
        io.BytesIO(csv(more)), model=trained(), format="csv",
    )  # fmt: skip
    assert stored.extra["reading"]["kinds"] == {"age": "number", "code": "category"}
    whole = trained(io.BytesIO(csv([*ROWS, *more])))
    assert scores(stored, as_dicts(ROWS[:4])) == scores(whole, as_dicts(ROWS[:4]))


@pytest.mark.filterwarnings("ignore:the rows differ")
def test_learning_refuses_a_word_in_a_column_of_numbers():
    with pytest.raises(ValueError, match="line 2, column 'age': got 'unknown', expected a number, as in earlier rows"):
        forel.train(io.BytesIO(csv([("unknown", "b", 1)])), model=trained(), format="csv")
    with pytest.raises(ValueError, match="column 'age': got 'unknown', expected a number, as in earlier rows"):
        forel.train(pa.table({"age": ["unknown"], "code": ["b"], "click": [1]}), model=trained())
    assert forel.evaluate(trained(), io.BytesIO(csv([("unknown", "b", 1)])), format="csv").report.rows == 1


def test_words_in_columns_with_logarithms():
    for how in ({"log": ["age"]},):
        stored = trained(**how)
        word, nothing = scores(stored, io.BytesIO(csv([("unknown", "b", 1), ("", "b", 1)])), "csv")
        assert word == nothing
        assert scores(stored, [{"age": "unknown", "code": "b"}, {"age": "31", "code": "b"}]) == [
            nothing, *scores(stored, [{"age": 31, "code": "b"}])
        ]  # fmt: skip


def test_words_among_numbers_have_names_and_crosses():
    reader = read(
        io.BytesIO(b"age,code\n31,b\nunknown,b\n"), "csv", names=True, interactions=["age*code"],
        kinds={"age": "number"}, strict=False,
    )  # fmt: skip
    (block,) = list(reader)
    names = [{reader.names[int(k)] for k in row.indices} for row in block.matrix(1 << 22)]
    assert names == [{"age", "code^b", "age*code^b"}, {"age^unknown", "code^b", "age^unknown*code^b"}]


def test_kinds_survive_a_checkpoint(tmp_path):
    paths = [tmp_path / "1.csv", tmp_path / "2.csv"]
    paths[0].write_bytes(csv(ROWS[:8]))
    paths[1].write_bytes(csv([(31, "7", 1), *ROWS * 9]))
    how = {"settings": SETTINGS, "label": "click", "bits": BITS, "block_bytes": 200, "passes": 2, "threads": 1}
    whole = forel.train(list(map(str, paths)), **how)

    class Stop(Exception):
        pass

    for turn in (1, 2):

        def stop(moment, turn=turn):
            if moment.pass_number == turn and moment.rows > 300:
                raise Stop

        keeping = {"checkpoint": tmp_path / "m", "checkpoint_every": 1, "resume": True}
        with pytest.raises(Stop):
            forel.train(list(map(str, paths)), progress=stop, **how, **keeping)
        stored = forel.train(list(map(str, paths)), **how, **keeping)
        assert stored.extra == whole.extra
        assert scores(stored, as_dicts(ROWS[:4])) == scores(whole, as_dicts(ROWS[:4]))
        (tmp_path / "m").unlink()


def test_many_keys_of_dicts_are_not_kept_without_end(monkeypatch):
    monkeypatch.setattr("forel.data.features.kinds.MOST", 10)
    reader = read([{f"word{k}": 1} for k in range(100)])
    list(reader)
    assert len(reader.kinds.known) == 10


def test_kinds_that_are_none_are_refused():
    with pytest.raises(ValueError, match="kinds: got 'numeric' for 'age', expected number, category or either"):
        read([], kinds={"age": "numeric"})
