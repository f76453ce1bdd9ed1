"""Online-to-batch conversion."""

import math

import numpy as np
import pytest

from forel.losses import Linear, Quadratic
from forel.theory.algorithms import (
    dual_averaging,
    gradient_descent,
    strongly_convex_descent,
)
from forel.theory.analysis import (
    average_loss,
    online_to_batch,
    passes,
    play,
    sampled,
)
from forel.theory.analysis.streams import classification
from forel.theory.sets import Reals, l2_ball


def test_online_to_batch_converges_at_the_rate_of_regret_over_rounds():
    """Deterministic when every round's loss is F itself; the average is below the statement, at F's minimizer."""
    losses = classification(3, 60, seed=1)
    whole = average_loss(losses)
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
    whole, region = average_loss(losses), l2_ball(2.0)
    best = play(gradient_descent(0.1), [whole], n=3).best(region)
    lipschitz = max(loss.lipschitz for loss in losses)
    excess, gaps = [], []
    for seed in range(30):
        trace = play(dual_averaging(2.0, lipschitz, region), sampled(losses, 200, seed), n=3)
        solved = online_to_batch(trace, best)
        excess.append(whole(solved.average) - whole(best))
        gaps.append(solved.gap)
    assert np.mean(excess) <= np.mean(gaps)


def test_the_average_is_over_the_points_played_against_a_loss():
    trace = play(gradient_descent(1.0), [Linear([1.0]), Linear([2.0])])
    solved = online_to_batch(trace, np.array([-1.0]))
    assert solved.last.tolist() == [-3.0]
    assert solved.average.tolist() == [-0.5]
    assert solved.gap == 0.5
    losses = [Linear([float(k)]) for k in range(50)]
    draws = [[loss.g[0] for loss in sampled(losses, 40, seed)] for seed in (0, 0, 1)]
    assert draws[0] == draws[1] != draws[2]


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
        average_loss([])
