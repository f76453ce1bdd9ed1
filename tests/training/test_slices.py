"""Metrics by the values of a column, against a recomputation from raw rows and the predictions made before learning."""

import io
import json
import math
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from forel.data import read
from forel.evidence.alarms import LARGEST
from forel.learner.settings import Settings
from forel.losses import Logistic
from forel.training import slices as module
from forel.training.metrics import Metrics
from forel.training.model import evaluate
from forel.training.slices import SliceMetrics
from forel.training.train import train
from tests.evidence.streams import log_evidence_of_weighted

CITIES = ("Rome", "Oslo", "", "São Paulo, BR")
ROWS = [
    {"city": CITIES[(k * k % 7 + k // 40) % 4], "x": k % 5 / 4, "weight": 1 + k % 3, "y": (k * k + k // 50) % 11 % 2}
    for k in range(300)
]


def predictions_of(rows, **options):
    """Train, and return the result with the probability of each row before it was learned from."""
    found = []
    trained = train(rows, Settings(alpha=0.3), progress=lambda now: found.append(now.margins.copy()), **options)
    margins = np.concatenate(found).astype(float)
    return trained, 1 / (1 + np.exp(-margins))


def recomputed(rows, probabilities):
    """Return loss, calibration and AUC by city, from the rows alone."""
    found = {}
    for city in {row["city"] for row in rows}:
        chosen = [k for k, row in enumerate(rows) if row["city"] == city]
        y, w = (np.array([rows[k][name] for k in chosen]) for name in ("y", "weight"))
        p = probabilities[chosen]
        loss = log_loss(y, p, sample_weight=w, labels=[0, 1])
        found[city or "(missing)"] = len(chosen), loss, w @ p / (w @ y), roc_auc_score(y, p, sample_weight=w)
    return found


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("holdout", [0, 4])
def test_slices_of_training_are_those_of_the_rows(holdout):
    options = {"label": "y", "importance": "weight", "bits": 8, "ignore": ["city"], "slices": ["city"]}
    trained, p = predictions_of(ROWS, holdout=holdout, **options)
    learned = [k for k in range(len(ROWS)) if not holdout or (k + 1) % holdout]
    rows, p = [ROWS[k] for k in learned], p[learned]
    (table,) = trained.training.slices
    expected = recomputed(rows, p)
    counts = [one.report.rows for one in table.slices]
    assert counts == sorted((count for count, *_ in expected.values()), reverse=True)
    assert {one.value for one in table.slices} == set(expected)
    for one in table.slices:
        count, loss, calibration, auc = expected[one.value]
        assert one.report.rows == count
        assert one.report.loss == pytest.approx(loss, rel=1e-6)
        assert one.report.calibration == pytest.approx(calibration, rel=1e-6)
        assert abs(one.report.auc - auc) <= one.report.auc_error
        chosen = [k for k, row in enumerate(rows) if (row["city"] or "(missing)") == one.value]
        losses = np.array([-np.log(q if rows[k]["y"] else 1 - q) for k, q in zip(chosen, p[chosen], strict=True)])
        weights, (low, high) = np.array([float(rows[k]["weight"]) for k in chosen]), one.mean_loss
        assert 0 <= low < loss < high < LARGEST
        for values, ends, mean in ((losses, (0.0, LARGEST), low), (-losses, (-LARGEST, 0.0), -high)):
            evidence = log_evidence_of_weighted(values, weights, *ends, mean)[-1]
            assert evidence == pytest.approx(np.log(40), abs=1e-5) or (mean == 0 and evidence < np.log(40))


@pytest.mark.usefixtures("interpreted")
def test_slices_of_an_evaluation_are_those_of_the_rows():
    trained, _ = predictions_of(ROWS, label="y", importance="weight", bits=8, ignore=["city"])
    found = evaluate(trained, ROWS, slices=["city"])
    p = np.array([trained.predict_one(row) for row in ROWS], float)
    for one in found.slices[0].slices:
        count, loss, calibration, _ = recomputed(ROWS, p)[one.value]
        assert (one.report.rows, one.report.loss) == (count, pytest.approx(loss, rel=1e-5))
        assert one.report.calibration == pytest.approx(calibration, rel=1e-5)


def sources(folder):
    """Return the same cities in every format, with a malformed row in the middle of text."""
    names = [row["city"] for row in ROWS[:60]]
    lines = [f'{{"city": {json.dumps(city or None)}, "y": {k % 2}}}' for k, city in enumerate(names)]
    table = pa.table({"city": [city or None for city in names], "y": [k % 2 for k in range(60)]})
    pq.write_table(table, folder / "a.parquet", row_group_size=17)
    csv = [f'"{city}",{k % 2}' for k, city in enumerate(names)]
    return {
        "jsonl": io.BytesIO("\n".join([*lines[:20], "{", '{"city": "Rome", "y": [1]}', *lines[20:]]).encode()),
        "csv": io.BytesIO("\n".join(["city,y", *csv[:20], "Rome,1,2", "Rome,x", *csv[20:]]).encode()),
        "parquet": str(folder / "a.parquet"),
        "table": table.slice(0, 60),
        "dicts": [{"city": city or None, "y": k % 2} for k, city in enumerate(names)],
    }


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet", "table", "dicts"])
@pytest.mark.parametrize("ignore", [[], ["city"]])
def test_every_format_has_the_values_of_its_rows(form, ignore, tmp_path):
    source = sources(tmp_path)[form]
    chosen = None if form in ("table", "dicts", "parquet") else form
    blocks = read(source, chosen, label="y", slices=["city"], ignore=ignore, on_error="skip", block_bytes=200, bits=6)
    found = [value for block in blocks for value in block.slices[0]]
    assert found == [row["city"].encode() for row in ROWS[:60]]


def test_namespaces_and_tags_of_vw_text_are_slices():
    lines = (
        b"1 'a|n x |site news:2 b", b"", b"0 |site:3 shop |n y:2", b"bad", b"1 'b|n site|site2 z",
        b"0 d|site |n x |site late", b"-1 |site",
    )  # fmt: skip
    text = io.BytesIO(b"\n".join(lines))
    reader = read(text, "vw", slices=["site", "tag"], on_error="skip", block_bytes=20)
    blocks = list(reader)
    assert [value for block in blocks for value in block.slices[0]] == [b"news", b"shop", b"", b"late", b""]
    assert [value for block in blocks for value in block.slices[1]] == [b"a", b"", b"b", b"d", b""]
    assert all(block.tags is None for block in blocks)
    assert reader.problems.count == 1


@pytest.mark.parametrize("sizes", [[200], [1] * 200, [3, 64, 1, 132]])
def test_tables_do_not_depend_on_blocks(sizes):
    rng = np.random.default_rng(3)
    margins, labels = rng.normal(size=200).astype(np.float32), rng.integers(0, 2, 200)
    values = [b"%d" % k for k in rng.integers(0, 30, 200)]
    metrics = Metrics(Logistic())
    whole, parts = SliceMetrics("c", metrics), SliceMetrics("c", metrics)
    whole.add(values, metrics.add(margins, labels))
    end = 0
    for size in sizes:
        rows = slice(end, end + size)
        parts.add(values[rows], metrics.add(margins[rows], labels[rows]))
        end += size
    assert whole.table() == parts.table()
    known, arrays = parts.pack()
    again = SliceMetrics("c", metrics)
    again.unpack(json.loads(json.dumps(known)), arrays)
    assert again.table() == whole.table()


def test_values_beyond_the_first_are_others(monkeypatch):
    monkeypatch.setattr(module, "MOST", 20)
    monkeypatch.setattr(module, "SHOWN", 3)
    metrics = Metrics(Logistic())
    slices = SliceMetrics("c", metrics)
    values = [b"a", b"b", b"c", *(b"%d" % k for k in range(30)), b"a", b"a", b"29", b"29", b"29", b"c", b"\xff" * 200]
    slices.add(values, metrics.add(np.zeros(len(values)), np.ones(len(values))))
    found = slices.table().slices
    assert [(one.value, one.report.rows) for one in found] == [("a", 3), ("c", 2), ("b", 1), ("(others)", 34)]
    assert found[-1].report.loss == pytest.approx(math.log(2))
    assert len(slices._sums) == 21


@pytest.mark.usefixtures("interpreted")
def test_slices_of_several_classes_have_accuracy():
    rows = [{"s": "ab"[k % 2], "x": k % 3, "y": ["red", "green", "blue"][k % 3 if k % 2 else 0]} for k in range(60)]
    found = []
    trained = train(
        rows, Settings("softmax", alpha=0.3), label="y", bits=6, slices=["s"], categories=["x"],
        progress=lambda now: found.append(now.predicted(np.asarray)),
    )  # fmt: skip
    right = np.concatenate(found) == [row["y"] for row in rows]
    for one, start in zip(trained.training.slices[0].slices, (0, 1), strict=True):
        assert one.report.accuracy == right[start::2].mean()
    whole = sum(one.report.loss * one.report.weight for one in trained.training.slices[0].slices) / 60
    assert whole == pytest.approx(trained.report.loss)


@pytest.mark.usefixtures("interpreted")
def test_a_resumed_run_has_the_same_slices(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("city,y\n" + "".join(f'"{row["city"]}",{row["y"]}\n' for row in ROWS))
    options = {"label": "y", "bits": 6, "slices": ["city"], "block_bytes": 700, "passes": 2}
    whole = train(path, Settings(alpha=0.3), **options)
    seen = iter(range(3))

    def stop(_):
        if next(seen, None) is None:
            raise KeyboardInterrupt

    saving = {"checkpoint": tmp_path / "c", "checkpoint_every": 50}
    with pytest.raises(KeyboardInterrupt):
        train(path, Settings(alpha=0.3), progress=stop, **saving, **options)
    assert train(path, Settings(alpha=0.3), resume=True, **saving, **options).training.slices == whole.training.slices
    with pytest.raises(ValueError, match="slices"):
        train(path, Settings(alpha=0.3), resume=True, **saving, **(options | {"slices": ["y"]}))


@pytest.mark.usefixtures("interpreted")
def test_slices_are_refused_where_rows_do_not_have_them(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("city,y\n" + "".join(f'"{row["city"]}",{row["y"]}\n' for row in ROWS))
    with pytest.raises(ValueError, match="shuffle: got 1, expected None with slices"):
        train(path, Settings(alpha=0.3), slices=["city"], shuffle=1, label="y", bits=6)
    with pytest.raises(ValueError, match="slices: got 'town', expected one of the columns city, y"):
        train(path, Settings(alpha=0.3), slices=["town"], label="y", bits=6)
    with pytest.raises(ValueError, match="slices: got 'city', expected none for svmlight"):
        list(read(io.BytesIO(b"1 3:1\n"), "svmlight", slices=["city"]))


ABSENT = "slices: got 'nosuch', of which no row has a value, expected a column or key of the rows, or a namespace of VW"


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("form", ["dicts", "jsonl", "vw"])
@pytest.mark.parametrize("by", [None, "city"])
def test_a_column_that_no_row_has_is_reported_once(form, by):
    rows = [{"city": ("Rome", "Oslo")[k % 2], "x": 1.0, "y": k // 2 % 2} for k in range(20)]
    texts = {
        "jsonl": "".join(json.dumps(row) + "\n" for row in rows),
        "vw": "".join(f"{row['y']} |city {row['city']}\n" for row in rows),
    }

    def source():
        return rows if form == "dicts" else io.BytesIO(texts[form].encode())

    options = {} if form == "dicts" else {"format": form}
    options |= {} if form == "vw" else {"label": "y"}
    with warnings.catch_warnings(record=True, action="always") as found:
        trained = train(source(), Settings(alpha=0.3), bits=6, slices=["nosuch"], by=by, **options)
    assert [str(one.message).startswith(ABSENT) for one in found] == [True]
    with pytest.warns(UserWarning, match=ABSENT):
        evaluate(trained, source(), slices=["nosuch"], **({"format": form} if form != "dicts" else {}))
    with warnings.catch_warnings(action="error"):
        if by is None:
            train(source(), Settings(alpha=0.3), bits=6, slices=["city"], **options)
