"""How tight certificates are: certified bounds against the true optimum of a batch solver, a measure of quality.

Input: the real data sets of ``benchmarks/quality.py`` and ``bike_sharing`` from ``FOREL_DATA`` (missing ones are
skipped), learned in one pass by ``forel.train`` without options.
Output: a Markdown table of the certified floor as a share of the smallest loss that any linear model of the learned
norm has, and of the certified norm as a share of the smallest norm with nine tenths of the progressive loss. The exit
code is 1 if a share is below the one required of it.
"""

import argparse
import csv
import gzip
import math
import pathlib
import sys
import tempfile

import numpy as np
from quality import DATA, SETS, lines
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit

import forel
from forel.data import concatenate, read
from forel.learner.grid import default_grid

BITS = 22
# Required shares of the optimum; above 0 for others.
FLOOR = {"a9a": 0.95, "spambase": 0.94, "elec2": 0.48, "rcv1_small": 0.99, "bike_sharing": 0.999}
NORM = dict.fromkeys(("amazon_books", "amazon_dvd", "amazon_electronics", "amazon_kitchen", "rcv1_small"), 0.75)
DROPPED = ("casual", "registered", "instant", "dteday")


def bike():
    """Examples of the bike sharing data as lines of VW text."""
    with gzip.open(DATA / "bike_sharing.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            label = row.pop("cnt")
            yield f"{label} | {' '.join(f'{key}:{value}' for key, value in row.items() if key not in DROPPED)}\n"


class Batch:
    """Average loss of linear models of rows whose features are divided by their largest absolute value."""

    def __init__(self, block, squared):
        rows = block.matrix(1 << BITS).astype(np.float64)
        rows = rows[:, np.unique(rows.indices)]
        scales = abs(rows).max(axis=0).toarray().ravel()
        self.rows = sparse.hstack([rows @ sparse.diags_array(1 / scales), np.ones((rows.shape[0], 1))]).tocsr()
        self.squared, self.labels = squared, block.labels if squared else (block.labels > 0).astype(float)
        self.largest = 1e3 * (float(np.mean(np.square(self.labels))) if squared else 1.0)
        self.model = np.zeros(self.rows.shape[1])

    def loss(self, x):
        """Average loss and its gradient."""
        m = self.rows @ x
        slope = m - self.labels if self.squared else expit(m) - self.labels
        value = slope**2 / 2 if self.squared else np.logaddexp(0, m) - self.labels * m
        return float(value.mean()), self.rows.T @ slope / m.size

    def penalized(self, weight):
        """Loss and norm of the model that minimizes the loss plus ``weight``/2 times the squared norm."""

        def objective(x):
            value, gradient = self.loss(x)
            return value + weight / 2 * float(x @ x), gradient + weight * x

        options = {"maxiter": 2000, "maxfun": 4000, "ftol": 1e-12, "gtol": 1e-9}
        self.model = minimize(objective, self.model, jac=True, method="L-BFGS-B", options=options).x
        return self.loss(self.model)[0], float(np.linalg.norm(self.model))

    def search(self, reached):
        """Loss and norm at the largest penalty for which ``reached(loss, norm)`` holds; None if it does for none.

        Penalties go down by halves from a large one, and the last step is bisected in its logarithm.
        """
        weight, self.model = self.largest, np.zeros(self.rows.shape[1])
        while not reached(*self.penalized(weight)):
            weight /= 2
            if weight < self.largest * 2.0**-40:
                return None
        low, high = math.log(weight), math.log(2 * weight)
        for _ in range(12):
            middle = (low + high) / 2
            found = self.penalized(math.exp(middle))
            low, high = (middle, high) if reached(*found) else (low, middle)
        return self.penalized(math.exp(low))


def measure(name, folder):
    """Row of the table, and the shares with what is required of them."""
    squared, path = name == "bike_sharing", folder / "set.vw"
    with open(path, "w") as file:
        file.writelines(bike() if squared else lines(name))
    settings = default_grid(loss="squared") if squared else None
    trained = forel.train(str(path), settings, bits=BITS, certificate=True)
    floor, frontier = trained.training.floor, trained.training.frontier
    batch = Batch(concatenate(read(str(path), bits=BITS)), squared)
    # Without a penalty that small, the norm is that of the best model of all, whose loss no larger norm lowers.
    best = (batch.search(lambda loss, norm: norm >= floor["norm"]) or (batch.loss(batch.model)[0], 0.0))[0]
    goal = 0.9 * frontier.loss
    norm = (batch.search(lambda loss, norm: loss <= goal) or (0.0, math.inf))[1]
    certified, needed = floor["floor"], floor["needed_norm"]
    shares = [(certified / best, FLOOR.get(name, 0.0))]
    cells = f"{floor['norm']:.4g}", f"{frontier.loss:.4f}", f"{certified:.4f}", f"{best:.4f}", f"{certified / best:.0%}"
    more = f"{goal:.4f}", f"{needed:.4g}", "no model has it", ""
    if norm < math.inf:
        shares.append((needed / norm, NORM.get(name, 0.0)))
        more = f"{goal:.4f}", f"{needed:.4g}", f"{norm:.4g}", f"{needed / norm:.0%}"
    return f"| {' | '.join((name, *cells, *more))} |", shares


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*", default=[*SETS, "bike_sharing"])
    missed = 0
    print("| data | scaled norm | loss | floor | optimum | share | tenth less | certified norm | needed norm | share |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name in parser.parse_args().sets:
            if not any(DATA.glob(f"{name}.*")):
                print(f"{name}: not in {DATA}", file=sys.stderr)
                continue
            row, shares = measure(name, pathlib.Path(folder))
            print(row, flush=True)
            missed += sum(not (share > 0 and share >= required) for share, required in shares)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
