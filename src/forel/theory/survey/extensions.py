"""Statements other than the survey's numbered results that forel relies on, recomputed in the same way."""

from collections.abc import Iterable, Iterator

import numpy as np

from forel.losses import Loss
from forel.theory.algorithms import Algorithm, adagrad_ftrl_proximal, dual_averaging, gradient_descent, hedge
from forel.theory.analysis import Trace, loss_floor, play
from forel.theory.analysis.streams import classification, quadratics
from forel.theory.penalties import l1
from forel.theory.sets import l2_ball
from forel.theory.survey.games import N, comparators, traces
from forel.theory.survey.result import Outcome, Result, largest

__all__ = ["EXTENSIONS"]

ROUNDS = 40


def _games() -> Iterator[tuple[str, Trace]]:
    algorithms: dict[str, Algorithm] = {
        "dual averaging": dual_averaging(1.0, 1.0),
        "gradient descent": gradient_descent(0.3),
        "AdaGrad FTRL-Proximal, L1": adagrad_ftrl_proximal(1.0, l1(0.05)),
        "hedge": hedge(N),
    }
    streams: dict[str, Iterable[Loss]] = {
        "quadratics": quadratics(N, ROUNDS),
        "log-loss": classification(N, ROUNDS),
    }
    for name, algorithm in algorithms.items():
        for adversary, trace in traces(algorithm, rounds=ROUNDS):
            yield f"{name}, {adversary}", trace
        for stream, losses in streams.items():
            yield f"{name}, {stream}", play(algorithm, losses, n=N)


def dual_value() -> Outcome:
    """Compare the regret to every point of a ball with the gap between the loss and its dual value.

    Survey: Corollary 6, of which this is the Fenchel side
    """
    outcomes = []
    for name, trace in _games():
        for radius in (0.5, 2.0):
            total = trace.gradients.sum(axis=0)
            points = [radius * x / max(1.0, float(np.linalg.norm(x))) for x in comparators(trace)]
            points.append(-radius * total / max(float(np.linalg.norm(total)), 1e-12))
            gap = loss_floor(trace, l2_ball(radius)).regret
            outcomes += [Outcome(trace.regret(x), gap, name) for x in points]
    return largest(outcomes)


FLOOR = "forel.theory.analysis.dual.loss_floor"
EXTENSIONS = (Result("Loss floor", "the dual value is below the loss of every point", "≤", FLOOR, dual_value),)
