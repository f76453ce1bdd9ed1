"""``forel dev warm`` runs real commands on rows of each format, so that their code is in the cache."""

import subprocess
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from forel.cli import dev
from forel.cli.app import app

NAMES = [(name, form) for form in dev.FORMATS for name in ("train", "predict", "evaluate", "convert")]


@pytest.fixture
def commands(monkeypatch, interpreted):
    """Run commands in this process, uncompiled and on few rows, and return them."""
    found = []

    def run(command, **_):
        found.append(command[3:])
        done = CliRunner().invoke(app, command[3:])
        return SimpleNamespace(returncode=done.exit_code, stderr=done.stderr)

    monkeypatch.setattr(dev, "ROWS", 4)
    monkeypatch.setattr(subprocess, "run", run)
    return found


def test_every_format_is_trained_predicted_evaluated_and_converted(commands):
    done = CliRunner().invoke(app, ["dev", "warm", "--alpha", "0.1", "--bits", "6"])
    assert done.exit_code == 0, done.stderr
    *lines, last = done.stdout.splitlines()
    assert [tuple(line.partition(":")[0].split()[1:]) for line in lines] == NAMES
    assert [command[0] for command in commands] == [name for name, _ in NAMES]
    assert all("--alpha" in command for command in commands if command[0] == "train")
    assert "of compiled code" in last


def test_errors_are_those_of_the_options(commands):
    wrong = CliRunner().invoke(app, ["dev", "warm", "--formats", "vw,xml"])
    assert (wrong.exit_code, commands) == (2, [])
    assert "--formats: got 'xml', expected some of vw, csv, jsonl" in wrong.stderr
    wrong = CliRunner().invoke(app, ["dev", "warm", "--loss", "nonsense", "--bits", "6"])
    assert (wrong.exit_code, len(commands)) == (2, 1)
    assert "nonsense" in wrong.stderr
