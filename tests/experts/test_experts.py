"""The contract of rules, mixtures of tables and round by round, guarantees, and invalid arguments."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest

from catalogue import CATALOGUE
from forel import losses
from forel.experts import (
    AdaHedge,
    Aggregated,
    ExpertMixture,
    ExponentialWeights,
    FixedShare,
    Guarantee,
    Likelihoods,
    WeightedMean,
    best_switching,
    mix,
    squared,
)
from tests.experts.forecasts import LABELS, POOLS, every_pool


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
        assert not s.void
    assert rule.play(after)[0] / rule.play(state)[0] > rule.play(after)[2] / rule.play(state)[2]
    for bad in ([1.0, 2.0], [0.0, math.nan, 0.0, 0.0], [0.0, -math.inf, 0.0, 0.0], "abcd"):
        with pytest.raises(ValueError, match="losses: got"):
            rule.update(state, bad)
    assert rule.result


@pytest.mark.parametrize("rule", [ExponentialWeights(), FixedShare(), FixedShare(share=0.3), AdaHedge()], ids=repr)
def test_one_expert_alone_has_all_the_weight_and_no_regret(rule):
    mixed = mix([[0.5], [0.25]], [1, 0], rule=rule)
    assert mixed.weights.tolist() == [[1.0]] * 3
    assert mixed.guarantee().pair == (pytest.approx(0.0), 0.0)


@every_pool
def test_an_expert_mixture_agrees_with_mix(name):
    pool, labels, predict = POOLS[name]
    rng = np.random.default_rng(9)
    table = np.array([predict(rng, 3) for _ in range(20)])
    if name == "certain":
        table[:, 0] = 0.5
    y = [LABELS[labels](rng) for _ in range(20)]
    for rule in (None, AdaHedge()) if name != "certain" else (None, FixedShare()):
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


def test_the_guarantee_sentence_is_true_and_names_the_best_expert():
    table = {f"alpha {a}": np.full(4000, a) for a in (0.1, 0.2, 0.4)}
    y = (np.arange(4000) % 5 == 0).astype(int)
    mixed = mix(table, y)
    assert str(mixed.guarantee()) == (
        "within 0.00028 per example of the best of 3 experts, which is alpha 0.2 (0.50041 per example)"
    )
    assert str(mixed.guarantee(expert=2)).startswith("within 0.00028 per example of alpha 0.4 (")
    measured, bound = mixed.guarantee().pair
    assert measured / 4000 <= bound / 4000 <= 0.00028
    limits = {0.0: "0", 1.0: "1.0", 123.4: "124", 1e-7: "0.00000010", 2.0824e57: "2.1e+57", math.inf: "inf"}
    assert str(Guarantee("r", "b", 1, 0.0, 1.5e57, 1e58)).endswith(" of b (1.5e+57 per example)")
    for limit, words in limits.items():
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
            "labels: got .*, expected None: this pool has no labels",
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
        (lambda: Aggregated(0, 1e200), r"high: got 1e\+200, expected a range whose square is finite"),
        (lambda: ExponentialWeights(0.0), "eta: got 0.0, expected a positive number"),
        (lambda: ExponentialWeights(1.0, [0.5, 0.0]), "prior: got 0.0, expected positive numbers; leave out"),
        (
            lambda: ExponentialWeights(1.0, [0.5, 0.5]).init(3),
            "prior: got 2 weights, expected one for each of 3 experts",
        ),
        (lambda: FixedShare(share=1.0), "share: got 1.0, expected a number above 0 and below 1"),
        (lambda: FixedShare(share=0.6).init(2), "share: got 0.6, expected at most 1/2, at which the weights"),
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
def test_invalid_arguments_raise(call, message):
    with pytest.raises(ValueError, match=message):
        call()
