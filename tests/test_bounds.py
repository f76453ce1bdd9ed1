"""The closing formulas of section 3, how tight they get, and online-to-batch."""

import math

import numpy as np
import pytest

from forel.algorithms import (
    adagrad_ftrl_proximal,
    dual_averaging,
    follow_the_leader,
    ftrl_proximal,
    gradient_descent,
    hedge,
    lazy_projection,
    strongly_convex_descent,
)
from forel.analysis import (
    adagrad_proximal_formula,
    dual_averaging_formula,
    entropic_formula,
    mean,
    nonadaptive,
    online_to_batch,
    passes,
    play,
    proximal_formula,
    sampled,
    strongly_convex_formula,
    theorem_1,
    theorem_2,
    tuned_formula,
)
from forel.analysis.adversaries import alternating, orthogonal, spikes, worst_linear
from forel.analysis.streams import classification, experts, quadratics, random_linear, switching
from forel.argmin import project
from forel.losses import Linear, Quadratic
from forel.norms import LINF
from forel.penalties import l1
from forel.sets import Box, Reals, Simplex, l2_ball

N, T = 4, 64
BALL, CUBE, SIMPLEX = l2_ball(1.0), Box(-1, 1), Simplex()


def adversaries(n=N, rounds=T):
    yield from (random_linear(n, rounds), switching(n, rounds), worst_linear(), orthogonal(), alternating(), spikes())
    yield [Linear(np.eye(n)[0])] * rounds  # always the same direction
    yield [Linear(np.eye(n)[0] * (1 if t < rounds // 2 else -1)) for t in range(rounds)]  # and then back
    yield lambda t, x: Linear(np.eye(n)[0] * (1.0 if x[0] > 0 else -1.0))


def linear_games(algorithm, region, formula, n=N):
    """Every (measured, bound) with the comparator that is worst for the algorithm, and a few more."""
    for adversary in adversaries(n):
        trace = play(algorithm, adversary, rounds=T, n=n)
        worst = project(-1e4 * trace.gradients.sum(axis=0), region)
        for x in (worst, trace.points[-1], *(project(u, region) for u in np.eye(n))):
            limit = formula(trace, x)
            if limit.void:
                assert "comparator has norm" in limit.void or "outside X" in limit.void, limit
                continue
            yield trace.regret(x), limit.total


# The largest ratio measured/bound found with these adversaries, held so that a bound that gets looser fails. The survey
# itself calls some of the steps that lead to these formulas loose.
CASES = {
    "tuned": (gradient_descent(1 / math.sqrt(T)), BALL, lambda t, x: tuned_formula(t, x, 1.0, 1.0, T), 0.999),
    "tuned, lazy": (
        lazy_projection(1 / math.sqrt(T), BALL),
        BALL,
        lambda t, x: tuned_formula(t, x, 1.0, 1.0, T),
        0.999,
    ),
    "dual averaging": (dual_averaging(1.0, 1.0), BALL, lambda t, x: dual_averaging_formula(t, x, 1.0, 1.0), 0.87),
    "FTRL-Proximal": (ftrl_proximal(1.0, 1.0), BALL, lambda t, x: proximal_formula(t, x, 1.0, 1.0), 0.45),
    "AdaGrad": (adagrad_ftrl_proximal(1.0), CUBE, lambda t, x: adagrad_proximal_formula(t, x, 1.0), 0.45),
    "entropic": (hedge(N), SIMPLEX, lambda t, x: entropic_formula(t, x, 1.0), 0.34),
}


@pytest.mark.parametrize("name", CASES)
def test_closing_formulas_hold_and_are_as_tight_as_they_were_found(name):
    algorithm, region, formula, attained = CASES[name]
    ratios = [regret / limit for regret, limit in linear_games(algorithm, region, formula)]
    assert max(ratios) <= 1 + 1e-9
    assert max(ratios) >= attained, f"largest ratio {max(ratios):.4f}"


def test_the_strongly_convex_formula():
    for algorithm in (follow_the_leader(), strongly_convex_descent()):
        trace = play(algorithm, quadratics(2, 200))
        largest = max(np.linalg.norm(g) for g in trace.gradients)
        best = trace.points[-1]
        limit = strongly_convex_formula(trace, best, largest)
        if limit.void:
            assert "only 0-strongly convex" in limit.void  # linearized, so not the losses themselves
            continue
        assert 0 < trace.regret(best) <= limit.total
    # Centers that alternate keep every gradient at 1: the harmonic sum is attained, its logarithm nearly.
    state, leader, losses = follow_the_leader().init(1), follow_the_leader(), []
    for t in range(1, 400):
        losses.append(Quadratic(leader.play(state) + (1.0 if t % 2 else -1.0)))
        state = leader.update(state, losses[-1])
    trace = play(leader, losses)
    limit = strongly_convex_formula(trace, trace.points[-1], 1.0)
    assert trace.regret(trace.points[-1]) == pytest.approx(theorem_2(trace, trace.points[-1]).total)
    assert trace.regret(trace.points[-1]) / limit.total >= 0.93


def test_the_tuned_rate_degrades_away_from_its_horizon():
    """RG√T at T = T', and worse on both sides: the reason for adaptive rates."""
    trace = play(gradient_descent(1 / math.sqrt(100)), random_linear(2, 400))
    x = np.zeros(2)
    over = tuned_formula(trace, x, 1.0, 1.0, 100).over_rounds / np.sqrt(np.arange(1, 401))
    assert np.argmin(over) == 99
    assert over[99] == pytest.approx(1.0)
    assert over[-1] == pytest.approx(1.25)


def test_the_nonadaptive_bound_is_both_theorems_at_once():
    trace = play(lazy_projection(0.3, BALL), random_linear(N, T))
    x = np.eye(N)[1]
    assert nonadaptive(trace, x).total == pytest.approx(theorem_1(trace, x).total)
    assert nonadaptive(trace, x).total == pytest.approx(0.5 / 0.3 + 0.5 * 0.3 * T)
    assert "changes from round to round" in nonadaptive(play(dual_averaging(1.0, 1.0), random_linear(N, T)), x).void


def test_adaptive_bounds_are_smaller_than_their_worst_case_forms():
    trace = play(hedge(8), experts(8, 200))
    x = np.eye(8)[0]
    assert theorem_1(trace, x).total <= entropic_formula(trace, x, 1.0).total
    trace = play(adagrad_ftrl_proximal(1.0), spikes(), rounds=200, n=3)
    assert adagrad_proximal_formula(trace, x[:3], 1.0).total < 3 * 2 * math.sqrt(2) * math.sqrt(200)


@pytest.mark.parametrize(
    ("limit", "reason"),
    [
        (lambda t, x: tuned_formula(t, x, 1.0, 0.5, T), "has norm 1, more than the promised 0.5"),
        (lambda t, x: tuned_formula(t, 3 * x, 1.0, 1.0, T), "the comparator has norm 3, more than R = 1"),
        (lambda t, x: tuned_formula(t, x, 1.0, 1.0, 2 * T), "the rate is not the one the formula is for"),
        (lambda t, x: dual_averaging_formula(t, x, 1.0, 1.0), "the rate is not the one"),
        (lambda t, x: proximal_formula(t, x, 1.0, 1.0), "outside the ball|the rate is not"),
        (lambda t, x: adagrad_proximal_formula(t, x, 9.0), "the rate is not the one"),
        (lambda t, x: entropic_formula(t, x, 1.0), "the rate is not the one"),
        (lambda t, x: strongly_convex_formula(t, x, 1.0), "only 0-strongly convex"),
    ],
)
def test_formulas_are_void_with_a_reason(limit, reason):
    trace = play(gradient_descent(1 / math.sqrt(T)), random_linear(N, T))
    found = limit(trace, np.eye(N)[0])
    assert found.void
    with pytest.raises(ValueError, match=reason):
        _ = found.total


def test_a_penalty_or_a_point_outside_voids_a_formula():
    trace = play(adagrad_ftrl_proximal(1.0, l1(0.1)), random_linear(N, T))
    assert adagrad_proximal_formula(trace, np.zeros(N), 1.0).void == "there is a penalty"
    trace = play(hedge(N), random_linear(N, T, norm=LINF.dual))
    assert entropic_formula(trace, np.ones(N), 1.0).void == "the comparator lies outside X"


def test_online_to_batch_converges_as_regret_over_rounds_says():
    """Deterministic when every round's loss is F itself; the average is below the statement, at F's minimiser."""
    losses = classification(3, 60, seed=1)
    whole = mean(losses)
    radius = 3.0
    lipschitz = max(loss.lipschitz for loss in losses)
    algorithm = dual_averaging(radius, lipschitz, l2_ball(radius))
    trace = play(algorithm, [whole] * 400, n=3)
    best = trace.best(l2_ball(radius))
    solved = online_to_batch(trace, best)
    excess = whole(solved.average) - whole(best)
    assert -1e-9 <= excess <= solved.gap + 1e-12
    assert solved.gap <= math.sqrt(2) * radius * lipschitz / math.sqrt(400)
    assert whole(solved.last) - whole(best) <= 2e-2


def test_online_to_batch_in_expectation_over_draws():
    losses = classification(3, 40, seed=2)
    whole, region = mean(losses), l2_ball(2.0)
    best = play(gradient_descent(0.1), [whole], n=3).best(region)
    lipschitz = max(loss.lipschitz for loss in losses)
    excess, gaps = [], []
    for seed in range(30):
        trace = play(dual_averaging(2.0, lipschitz, region), sampled(losses, 200, seed), n=3)
        solved = online_to_batch(trace, best)
        excess.append(whole(solved.average) - whole(best))
        gaps.append(solved.gap)
    assert np.mean(excess) <= np.mean(gaps)


def test_passes_solve_the_batch_problem():
    centers = np.random.default_rng(0).normal(size=(30, 2))
    losses = [Quadratic(c) for c in centers]
    ordered = list(passes(losses, 2))
    assert ordered == losses * 2
    shuffled = list(passes(losses, 2, seed=0))
    assert sorted(map(id, shuffled)) == sorted(map(id, ordered))
    assert shuffled[:30] != losses
    trace = play(strongly_convex_descent(), shuffled)
    assert np.allclose(online_to_batch(trace, np.zeros(2)).last, centers.mean(axis=0), atol=1e-9)
    assert trace.best(Reals()) == pytest.approx(centers.mean(axis=0), abs=1e-6)
    with pytest.raises(ValueError, match="at least one loss"):
        sampled([], 3)
    with pytest.raises(ValueError, match="at least one loss"):
        mean([])
