"""Exponential weights: regret at most log K / η on random and adversarial forecasts."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forel import losses
from forel.experts import (
    Aggregated,
    ExpertMixture,
    ExponentialWeights,
    FixedShare,
    Probabilities,
    WeightedMean,
    mix,
    squared,
)
from forel.validation import Unsupported
from tests.experts.forecasts import SEEDS, SIZES, sequences


@pytest.mark.parametrize("name", ["random", "certain", "sorted", "changing"])
@given(SEEDS, SIZES, st.booleans())
def test_log_loss_is_at_most_that_of_each_expert_and_its_share_of_the_prior(name, seed, size, prior):
    p, y = sequences(name, seed, *size)
    n = size[1]
    pi = np.random.default_rng(seed).dirichlet(np.ones(n)) + 1e-12 if prior else None
    mixed = mix(p, y, rule=ExponentialWeights(1.0, pi))
    allowed = np.full(n, math.log(n)) if pi is None else -np.log(pi / pi.sum())
    assert (mixed.loss <= mixed.totals + allowed + 1e-11 * max(1, mixed.loss)).all()
    measured, bound = mixed.guarantee().pair
    assert measured <= bound + 1e-11 * max(1, mixed.loss)
    assert mixed.weights.sum(axis=1) == pytest.approx(np.ones(size[0] + 1), rel=1e-12)


@pytest.mark.parametrize("name", ["random", "certain", "changing"])
def test_the_mixture_of_sequences_is_the_sequence_of_mixtures(name):
    p, y = sequences(name, 3, 60, 5)
    mixed = mix(p, y)
    given_to_it = [
        [Fraction(float(v)) if label else 1 - Fraction(float(v)) for v in row] for row, label in zip(p, y, strict=True)
    ]
    joint = [math.prod(column) / Fraction(5) for column in zip(*given_to_it, strict=True)]
    with mpmath.workdps(40):
        whole = sum(joint)
        assert mixed.loss == pytest.approx(
            float(-mpmath.log(mpmath.mpf(whole.numerator) / whole.denominator)), rel=1e-13
        )
        assert mixed.posterior == pytest.approx([float(j / whole) for j in joint], rel=1e-11)


def test_regret_is_exactly_log_k_when_every_expert_but_one_is_refuted():
    rounds = 10
    table = np.array(list(itertools.product((0.0, 1.0), repeat=rounds))).T  # every sequence is some expert's
    y = np.random.default_rng(0).integers(0, 2, rounds)
    mixed = mix(table, y)
    measured, bound = mixed.guarantee().pair
    assert bound == pytest.approx(rounds * math.log(2), rel=1e-14)
    assert measured == pytest.approx(bound, rel=1e-13)
    assert mixed.predictions == pytest.approx(np.full(rounds, 0.5), rel=1e-13)
    assert mixed.posterior.max() == pytest.approx(1.0)


def test_a_refuted_expert_keeps_weight_zero_and_costs_at_most_its_prior_weight():
    mixed = mix([[1.0, 0.5]] * 3, [1, 0, 1])
    assert mixed.weights[2:, 0].tolist() == [0.0, 0.0]
    assert mixed.totals[0] == math.inf
    assert mixed.best == 1
    assert mixed.loss == pytest.approx(3 * math.log(2) + math.log(2), rel=1e-14)  # 1/8 of half the prior
    assert mixed.guarantee(expert=0).pair == (-math.inf, math.log(2))


def test_when_every_expert_is_refuted_the_loss_is_infinite_weights_stay_and_there_is_no_bound():
    p, y = [[1.0, 0.5], [0.75, 0.0], [0.75, 0.0]], [0, 1, 1]
    for rule in (ExponentialWeights(), FixedShare(share=0.5)):
        mixed = mix(p[:2], y[:2], rule=rule)
        alive = isinstance(rule, FixedShare)
        assert math.isfinite(mixed.loss) == alive  # sharing brought the first one back
        proof = mixed.guarantee()
        assert bool(proof.void) != alive
    measured, bound = mixed.guarantee(switches=1).pair
    assert measured == pytest.approx(bound, rel=1e-14)  # one sequence alone is left
    mixed = mix(p, y)
    assert mixed.loss == math.inf
    assert mixed.weights[1:].tolist() == [[0.0, 1.0]] * 3
    proof = mixed.guarantee()
    assert math.isnan(proof.measured)
    assert str(proof).startswith("nothing is proved against the best of 2 experts")
    assert "in round 2 every remaining expert had infinite loss; keep probabilities away from 0 and 1" in str(proof)
    with pytest.raises(ValueError, match="void, because in round 2"):
        proof.bound  # noqa: B018


@pytest.mark.parametrize("pool", [squared(-1.0, 1.0), Aggregated(-1.0, 1.0)], ids=["means", "aggregated"])
@pytest.mark.parametrize("ends", [False, True])
@given(SEEDS, SIZES)
def test_squared_loss_is_at_most_that_of_each_expert_and_log_k_over_eta(pool, ends, seed, size):
    rng = np.random.default_rng(seed)
    p, y = rng.uniform(-1, 1, size), rng.uniform(-1, 1, size[0])
    if ends:
        p, y = np.sign(p), np.sign(y)
    mixed = mix(p, y, pool)
    assert mixed.rule.eta == pool.eta
    measured, bound = mixed.guarantee().pair
    assert bound == pytest.approx(math.log(size[1]) / pool.eta)
    assert measured <= bound + 1e-11 * max(1.0, mixed.loss)


def test_aggregation_gets_near_its_bound_where_averaging_cannot():
    # One of many experts is always right, and the others always wrong.
    p = np.zeros((400, 3000))
    p[:, 7] = 1.0
    ratios = []
    for pool in (squared(0.0, 1.0), Aggregated(0.0, 1.0)):
        measured, bound = mix(p, np.ones(400), pool).guarantee().pair
        ratios.append(measured / bound)
    assert 0.4 < ratios[0] <= 1
    assert 0.9 < ratios[1] <= 1


@pytest.mark.parametrize(
    "pool", [Probabilities(), squared(0, 1), Aggregated(0, 1)], ids=lambda pool: type(pool).__name__
)
@pytest.mark.parametrize("shared", [False, True])
@given(SEEDS, st.integers(1, 30), st.integers(1, 6))
def test_an_adversary_who_sees_the_prediction_stays_below_the_bound(pool, shared, seed, rounds, n):
    rng = np.random.default_rng(seed)
    panel = ExpertMixture(pool, FixedShare(pool.eta) if shared else None)
    state = panel.init(n)
    for _ in range(rounds):
        predictions = rng.beta(0.5, 0.5, n)
        state = panel.update(state, predictions, float(panel.predict(state, predictions) < 0.5))
        for k in range(n):
            measured, bound = panel.guarantee(state, k).pair
            assert measured <= bound + 1e-12 * max(1.0, state.loss)


def test_a_long_stream_keeps_full_precision():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 30_000)
    p = np.clip(0.5 + (y[:, None] - 0.5) * rng.uniform(0, 0.02, (30_000, 4)), 0.01, 0.99)
    mixed = mix(p, y)
    exact = math.log(4) - np.logaddexp.reduce(-np.array([math.fsum(column) for column in mixed.expert_losses.T]))
    assert mixed.loss == pytest.approx(exact, rel=1e-13)


def test_any_exp_concave_loss_by_its_constant():
    rng = np.random.default_rng(5)
    margins, y = rng.uniform(-2, 2, (500, 6)), rng.integers(0, 2, 500)
    alpha = losses.Logistic().constants(2.0).exp_concavity
    mixed = mix(margins, y, WeightedMean(losses.Logistic(), alpha))
    measured, bound = mixed.guarantee().pair
    assert measured <= bound == pytest.approx(math.log(6) / alpha)
    with pytest.raises(
        Unsupported, match=r"eta: got 1, more than the pool's 0.135335; use eta=0.135335, or AdaHedge\(\)"
    ):
        mix(margins, y, WeightedMean(losses.Logistic(), alpha), ExponentialWeights(1.0))
    with pytest.raises(Unsupported, match=r"more than the pool's 0; use AdaHedge\(\)"):
        mix(margins, y, WeightedMean(losses.Absolute()), FixedShare(0.1))
