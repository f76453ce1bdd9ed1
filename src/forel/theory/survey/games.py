"""The games on which the theorems are checked: algorithms, adversaries and comparators."""

from collections.abc import Iterable, Iterator

import numpy as np

from forel.losses import Loss
from forel.theory.algorithms import Algorithm
from forel.theory.analysis import Adversary, Trace, play
from forel.theory.analysis.adversaries import alternating, orthogonal, spikes, worst_linear
from forel.theory.analysis.streams import quadratics, random_linear, switching
from forel.theory.argmin import project
from forel.theory.sets import Reals
from forel.validation import Vector

N, ROUNDS = 4, 60


def traces(algorithm: Algorithm, n: int = N, rounds: int = ROUNDS) -> Iterator[tuple[str, Trace]]:
    """Play an algorithm against every adversary, gradients of norm at most 1."""
    adversaries: dict[str, Adversary | Iterable[Loss]] = {
        "random": random_linear(n, rounds),
        "switching": switching(n, rounds),
        "worst": worst_linear(),
        "orthogonal": orthogonal(),
        "alternating": alternating(),
        "spikes": spikes(),
    }
    for name, losses in adversaries.items():
        yield name, play(algorithm, losses, rounds=rounds, n=n)


def curved(algorithm: Algorithm, n: int = N, rounds: int = ROUNDS) -> Trace:
    """Play an algorithm against strongly convex losses."""
    return play(algorithm, quadratics(n, rounds))


def comparators(trace: Trace) -> Iterator[Vector]:
    """Yield feasible points: the last one played, the best direction in hindsight, corners and random points."""
    feasible = trace.algorithm.feasible
    n = trace.points.shape[1]
    rng = np.random.default_rng(0)
    total = trace.gradients.sum(axis=0)
    yield trace.points[-1]
    for u in (-total, *np.eye(n), *-np.eye(n), *rng.normal(size=(3, n))):
        yield u / max(1.0, float(np.linalg.norm(u))) if isinstance(feasible, Reals) else project(9 * u, feasible)
