"""Pools: the mixture costs at most what its η allows, and no larger η would do."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forel import losses
from forel.experts import (
    Aggregated,
    Likelihoods,
    LogOdds,
    Probabilities,
    mix,
    squared,
)
from tests.experts.forecasts import LABELS, POOLS, SEEDS, every_pool


@every_pool
@given(SEEDS, st.integers(1, 6), st.floats(0.05, 3.0))
def test_a_pool_satisfies_the_mixability_inequality_for_all_weights(name, seed, k, spread):
    pool, labels, predict = POOLS[name]
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(k, spread)) + 1e-300
    predictions, y = pool.check_predictions(predict(rng, k)), pool.check_labels(LABELS[labels](rng))
    paid, lost = float(pool.loss(np.log(weights), predictions, y)), pool.losses(predictions, y)
    if pool.eta:
        exact = mpmath.fsum(w * mpmath.exp(-pool.eta * cost) for w, cost in zip(weights, lost, strict=True))
        allowed = float(-mpmath.log(exact) / pool.eta) if exact else math.inf
        if isinstance(pool, (Probabilities, LogOdds, Likelihoods)):
            assert paid == pytest.approx(allowed, rel=1e-12, abs=1e-12)
    else:
        allowed = float(weights @ lost)
    assert paid <= allowed + 1e-12 * max(1.0, abs(allowed))


@pytest.mark.parametrize(
    ("pool", "predictions", "y"),
    [(squared(0, 1), [0.999, 1.0], 0.0), (Aggregated(0, 1), [0.49, 0.51], 0.0), (Aggregated(0, 1), [0.49, 0.51], 1.0)],
    ids=["means", "aggregated, low", "aggregated, high"],
)
def test_no_pool_could_have_a_larger_eta(pool, predictions, y):
    # By symmetry, nothing but the middle of 0.49 and 0.51 is as good at both ends.
    log, predictions = np.log([0.5, 0.5]), np.array(predictions)
    paid = float(pool.loss(log, predictions, y))
    for eta, holds in ((pool.eta, True), (1.01 * pool.eta, False)):
        allowed = -np.logaddexp.reduce(log - eta * pool.losses(predictions, y)) / eta
        assert (paid <= allowed) == holds


def test_squared_loss_on_labels_in_a_range_has_the_constants_of_the_loss():
    pool = squared(-1.0, 3.0)
    assert pool.eta == losses.Squared().constants(margin=2.0, label=2.0).exp_concavity == 1 / 16
    assert Aggregated(-1.0, 3.0).eta == 4 * pool.eta
    assert float(Aggregated(-1.0, 3.0).predict(np.zeros(1), np.array([2.5]))) == pytest.approx(2.5)


def test_small_probabilities_keep_full_precision_and_means_stay_in_range():
    assert Probabilities().losses([1e-20, 0.5], 0).tolist() == [1e-20, math.log(2)]
    assert mix([[1e-20, 1e-20]] * 3, [0, 0, 0]).losses == pytest.approx(np.full(3, 1e-20), abs=1e-15)
    weights = np.random.default_rng(2).dirichlet(np.ones(7), 200)
    for value in (1.0, 0.1, 0.7):
        assert set(Probabilities().predict(np.log(weights), np.full((200, 7), value))) == {value}
    for low, high in ((0.1, 0.7), (-3.0, 1.1)):
        ends = np.where(np.arange(200)[:, None] % 2, np.full(7, low), high)
        p = Aggregated(low, high).predict(np.log(weights), ends)
        assert p == pytest.approx(ends[:, 0])
        assert ((low <= p) & (p <= high)).all()


def test_log_odds_mix_as_their_probabilities_do():
    rng = np.random.default_rng(1)
    margins, y = rng.normal(size=(50, 4)), rng.integers(0, 2, 50)
    p = 1 / (1 + np.exp(-margins))
    by_margin, by_probability = mix(margins, y, LogOdds()), mix(p, y)
    assert by_margin.losses == pytest.approx(by_probability.losses, rel=1e-12)
    assert 1 / (1 + np.exp(-by_margin.predictions)) == pytest.approx(by_probability.predictions, rel=1e-12)
    given_to_it = np.where(y[:, None] == 1, p, 1 - p)
    for pool, table in ((Likelihoods(), given_to_it), (Likelihoods(log=True), np.log(given_to_it))):
        assert mix(table, pool=pool).losses == pytest.approx(by_probability.losses, rel=1e-12)
