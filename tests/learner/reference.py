"""Streams, and the reference algorithms that the fast learner is compared with."""

import numpy as np

from forel.losses import Choice, Example, Interval, by_name
from forel.losses.vocabulary import VOCABULARY

N, ROUNDS = 8, 200
SINGLE = [name for name, loss in VOCABULARY.items() if not loss.joint]


def stream(loss, seed=0, rounds=ROUNDS, n=N):
    """Sparse rows of which some are empty, with features of different frequency and size."""
    rng = np.random.default_rng(seed)
    dense = rng.normal(size=(rounds, n)) * (rng.random((rounds, n)) < np.linspace(0.9, 0.05, n)) * np.linspace(1, 3, n)
    labels = rng.integers(0, 2, rounds)
    domain = by_name(loss).labels
    labels = 2 * labels - 1 if isinstance(domain, Choice) else labels
    return dense, labels + (rng.normal(size=rounds) if domain == Interval() else 0)


def replay(settings, dense, labels):
    """Play the reference engine; return its margins before each round, its last weights and its losses."""
    algorithm, loss = settings.reference(dense.shape[1]), settings.loss_function
    rows = np.hstack([dense, np.ones((len(dense), 1))]) if settings.bias else dense
    state, margins, losses = algorithm.init(rows.shape[1]), [], 0.0
    for a, y in zip(rows, labels, strict=True):
        state = algorithm.observe(state, a)
        margins.append(a @ algorithm.play(state))
        losses += float(loss(margins[-1], y))
        state = algorithm.update(state, Example(loss, a, y))
    return np.array(margins), algorithm.play(state), losses
