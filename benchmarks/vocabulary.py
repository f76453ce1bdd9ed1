"""Dense speed of the closed forms, as ratios to one numpy pass over an array of the same size.

Run by ``make bench``. This machine may be noisy: both sides are timed in turns, and medians are compared.
"""

import statistics
import time

import numpy as np

from forel.theory.argmin import Argmin
from forel.theory.geometries import Diagonal, Euclidean
from forel.theory.penalties import ElasticNet
from forel.theory.sets import Box, Simplex, l1_ball

N = 1_000_000
REPEATS = 15


def ratio(work, peer):
    """Return the medians of work and peer in seconds, timed in turns."""
    seconds = ([], [])
    for _ in range(REPEATS):
        for run, kept in zip((work, peer), seconds, strict=True):
            start = time.perf_counter()
            run()
            kept.append(time.perf_counter() - start)
    return statistics.median(seconds[0]), statistics.median(seconds[1])


def main():
    rng = np.random.default_rng(0)
    z, strength = rng.normal(size=N), rng.uniform(1, 2, N)
    spread = rng.normal(size=N) * 1.5e-6  # nearly all coordinates end up positive: the hardest case for a sort
    plain = Argmin(Diagonal())
    full = Argmin(Diagonal(), ElasticNet(0.5, 0.1), Box(-1, 1))
    simplex, ball = Argmin(Euclidean(), feasible=Simplex()), Argmin(Euclidean(), feasible=l1_ball(1.0))
    rows = [
        ("coordinate-wise, no penalty", lambda: plain(z, strength), "np.sqrt", lambda: np.sqrt(strength), 10),
        ("coordinate-wise, elastic net, box", lambda: full(z, strength), "np.sqrt", lambda: np.sqrt(strength), 10),
        ("simplex", lambda: simplex(z, 1.0), "np.sort", lambda: np.sort(z), 4),
        ("simplex, nearly uniform", lambda: simplex(spread, 1.0), "np.sort", lambda: np.sort(spread), 4),
        ("L1 ball", lambda: ball(z, 1.0), "np.sort", lambda: np.sort(z), 4),
        ("L1 ball, nearly uniform", lambda: ball(spread, 1.0), "np.sort", lambda: np.sort(spread), 4),
    ]
    print(f"n = {N:,}, medians of {REPEATS}\n")
    print(f"{'argmin':36} {'ms':>7}   {'peer':8} {'ms':>7}   {'ratio':>6}   goal")
    for name, work, peer_name, peer, goal in rows:
        mine, theirs = ratio(work, peer)
        verdict = f"≤ {goal} {'met' if mine / theirs <= goal else 'MISSED'}"
        print(f"{name:36} {1e3 * mine:7.2f}   {peer_name:8} {1e3 * theirs:7.2f}   {mine / theirs:6.2f}   {verdict}")


if __name__ == "__main__":
    main()
