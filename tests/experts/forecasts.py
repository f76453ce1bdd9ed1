"""Forecasts and labels for the tests of experts."""

import numpy as np
import pytest
from hypothesis import strategies as st

from forel import losses
from forel.experts import (
    Aggregated,
    Costs,
    Likelihoods,
    LogOdds,
    Probabilities,
    WeightedMean,
    squared,
)

SEEDS = st.integers(0, 2**32 - 1)


SIZES = st.tuples(st.integers(1, 40), st.integers(1, 9))


LABELS = {"binary": lambda rng: float(rng.integers(2)), "unit": lambda rng: rng.random(), "none": lambda rng: None}


POOLS = {
    "probabilities": (Probabilities(), "binary", lambda rng, k: rng.random(k)),
    "certain": (Probabilities(), "binary", lambda rng, k: rng.integers(0, 2, k) * 1.0),
    "log odds": (LogOdds(), "binary", lambda rng, k: 30 * rng.normal(size=k)),
    "likelihoods": (Likelihoods(), "none", lambda rng, k: rng.exponential(size=k)),
    "log likelihoods": (Likelihoods(log=True), "none", lambda rng, k: 300 * rng.normal(size=k)),
    "squared": (squared(0, 1), "unit", lambda rng, k: rng.random(k)),
    "squared, ends": (squared(0, 1), "binary", lambda rng, k: rng.integers(0, 2, k) * 1.0),
    "aggregated": (Aggregated(0, 1), "unit", lambda rng, k: rng.random(k)),
    "aggregated, ends": (Aggregated(0, 1), "binary", lambda rng, k: rng.integers(0, 2, k) * 1.0),
    "logistic margins": (
        WeightedMean(losses.Logistic(), losses.Logistic().constants(2.0).exp_concavity),
        "binary",
        lambda rng, k: rng.uniform(-2, 2, k),
    ),
    "absolute": (WeightedMean(losses.Absolute()), "unit", lambda rng, k: rng.normal(size=k)),
    "own": (WeightedMean(lambda p, y: (p - y) ** 4), "unit", lambda rng, k: rng.normal(size=k)),
    "costs": (Costs(), "none", lambda rng, k: rng.normal(size=k)),
}


every_pool = pytest.mark.parametrize("name", POOLS)


def sequences(name, seed, rounds, n):
    """Probabilities and labels of several kinds."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rounds)
    p = rng.beta(0.3, 0.3, (rounds, n))
    if name == "certain":
        p = rng.integers(0, 2, (rounds, n)) * 1.0
        p[:, 0] = np.clip(p[:, 0], 0.25, 0.75)
    if name == "sorted":
        y = np.sort(y)
    if name == "changing":
        p = np.where((np.arange(rounds)[:, None] // 5 + np.arange(n)) % 2 == y[:, None], 0.95, 0.05)
    return p, y
