"""Progressive loss of ``forel train`` without options, a measure of quality rather than speed.

Peers: Vowpal Wabbit's default, ``--coin``, ``--ftrl``, and ``--ftrl`` with the best of seven alphas in hindsight, if
its Python package is installed; scikit-learn's batch logistic regression at its best C on the test rows of a9a.
Input: eight real data sets from ``FOREL_DATA`` (missing ones are skipped) and two generated streams, the same lines in
the same order for all, and the small tables of ``table_sets.py``. Then the same for squared loss, on the streams of
``regression_sets.py``. The default experts were chosen on the sets marked "chosen" only. Then, without peers, how much
more log-loss the default would have without each kind of expert, also on the streams of ``drift_sets.py``.
Output: Markdown tables of average log-losses and mean squared errors, with relative differences.
"""

import argparse
import csv
import gzip
import importlib.util
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from functools import partial

import drift_sets
import numpy as np
import regression_sets
import table_sets
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

import forel
from forel.data import concatenate, read
from forel.data.clicks import write_clicks
from forel.learner.grid import default_grid
from forel.training.scoring import predict_blocks

DATA = pathlib.Path(os.environ.get("FOREL_DATA", pathlib.Path(__file__).parents[1].parent / "shared" / "data"))
SETS = (
    "a9a", "amazon_books", "amazon_dvd", "amazon_electronics", "amazon_kitchen", "rcv1_small", "spambase", "elec2",
)  # fmt: skip
CHOSEN = ("a9a", "amazon_books", "spambase", "clicks, 20,000 rows")
ALPHAS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
PEERS = {"default": "", "--coin": "--coin", "--ftrl": "--ftrl"}
PEER = "import sys\nfrom vowpalwabbit import Workspace\nWorkspace(sys.argv[1]).finish()\n"


def lines(name):
    """Examples of a data set as lines of VW text."""
    if name.startswith("clicks"):
        stream = io.BytesIO()
        write_clicks(stream, int(re.sub(r"\D", "", name)), seed=1)
        yield from stream.getvalue().decode().splitlines(keepends=True)
    elif name == "a9a":
        with gzip.open(DATA / "a9a.svm.gz", "rt") as file:
            for label, *features in map(str.split, file):
                yield f"{int(label)} | {' '.join(features)}\n"
    elif name == "elec2":
        with gzip.open(DATA / "elec2.csv.gz", "rt") as file:
            for row in csv.DictReader(file):
                label = 1 if row.pop("class") == "1" else -1
                yield f"{label} | {' '.join(f'{key}:{value}' for key, value in row.items())}\n"
    else:
        with gzip.open(DATA / f"{name}.vw.gz", "rt") as file:
            yield from file


def vw(path, options, loss):
    """Average progressive loss of Vowpal Wabbit."""
    words = f"-d {path} --loss_function {loss} -b 22 --holdout_off --no_stdin {options}"
    done = subprocess.run([sys.executable, "-c", PEER, words], capture_output=True, text=True, check=True)
    return float(re.search(r"average loss = ([\d.e+]+)", done.stderr)[1])


def one(examples, folder, peers, loss):
    """Loss of forel, loss and name of its best expert, and the losses of the peers on one data set."""
    path = folder / "set.vw"
    path.write_text("".join(examples))
    trained = forel.train(path, default_grid(loss=loss))
    model, times = trained.learner, 2 if loss == "squared" else 1  # Vowpal Wabbit's squared loss is not halved
    found = {label: vw(path, words, loss) for label, words in PEERS.items()} if peers else {}
    if peers:
        found["best alpha"] = min(vw(path, f"--ftrl --ftrl_alpha {a} --ftrl_beta 1", loss) for a in ALPHAS)
    best = int(np.argmin(model.losses))
    return times * trained.report.loss, times * model.averages[best], model.names[best], found


def table(sets, chosen, peers, loss):
    """Print a row for each data set, and return the relative differences to the best of the peers."""
    print(f"| data | forel train | best of {' / '.join((*PEERS, 'best alpha'))} | difference | best expert |")
    print("|---|---:|---:|---:|---|")
    behind, digits = {}, ".5f" if loss == "logistic" else ".5g"
    with tempfile.TemporaryDirectory() as folder:
        for name, examples in sets.items():
            own, best, setting, found = one(examples(), pathlib.Path(folder), peers, loss)
            mark = " (chosen)" if name in chosen else ""
            if not found:
                print(f"| {name}{mark} | {own:{digits}} | | | {setting} ({best:{digits}}) |", flush=True)
                continue
            least = min(found.values())
            each = " / ".join(f"**{v:{digits}}**" if v == least else f"{v:{digits}}" for v in found.values())
            behind[name] = own / least - 1
            print(f"| {name}{mark} | {own:{digits}} | {each} | {behind[name]:+.2%} | {setting} |", flush=True)
    return behind


def kinds_table(sets, chosen):
    """Print the relative loss of the default mixture without each kind of expert."""
    kinds = "setting", "filter", "full filter", "mixer", "fixed share"
    print(f"| data | log-loss | {' | '.join(f'without {kind}' for kind in kinds)} |")
    print(f"|---|---:|{'---:|' * len(kinds)}")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "set.vw"
        for name, examples in sets.items():
            path.write_text("".join(examples()))
            found = forel.train(path).inspect().mixture
            more = {one.kind: f"{one.without / found.loss:+.2%}" for one in found.kinds}
            mark = " (chosen)" if name in chosen else ""
            print(f"| {name}{mark} | {found.loss:.5f} | {' | '.join(more.get(k, '') for k in kinds)} |", flush=True)


def batch():
    """Log-losses on the test rows of a9a: after one pass, and of batch logistic regression at the best C."""
    trained = forel.train(DATA / "a9a.svm.gz")
    test = concatenate(read(DATA / "a9a.test.svm.gz"))
    learned = concatenate(read(DATA / "a9a.svm.gz"))
    y = test.labels > 0
    margins = np.concatenate([m for _, m in predict_blocks(trained, DATA / "a9a.test.svm.gz")])
    losses = [log_loss(y, 1 / (1 + np.exp(-margins)))]
    X, rows = (block.matrix(1 << 22)[:, :200] for block in (learned, test))
    for C in np.geomspace(0.01, 100, 13):
        fitted = LogisticRegression(C=C, max_iter=1000).fit(X, learned.labels > 0)
        losses.append(log_loss(y, fitted.predict_proba(rows)[:, 1]))
    return losses[0], min(losses[1:])


def summary(behind, what):
    """Print on how many data sets forel is at or below the best of the four."""
    if behind:
        wins = sum(each <= 0 for each in behind)
        print(f"\nAt or below the best of the four on {wins} of {len(behind)} {what}; at most {max(behind):+.2%}.\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", choices=("streams", "tables", "regression", "kinds"), help="print only this one")
    wanted = parser.parse_args().table
    peers = importlib.util.find_spec("vowpalwabbit") is not None
    names = [name for name in SETS if any(DATA.glob(f"{name}.*"))]
    if wanted in (None, "streams"):
        every = {name: partial(lines, name) for name in (*names, "clicks, 20,000 rows", "clicks, 200,000 rows")}
        behind = table(every, CHOSEN, peers, "logistic")
        summary([each for name, each in behind.items() if name in SETS], "real data sets")
        if "a9a" in names:
            ours, theirs = batch()
            print(
                f"test rows of a9a: one pass {ours:.5f}, batch at its best C {theirs:.5f}, {ours / theirs - 1:+.2%}.\n"
            )
    if wanted in (None, "tables"):
        behind = table(table_sets.sets(), table_sets.CHOSEN, peers, "logistic")
        summary([each for name, each in behind.items() if name not in table_sets.CHOSEN], "tables not chosen on")
    if wanted in (None, "regression"):
        behind = table(regression_sets.sets(DATA), regression_sets.CHOSEN, peers, "squared")
        fresh = [each for name, each in behind.items() if name not in regression_sets.CHOSEN]
        summary(fresh, "streams that the experts were not chosen on")
    if wanted in (None, "kinds"):
        every = {name: partial(lines, name) for name in (*names, "clicks, 20,000 rows")} | drift_sets.SETS
        kinds_table(every, (*CHOSEN, *drift_sets.CHOSEN))


if __name__ == "__main__":
    main()
