"""Overhead of the reference engine over numpy.

Peer: the same numpy operations of each round on the same arrays, without the engine.
Input: 10,000 rounds of diagonal AdaGrad FTRL-Proximal with n = 1,000 and random linear losses.
Output: medians per round in turns, and the share of numpy in the engine's time (goal: at least 50 %).
"""

import argparse

import numpy as np
from timing import medians, without_preparation

from forel.losses import Linear
from forel.theory.algorithms import adagrad_ftrl_proximal

N = 1_000


def engine(losses, rounds):
    """Play the rounds through the public API, without a trace."""
    algorithm = adagrad_ftrl_proximal(1.0)
    state = algorithm.init(N)
    for t in range(rounds):
        state = algorithm.update(state, losses[t % len(losses)])
    return state.x


def arrays(losses, rounds):
    """Run the same array operations, tests for NaN included."""
    root, total, linear, strength, x = (np.zeros(N) for _ in range(5))
    scale = np.sqrt(2)
    for t in range(rounds):
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
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    losses = [Linear(g) for g in rng.normal(size=(500, N))]
    assert np.array_equal(engine(losses, options.rounds), arrays(losses, options.rounds))
    runs = {run.__name__: without_preparation(lambda run=run: run(losses, options.rounds)) for run in (engine, arrays)}
    found = medians(runs, options.repeats)
    whole, inside = (1e6 * found[name] / options.rounds for name in ("engine", "arrays"))
    share = inside / whole
    print(f"\nreference engine, n = {N:,}, {options.rounds:,} rounds, medians of {options.repeats}\n")
    print(f"{whole:.1f} µs per round, of which numpy {inside:.1f} µs: {share:.0%}", end="   ")
    print(f"goal ≥ 50% {'met' if share >= 0.5 else 'MISSED'}")


if __name__ == "__main__":
    main()
