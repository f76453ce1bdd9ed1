"""Raw files as they are published: the command that ``forel peek`` prints trains a model that serves."""

import json
import math
import shlex

import numpy as np
import pytest
from typer.testing import CliRunner

import forel
from forel.cli.app import app

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


def credit(rng):
    """An identifier that is a number, codes, amounts of bills, and a label with spaces in its name."""
    rows = ["ID,LIMIT_BAL,SEX,PAY_0,BILL_AMT1,PAY_AMT1,default payment next month"]
    for k in range(ROWS):
        late, bill = rng.integers(-2, 8), rng.integers(-500, 90_000)
        fails = rng.random() < 1 / (1 + math.exp(3 - late))
        limit, sex, paid = rng.integers(1, 80) * 10_000, rng.integers(1, 3), rng.integers(0, 9_000)
        rows.append(f"{k + 1},{limit},{sex},{late},{bill},{paid},{int(fails)}")
    return "credit.csv", "\n".join(rows) + "\n", "default payment next month", None


def newsgroups(rng):
    """JSON lines of texts with line ends, of four groups."""
    groups = {
        "sci.space": "orbit launch moon shuttle", "rec.autos": "engine tyre dealer wheel",
        "comp.graphics": "image polygon render pixel", "talk.politics": "vote senate law tax",
    }  # fmt: skip
    lines = []
    for k in range(ROWS):
        group = list(groups)[rng.integers(4)]
        words = [*rng.choice(groups[group].split(), 3), *rng.choice(["the", "of", "and", "to", "in"], 5), f"id{k}"]
        lines.append(json.dumps({"text": f"From: user{k}@site\n\n" + " ".join(words) + "\n", "category": group}))
    return "news.jsonl", "\n".join(lines) + "\n", "category"


def movielens(rng):
    """Numbers that are identifiers, ratings, and times in seconds."""
    rows = ["userId,movieId,rating,timestamp"]
    for k in range(ROWS):
        user, movie = rng.integers(1, 20), rng.integers(1, 30)
        rating = min(5, max(0.5, round(2 * (1 + user / 8 + rng.normal(0, 0.5))) / 2))
        rows.append(f"{user},{movie},{rating},{964_982_703 + 1000 * k}")
    return "ratings.csv", "\n".join(rows) + "\n", "rating"


def bikes(rng):
    """Dates, codes, and counts of rentals."""
    rows = ["instant,dteday,season,temp,hum,cnt"]
    for k in range(ROWS):
        temp = 0.5 + 0.3 * math.sin(k / 58) + rng.normal(0, 0.02)
        day = np.datetime64("2011-01-01") + k
        count = int(8000 * temp * rng.uniform(0.7, 1.3))
        rows.append(f"{k + 1},{day},{k // 91 % 4 + 1},{temp:.4f},{rng.random():.3f},{count}")
    return "day.csv", "\n".join(rows) + "\n", "cnt"


def series(rng):
    """Time stamps with semicolons and decimal commas; the target is another column."""
    rows = ["time;load;temperature;price"]
    for k in range(ROWS):
        when = np.datetime64("2023-03-01T00:00") + np.timedelta64(k, "h")
        load = 50 + 20 * (8 <= k % 24 < 20) + rng.normal()
        cells = [f"{load:.2f}", f"{10 + rng.normal():.1f}", f"{load / 2 + rng.normal():.2f}"]
        rows.append(f"{str(when).replace('T', ' ')};" + ";".join(cell.replace(".", ",") for cell in cells))
    return "prices.csv", "\n".join(rows) + "\n", "price"


@pytest.mark.parametrize("make", [newsgroups, movielens, bikes, series], ids=lambda make: make.__name__)
def test_the_printed_command_trains_classes_and_numbers(make, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name, text, label = make(np.random.default_rng(7))
    (tmp_path / name).write_text(text)
    seen = json.loads(run("peek", name, "--json"))
    assert seen["label"] == label
    trained = json.loads(run(*shlex.split(seen["command"])[1:], "--bits", 14, "--json"))
    assert (trained["rows"], trained["malformed"]) == (ROWS, 0)
    found = json.loads(run("evaluate", name, "--model", "model.forel", "--json"))
    predictions = run("predict", name, "--model", "model.forel").split("\n")[:-1]
    assert len(predictions) == ROWS
    if make is newsgroups:
        assert found["accuracy"] > 0.9 > found["baseline_accuracy"]
        assert "--text text" in seen["command"]
        assert set(predictions) == set(found["classes"])
    else:
        assert found["r2"] > 0.1
        assert np.isfinite([float(one) for one in predictions]).all()
    if make in (bikes, series):
        assert "--date" in seen["command"]
    first = json.loads(run("explain", name, "--model", "model.forel", "--json"))
    assert first["contributions"]
    run("convert", "model.forel", "--serving", "--output", "serving.forel")
    served = forel.load("serving.forel").predict_many(name)
    assert len(served) == ROWS


@pytest.mark.parametrize("make", [adult, bank, telco, spam, criteo, credit], ids=lambda make: make.__name__)
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
