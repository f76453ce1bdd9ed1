"""Progressive log-loss of ``forel train`` without options, a measure of quality rather than speed.

Peers: Vowpal Wabbit's default, ``--coin``, ``--ftrl``, and ``--ftrl`` with the best of seven alphas in hindsight, if
its Python package is installed; scikit-learn's batch logistic regression at its best C on the test rows of a9a.
Input: eight real data sets from ``FOREL_DATA`` (missing ones are skipped) and two generated streams, the same lines in
the same order for all. The default experts were chosen on the sets marked "chosen" only.
Output: a Markdown table of average losses and relative differences.
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

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

import forel
from forel.data import concatenate, read
from forel.data.clicks import write_clicks
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


def vw(path, options):
    """Average progressive loss of Vowpal Wabbit."""
    words = f"-d {path} --loss_function logistic -b 22 --holdout_off --no_stdin {options}"
    done = subprocess.run([sys.executable, "-c", PEER, words], capture_output=True, text=True, check=True)
    return float(re.search(r"average loss = ([\d.]+)", done.stderr)[1])


def one(name, folder, peers):
    """Loss of forel, loss and name of its best expert, and the losses of the peers on one data set."""
    path = folder / "set.vw"
    path.write_text("".join(lines(name)))
    trained = forel.train(path)
    model = trained.model
    found = {label: vw(path, words) for label, words in PEERS.items()} if peers else {}
    if peers:
        found["best alpha"] = min(vw(path, f"--ftrl --ftrl_alpha {a} --ftrl_beta 1") for a in ALPHAS)
    best = int(np.argmin(model.losses))
    return trained.report.loss, model.averages[best], model.names[best], found


def batch():
    """Log-losses on the test rows of a9a: after one pass, and of batch logistic regression at the best C."""
    trained = forel.train(DATA / "a9a.svm.gz")
    test = concatenate(read(DATA / "a9a.test.svm.gz"))
    learned = concatenate(read(DATA / "a9a.svm.gz"))
    y = test.labels > 0
    margins = np.concatenate([m for _, m in predict_blocks(trained.stored, DATA / "a9a.test.svm.gz")])
    losses = [log_loss(y, 1 / (1 + np.exp(-margins)))]
    X, rows = (block.matrix(1 << 22)[:, :200] for block in (learned, test))
    for C in np.geomspace(0.01, 100, 13):
        fitted = LogisticRegression(C=C, max_iter=1000).fit(X, learned.labels > 0)
        losses.append(log_loss(y, fitted.predict_proba(rows)[:, 1]))
    return losses[0], min(losses[1:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.parse_args()
    peers = importlib.util.find_spec("vowpalwabbit") is not None
    names = [name for name in SETS if any(DATA.glob(f"{name}.*"))]
    print(f"| data | forel train | best of {' / '.join((*PEERS, 'best alpha'))} | difference | best expert |")
    print("|---|---:|---:|---:|---|")
    wins, behind = 0, []
    with tempfile.TemporaryDirectory() as folder:
        for name in (*names, "clicks, 20,000 rows", "clicks, 200,000 rows"):
            loss, best, setting, found = one(name, pathlib.Path(folder), peers)
            mark = " (chosen)" if name in CHOSEN else ""
            if not found:
                print(f"| {name}{mark} | {loss:.5f} | | | {setting} ({best:.5f}) |", flush=True)
                continue
            least = min(found.values())
            each = " / ".join(f"**{v:.5f}**" if v == least else f"{v:.5f}" for v in found.values())
            print(f"| {name}{mark} | {loss:.5f} | {each} | {loss / least - 1:+.2%} | {setting} |", flush=True)
            if name in SETS:
                wins += loss <= least
                behind.append(loss / least - 1)
    if behind:
        print(
            f"\nAt or below the best of the four on {wins} of {len(behind)} real data sets; at most {max(behind):+.2%}."
        )
    if "a9a" in names:
        ours, theirs = batch()
        print(f"test rows of a9a: one pass {ours:.5f}, batch at its best C {theirs:.5f}, {ours / theirs - 1:+.2%}.")


if __name__ == "__main__":
    main()
