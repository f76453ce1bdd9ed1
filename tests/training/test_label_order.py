"""The warning about labels that come sorted."""

import re
import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

from forel.cli.app import app
from forel.learner.settings import Settings
from forel.sklearn import FTRLClassifier
from forel.training.label_order import LabelOrder, LabelOrderWarning
from forel.training.train import train


def warning(labels, parts=1, classes=None):
    order = LabelOrder()
    for part in np.array_split(np.asarray(labels, np.float32), parts):
        order.add(part)
    return order.warning(classes)


@pytest.mark.parametrize("parts", [1, 7, 120])
def test_sorted_labels_are_warned_about_however_rows_are_divided(parts):
    expected = "labels are sorted: 1 change in 120 rows, where random order has about 60; shuffle=0"
    assert warning([0] * 60 + [1] * 60, parts).startswith(expected)
    assert warning([1] * 60 + [-1] * 60, parts).startswith(expected)


def test_missing_labels_are_left_out_and_a_third_one_is_not_a_class():
    assert warning([0] * 60 + [np.nan] + [1] * 60, 5) == warning([0] * 60 + [1] * 60)
    assert "labels are sorted" not in warning([0] * 60 + [2] + [1] * 60, 5)


def test_labels_beyond_whole_numbers_are_not_classes():
    order = LabelOrder()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        order.add(np.array([0, 1e30, -1e30, 3e18]))
    assert order.warning() is None


def test_other_orders_are_not():
    rng = np.random.default_rng(0)
    assert warning(rng.integers(2, size=500)) is None
    assert warning([0, 1] * 60) is None
    assert warning([0] * 30 + [1] * 30) is None  # few rows
    assert warning([0] * 500) is None
    assert warning([0] * 499 + [1]) is None
    assert warning(rng.normal(size=500)) is None  # regression
    assert warning([np.nan] * 200) is None


def test_a_last_quarter_unlike_the_first_is_warned_about():
    rng = np.random.default_rng(0)
    rates = np.repeat([0.1, 0.1, 0.2, 0.4], 500)
    labels = (rng.random(2000) < rates).astype(float)
    for parts in (1, 8, 300):
        assert warning(labels, parts).startswith("the last quarter of the rows differs from the first: 0.4")
    assert warning(labels[::-1], 8) is not None
    assert warning(labels[rng.permutation(2000)], 8) is None
    assert warning(labels, 1) is not None  # parts of one block


def test_several_classes_that_come_sorted_are_warned_about():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 50)
    for parts in (1, 9):
        found = warning(labels, parts, classes=3)
        assert found.startswith("labels are sorted: 2 changes in 150 rows, where random order has about 100;")
    assert "labels are sorted" not in warning(labels)  # numbers
    assert warning(rng.permutation(labels), classes=3) is None
    assert warning(labels + 0.5, classes=3) is None
    assert warning(labels * 1000, classes=3) is None


def test_the_command_line_warns(tmp_path, interpreted):
    run = CliRunner().invoke
    arguments = ["--label", "y", "--bits", "4", "--alpha", "1", "--quiet"]
    (tmp_path / "sorted.csv").write_text("y,x\n" + "0,1\n" * 60 + "1,2\n" * 60)
    (tmp_path / "mixed.csv").write_text("y,x\n" + "0,1\n1,2\n" * 60)
    assert "labels are sorted" in run(app, ["train", str(tmp_path / "sorted.csv"), *arguments]).stderr
    (tmp_path / "classes.csv").write_text("y,x\n" + "a,1\n" * 60 + "b,2\n" * 60 + "c,3\n" * 60)
    assert "labels are sorted: 2 changes" in run(app, ["train", str(tmp_path / "classes.csv"), *arguments]).stderr
    assert "labels are sorted" not in run(app, ["train", str(tmp_path / "mixed.csv"), *arguments]).stderr
    shuffled = run(app, ["train", str(tmp_path / "sorted.csv"), *arguments, "--shuffle"])
    assert (shuffled.exit_code, shuffled.stderr) == (0, "")


@pytest.mark.parametrize("parts", [1, 7, 400])
def test_numbers_that_follow_one_another_are_warned_about(parts):
    rng = np.random.default_rng(0)
    expected = r"labels follow one another \(correlation .* losses of the run say how well the stream is followed"
    for labels in (
        np.sort(rng.normal(size=500)),
        1e7 + np.arange(500) + 100 * rng.normal(size=500),
        np.sin(np.arange(500) / 20),
        np.arange(500)[::-1] + rng.normal(size=500),
    ):
        found = warning(labels, parts)
        assert re.match(expected, found)
        assert "shuffle=0 learns in random order, holdout_after=N holds out the last rows" in found
        assert warning(rng.permutation(labels), parts) is None
    assert warning(np.full(500, 3.3), parts) is None


def rows_of(labels):
    return [{"x": float(k % 7), "y": int(label)} for k, label in enumerate(labels)]


def messages(recorded):
    return [str(one.message) for one in recorded if issubclass(one.category, LabelOrderWarning)]


@pytest.mark.usefixtures("interpreted")
def test_train_warns_once_in_terms_of_its_arguments():
    options = {"settings": Settings(alpha=1.0), "label": "y", "bits": 4}
    with pytest.warns(LabelOrderWarning) as recorded:
        trained = train(rows_of([0] * 60 + [1] * 60), passes=2, **options)
    expected = (
        "labels are sorted: 1 change in 120 rows, where random order has about 60; shuffle=0 learns in random order"
    )
    assert messages(recorded) == [expected]
    assert recorded[0].filename == __file__
    assert trained.training.label_order.warning() == expected
    labels = (np.arange(2000) % 10 < np.repeat([1, 1, 2, 4], 500)).astype(int)
    with pytest.warns(LabelOrderWarning, match="shuffle=0 learns in random order, and fixed_share=0.001 follows"):
        train(rows_of(labels), **options)


@pytest.mark.usefixtures("interpreted")
def test_train_and_estimators_do_not_warn_of_rows_that_are_shuffled_or_streamed(recwarn):
    labels, X = np.repeat([0, 1], 60), np.arange(120.0)[:, None] / 120
    train(rows_of(labels), Settings(alpha=1.0), label="y", bits=4, shuffle=0)
    FTRLClassifier(alpha=1.0).fit(X, labels)
    FTRLClassifier(alpha=1.0, shuffle=False).partial_fit(X, labels, classes=[0, 1])
    FTRLClassifier(alpha=1.0, shuffle=False).fit(X, labels[np.arange(120) * 7 % 120])
    assert messages(recwarn) == []


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("labels", [np.repeat([0, 1], 60), np.repeat(["a", "b", "c"], 40)])
def test_estimators_warn_of_sorted_labels_if_they_do_not_shuffle(labels):
    X = np.arange(120.0)[:, None] / 120
    with pytest.warns(LabelOrderWarning, match="labels are sorted.*; shuffle=True learns in random order$") as recorded:
        FTRLClassifier(alpha=1.0, shuffle=False, passes=2).fit(X, labels)
    assert len(messages(recorded)) == 1
    assert recorded[0].filename == __file__


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("labels", [np.repeat([0, 1], 150), np.repeat([0, 1, 0, 1], [70, 5, 70, 155]), np.arange(300)])
def test_the_warning_of_a_resumed_run_is_about_all_rows(tmp_path, labels):
    path, check = tmp_path / "rows.csv", tmp_path / "m.checkpoint"
    path.write_text("x,y\n" + "".join(f"{k % 5},{y}\n" for k, y in enumerate(labels.tolist())))
    options = {"label": "y", "bits": 4, "block_bytes": 100, "checkpoint": check, "checkpoint_every": 20}
    settings = Settings("squared" if labels.max() > 1 else "logistic", alpha=0.1)

    def stop(progress):
        if progress.rows > 200:
            raise KeyboardInterrupt

    with pytest.warns(LabelOrderWarning) as whole:
        train(path, settings, **options)
    check.unlink()
    with pytest.raises(KeyboardInterrupt):
        train(path, settings, progress=stop, **options)
    with pytest.warns(LabelOrderWarning) as resumed:
        train(path, settings, resume=True, **options)
    assert messages(resumed) == messages(whole)
