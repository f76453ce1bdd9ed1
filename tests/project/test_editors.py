"""Editors know names, types and mistakes: mypy, and pyright where it is installed, agree on a file of examples."""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import traceback

import pytest

import forel

ROOT = pathlib.Path(__file__).parents[2]
EXAMPLES = pathlib.Path(__file__).with_name("typed_examples.py")
MISTAKES = {number for number, line in enumerate(EXAMPLES.read_text().splitlines(), 1) if line.endswith("  # error")}


def run(*command):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=ROOT, check=False).stdout


def test_mypy_finds_the_mistakes_and_nothing_else(tmp_path):
    pytest.importorskip("mypy")
    shown = run(sys.executable, "-m", "mypy", "--cache-dir", tmp_path, EXAMPLES)
    assert set(map(int, re.findall(r"examples\.py:(\d+): error", shown))) == MISTAKES, shown
    assert shown.count("did you mean") >= 5


def test_pyright_finds_the_mistakes_and_nothing_else():
    checker = shutil.which("pyright") or shutil.which("basedpyright")
    if checker is None:
        pytest.skip("pyright is not installed: pip install pyright")
    shown = json.loads(run(checker, "--outputjson", "--level", "error", "--pythonpath", sys.executable, EXAMPLES))
    lines = {one["range"]["start"]["line"] + 1 for one in shown["generalDiagnostics"]}
    assert lines == MISTAKES, shown


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: forel.train([{"a": 1, "y": 0}], lable="y"), TypeError, "'lable'; did you mean 'label'"),
        (lambda: forel.read([{"a": 1}], fromat="vw"), TypeError, "'fromat'.* did you mean 'format'"),
        (lambda: forel.trian, AttributeError, "Did you mean: 'train'"),
    ],
)
def test_mistakes_are_errors_with_suggestions_at_run_time_too(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert re.search(message, "".join(traceback.format_exception(caught.value)))
