"""The fast learner on rows in memory: one lane, many lanes, certified, and through the scikit-learn estimator.

Peers: scikit-learn's ``SGDClassifier``, datatable's ``Ftrl`` if installed, and a loop that only loads and stores the
same coordinates, a lower bound on the time.
Input: 500,000 click-like rows of 39 features with log-uniform popularity, about 1.6 million distinct features. Every
repeat starts from an empty model; conversion of the data and allocation are not timed.
Output: medians in turns, and medians of the ratios within a turn to one lane and to ``partial_fit``.
"""

import argparse
import importlib
import os
import statistics
import subprocess
import sys
import time

import numpy as np
from numba import njit
from scipy import sparse
from sklearn.linear_model import SGDClassifier
from timing import median_ratio, medians, time_in_turns

from forel.learner.grid import default_grid
from forel.learner.kernels.intrinsics.memory import prefetch
from forel.learner.learner import Learner
from forel.learner.settings import Settings
from forel.sklearn import FTRLClassifier

PER_ROW, POPULAR, FEATURES, MIXED = 39, 2_200_000, 1 << 22, 1 << 20
AHEAD = np.uint64(48)


def clicks(rows, seed=0):
    """Feature indices of each row, the same as a CSR matrix, and labels of a logistic model with sparse weights."""
    rng = np.random.default_rng(seed)
    popular = (POPULAR ** rng.random(rows * PER_ROW)).astype(np.uint64)
    indices = ((popular * np.uint64(2654435761)) % np.uint64(FEATURES)).astype(np.int32).reshape(rows, PER_ROW)
    indices.sort(axis=1)
    truth = np.where(rng.random(FEATURES) < 0.1, rng.normal(size=FEATURES), 0).astype(np.float32)
    ends = np.arange(0, rows * PER_ROW + 1, PER_ROW, dtype=np.int32)
    X = sparse.csr_array((np.ones(rows * PER_ROW, np.float32), indices.ravel(), ends), shape=(rows, FEATURES))
    X.sum_duplicates()
    y = (rng.random(rows) < 1 / (1 + np.exp(1 - X @ truth))).astype(np.int64)
    return indices, X, y


@njit(nogil=True, error_model="numpy")
def touch(indptr, indices, zn):
    """Load and store the same coordinates in the same order, twice per row: a lower bound on the time."""
    rows = indptr.shape[0] - 1
    end = np.uint64(indptr[rows]) - np.uint64(1)
    for r in range(rows):
        for turn in range(2):
            for j in range(np.uint64(indptr[r]), np.uint64(indptr[r + 1])):
                if turn == 0:
                    prefetch(zn, np.uint64(indices[min(j + AHEAD, end)]) * np.uint64(2))
                q = np.uint64(indices[j]) * np.uint64(2)
                zn[q] += np.float32(1)
                zn[q + np.uint64(1)] += np.float32(1)


def learner(X, y, settings, certified=False):
    """Run of ``Learner.learn`` on reused memory, cleared before each repeat."""
    model = Learner(FEATURES, settings, certified=certified, mixed=False)

    def prepare():
        model.state.records.fill(0)
        model.state.rounds = 0
        return model

    return prepare, lambda model: model.learn(X, y)


def estimator(X, y):
    """Run of the first call of ``partial_fit``, which allocates the model."""
    return lambda: FTRLClassifier(alpha=0.1, l1=1.0), lambda m: m.partial_fit(X, y, classes=[0, 1])


def later_call(X, y, certified=False):
    """Run of a later call of ``partial_fit``, on reused memory that is cleared before each repeat."""
    model = FTRLClassifier(alpha=0.1, l1=1.0, certified=certified).partial_fit(X[:1000], y[:1000], classes=[0, 1])

    def prepare():
        model._model.state.records.fill(0)
        model._model.state.rounds = 0
        return model

    return prepare, lambda m: m.partial_fit(X, y)


def mixture(X, y, certified=False):
    """Run of the default mixture on reused memory, with fewer features, cleared before each repeat."""
    rows = sparse.csr_array((X.data, X.indices % MIXED, X.indptr), shape=(X.shape[0], MIXED))
    rows.sum_duplicates()
    model = Learner(MIXED, default_grid(), certified=certified)

    def prepare():
        model.state.records.fill(0)
        model.state.rounds = 0
        return model

    return prepare, lambda model: model.learn(rows, y)


def scikit(X, y):
    """Run of scikit-learn, which needs float64 values."""
    wide = sparse.csr_matrix((X.data.astype(np.float64), X.indices, X.indptr), shape=X.shape)
    return (
        lambda: SGDClassifier(loss="log_loss", penalty="l1", alpha=1e-6),
        lambda m: m.partial_fit(wide, y, classes=[0, 1]),
    )


def datatable(indices, y, threads):
    """Run of datatable's Ftrl on a frame of 39 columns, or None if it is not installed."""
    try:
        dt = importlib.import_module("datatable")
        models = importlib.import_module("datatable.models")
    except ImportError:
        return None
    frame, target = dt.Frame(indices), dt.Frame(y.astype(bool))

    def prepare():
        dt.options.nthreads = threads
        return models.Ftrl(alpha=0.1, beta=1.0, lambda1=1.0, lambda2=0.0, nbins=FEATURES, nepochs=1)

    return prepare, lambda m: m.fit(frame, target)


def start():
    """Seconds of a new process to import the learner, and to learn its first rows with compiled kernels."""
    code = "import numpy as np\nfrom forel import Learner, Settings\n"
    first = "m = Learner(3, Settings())\nm.learn(np.eye(3), [1, 0, 1])\n"
    found = []
    for text in (code, code + first):
        subprocess.run([sys.executable, "-c", text], check=True, env={**os.environ, "FOREL_QUIET": "1"})
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", text], check=True)
        found.append(time.perf_counter() - begin)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    indices, X, y = clicks(options.rows)
    distinct = np.unique(X.indices).size
    print(
        f"\n{options.rows:,} rows, {X.nnz:,} non-zeros, {distinct:,} distinct features, medians of {options.repeats}\n"
    )
    one = Settings(alpha=0.1, beta=1.0, l1=1.0)
    floor = np.zeros(2 * (FEATURES + 1), np.float32)
    runs = {
        "forel, one lane": learner(X, y, one),
        "forel, certified": learner(X, y, one, certified=True),
        "forel, scale-free": learner(X, y, Settings(alpha=0.1, l1=1.0, rate="scale_free")),
        "forel, FTRLClassifier.partial_fit, first call": estimator(X, y),
        "forel, FTRLClassifier.partial_fit": later_call(X, y),
        "forel, FTRLClassifier.partial_fit, certified": later_call(X, y, certified=True),
        "scikit-learn SGDClassifier.partial_fit, L1": scikit(X, y),
        "datatable Ftrl.fit, one thread": datatable(indices, y, 1),
        "datatable Ftrl.fit, two threads": datatable(indices, y, 2),
        "load and store alone": (lambda: None, lambda _: touch(X.indptr, X.indices, floor)),
        **{
            f"forel, {k} lanes": learner(X, y, Settings(alpha=tuple(np.geomspace(0.01, 1, k)), l1=1.0))
            for k in (4, 8, 16)
        },
        "forel, default mixture": mixture(X, y),
        "forel, default mixture, certified": mixture(X, y, certified=True),
    }
    runs = {name: run for name, run in runs.items() if run is not None}
    medians(runs, 1)  # compile the kernels and touch the memory
    found = time_in_turns(runs, options.repeats)
    for name, seconds in found.items():
        lane, fitted = (
            median_ratio(seconds, found[f"forel, {base}"]) for base in ("one lane", "FTRLClassifier.partial_fit")
        )
        print(
            f"{name:46} {statistics.median(seconds):7.3f} s {lane:6.2f} times one lane {fitted:6.2f} times partial_fit"
        )
    print("\nscaling with the number of rows, one lane:")
    for part in (8, 4, 2, 1):
        rows = options.rows // part
        piece = X[:rows]
        seconds = medians({"": learner(piece, y[:rows], one)}, options.repeats)[""]
        print(f"{rows:9,} rows {seconds:7.3f} s   {1e9 * seconds / piece.nnz:6.1f} ns per non-zero")
    imported, learned = start()
    print(f"\na new process: {imported:.2f} s to import, {learned - imported:.2f} s more to learn its first rows")


if __name__ == "__main__":
    main()
