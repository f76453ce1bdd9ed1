"""AdaHedge: regret below the bound, invariance, and the definition in high precision."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forel import losses
from forel.experts import (
    AdaHedge,
    Costs,
    WeightedMean,
    mix,
)
from tests.experts.forecasts import SEEDS, SIZES


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
        "against AdaHedge": lambda: answer(AdaHedge(), rounds, n, heaviest),
    }[name]()


TABLES = ["random", "signs", "lucky", "sorted", "growing", "rare", "equal", "against AdaHedge"]


@pytest.mark.parametrize("name", TABLES)
@given(SEEDS, SIZES, st.sampled_from(["as is", "shuffled", "moved", "tiny", "huge"]))
def test_adahedge_stays_below_its_bounds(name, seed, size, change):
    table = tables(name, seed, *size)
    if change == "shuffled":
        table = np.random.default_rng(seed).permutation(table)
    table = {"moved": table + 3.0, "tiny": table * 1e-200, "huge": table * 1e200}.get(change, table)
    unit = np.abs(table).max() or 1.0
    mixed, state = follow(AdaHedge(), table)
    measured, bound = mixed.guarantee().pair
    assert measured <= bound + 1e-9 * unit
    assert bound <= mixed.rule.worst(state) * (1 + 1e-9)


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
def test_adahedge_is_invariant_to_scale_and_offset_of_losses(seed, moved, power):
    table = np.random.default_rng(seed).integers(0, 10, (30, 4)).astype(float)
    weights = follow(AdaHedge(), table)[0].weights
    assert follow(AdaHedge(), table * 2.0**power)[0].weights == pytest.approx(weights, rel=1e-12)
    assert follow(AdaHedge(), table + moved)[0].weights == pytest.approx(weights, rel=1e-7, abs=1e-12)


def test_the_bound_is_nearly_tight_when_experts_alternate_and_then_one_leads():
    # Alternating costs the mixability gap, and the lead log(K)/η on top: both halves of the bound.
    table = np.array([[1.0, -1.0], [-1.0, 1.0]] * 1000 + [[1.0, -1.0]] * 134)
    measured, bound = follow(AdaHedge(), table)[0].guarantee().pair
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


def test_adahedge_has_small_regret_where_one_expert_leads():
    table = np.tile([0.0, 1.0, 1.0], (5000, 1))
    assert follow(AdaHedge(), table)[0].guarantee().bound < 4


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
