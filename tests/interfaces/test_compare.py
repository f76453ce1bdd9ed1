"""Comparing models, predictions and settings: numbers against an oracle, and what the command prints."""

import json
import math
import os
import pathlib

import numpy as np
import pytest
from typer.testing import CliRunner

import forel
from forel.cli.app import app
from forel.learner.settings import Settings
from tests.evidence.streams import log_evidence_of_weighted

DATA = pathlib.Path(os.environ.get("FOREL_DATA", pathlib.Path(__file__).parents[3] / "shared" / "data"))


def clicks(seed, rows, flip=False):
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(rows):
        site, hour = rng.choice(["news", "shop", "mail"]), rng.choice(["day", "night"])
        p = {"news": 0.95, "shop": 0.05, "mail": 0.5}[site]
        found.append({"site": site, "hour": hour, "click": int(rng.random() < (1 - p if flip else p))})
    return found


def csv(path, rows):
    path.write_text("site,hour,click\n" + "".join(f"{r['site']},{r['hour']},{r['click']}\n" for r in rows))
    return str(path)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compare")
    for name, flip in (("old", True), ("new", False)):
        rows = clicks(1, 600, flip)
        forel.train(csv(folder / "train.csv", rows), label="click", bits=8, names=True).save(folder / f"{name}.forel")
    csv(folder / "today.csv", clicks(2, 900))
    return folder


def oracle(a, b, labels):
    """Rows that decide and refute, and the mean difference, one row at a time."""
    rates = [1e-4 * 9000 ** (k / 11) for k in range(12)]
    width = 2 * math.log(99)
    total = variation = ratio = 0.0
    decided = refuted = None
    for t, (p, q, y) in enumerate(zip(a, b, labels, strict=True)):
        loss = [-math.log(x if y else 1 - x) for x in (p, q)]
        ratio += loss[1] - loss[0]
        refuted = refuted or (t + 1 if ratio >= math.log(20) else None)
        clipped = [min(max(one, -math.log(0.99)), -math.log(0.01)) for one in loss]
        d, center = clipped[1] - clipped[0], total / max(t, 1)
        total, variation = total + d, variation + (d - center) ** 2
        e = sum(math.exp(r / width * total + (math.log1p(-r) + r) / width**2 * variation) for r in rates) / 12
        decided = decided or (t + 1 if e >= 40 else None)
    return decided, refuted, total / len(labels)


def test_models_are_compared_as_the_oracle_does_row_by_row(files):
    rows = clicks(2, 900)
    found = forel.compare(files / "new.forel", files / "old.forel", files / "today.csv", label="click", slices="site")
    a, b = (forel.load(files / f"{name}.forel").predict(rows) for name in ("new", "old"))
    decided, refuted, mean = oracle(a.astype(float), b.astype(float), [row["click"] for row in rows])
    compared = found.comparison
    assert (compared.better, compared.decided_after) == ("A", decided)
    assert compared.refuted_after == (None, refuted)
    low, high = compared.interval()
    assert low < mean < high
    assert found.curve[-1] == (900, low, high)
    assert str(found).startswith("new.forel is better than old.forel by ")
    by_site = {one.value: one for one in found.slices["site"]}
    assert {value: one.rows for value, one in by_site.items()} == {
        site: sum(row["site"] == site for row in rows) for site in ("news", "shop", "mail")
    }
    assert by_site["news"].low > 0.1
    assert by_site["mail"].low < 0 < by_site["mail"].high
    row = found.rows[0]
    assert abs(row.a - row.b) == pytest.approx(np.abs(a - b).max())
    assert (row.a, row.b, row.label) == pytest.approx((a[row.row], b[row.row], rows[row.row]["click"]))
    assert {one.name for one in found.features[:2]} == {"site^news", "site^shop"}


def test_predictions_give_the_same_as_their_models(files, tmp_path):
    rows = clicks(2, 900)
    paths = []
    for name in ("new", "old"):
        values = forel.load(files / f"{name}.forel").predict(rows)
        path = tmp_path / f"{name}.txt"
        # Some lines have a tag, as those of forel predict.
        path.write_text("".join(f"{v:.9g}{' tag' * (k % 2)}\n" for k, v in enumerate(values)))
        paths.append(path)
    labels = tmp_path / "labels.txt"
    labels.write_text("".join(f"{row['click']}\n" for row in rows))
    models = forel.compare(files / "new.forel", files / "old.forel", rows, label="click")
    for source, reading in ((labels, {}), (rows, {"label": "click"}), (files / "today.csv", {"label": "click"})):
        found = forel.compare(*paths, source, **reading)
        assert found.comparison.decided_after == models.comparison.decided_after
        assert found.comparison.interval() == pytest.approx(models.comparison.interval(), abs=1e-6)


def test_importances_are_honoured_by_every_side(tmp_path):
    rng = np.random.default_rng(7)
    rows = [
        {"site": f"s{rng.integers(5)}", "w": float(rng.choice([0.0, 0.5, 2.0, 8.0])), "click": int(rng.random() < 0.4)}
        for _ in range(1200)
    ]
    y, w = (np.array([row[name] for row in rows], float) for name in ("click", "w"))
    a, b = np.full(1200, 0.4), np.where(w > 0, 0.6, 0.4)
    path = tmp_path / "rows.csv"
    path.write_text("site,w,click\n" + "".join(f"{r['site']},{r['w']},{r['click']}\n" for r in rows))
    options = {"label": "click", "importance": "w", "bits": 8}
    found = forel.compare(a, b, path, slices="site", **options)
    losses = [-np.log(np.where(y > 0, p, 1 - p)) for p in (a, b)]
    means = [float(np.average(one, weights=w)) for one in losses]
    assert found.losses == pytest.approx(means)
    low, high = found.comparison.interval()
    assert low < means[1] - means[0] < high
    assert found.comparison.rows == (w > 0).sum()
    assert "per unit of importance in log-loss" in str(found)
    assert {rows[one.row]["w"] for one in found.rows} == {0.5, 2.0, 8.0}  # rows of importance 0 do not count
    assert forel.compare(np.where(w > 0, a, 0.9), b, path, **options).to_json() == {
        **found.to_json(), "slices": {}, "features_moved": []
    }  # fmt: skip
    by_site = {one.value: one.rows for one in found.slices["site"]}
    assert by_site == {f"s{k}": sum(r["w"] > 0 for r in rows if r["site"] == f"s{k}") for k in range(5)}
    site, most = np.array([row["site"] for row in rows]), math.log(99)
    for one in found.slices["site"]:  # the ends are where the evidence of the twin, row by row, is 2/0.05
        some = (site == one.value) & (w > 0)
        given = np.clip(losses[1] - losses[0], -most, most)[some], w[some]
        assert log_evidence_of_weighted(*given, -most, most, one.low)[-1] == pytest.approx(math.log(40), abs=1e-6)
        opposite = log_evidence_of_weighted(-given[0], given[1], -most, most, -one.high)
        assert opposite[-1] == pytest.approx(math.log(40), abs=1e-6)
    trained = forel.train(path, Settings(alpha=0.1), ignore=["w"], **options)
    sides = forel.compare(Settings(alpha=0.1), a, path, ignore=["w"], **options)
    assert sides.losses == pytest.approx((trained.report.loss, means[0]), rel=1e-6)
    again = forel.compare(trained, a, path, importance="w", label="click", ignore=["w"])
    assert again.losses == pytest.approx((trained.evaluate(path).report.loss, means[0]), rel=1e-6)
    with pytest.raises(ValueError, match="importance: got 'different ones for a and b in row 0'"):
        forel.compare(trained, a, path, label="click")
    with pytest.raises(ValueError, match="only rows of importance 0"):
        forel.compare(a[:2], b[:2], [{"w": 0, "y": 1}, {"w": 0, "y": 0}], label="y", importance="w")


def test_settings_are_trained_side_by_side():
    rows = clicks(3, 800)
    found = forel.compare(Settings(alpha=0.5), Settings(alpha=1e-4), rows, label="click", bits=8)
    assert found.comparison.better == "A"
    trained = forel.train(rows, Settings(alpha=0.5), label="click", bits=8)
    assert found.losses[0] == pytest.approx(trained.report.loss, rel=1e-6)


def test_numbers_are_compared_without_a_range_of_labels():
    rng = np.random.default_rng(0)
    labels = rng.standard_t(1.5, 4000) * 1e6
    near, far = labels + rng.normal(size=4000), labels + 3 * rng.normal(size=4000)
    found = forel.compare(near, far, labels)
    assert found.comparison.better == "A"
    assert " % of the sum of their losses" in str(found)
    relative = ((far - labels) ** 2 - (near - labels) ** 2) / ((far - labels) ** 2 + (near - labels) ** 2)
    low, high = found.comparison.interval()
    assert low < relative.mean() < high
    assert forel.compare(near, far, labels * 1.0, loss="absolute").comparison.better == "A"
    few = np.arange(4000) % 100 == 0
    often = forel.compare(np.where(few, far + 1e9, near), far, labels)
    means = [float(np.square(labels - p).mean() / 2) for p in (np.where(few, far + 1e9, near), far)]
    assert (often.comparison.better, often.losses) == ("A", pytest.approx(means))
    assert "; but B has the smaller average loss, " in str(often)
    assert often.to_json()["sentence"] == str(often)


@pytest.mark.parametrize(
    ("a", "b", "source", "message"),
    [
        ([0.5, 0.5], [0.5], [1, 0], "b: got 1 prediction, expected one for each of 2 labels"),
        ([0.5, np.nan], [0.5, 0.5], [1, 0], "row 1 of predictions: got nan"),
        ([0.5, 2.0], [0.5, 0.5], [1, 0], "expected squared loss, as that of a|expected log-loss|the loss log-loss"),
        ([], [], [], "no rows"),
    ],
)
def test_bad_input_is_named(a, b, source, message):
    with pytest.raises(ValueError, match=message):
        forel.compare(a, b, np.array(source, float))


def test_files_of_predictions_without_numbers_are_named(tmp_path):
    texts = {
        "a.txt": "0.5\n0.5\n",
        "bad.txt": "0.5\nnan\n",
        "tags.txt": "0.5\ninf tag\n",
        "empty.txt": "",
        "word.txt": "0.5 a\nno\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)

    def shown(b):
        result = CliRunner().invoke(app, ["compare", *(str(tmp_path / name) for name in ("a.txt", b, "a.txt"))])
        assert result.exit_code == 2, result.output
        return result.output

    assert "row 2 of" in shown("bad.txt")
    assert "row 2 of" in shown("tags.txt")
    assert "empty.txt: " in shown("empty.txt")
    assert "word.txt: got 'no', expected a prediction" in " ".join(shown("word.txt").split())


def test_the_command_prints_a_sentence_json_and_a_page(files, tmp_path):
    runner = CliRunner()
    paths = [str(files / "new.forel"), str(files / "old.forel"), str(files / "today.csv")]
    options = ["--label", "click", "--slice", "site", "--report", str(tmp_path / "page.html")]
    shown = runner.invoke(app, ["compare", *paths, *options])
    assert shown.exit_code == 0, shown.output
    assert shown.output.startswith("new.forel is better than old.forel by 1.")
    assert "no matter when you looked; decided after" in shown.output
    page = (tmp_path / "page.html").read_text()
    assert "<polyline" in page
    assert "By site" in page
    printed = runner.invoke(app, ["compare", "--json", "default", "alpha=0.0001", paths[2], "--label", "click"])
    values = json.loads(printed.output)
    assert (values["better"], values["a"], values["rows"]) == ("A", "default", 900)
    assert values["low"] > 0
    wrong = runner.invoke(app, ["compare", "alfa=1", "default", paths[2], "--label", "click"])
    assert wrong.exit_code
    assert "got 'alfa=1', expected name=value of a setting" in wrong.output


def test_equal_predictions_have_no_table_of_differences(tmp_path):
    (tmp_path / "p.txt").write_text("0.5\n0.25\n")
    (tmp_path / "l.csv").write_text("y,x\n1,2\n0,3\n")
    paths = [str(tmp_path / name) for name in ("p.txt", "p.txt", "l.csv")]
    shown = CliRunner().invoke(app, ["compare", *paths, "--label", "y"])
    assert shown.exit_code == 0, shown.output
    assert "neither is shown to be better" in shown.stdout
    assert "differ" not in shown.stdout


@pytest.mark.parametrize("name", ["spambase.vw.gz", "rcv1_small.vw.gz", "elec2.csv.gz"])
def test_the_default_is_shown_to_be_better_within_600_rows(name):
    """On real data, against single settings, of which neither was tuned."""
    if not (DATA / name).exists():
        pytest.skip(f"needs {name} in ../shared/data or in the directory FOREL_DATA")
    options = {"label": "class"} if name.startswith("elec2") else {}
    for alpha in (0.05, 0.3):
        found = forel.compare(None, Settings(alpha=alpha), str(DATA / name), **options)
        assert found.comparison.better == "A"
        assert found.comparison.decided_after <= 600


def test_the_command_takes_importances_and_ignores_columns(tmp_path):
    rng = np.random.default_rng(4)
    rows = [{**row, "w": float(w)} for row, w in zip(clicks(3, 300), rng.choice([0.0, 0.5, 3.0], 300), strict=True)]
    table, labels = tmp_path / "rows.csv", [row["click"] for row in rows]
    table.write_text("site,hour,click,w\n" + "".join(",".join(map(str, row.values())) + "\n" for row in rows))
    p = [np.clip(np.array(labels) * 0.5 + rng.random(300) * 0.4, 0.05, 0.95).round(4) for _ in range(2)]
    paths = [str(tmp_path / f"{name}.txt") for name in "ab"]
    for path, each in zip(paths, p, strict=True):
        np.savetxt(path, each)
    options = ["--label", "click", "--json"]
    weighted = CliRunner().invoke(app, ["compare", *paths, str(table), "--importance", "w", *options])
    expected = forel.compare(*p, rows, label="click", importance="w").to_json()
    assert json.loads(weighted.stdout)["loss_a"] == pytest.approx(expected["loss_a"])
    ignoring = CliRunner().invoke(app, ["compare", "alpha=0.3", "alpha=1", str(table), "--ignore", "w", *options])
    expected = forel.compare(Settings(alpha=0.3), Settings(alpha=1.0), rows, label="click", ignore=["w"]).to_json()
    assert json.loads(ignoring.stdout)["loss_b"] == pytest.approx(expected["loss_b"])
