"""The fast learner on click-like rows in memory: against scikit-learn's SGD, in lanes, and the cost of memory itself.

500,000 rows of 39 features, log-uniform popularity, some two million distinct features. Every model starts from nothing
in every repeat; all sides are timed in turns.
"""

import argparse
import statistics
import time

import numpy as np
from numba import njit
from scipy import sparse
from sklearn.linear_model import SGDClassifier

from forel.kernels.prefetch import prefetch
from forel.linear import Linear, Settings

PER_ROW, FEATURES = 39, 1 << 22


def clicks(rows, seed=0):
    """Return CSR rows and labels of a logistic model with sparse truth."""
    rng = np.random.default_rng(seed)
    popular = (FEATURES ** rng.random(rows * PER_ROW)).astype(np.uint64) % FEATURES
    indices = ((popular * np.uint64(2654435761)) % np.uint64(FEATURES)).astype(np.int32).reshape(rows, PER_ROW)
    indices.sort(axis=1)
    truth = np.where(rng.random(FEATURES) < 0.1, rng.normal(size=FEATURES), 0).astype(np.float32)
    X = sparse.csr_array(
        (np.ones(rows * PER_ROW, np.float32), indices.ravel(), np.arange(0, rows * PER_ROW + 1, PER_ROW)),
        shape=(rows, FEATURES),
    )
    X.sum_duplicates()
    y = (rng.random(rows) < 1 / (1 + np.exp(1 - X @ truth))).astype(np.int64)
    return X, y


@njit(nogil=True, error_model="numpy")
def touch(indptr, indices, zn):
    """Load and store the same coordinates in the same order, and nothing else: the floor."""
    rows = indptr.shape[0] - 1
    for r in range(rows):
        if r + 2 < rows:
            for j in range(np.uint64(indptr[r + 2]), np.uint64(indptr[r + 3])):
                prefetch(zn, np.intp(indices[j]))
        for _ in range(2):
            for j in range(np.uint64(indptr[r]), np.uint64(indptr[r + 1])):
                q = np.uint64(indices[j])
                zn[q, 0, 0] += np.float32(1)
                zn[q, 1, 0] += np.float32(1)


def medians(runs, repeats):
    """Return the median seconds of each run, all of them in turns."""
    seconds = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(kept) for name, kept in seconds.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    X, y = clicks(options.rows)
    distinct = np.unique(X.indices).size
    print(
        f"\n{options.rows:,} rows, {X.nnz:,} non-zeros, {distinct:,} distinct features, medians of {options.repeats}\n"
    )
    settings = Settings(alpha=0.1, beta=1.0, l1=1.0)
    lanes = {k: Settings(alpha=tuple(np.geomspace(0.01, 1, k)), l1=1.0) for k in (4, 8, 16)}

    def peer():
        model = SGDClassifier(loss="log_loss", penalty="l1", alpha=1e-6)
        model.partial_fit(X64, y, classes=[0, 1])

    # scikit-learn takes int32 indices and float64 data; both sides get what suits them, outside the clock.
    X64 = sparse.csr_matrix((X.data.astype(np.float64), X.indices, X.indptr.astype(np.int32)), shape=X.shape)
    runs = {
        "forel, one lane": lambda: Linear(FEATURES, settings).learn(X, y),
        "scikit-learn SGDClassifier.partial_fit, L1": peer,
        "load and store alone": lambda: touch(X.indptr, X.indices, np.zeros((FEATURES + 1, 2, 1), np.float32)),
        **{f"forel, {k} lanes": (lambda s=s: Linear(FEATURES, s).learn(X, y)) for k, s in lanes.items()},
    }
    for run in runs.values():  # compile, or load what was compiled
        run()
    found = medians(runs, options.repeats)
    mine = found["forel, one lane"]
    for name, seconds in found.items():
        print(f"{name:46} {seconds:7.3f} s   {seconds / mine:6.2f} times one lane")
    print("\ngrowth with the number of rows, one lane:")
    for part in (8, 4, 2, 1):
        rows = options.rows // part
        seconds = medians({"": lambda rows=rows: Linear(FEATURES, settings).learn(X[:rows], y[:rows])}, 3)[""]
        print(f"{rows:9,} rows {seconds:7.3f} s   {1e9 * seconds / X[:rows].nnz:6.1f} ns a non-zero")


if __name__ == "__main__":
    main()
