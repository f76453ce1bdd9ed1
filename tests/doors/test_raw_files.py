"""Raw files as they are published: the command that ``forel peek`` prints trains a model that serves."""

import json
import math
import shlex

import numpy as np
import pytest
from typer.testing import CliRunner

import forel
from forel.doors.cli.app import app

ROWS = 400


def run(*arguments):
    done = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"}).invoke(app, [str(one) for one in arguments])
    assert done.exit_code == 0, done.stderr
    return done.stdout


def adult(rng):
    """Rows without a header, a space after each comma, and ? for missing values."""
    jobs, rows = ["Private", "State-gov", "Self-emp-inc", "?"], []
    for _ in range(ROWS):
        age, job, hours = rng.integers(18, 80), jobs[rng.integers(4)], rng.integers(10, 60)
        rich = rng.random() < 1 / (1 + math.exp(-(age - 55) / 5 - 2 * (job == "Self-emp-inc")))
        sex = ("Male", "Female")[rng.integers(2)]
        rows.append(f"{age}, {job}, {rng.integers(10_000, 99_999)}, {sex}, {hours}, {'>50K' if rich else '<=50K'}")
    return "adult.data", "\n".join(rows) + "\n\n", "c6", ">50K"


def bank(rng):
    """Semicolons, quotes, and a column ``default`` besides the label ``y``."""
    rows = ['"age";"job";"default";"balance";"duration";"y"']
    for _ in range(ROWS):
        duration, job = rng.integers(0, 900), ("admin.", "unknown", "technician")[rng.integers(3)]
        yes = rng.random() < 1 / (1 + math.exp(-(duration - 500) / 60))
        default = ("no", "yes")[int(rng.random() < 0.1)]
        rows.append(
            f'{rng.integers(18, 90)};"{job}";"{default}";{rng.integers(-500, 9000)};{duration};"{["no", "yes"][yes]}"'
        )
    return "bank-full.csv", "\n".join(rows) + "\n", "y", "yes"


def telco(rng):
    """An identifier, and a numeric column with blank cells."""
    rows = ["customerID,gender,tenure,Contract,TotalCharges,Churn"]
    for k in range(ROWS):
        tenure, contract = rng.integers(0, 72), ("Month-to-month", "One year", "Two year")[rng.integers(3)]
        leaves = rng.random() < 1 / (1 + math.exp((tenure - 20) / 8 + 2 * (contract == "Two year")))
        total = " " if tenure == 0 else f"{70.35 * tenure:.2f}"
        gender = ("Male", "Female")[rng.integers(2)]
        rows.append(f"{k:04d}-VHVEG,{gender},{tenure},{contract},{total},{'Yes' if leaves else 'No'}")
    return "telco.csv", "\n".join(rows) + "\n", "Churn", "Yes"


def spam(rng):
    """Two columns separated by a tab, without a header; messages have commas and quotes."""
    texts = {
        "ham": ["Ok, see you", "On my way", "what's up?"],
        "spam": ["WIN cash, now!", "Free entry; call", "Urgent prize"],
    }
    labels = ["ham" if rng.random() < 0.8 else "spam" for _ in range(ROWS)]
    rows = [f"{label}\t{texts[label if rng.random() < 0.9 else 'ham'][rng.integers(3)]}" for label in labels]
    return "SMSSpamCollection", "\n".join(rows) + "\n", "c1", "spam"


def criteo(rng):
    """Thirteen counts and 26 hashed categories without a header, many of them missing."""
    rows = []
    for _ in range(ROWS):
        counts = rng.poisson(3, size=13)
        words = rng.integers(5, size=26)
        click = rng.random() < 1 / (1 + math.exp(-(counts[0] - 4) - (words[0] - 2)))
        cells = [str(c) if rng.random() < 0.8 else "" for c in counts]
        cells += [f"{w:07x}a" if rng.random() < 0.8 else "" for w in words]
        rows.append("\t".join([str(int(click)), *cells]))
    return "day_0.txt", "\n".join(rows) + "\n", "c1", None


@pytest.mark.parametrize("make", [adult, bank, telco, spam, criteo], ids=lambda make: make.__name__)
def test_the_printed_command_trains_a_model_that_predicts(make, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name, text, label, positive = make(np.random.default_rng(7))
    (tmp_path / name).write_text(text)
    seen = json.loads(run("peek", name, "--json"))
    assert (seen["label"], seen["positive"]) == (label, positive)
    command = shlex.split(seen["command"])
    assert command[:2] == ["forel", "train"]
    trained = json.loads(run(*command[1:], "--bits", 14, "--json"))
    assert trained["rows"] == ROWS
    assert trained["malformed"] == 0
    assert trained.get("positive") == positive
    assert trained["report"]["entropy"] < 1

    found = json.loads(run("evaluate", name, "--model", "model.forel", "--json"))
    assert found["rows"] == ROWS
    assert found["auc"] > 0.75
    first = json.loads(run("explain", name, "--model", "model.forel", "--json"))
    assert first["contributions"]
    assert not {part["name"].partition("^")[0] for part in first["contributions"]} & {label, "customerID"}

    whole = run("predict", name, "--model", "model.forel").split()
    assert len(whole) == ROWS
    assert all(0 <= float(one) <= 1 for one in whole)
    # New rows have no labels, or odd ones.
    separator = seen["separator"]
    at = [column["name"] for column in seen["columns"]].index(label)
    lines = [line for line in text.splitlines() if line]
    cut = [separator.join(cell for k, cell in enumerate(line.split(separator)) if k != at) for line in lines]
    (tmp_path / f"new-{name}").write_text("\n".join(cut) + "\n")
    assert run("predict", f"new-{name}", "--model", "model.forel").split() == whole

    run("convert", "model.forel", "--serving", "--output", "serving.forel")
    stored = forel.load("serving.forel")
    served = stored.predict_many(name)
    header = [column["name"] for column in seen["columns"]] if seen["header"] else None
    if header is not None:
        cells = dict(zip(header, (cell.strip('"') for cell in lines[1].split(separator)), strict=True))
        assert stored.predict_one(cells) == pytest.approx(served[0], rel=1e-4)
