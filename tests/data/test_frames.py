"""Data frames as sources, and models that continue from another."""

import io

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pytest

import forel
from forel.data import read
from forel.learner.settings import Settings
from forel.training.scoring import predict_blocks

SETTINGS = Settings(alpha=1.0)
FRAME = pd.DataFrame({"site": ["news", "shop"] * 20, "click": [1, 0] * 20})
INDICES = {
    "numbers": FRAME.set_index(np.arange(40) * 37 % 41 * 1000),
    "strings": FRAME.set_index(pd.Index([f"user {k}" for k in range(40)])),
    "named": FRAME.set_index(pd.Index(np.arange(40) * 37 % 41 * 1000, name="user")),
    "two levels": FRAME.set_index([pd.Index(np.arange(40), name="a"), pd.Index(np.arange(40), name="b")]),
    "a part": pd.concat([FRAME] * 2).iloc[1::2].iloc[::-1],
    "as usual": FRAME,
}


def learned(source, **reading):
    reader = read(source, label="click", bits=12, names=True, **reading)
    list(reader)
    return {reader.names[slot] for slot in reader.names}


@pytest.mark.parametrize("kind", INDICES)
def test_an_index_is_no_feature(kind, tmp_path):
    frame = INDICES[kind]
    assert learned(frame) <= {"site^news", "site^shop"}
    frame.to_parquet(tmp_path / "frame.parquet")
    feather.write_feather(pa.Table.from_pandas(frame), str(tmp_path / "frame.arrow"))
    for path in tmp_path.iterdir():
        assert learned(str(path)) <= {"site^news", "site^shop"}


def test_an_index_that_is_named_as_a_column_is_one(tmp_path):
    frame = FRAME.set_index(pd.Index(np.arange(40) * 37 % 41 * 1000.0, name="user"))
    frame.to_parquet(tmp_path / "frame.parquet")
    for source in (frame, str(tmp_path / "frame.parquet")):
        assert learned(source, keep=["site", "user"]) == {"site^news", "site^shop", "user"}
        assert "user^1000" in learned(source, categories=["user"])
        (block,) = read(source, label="user", bits=12)
        assert block.labels[1] == 37000
        assert learned(source, ignore=["user"]) == {"site^news", "site^shop"}


def test_models_do_not_depend_on_an_index():
    plain = forel.train(FRAME, SETTINGS, label="click", bits=12)
    other = forel.train(INDICES["numbers"], SETTINGS, label="click", bits=12)
    assert plain.report.loss == other.report.loss
    assert forel.evaluate(plain, INDICES["named"]).report.calibration == pytest.approx(1, abs=0.02)
    ((_, margins),) = predict_blocks(other, INDICES["strings"].drop(columns="click"))
    ((_, wanted),) = predict_blocks(plain, pl.from_pandas(FRAME))
    assert margins.tolist() == wanted.tolist()


# Importances.


WEIGHED = FRAME.assign(weight=2.0)


@pytest.mark.parametrize("form", ["frame", "csv", "parquet", "dicts"])
def test_importance_is_one_where_a_model_is_given_none(form, tmp_path):
    stored = forel.train(WEIGHED, SETTINGS, label="click", importance="weight", bits=12)
    FRAME.to_parquet(tmp_path / "frame.parquet")
    how = {"format": "csv"} if form == "csv" else {}

    def source():
        text = io.BytesIO(FRAME.to_csv(index=False).encode())
        rows = FRAME.to_dict("records")
        return {"frame": FRAME, "csv": text, "parquet": str(tmp_path / "frame.parquet"), "dicts": rows}[form]

    found = forel.evaluate(stored, source(), **how)
    assert found.report.rows == 40
    assert found.report.weight == 40
    assert sum(len(block) for block, _ in predict_blocks(stored, source(), **how)) == 40
    assert forel.evaluate(stored, WEIGHED).report.weight == 80
    if form != "dicts":
        with pytest.raises(ValueError, match="importance: got 'weight', expected one of the columns"):
            forel.evaluate(stored, source(), importance="weight", **how)


# Going on from a model.


def test_going_on_leaves_the_model_as_it_was(tmp_path):
    for settings in (SETTINGS, Settings(alpha=(0.1, 1.0))):
        stored = forel.train(FRAME, settings, label="click", bits=12, certificate=True)
        before = [margins.tolist() for _, margins in predict_blocks(stored, FRAME)]
        more = forel.train(FRAME, model=stored)
        again = forel.train(FRAME, model=stored)
        assert stored.learner.rounds == 40
        assert more.learner.rounds == 80
        assert [margins.tolist() for _, margins in predict_blocks(stored, FRAME)] == before
        assert more.report.loss == again.report.loss
        forel.save(tmp_path / "m", stored)
        assert forel.train(FRAME, model=tmp_path / "m").report.loss == more.report.loss
        assert forel.train(FRAME, model=more).learner.rounds == 120
        own = forel.train(FRAME, model=stored, copy=False)
        assert own.learner is stored.learner
        assert own.report.loss == more.report.loss


def test_names_of_the_model_that_training_went_on_from_stay(tmp_path):
    stored = forel.train(FRAME, SETTINGS, label="click", bits=12, names=True)
    more = forel.train(pd.DataFrame({"site": ["new"], "click": [1]}), model=stored)
    assert len(stored.names) == 2
    assert len(more.names) == 3


def test_continued_training_keeps_the_extra_content_of_the_model(tmp_path):
    trained = forel.train(FRAME, SETTINGS, label="click", bits=12)
    forel.save(tmp_path / "m", trained.learner, {**trained.extra, "mine": [1, 2]})
    more = forel.train(FRAME, model=forel.load(tmp_path / "m"))
    assert more.extra["mine"] == more.extra["mine"] == [1, 2]
    assert more.extra["report"]["rows"] == 40
    more.save(tmp_path / "n")
    assert forel.load(tmp_path / "n").extra["mine"] == [1, 2]
    assert forel.load(tmp_path / "m").extra == {**trained.extra, "mine": [1, 2]}
