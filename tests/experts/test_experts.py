"""Experts: regret below its bound on random, shuffled and adversarial sequences, and slow versions of every rule."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalogue import CATALOGUE
from forel import losses
from forel.experts import (
    AdaHedge,
    Aggregated,
    Costs,
    ExpertMixture,
    ExponentialWeights,
    FixedShare,
    Guarantee,
    Hedge,
    Likelihoods,
    LogOdds,
    Probabilities,
    WeightedMean,
    best_switching,
    mix,
    squared,
)
from forel.theory import algorithms
from forel.validation import Unsupported

SEEDS = st.integers(0, 2**32 - 1)
SIZES = st.tuples(st.integers(1, 40), st.integers(1, 9))


def follow(rule, table):
    """The mixture of costs in a table, and the state at its end."""
    mixed = mix(table, pool=Costs(), rule=rule)
    return mixed, mixed.state


def answer(rule, rounds, n, adversary):
    """The table an adversary makes who sees the weights."""
    state, rows = rule.init(n), []
    for t in range(rounds):
        rows.append(adversary(t, rule.play(state)))
        state = rule.update(state, rows[-1])
    return np.array(rows)


def heaviest(t, weights):
    """Let the expert with the largest weight lose: the most a round can cost."""
    return np.eye(weights.size)[np.argmax(weights)]


# ---- pools ------------------------------------------------------------------------------------------------------

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


@every_pool
@given(SEEDS, st.integers(1, 6), st.floats(0.05, 3.0))
def test_a_pool_costs_no_more_than_its_eta_says_whatever_the_weights(name, seed, k, spread):
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


def test_small_probabilities_keep_their_digits_and_means_stay_among_what_was_predicted():
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


# ---- exponential weights ----------------------------------------------------------------------------------------


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


def test_an_expert_refuted_once_never_comes_back_and_costs_no_more_than_its_weight():
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
    assert "in round 2 every expert left had infinite loss; keep probabilities away from 0 and 1" in str(proof)
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
def test_an_adversary_who_sees_the_prediction_gets_no_further_than_the_bound(pool, shared, seed, rounds, n):
    rng = np.random.default_rng(seed)
    panel = ExpertMixture(pool, FixedShare(pool.eta) if shared else None)
    state = panel.init(n)
    for _ in range(rounds):
        predictions = rng.beta(0.5, 0.5, n)
        state = panel.update(state, predictions, float(panel.predict(state, predictions) < 0.5))
        for k in range(n):
            measured, bound = panel.guarantee(state, k).pair
            assert measured <= bound + 1e-12 * max(1.0, state.loss)


def test_a_long_stream_loses_no_digits():
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


# ---- fixed share ------------------------------------------------------------------------------------------------


def path_cost(rule, n, path):
    """−log of the prior probability of a sequence of experts, from its definition."""
    total = math.log(n)
    for t, (before, after) in enumerate(itertools.pairwise(path), start=2):
        share = 1 / t if rule.share is None else rule.share
        total -= math.log(1 - share) if before == after else math.log(share / (n - 1))
    return total


SHARES = pytest.mark.parametrize("rule", [FixedShare(share=0.1), FixedShare(share=0.5), FixedShare()], ids=str)


@SHARES
def test_fixed_share_is_bayes_over_all_sequences_of_experts(rule):
    p, y = sequences("certain", 8, 6, 3)
    given_to_it = np.where(y[:, None] == 1, p, 1 - p)
    paths = list(itertools.product(range(3), repeat=6))
    prior = np.array([math.exp(-path_cost(rule, 3, path)) for path in paths])
    assert prior.sum() == pytest.approx(1.0)
    joint = prior * np.array([math.prod(given_to_it[t, k] for t, k in enumerate(path)) for path in paths])
    mixed = mix(p, y, rule=rule)
    assert mixed.loss == pytest.approx(-math.log(joint.sum()), rel=1e-12)
    last = np.array([path[-1] for path in paths])
    ends = np.array([joint[last == k].sum() for k in range(3)]) / joint.sum()
    share = 1 / 7 if rule.share is None else rule.share
    assert mixed.posterior == pytest.approx((1 - share) * ends + share / 2 * (1 - ends), rel=1e-12)


@SHARES
@given(st.integers(2, 8), st.integers(2, 5))
def test_the_cost_is_that_of_the_least_likely_sequence_with_so_many_switches(rule, rounds, n):
    by_switches = {}
    for path in itertools.product(range(2), repeat=rounds):  # the prior only asks where the switches are
        m = sum(a != b for a, b in itertools.pairwise(path))
        by_switches[m] = max(by_switches.get(m, 0.0), path_cost(rule, n, path))
    for m, cost in by_switches.items():
        assert rule.cost(n, rounds, m) == pytest.approx(cost, rel=1e-12)
    costs = [rule.cost(n, rounds, m) for m in range(rounds)]
    assert (np.diff(costs) >= -1e-12).all()  # so that "at most m" holds too


@SHARES
@pytest.mark.parametrize("name", ["random", "certain", "sorted", "changing"])
@given(SEEDS, st.integers(2, 40), st.integers(2, 6))
def test_fixed_share_stays_near_the_best_sequence_of_experts(rule, name, seed, rounds, n):
    p, y = sequences(name, seed, rounds, n)
    mixed = mix(p, y, rule=rule)
    best = best_switching(mixed.expert_losses, rounds - 1)
    for m in range(rounds):
        proof = mixed.guarantee(switches=m)
        assert proof.other == best[m]
        assert proof.measured <= proof.bound + 1e-11 * max(1.0, mixed.loss)


@SHARES
def test_fixed_share_pays_its_bound_in_full_when_one_sequence_alone_is_left(rule):
    y = np.array([0] * 20 + [1] * 3)  # expert k says k, for certain
    mixed = mix(np.tile([0.0, 1.0], (23, 1)), y, rule=rule)
    assert mixed.totals.tolist() == [math.inf, math.inf]
    measured, bound = mixed.guarantee(switches=1).pair
    assert measured == pytest.approx(path_cost(rule, 2, y), rel=1e-12)
    assert measured <= bound * (1 + 1e-12)
    if rule.share is not None:
        assert measured == pytest.approx(bound, rel=1e-12)
    late = mix(np.tile([0.0, 1.0], (23, 1)), [0] * 22 + [1], rule=rule)
    assert late.guarantee(switches=1).measured == pytest.approx(bound, rel=1e-12)


def test_fixed_share_follows_a_drift_that_exponential_weights_cannot():
    p = np.where(np.arange(1000)[:, None] < 500, [[0.9, 0.1]], [[0.1, 0.9]])
    y = np.ones(1000)
    fixed, shared = mix(p, y), mix(p, y, rule=FixedShare())
    assert shared.loss < fixed.loss / 2
    assert shared.guarantee(switches=1).measured > 0.3 * shared.guarantee(switches=1).bound


@given(SEEDS, st.integers(1, 7), st.integers(1, 3), st.integers(0, 4))
def test_best_switching_is_what_trying_every_sequence_finds(seed, rounds, n, m):
    table = np.random.default_rng(seed).exponential(size=(rounds, n))
    table[table > 2] = np.inf
    found = best_switching(table, m)
    for j in range(m + 1):
        paths = (
            p for p in itertools.product(range(n), repeat=rounds) if sum(a != b for a, b in itertools.pairwise(p)) <= j
        )
        assert found[j] == pytest.approx(min(sum(table[t, k] for t, k in enumerate(path)) for path in paths))


# ---- Hedge and AdaHedge -----------------------------------------------------------------------------------------


def tables(name, seed, rounds, n):
    rng = np.random.default_rng(seed)
    return {
        "random": lambda: rng.uniform(-1, 1, (rounds, n)),
        "signs": lambda: rng.choice([-1.0, 1.0], (rounds, n)),
        "lucky": lambda: rng.uniform(0, 1, (rounds, n)) * np.linspace(0.5, 1, n),
        "sorted": lambda: np.sort(rng.uniform(0, 1, (rounds, n)), axis=0),
        "growing": lambda: rng.uniform(0, 1, (rounds, n)) * np.exp(np.linspace(-8, 8, rounds))[:, None],
        "rare": lambda: (rng.random((rounds, n)) < 0.1) * 1e6,
        "equal": lambda: np.repeat(rng.normal(size=(rounds, 1)), n, axis=1),
        "against Hedge": lambda: answer(Hedge(1.0), rounds, n, heaviest),
        "against AdaHedge": lambda: answer(AdaHedge(), rounds, n, heaviest),
    }[name]()


TABLES = ["random", "signs", "lucky", "sorted", "growing", "rare", "equal", "against Hedge", "against AdaHedge"]


@pytest.mark.parametrize("name", TABLES)
@given(SEEDS, SIZES, st.sampled_from(["as is", "shuffled", "moved", "tiny", "huge"]))
def test_hedge_and_adahedge_stay_below_their_bounds(name, seed, size, change):
    table = tables(name, seed, *size)
    if change == "shuffled":
        table = np.random.default_rng(seed).permutation(table)
    table = {"moved": table + 3.0, "tiny": table * 1e-200, "huge": table * 1e200}.get(change, table)
    unit = np.abs(table).max() or 1.0
    for rule in (Hedge(unit), AdaHedge()):
        mixed, state = follow(rule, table)
        measured, bound = mixed.guarantee().pair
        assert measured <= bound + 1e-9 * unit
        if isinstance(rule, AdaHedge):
            assert bound <= rule.worst(state) * (1 + 1e-9)


def test_hedge_is_entropic_ftrl_on_the_losses():
    table = tables("random", 2, 60, 5)
    mixed, _ = follow(Hedge(1.0), table)
    twin = algorithms.hedge(5, 1.0)
    state = twin.init(5)
    for t, row in enumerate(table):
        assert mixed.weights[t] == pytest.approx(twin.play(state), rel=1e-12)
        state = twin.update(state, losses.Linear(row))
    squares = (np.abs(table).max(axis=1) ** 2)[:-1].sum()
    assert mixed.guarantee().bound == pytest.approx(2 * math.sqrt((1 + squares) * math.log(5)))


def test_a_loss_larger_than_promised_voids_hedge():
    mixed, _ = follow(Hedge(1.0), [[1.0, 0.0], [0.0, -2.0], [0.0, 9.0]])
    with pytest.raises(
        ValueError, match="void, because in round 2 a loss of 2 is larger than the assumed 1; it has no"
    ):
        mixed.guarantee().pair  # noqa: B018


@pytest.mark.parametrize("name", TABLES)
def test_adahedge_against_its_definition_in_high_precision(name):
    table = tables(name, 6, 40, 4)
    mixed, state = follow(AdaHedge(), table)
    with mpmath.workdps(60):
        totals, gap, log = [mpmath.mpf(0)] * 4, mpmath.mpf(0), mpmath.log(4)
        for t, row in enumerate(table):
            least = min(totals)
            if gap == 0:
                raw = [mpmath.mpf(v == least) for v in totals]
            else:
                raw = [mpmath.exp(-log / gap * (v - least)) for v in totals]
            w = [v / sum(raw) for v in raw]
            assert mixed.weights[t] == pytest.approx([float(v) for v in w], rel=1e-8, abs=1e-12)
            cost = [mpmath.mpf(float(v)) for v in row]
            expected = sum(a * b for a, b in zip(w, cost, strict=True))
            if gap == 0:
                paid = min(c for c, v in zip(cost, w, strict=True) if v)
            else:
                paid = (
                    -gap / log * mpmath.log(sum(a * mpmath.exp(-log / gap * c) for a, c in zip(w, cost, strict=True)))
                )
            gap += expected - paid
            totals = [a + b for a, b in zip(totals, cost, strict=True)]
    assert mixed.guarantee().bound == pytest.approx(2 * float(gap), rel=1e-9, abs=1e-12)
    assert state.totals == pytest.approx([float(v - min(totals)) for v in totals], rel=1e-9, abs=1e-9)


@given(SEEDS, st.floats(-1e3, 1e3), st.integers(-300, 300))
def test_adahedge_does_not_mind_the_unit_of_losses_or_what_all_lose(seed, moved, power):
    table = np.random.default_rng(seed).integers(0, 10, (30, 4)).astype(float)
    weights = follow(AdaHedge(), table)[0].weights
    assert follow(AdaHedge(), table * 2.0**power)[0].weights == pytest.approx(weights, rel=1e-12)
    assert follow(AdaHedge(), table + moved)[0].weights == pytest.approx(weights, rel=1e-7, abs=1e-12)


@pytest.mark.parametrize("rule", [Hedge(1.0), AdaHedge()], ids=repr)
def test_regret_comes_near_the_bound_when_experts_alternate_and_then_one_leads(rule):
    # Alternating costs the mixability gap, and the lead log(K)/η on top: both halves of the bound.
    table = np.array([[1.0, -1.0], [-1.0, 1.0]] * 1000 + [[1.0, -1.0]] * 134)
    measured, bound = follow(rule, table)[0].guarantee().pair
    assert 0.96 * bound <= measured <= bound


def test_adahedges_gap_never_shrinks_and_its_worst_case_is_the_formula():
    rng = np.random.default_rng(4)
    rule, ranges, gaps = AdaHedge(), [], [0.0]
    state = rule.init(3)
    for _ in range(3000):
        losses = rng.choice([0.0, 1e-9, 1.0]) * rng.random(3) + 0.1
        state = rule.update(state, losses)
        ranges.append(np.ptp(losses))
        gaps.append(state.gap)
    assert (np.diff(gaps) >= 0).all()
    formula = math.sqrt(np.square(ranges).sum() * math.log(3)) + max(ranges) * (4 / 3 * math.log(3) + 2)
    assert rule.worst(state) == pytest.approx(formula, rel=1e-12)


def test_adahedge_pays_next_to_nothing_where_one_expert_leads():
    table = np.tile([0.0, 1.0, 1.0], (5000, 1))
    assert follow(AdaHedge(), table)[0].guarantee().bound < 4
    assert follow(Hedge(1.0), table)[0].guarantee().bound > 100


@pytest.mark.parametrize(
    "loss", [losses.Absolute(), losses.Hinge(), losses.Quantile(0.3)], ids=lambda v: type(v).__name__
)
def test_convex_losses_of_means_stay_below_adahedges_bound(loss):
    rng = np.random.default_rng(7)
    y = rng.choice([-1.0, 1.0], 300)
    p = 0.5 * y[:, None] * rng.random(8) + rng.normal(size=(300, 8))
    mixed = mix(p, y, WeightedMean(loss))
    assert isinstance(mixed.rule, AdaHedge)
    measured, bound = mixed.guarantee().pair
    assert measured <= bound


# ---- every rule -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", CATALOGUE["rule"], ids=repr)
def test_a_rule_starts_from_init_keeps_weights_and_leaves_states_as_they_were(rule):
    state = rule.init(4)
    before = state.log_weights.copy()
    after = rule.update(state, [0.0, 0.5, 1.0, 0.25])
    assert state.log_weights.tolist() == before.tolist()
    assert (state.rounds, after.rounds) == (0, 1)
    for s in (state, after):
        assert rule.play(s).sum() == pytest.approx(1.0)
        assert rule.play(s) == pytest.approx(np.exp(s.log_weights))
        assert rule.bound(s).shape == (4,)
        assert not rule.void(s)
    assert rule.play(after)[0] / rule.play(state)[0] > rule.play(after)[2] / rule.play(state)[2]
    for bad in ([1.0, 2.0], [0.0, math.nan, 0.0, 0.0], [0.0, -math.inf, 0.0, 0.0], "abcd"):
        with pytest.raises(ValueError, match="losses: got"):
            rule.update(state, bad)
    assert rule.result


@pytest.mark.parametrize(
    "rule", [ExponentialWeights(), FixedShare(), FixedShare(share=0.3), Hedge(), AdaHedge()], ids=repr
)
def test_one_expert_alone_has_all_the_weight_and_no_regret(rule):
    mixed = mix([[0.5], [0.25]], [1, 0], rule=rule)
    assert mixed.weights.tolist() == [[1.0]] * 3
    assert mixed.guarantee().pair == (pytest.approx(0.0), 0.0)


@every_pool
def test_a_panel_does_round_by_round_what_mix_does_at_once(name):
    pool, labels, predict = POOLS[name]
    rng = np.random.default_rng(9)
    table = np.array([predict(rng, 3) for _ in range(20)])
    if name == "certain":
        table[:, 0] = 0.5
    y = [LABELS[labels](rng) for _ in range(20)]
    for rule in (None, Hedge(1e9)) if name != "certain" else (None, FixedShare()):
        mixed = mix(table, None if labels == "none" else y, pool, rule)
        panel = ExpertMixture(pool, rule)
        state = panel.init(3)
        for t in range(20):
            assert panel.weights(state) == pytest.approx(mixed.weights[t])
            assert panel.predict(state, table[t]) == pytest.approx(mixed.predictions[t])
            state = panel.update(state, table[t], y[t])
        assert state.loss == pytest.approx(mixed.loss)
        assert state.totals == pytest.approx(mixed.totals)
        assert state.rounds == 20
        assert str(panel.guarantee(state)) == str(mixed.guarantee())


# ---- tables, words, refusals ------------------------------------------------------------------------------------


def test_tables_of_any_kind_name_their_experts():
    columns = {"a": [0.9, 0.8], "b": [0.5, 0.5]}
    first = mix(columns, [1, 0])
    assert first.names == ("a", "b")
    for frame in (pd.DataFrame(columns), pl.DataFrame(columns)):
        other = mix(frame, [1, 0])
        assert other.names == ("a", "b")
        assert other.losses.tolist() == first.losses.tolist()
    assert mix(np.array(list(columns.values())).T, [1, 0]).names == ("expert 0", "expert 1")
    assert mix(columns, [1, 0], names=["x", "y"]).names == ("x", "y")


def test_words_are_true_and_name_the_best():
    table = {f"alpha {a}": np.full(4000, a) for a in (0.1, 0.2, 0.4)}
    y = (np.arange(4000) % 5 == 0).astype(int)
    mixed = mix(table, y)
    assert str(mixed.guarantee()) == (
        "within 0.00028 per example of the best of 3 experts, which is alpha 0.2 (0.5004 per example)"
    )
    assert str(mixed.guarantee(expert=2)).startswith("within 0.00028 per example of alpha 0.4 (")
    measured, bound = mixed.guarantee().pair
    assert measured / 4000 <= bound / 4000 <= 0.00028
    for limit, words in ((0.0, "0"), (1.0, "1.0"), (123.4, "124"), (1e-7, "0.00000010"), (math.inf, "inf")):
        assert str(Guarantee("r", "b", 1, 0.0, 0.0, limit)).startswith(f"within {words} per example of b")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: mix([[0.5, 1.5]], [1]),
            r"predictions: got 1.5 at index \(0, 1\), expected a finite number of at least 0",
        ),
        (lambda: mix([[0.5, math.nan]], [1]), r"predictions: got nan at index \(0, 1\)"),
        (lambda: mix([[0.5]], [0.5]), "labels: got 0.5 at index 0, expected 0 or 1"),
        (lambda: mix([[0.5]], [1, 0]), r"labels: got shape \(2,\), expected \(1,\), one for each row"),
        (
            lambda: mix([0.5], [1]),
            r"predictions: got shape \(1,\), expected one row per round and one column per expert",
        ),
        (lambda: mix([[0.5]], None), "labels: got None, expected 0 or 1"),
        (lambda: mix([[0.5]], [1], names=["a", "b"]), "names: got 2, expected 1, one for each column"),
        (lambda: mix({"a": [0.5], "b": [0.5, 0.5]}, [1]), r"predictions: got columns of shapes \[\(1,\), \(2,\)\]"),
        (
            lambda: mix([[0.5]], [1], Likelihoods()),
            "labels: got .*, expected none, because the table already holds the losses",
        ),
        (lambda: mix([[-0.5]], None, Likelihoods()), "predictions: got -0.5"),
        (lambda: mix([[math.inf]], None, Likelihoods(log=True)), "predictions: got inf"),
        (lambda: mix([[0.5]], [2.0], squared(0, 1)), "labels: got 2.0 at index 0"),
        (lambda: mix([[1.5]], [1.0], Aggregated(0, 1)), "predictions: got 1.5"),
        (
            lambda: mix([[1.0, 0.5]], [0], rule=AdaHedge()),
            "losses: got inf at index 0, .* needs exponential weights, or",
        ),
        (lambda: mix([[0.5, 0.5]], [1]).guarantee(switches=1), "switches: only FixedShare bounds regret against seq"),
        (lambda: mix([[0.5, 0.5]], [1]).guarantee(expert=2), "expert: got 2, expected a number from 0 to 1"),
        (
            lambda: mix([[0.5, 0.5]], [1], rule=FixedShare()).guarantee(switches=1),
            "switches: got 1, expected at most 0, ",
        ),
        (lambda: squared(1, 1), "low: got 1.0, expected a number below high = 1"),
        (lambda: Aggregated(0, 1e200), r"high: got 1e\+200, expected a range whose square is a number"),
        (lambda: ExponentialWeights(0.0), "eta: got 0.0, expected a positive number"),
        (lambda: ExponentialWeights(1.0, [0.5, 0.0]), "prior: got 0.0, expected positive numbers; leave out"),
        (
            lambda: ExponentialWeights(1.0, [0.5, 0.5]).init(3),
            "prior: got 2 weights, expected one for each of 3 experts",
        ),
        (lambda: FixedShare(share=1.0), "share: got 1.0, expected a number above 0 and below 1"),
        (lambda: FixedShare(share=0.6).init(2), "share: got 0.6, expected at most 1/2, where 2 experts share all"),
        (lambda: Hedge(0.0), "lipschitz: got 0.0, expected a positive number"),
        (lambda: WeightedMean(losses.Squared(), -1.0), "eta: got -1.0"),
        (lambda: best_switching([[math.nan]], 1), "losses: got 'shape .*', expected a table of numbers"),
        (lambda: ExpertMixture(names=("a",)).init(2), "n: got 2, expected 1, one for each name"),
        (
            lambda: ExpertMixture().predict(ExpertMixture().init(2), [0.5]),
            r"predictions: got shape \(1,\), expected \(2,\), one per expert",
        ),
        (
            lambda: ExpertMixture().update(ExpertMixture().init(1), [0.5], [1, 0]),
            r"y: got shape \(2,\), expected one label; for many",
        ),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
