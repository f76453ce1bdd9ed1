"""How much of the reference engine's time is numpy's: 10,000 rounds of diagonal AdaGrad FTRL-Proximal at n = 1,000.

The peer is the round's array operations alone, on the same arrays, with nothing in between.
"""

import statistics
import time

import numpy as np

from forel.losses import Linear
from forel.theory.algorithms import adagrad_ftrl_proximal

N, ROUNDS, REPEATS = 1_000, 10_000, 5


def engine(losses):
    """Play the rounds as a user would, without keeping a trace."""
    algorithm = adagrad_ftrl_proximal(1.0)
    state = algorithm.init(N)
    for t in range(ROUNDS):
        state = algorithm.update(state, losses[t % len(losses)])
    return state.x


def arrays(losses):
    """Do the same rounds' arithmetic on bare arrays: the same operations, checks for NaN included."""
    root, total, linear, strength, x = (np.zeros(N) for _ in range(5))
    scale = np.sqrt(2)
    for t in range(ROUNDS):
        g = losses[t % len(losses)].g
        np.vdot(g, g)
        total = total + g
        root = np.hypot(root, g)
        grown = (0.0 + root) / scale
        linear = linear + (grown - strength) * x
        strength = grown
        x = np.subtract(0.0, total - linear)
        strength.min()
        x /= strength
        x.clip(-1.0, 1.0, out=x)
        np.vdot(x, x)
    return x


def main():
    rng = np.random.default_rng(0)
    losses = [Linear(g) for g in rng.normal(size=(500, N))]
    assert np.array_equal(engine(losses), arrays(losses))
    seconds = {engine: [], arrays: []}
    for _ in range(REPEATS):
        for run, kept in seconds.items():
            start = time.perf_counter()
            run(losses)
            kept.append(time.perf_counter() - start)
    whole, inside = (statistics.median(kept) for kept in seconds.values())
    share = inside / whole
    print(f"\nreference engine, n = {N:,}, {ROUNDS:,} rounds, medians of {REPEATS}\n")
    print(
        f"{1e6 * whole / ROUNDS:.1f} µs a round, of which numpy {1e6 * inside / ROUNDS:.1f} µs: {share:.0%}", end="   "
    )
    print(f"goal ≥ 50% {'met' if share >= 0.5 else 'MISSED'}")


if __name__ == "__main__":
    main()
