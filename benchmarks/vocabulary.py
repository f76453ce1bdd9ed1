"""Dense closed forms of the argmin.

Peer: one numpy pass over an array of the same size (``np.sqrt`` or ``np.sort``).
Input: n = 1,000,000 normal numbers; "nearly uniform" inputs leave nearly all coordinates positive, the worst case.
Output: medians in turns, their ratio, and whether it meets the goal.
"""

import argparse

import numpy as np
from timing import medians, without_preparation

from forel.theory.argmin import Argmin
from forel.theory.geometries import Diagonal, Euclidean
from forel.theory.penalties import ElasticNet
from forel.theory.sets import Box, Simplex, l1_ball


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    n, rng = options.size, np.random.default_rng(0)
    z, strength = rng.normal(size=n), rng.uniform(1, 2, n)
    uniform = rng.normal(size=n) * 1.5 / n
    plain = Argmin(Diagonal())
    full = Argmin(Diagonal(), ElasticNet(0.5, 0.1), Box(-1, 1))
    simplex, ball = Argmin(Euclidean(), feasible=Simplex()), Argmin(Euclidean(), feasible=l1_ball(1.0))
    rows = [
        ("coordinate-wise, no penalty", lambda: plain(z, strength), "np.sqrt", lambda: np.sqrt(strength), 10),
        ("coordinate-wise, elastic net, box", lambda: full(z, strength), "np.sqrt", lambda: np.sqrt(strength), 10),
        ("simplex", lambda: simplex(z, 1.0), "np.sort", lambda: np.sort(z), 4),
        ("simplex, nearly uniform", lambda: simplex(uniform, 1.0), "np.sort", lambda: np.sort(uniform), 4),
        ("L1 ball", lambda: ball(z, 1.0), "np.sort", lambda: np.sort(z), 4),
        ("L1 ball, nearly uniform", lambda: ball(uniform, 1.0), "np.sort", lambda: np.sort(uniform), 4),
    ]
    print(f"n = {n:,}, medians of {options.repeats}\n")
    print(f"{'argmin':36} {'ms':>7}   {'peer':8} {'ms':>7}   {'ratio':>6}   goal")
    for name, work, peer_name, peer, goal in rows:
        found = medians(
            {"forel": without_preparation(work), "peer": without_preparation(peer)},
            options.repeats,
        )
        mine, theirs = 1e3 * found["forel"], 1e3 * found["peer"]
        verdict = f"≤ {goal} {'met' if mine / theirs <= goal else 'MISSED'}"
        print(f"{name:36} {mine:7.2f}   {peer_name:8} {theirs:7.2f}   {mine / theirs:6.2f}   {verdict}")


if __name__ == "__main__":
    main()
