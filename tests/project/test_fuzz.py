"""Every fuzzer runs for a few seconds without a finding, and reports the defects it is meant to find."""

import itertools
import os
import signal

import pytest

from forel import save
from forel.store import serving_model
from forel.training.model import Model
from tests.fuzz import __main__ as every
from tests.fuzz import files, formats, process, ways


@pytest.mark.slow
@pytest.mark.parametrize("name", ["files", "formats"])
def test_the_fuzzer_finds_no_failure_in_a_few_seconds(name):
    done = process(name, 4)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"{name}, seed 0: ")


def test_fuzzers_are_discovered():
    assert set(every.fuzzers()) >= {"files", "formats", "sentences", "ways"}
    assert "oracle" not in every.fuzzers()


def test_all_ways_to_predict_agree_for_every_loss(monkeypatch):
    assert ways.run(0, seed=1, models=2 * len(ways.LOSSES)) == 2 * len(ways.LOSSES)
    monkeypatch.setattr(Model, "predict_one", lambda self, row: 0.123)
    with pytest.raises(AssertionError, match=r"seed 1, number 0: logistic, .*trained, one row: "):
        ways.run(0, seed=1, models=1)


class Answers:
    """Stub of the process that opens files: the same numbers for intact files, one answer for damaged ones."""

    def __init__(self, answer):
        self.answer = answer

    def __call__(self, path):
        return self.answer if "damaged-" in str(path) else ("numbers", [1.0])

    def close(self):
        pass


@pytest.mark.parametrize(
    "answer",
    [
        ("crash", "-11"),
        ("hang", "60 seconds"),
        ("traceback", "KeyError"),
        ("sentence", "no name of a file"),
        ("sentence", "damaged-x\nTraceback"),
        ("numbers", [2.0]),
    ],
)
def test_damage_without_a_clear_error_is_reported(answer, monkeypatch):
    monkeypatch.setattr(files, "Opener", lambda: Answers(answer))
    with pytest.raises(AssertionError, match="seed 3, number "):
        files.run(5, seed=3)
    monkeypatch.setattr(files, "Opener", lambda: Answers(("sentence", "damaged-x: not a whole file")))
    assert files.run(0.05) > 0


@pytest.mark.slow
def test_process_that_dies_or_hangs_is_restarted(tmp_path, monkeypatch, interpreted):
    path = tmp_path / "serving.forel"
    small = serving_model(files.make.learn(files.make.LEARNERS["linear"](), 40))
    save(path, small)
    opener = files.Opener()
    try:
        kind, numbers = opener(path)
        assert (kind, len(numbers)) == ("numbers", 8)
        assert opener(tmp_path / "nothing")[0] == "sentence"
        opener._process.kill()
        assert opener(path)[0] == "crash"
        assert opener(path) == ("numbers", numbers)
        monkeypatch.setattr(files, "PATIENCE", 0)
        os.kill(opener._process.pid, signal.SIGSTOP)  # a process that runs may answer at once
        assert opener(path)[0] == "hang"
    finally:
        opener.close()


def test_difference_between_parser_and_reference_is_reported(monkeypatch):
    calls = itertools.count()
    whole = formats.comparisons()

    def other(data, size):
        assert next(calls) < 3, "another row"

    monkeypatch.setattr(formats, "comparisons", lambda: {"vw": (whole["vw"][0], 0, other)})
    with pytest.raises(AssertionError, match=r"seed 0, number 3, vw in blocks of \d+: b.*another row"):
        formats.run(5)


FOUND = [
    ("csv", b"y,a,i,b,w\n0,2.5,,Rome,\n1,NA\0,x,Rome,\n"),  # NUL bytes after a word are part of it
    ("csv", b"y,a,i,b,w\n0,2.5,,Rome,\n1,true\0\0,x,Rome,\n"),
    ("csv", b"y,a,i,b,w\n0,2.5,,Rome,\n1,3\x1c,x,Rome,\n"),  # white space around numbers
    ("csv", b"y,a,i,b,w\n0,2.5,,Rome,\n1,\xc2\xa03,x,Rome,\n"),
]


@pytest.mark.parametrize(("form", "data"), FOUND)
def test_earlier_findings_are_fixed(form, data):
    *_, check = formats.comparisons()[form]
    for size in (1, 1 << 20):
        check(data, size)
