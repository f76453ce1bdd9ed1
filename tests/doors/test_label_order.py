"""The warning about labels that come sorted."""

import numpy as np
import pytest
from typer.testing import CliRunner

from forel.doors.cli.app import app
from forel.doors.cli.label_order import LabelOrder


def warning(labels, parts=1, classes=None):
    order = LabelOrder()
    for part in np.array_split(np.asarray(labels, np.float32), parts):
        order.add(part)
    return order.warning(classes)


@pytest.mark.parametrize("parts", [1, 7, 120])
def test_sorted_labels_are_warned_about_however_rows_are_divided(parts):
    expected = "labels are sorted: 1 change in 120 rows, where random order has about 60; --shuffle"
    assert warning([0] * 60 + [1] * 60, parts).startswith(expected)
    assert warning([1] * 60 + [-1] * 60, parts).startswith(expected)


def test_missing_labels_are_left_out_and_a_third_one_is_not_a_class():
    assert warning([0] * 60 + [np.nan] + [1] * 60, 5) == warning([0] * 60 + [1] * 60)
    assert warning([0] * 60 + [2] + [1] * 60, 5) is None


def test_other_orders_are_not():
    rng = np.random.default_rng(0)
    assert warning(rng.integers(2, size=500)) is None
    assert warning([0, 1] * 60) is None
    assert warning([0] * 30 + [1] * 30) is None  # few rows
    assert warning([0] * 500) is None
    assert warning([0] * 499 + [1]) is None
    assert warning(np.sort(rng.normal(size=500))) is None  # regression
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
    assert warning(labels) is None  # numbers
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
