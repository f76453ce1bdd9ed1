"""Model files: size, and seconds to save and load.

Peer: none; the figures show how the cost grows with the number of slots.
Input: models trained on 100,000 click-like rows of 39 hashed features, with 2^18, 2^22 and 2^26 slots.
Output: slots seen, file size, seconds to save and load, and the size of a float16 serving file.
"""

import argparse
import pathlib
import tempfile
import time

import numpy as np
from scipy import sparse

from forel.learner.learner import Learner
from forel.learner.settings import Settings
from forel.store import serving_model
from forel.training.model import load, save
from learner import FEATURES, PER_ROW, POPULAR


def clicks(rows, slots, seed=0):
    """CSR rows of hashed features with log-uniform popularity, and random labels."""
    rng = np.random.default_rng(seed)
    popular = (POPULAR ** rng.random(rows * PER_ROW)).astype(np.uint64)
    hashed = ((popular * np.uint64(11400714819323198485)) >> np.uint64(32)) % np.uint64(slots)
    ends = np.arange(0, rows * PER_ROW + 1, PER_ROW)
    X = sparse.csr_array((np.ones(hashed.size, np.float32), hashed.astype(np.int64), ends), shape=(rows, slots))
    X.sum_duplicates()
    return X, rng.integers(0, 2, rows)


def timed(function):
    """Result of a function and the seconds it takes."""
    start = time.perf_counter()
    result = function()
    return result, time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--bits", type=int, nargs="+", default=[18, FEATURES.bit_length() - 1, 26])
    options = parser.parse_args()
    print(f"\n{'slots':>6} {'seen':>9} {'file, MB':>9} {'save, s':>8} {'load, s':>8} {'float16 serving, MB':>20}")
    with tempfile.TemporaryDirectory() as folder:
        whole, small = pathlib.Path(folder, "model.forel"), pathlib.Path(folder, "serving.forel")
        for bits in options.bits:
            X, y = clicks(options.rows, 1 << bits)
            model = Learner(1 << bits, Settings(alpha=0.1, l1=1.0))
            model.learn(X, y)
            _, saving = timed(lambda model=model: save(whole, model))
            _, loading = timed(lambda: load(whole))
            save(small, serving_model(model, dtype="float16"))
            sizes = [path.stat().st_size / 1e6 for path in (whole, small)]
            seen = np.unique(X.indices).size
            print(f"  2^{bits:<2} {seen:>9,} {sizes[0]:9.2f} {saving:8.3f} {loading:8.3f} {sizes[1]:20.2f}")


if __name__ == "__main__":
    main()
