"""Namespaces of VW text that are left out, against a naive twin and against Vowpal Wabbit, if it is installed."""

import io
import re

import numpy as np
import pytest
from typer.testing import CliRunner

import forel
from forel.cli.app import app
from forel.data import concatenate, read

LINES = [
    "1 |apple x y:2 |banana z |cat w",
    "-1 2 'tag| a b |banana:0.5 q||é f |",
    "0 |apple y |b z |apple x",
    " | |a",
    "1 | d e |c|c v",
]
OPTIONS = [
    {"ignore": ["a"]},
    {"ignore": ["ab"]},
    {"ignore": ["b", r"\x20"]},
    {"keep": ["a"]},
    {"keep": [" c"]},
    {"keep": ["a"], "ignore": ["ab"]},
    {"keep": ["z"]},
    {"ignore": ["é"]},
]


def left_out(line, keep=None, ignore=()):
    """The line without namespaces, one at a time."""
    head, *parts = line.split("|")
    letters = {b for word in (ignore if keep is None else keep) for b in word.replace(r"\x20", " ").encode()}
    kept = [part for part in parts if ((part[:1].strip(" :") or " ").encode()[0] in letters) == (keep is not None)]
    return head + "".join(f"|{part}" for part in kept or [""])


def parsed(lines, **options):
    return list(read(io.BytesIO("\n".join([*lines, ""]).encode()), "vw", bits=12, **options))


@pytest.mark.filterwarnings("ignore:interactions")  # of namespaces that no row has
@pytest.mark.parametrize("given", OPTIONS)
@pytest.mark.parametrize("more", [{}, {"interactions": ["ab"]}, {"tags": True, "block_bytes": 64}])
def test_namespaces_are_left_out_as_if_lines_did_not_have_them(given, more):
    found, expected = (concatenate(each) for each in (parsed(LINES, **given, **more), parsed(twin(given), **more)))
    for name in ("indptr", "indices", "values", "importance", "labels", "tags"):
        assert np.array_equal(getattr(found, name), getattr(expected, name), equal_nan=name == "labels")


def twin(given):
    return [left_out(line, **given) for line in LINES]


def test_malformed_features_are_reported_where_they_are_and_not_in_namespaces_left_out():
    lines = ["1 |a x:oops |b z", "1 |a x |b z:oops"]
    reader = read(io.BytesIO("\n".join([*lines, ""]).encode()), "vw", ignore=["a"], on_error="skip")
    assert sum(map(len, reader)) == 1
    assert re.search(r"line 2, column 13: got 'oops'", reader.problems.messages[0])


def test_a_model_keeps_the_namespaces_and_slices_see_those_left_out(tmp_path):
    path, model = tmp_path / "rows.vw", tmp_path / "m.forel"
    path.write_text("1 |a x |b y\n0 |a z |b y\n" * 50)
    run = CliRunner().invoke
    options = ["--ignore", "a", "--alpha", "1", "-b", "10", "--quiet", "-f", str(model)]
    assert run(app, ["train", str(path), *options]).exit_code == 0
    stored = forel.load(model)
    assert stored.extra["reading"]["ignore"] == ["a"]
    found = run(app, ["predict", str(path), "--model", str(model)]).output.split()
    assert len(set(found)) == 1  # b has the same feature in all rows
    found = next(iter(read(path, ignore=["a"], bits=10, slices=["a"])))
    assert [set(values) for values in found.slices] == [{b"x", b"z"}]


def test_other_line_formats_have_no_namespaces():
    with pytest.raises(ValueError, match="none for svmlight, which has no columns"):
        list(read(io.BytesIO(b"1 1:2\n"), "svmlight", ignore=["a"]))


@pytest.mark.parametrize("given", OPTIONS)
def test_vowpal_wabbit_leaves_out_the_same_features(given):
    vw = pytest.importorskip("vowpalwabbit")
    flags = [f"--{name} {letters.replace(' ', chr(92) + 'x20')}" for name in given for letters in given[name]]
    workspace = vw.Workspace(f"--quiet --noconstant {' '.join(flags)}")
    for line in LINES:
        counted = sum(1 for _ in workspace.example(line).iter_features())
        block = concatenate(parsed([line], **given, entry_names=True))
        assert counted == block.indices.size
