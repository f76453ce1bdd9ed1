"""Several classes: recognized or given, the same through every format, with metrics and names in the model."""

import io
import json
import math

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import forel
from forel.cli.app import app
from forel.learner.settings import Settings
from forel.store import serving_model

ONE = Settings(alpha=1.0)
JOINT = Settings("softmax", alpha=1.0)
NAMES = ["food", "cars", "space"]

pytestmark = pytest.mark.usefixtures("interpreted")


def examples(count=90, seed=3):
    """Return rows of three classes, with a word and a number that depend on the class."""
    rng, words = np.random.default_rng(seed), ["apple", "tyre", "moon"]
    rows = []
    for _ in range(count):
        k = int(rng.integers(3))
        word = words[k] if rng.random() < 0.8 else words[int(rng.integers(3))]
        rows.append({"word": word, "size": int(rng.integers(4)) + k, "topic": NAMES[k]})
    return rows


ROWS = examples()


def csv_text(rows=ROWS, names=None):
    lines = [f"{r['word']},{r['size']},{r['topic'] if names is None else names[r['topic']]}" for r in rows]
    return ("word,size,topic\n" + "\n".join(lines) + "\n").encode()


def vw_text(rows=ROWS, first=1):
    number = {name: k + first for k, name in enumerate(NAMES)}
    return "".join(f"{number[r['topic']]} |word {r['word']} | size:{r['size']}\n" for r in rows).encode()


def sources():
    """Return the same rows in each format, whose features have the same slots."""
    table = pa.table({name: [r[name] for r in ROWS] for name in ROWS[0]})
    return {
        "csv": io.BytesIO(csv_text()),
        "jsonl": io.BytesIO("".join(json.dumps(r) + "\n" for r in ROWS).encode()),
        "dicts": ROWS,
        "table": table,
        "dictionary": table.set_column(2, "topic", table["topic"].dictionary_encode()),
        "vw": io.BytesIO(vw_text()),
        "codes": [{**r, "topic": NAMES.index(r["topic"])} for r in ROWS],
    }


def test_rows_of_every_format_give_the_same_model():
    found = {}
    for form, source in sources().items():
        options = {} if form == "vw" else {"label": "topic"}
        count = {"classes": 3} if form in ("vw", "codes") else {}
        found[form] = forel.train(source, ONE, bits=8, **options, **count)
    expected = found["csv"]
    order = list(dict.fromkeys(r["topic"] for r in ROWS))
    assert expected.extra["reading"]["classes"] == order
    assert found["vw"].extra["reading"]["classes"] == [str(NAMES.index(name) + 1) for name in order]
    for trained in found.values():
        assert np.array_equal(trained.learner.weights, expected.learner.weights)
        assert trained.report.confusion == expected.report.confusion


def test_metrics_are_those_of_the_margins():
    trained = forel.train(ROWS, JOINT, label="topic", bits=8)
    margins = forel.predict(trained, ROWS, margins=True).astype(float)
    probabilities = np.exp(margins) / np.exp(margins).sum(axis=1, keepdims=True)
    names = trained.extra["reading"]["classes"]
    actual = [names.index(r["topic"]) for r in ROWS]
    report = forel.evaluate(trained, ROWS).report
    losses = [-math.log(p[k]) for p, k in zip(probabilities, actual, strict=True)]
    assert report.loss == pytest.approx(np.mean(losses), rel=1e-6)
    predicted = margins.argmax(axis=1)
    assert report.accuracy == pytest.approx(np.mean(predicted == actual))
    for k in range(3):
        for j in range(3):
            assert report.confusion[k][j] == sum(a == k and p == j for a, p in zip(actual, predicted, strict=True))
    shares = np.bincount(actual) / len(actual)
    assert report.baseline_accuracy == pytest.approx(shares.max())
    assert report.entropy == pytest.approx(np.mean(losses) / -np.sum(shares * np.log(shares)), rel=1e-6)
    assert np.allclose(forel.predict(trained, ROWS, probabilities=True), probabilities, atol=1e-6)
    assert forel.predict(trained, ROWS).tolist() == [names[k] for k in predicted]


def test_hinge_losses_sum_over_classes():
    trained = forel.train(ROWS, Settings("hinge", alpha=1.0), label="topic", bits=8)
    margins = forel.predict(trained, ROWS, margins=True).astype(float)
    signs = np.where([[r["topic"] == name for name in trained.extra["reading"]["classes"]] for r in ROWS], 1, -1)
    expected = np.maximum(0, 1 - signs * margins).sum(axis=1).mean()
    assert forel.evaluate(trained, ROWS).report.loss == pytest.approx(expected, rel=1e-6)
    with pytest.raises(ValueError, match="probabilities: got True, expected False: the loss hinge"):
        forel.predict(trained, ROWS, probabilities=True)


@pytest.mark.parametrize("settings", [ONE, JOINT, Settings("softmax", alpha=(0.1, 1.0))])
def test_models_do_not_depend_on_blocks_or_threads(settings):
    text = csv_text()
    expected = forel.train(io.BytesIO(text), settings, label="topic", bits=8, classes="auto", threads=0)
    for size, threads in ((40, 0), (300, 2)):
        other = forel.train(
            io.BytesIO(text), settings, label="topic", bits=8, classes="auto", block_bytes=size, threads=threads
        )
        assert other.extra["reading"]["classes"] == expected.extra["reading"]["classes"]
        assert np.array_equal(other.learner.weights, expected.learner.weights)
        assert other.report.loss == expected.report.loss
        assert other.report.confusion == expected.report.confusion


def test_a_second_pass_has_the_same_classes(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(csv_text())
    twice = forel.train(str(path), ONE, label="topic", bits=8, passes=2)
    assert twice.training.passes[1].loss < twice.training.passes[0].loss
    first = forel.train(str(path), ONE, label="topic", bits=8)
    assert twice.extra["reading"]["classes"] == first.extra["reading"]["classes"]


def test_an_interrupted_run_resumes_to_the_same_bits(tmp_path):
    path, check = tmp_path / "rows.csv", tmp_path / "m.checkpoint"
    path.write_bytes(csv_text(examples(400)))
    run = {"label": "topic", "bits": 8, "block_bytes": 800, "checkpoint_every": 100, "classes": 4}
    whole = forel.train(str(path), ONE, checkpoint=tmp_path / "other", **run)

    def stop(progress):
        if progress.rows > 200:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        forel.train(str(path), ONE, checkpoint=check, progress=stop, **run)
    resumed = forel.train(str(path), ONE, checkpoint=check, resume=True, **run)
    assert resumed.extra["reading"]["classes"] == whole.extra["reading"]["classes"]
    assert np.array_equal(resumed.learner.weights, whole.learner.weights)
    assert resumed.report == whole.report


def test_training_continues_with_the_same_classes(tmp_path):
    first = forel.train(ROWS[:60], ONE, label="topic", bits=8)
    first.save(tmp_path / "m.forel")
    second = forel.train(ROWS[60:], model=forel.load(tmp_path / "m.forel"))
    whole = forel.train(ROWS, ONE, label="topic", bits=8)
    assert np.array_equal(second.learner.weights, whole.learner.weights)
    with pytest.raises(ValueError, match=r"classes: got 5, expected \('"):
        forel.train(ROWS, model=first, classes=5)


def test_new_classes_are_errors_with_their_line():
    rows = [*ROWS, {**ROWS[0], "topic": "music"}]
    message = r"stream, line 92: got the class 'music', expected one of the 3 classes before; classes \(--classes\)"
    with pytest.raises(ValueError, match=message):
        forel.train(io.BytesIO(csv_text(rows)), ONE, label="topic", bits=8, classes=3)
    skipped = forel.train(io.BytesIO(csv_text(rows)), ONE, label="topic", bits=8, classes=3, on_error="skip")
    assert (skipped.training.problems.count, skipped.report.rows) == (1, 90)
    assert len(skipped.extra["reading"]["classes"]) == 3
    with pytest.raises(ValueError, match=r"column 'topic': got the class 'music', expected one of 'food', 'cars', 'sp"):
        forel.train(io.BytesIO(csv_text(rows)), ONE, label="topic", bits=8, classes=NAMES)
    trained = forel.train(ROWS, ONE, label="topic", bits=8)
    with pytest.raises(ValueError, match="got the class 'music', expected one of"):
        forel.evaluate(trained, rows)
    assert forel.predict(trained, rows)[-1] == forel.predict(trained, rows)[0]


@pytest.mark.usefixtures("interpreted")
def test_many_classes_take_memory_only_for_features_that_occur(monkeypatch):
    monkeypatch.setattr("forel.validation.total_memory", lambda: 8e9)
    rows = [{"y": f"class {k % 52}", "x": 1.0} for k in range(104)]
    trained = forel.train(rows, label="y")  # 52 classes, 16 settings and 2^22 slots are 27.9 GB of addresses
    assert (trained.learner.classes, trained.report.rows) == (52, 104)


@pytest.mark.usefixtures("interpreted")
def test_a_run_ends_before_it_takes_all_memory(monkeypatch):
    monkeypatch.setattr("forel.training.progress.total_memory", lambda: 1e6)
    with pytest.raises(MemoryError, match=r"memory: got .* GB after 64 rows, expected at most .*; use fewer bits"):
        forel.train([{"y": k % 2, "x": 1.0} for k in range(104)], Settings(alpha=1.0), label="y", bits=4)


def test_classes_after_the_first_rows_are_not_counted(monkeypatch):
    monkeypatch.setattr("forel.training.labels.FIRST", 20)
    rows = sorted(ROWS[:60], key=lambda r: r["topic"] == "space")
    for size in (50, 1 << 20):
        with pytest.raises(ValueError, match="got the class 'space', expected one of the 2 classes before"):
            forel.train(io.BytesIO(csv_text(rows)), ONE, label="topic", bits=8, classes="auto", block_bytes=size)


@pytest.mark.parametrize(
    ("settings", "options", "message"),
    [
        (Settings("squared"), {}, "loss: got 'squared', expected logistic, hinge, squared_hinge or softmax"),
        (ONE, {"certificate": True}, "certificate: got True, expected False for classes one against the rest"),
        (ONE, {"classes": 1}, "classes: got 1"),
        (ONE, {"classes": ["a", " a"]}, "classes: got .*, expected at least two names, all different"),
        (ONE, {"classes": 3, "positive": "food"}, "positive: got 'food', expected None"),
    ],
)
def test_options_without_support_for_several_classes_are_refused(settings, options, message):
    with pytest.raises(ValueError, match=message):
        forel.train(ROWS, settings, label="topic", bits=8, **options)


def test_a_joint_loss_has_a_certificate_and_takes_numbers():
    trained = forel.train(io.BytesIO(vw_text()), JOINT, bits=8, certificate=True)
    assert sorted(trained.extra["reading"]["classes"]) == ["1", "2", "3"]
    assert "linear model of these 2^8 hashed features" in trained.training.certificate


def test_single_rows_and_explanations_name_the_class(tmp_path):
    trained = forel.train(ROWS, JOINT, label="topic", bits=8)
    forel.save(tmp_path / "s.forel", serving_model(trained.learner), trained.extra)
    expected = forel.predict(trained, ROWS).tolist()
    probabilities = forel.predict(trained, ROWS, probabilities=True)
    for model in (trained, forel.load(tmp_path / "s.forel")):
        assert [model.predict_one(r) for r in ROWS[:9]] == expected[:9]
        assert model.predict_many(ROWS).tolist() == expected
        found = model.explain_one(ROWS[0])
        assert found.label == expected[0]
        assert found.prediction == pytest.approx(probabilities[0].max(), rel=1e-5)
        assert found.margin == pytest.approx(found.bias + sum(part.contribution for part in found.contributions))


def test_the_commands_train_predict_and_evaluate(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        done = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"}).invoke(app, arguments)
        assert done.exit_code == 0, done.stderr
        return done.stdout

    (tmp_path / "rows.csv").write_bytes(csv_text())
    (tmp_path / "rows.vw").write_bytes(vw_text())
    train = ("train", "rows.csv", "--label", "topic", "--bits", "8", "--loss", "softmax", "--alpha", "1", "-f", "m")
    assert "accuracy" in run(*train, "-p", "before.txt")
    assert set((tmp_path / "before.txt").read_text().split()) == {*NAMES}
    model = forel.load("m")
    assert run("predict", "rows.csv", "-i", "m").split() == forel.predict(model, ROWS).tolist()
    line = run("predict", "rows.csv", "-i", "m", "--probabilities").splitlines()[0]
    written = {name: float(p) for name, p in (pair.rsplit(":", 1) for pair in line.split("\t"))}
    expected = dict(zip(model.classes, forel.predict(model, ROWS[:1], probabilities=True)[0], strict=True))
    assert written == pytest.approx(expected, rel=1e-4)
    assert "confusion" in run("evaluate", "rows.csv", "-i", "m")
    assert json.loads(run("evaluate", "rows.csv", "-i", "m", "--json"))["accuracy"] > 0.5
    assert "class" in run("inspect", "m")
    assert "prediction of '" in run("explain", "rows.csv", "-i", "m")
    output = run("train", "rows.vw", "--oaa", "3", "--alpha", "1", "-b", "8", "--json")
    assert sorted(json.loads(output)["report"]["classes"]) == ["1", "2", "3"]
    wrong = CliRunner().invoke(app, ["predict", "rows.csv", "-i", "m", "--link", "identity"])
    assert "--link: got 'identity', expected auto for several classes" in wrong.stderr


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("labels", [["5", "7", "9"], ["sport"]])
@pytest.mark.parametrize("options", [{}, {"by": "key"}])
def test_classes_that_have_not_occurred_do_not_change_the_names_of_others(labels, options, tmp_path):
    rows = [{"word": label, "key": "k", "y": label} for label in labels] * 20
    seen = []

    def progress(now):
        seen.extend(now.predicted(None))

    trained = forel.train(rows, ONE, label="y", classes=4, bits=6, progress=progress, **options)
    assert set(seen) <= {*labels, "class 4"}
    trained.save(tmp_path / "m.forel")
    stored = forel.load(tmp_path / "m.forel")
    assert stored.classes == (*labels, *(f"class {k + 1}" for k in range(len(labels), 4)))
    assert forel.predict(stored, rows[: len(labels)]).tolist() == labels
    assert forel.evaluate(stored, rows).report.accuracy == 1.0
