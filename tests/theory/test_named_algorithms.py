"""The named algorithms: their rates, parts and restarts, against the survey and the papers."""

import math

import numpy as np
import pytest

from forel.losses import (
    Convex,
    Example,
    Linear,
    Logistic,
)
from forel.theory.algorithms import (
    FTRL,
    MirrorDescent,
    ad_click,
    adagrad_dual_averaging,
    adagrad_ftrl_proximal,
    as_ftrl_proximal,
    curvature_adaptive,
    doubling_trick,
    dual_averaging,
    exponentiated_gradient,
    fobos,
    ftrl_proximal,
    gradient_descent,
    greedy_projection,
    hedge,
    lazy_projection,
    matrix_dual_averaging,
    matrix_ftrl_proximal,
    regularized_dual_averaging,
    strongly_convex_descent,
)
from forel.theory.analysis import (
    bound,
    play,
    strong_ftrl_lemma,
    surrogate_regret,
)
from forel.theory.argmin import argmin, project
from forel.theory.geometries import Diagonal, Entropy, Euclidean, FullMatrix
from forel.theory.penalties import ElasticNet, l1
from forel.theory.rates import (
    Constant,
    CurvatureAdaptive,
    MatrixAdaGrad,
    ScaleFree,
)
from forel.theory.regularizers import Regularizer
from forel.theory.sets import Box, Simplex, l2_ball
from forel.theory.weights import EveryRound, Given
from forel.validation import Unbounded, Unsupported
from tests.theory.games import curved, follows_the_player, random_gradients


def test_doubling_trick_restarts_and_keeps_its_bound():
    trick = doubling_trick(2.0, 1.0)
    trace = play(trick, follows_the_player, rounds=100, n=3)
    starts = [t for t in range(100) if not trace.points[t].any()]
    assert {0, 1, 3, 7, 15, 31, 63} <= set(starts)
    worst = trace.worst_regret(l2_ball(2.0))
    assert worst <= trick.epochs.bound(100)
    adaptive = play(dual_averaging(2.0, 1.0), follows_the_player, rounds=100, n=3).worst_regret(l2_ball(2.0))
    assert adaptive <= math.sqrt(2) * 2 * math.sqrt(100)
    with pytest.raises(Unsupported, match=r"DoublingTrick.bound"):
        _ = trace.added


def test_doubling_trick_restarts_lazy_projection_in_every_epoch():
    region, losses = l2_ball(0.3, [1.0, 0, 0]), [random_gradients(t, np.zeros(3)) for t in range(1, 32)]
    trick = doubling_trick(2.0, 3.0, region)
    trace = play(trick, losses)
    for number in range(5):
        epoch = slice(2**number - 1, 2 ** (number + 1) - 1)
        alone = play(lazy_projection(2 / (3 * math.sqrt(2**number)), region), losses[epoch])
        assert np.allclose(trace.points[epoch], alone.points[:-1], atol=1e-12)
    assert trick.rate.eta == pytest.approx(2 / 3)
    assert trace.initial.strength == pytest.approx(3 / 2)
    with pytest.raises(ValueError, match="nan"):  # the loss of an epoch's last round is observed all the same
        play(trick, [Convex(sum, lambda x: x * math.nan)], n=3)


def test_curvature_adaptive_is_logarithmic_on_curved_losses_and_root_t_on_flat_ones():
    rounds = 400
    flat = play(curvature_adaptive(2.0), random_gradients, rounds=rounds, n=2)
    curvy = play(curvature_adaptive(2.0), curved, rounds=rounds, n=2)
    feasible = l2_ball(1.0)
    limit = {name: max(bound(t, project(u, feasible), "losses").total for u in 5 * np.eye(2)) for name, t in
             (("flat", flat), ("curved", curvy))}  # fmt: skip
    largest = max(np.linalg.norm(g) for g in curvy.gradients)
    assert limit["curved"] <= 2 * (largest**2 / 2 * (1 + math.log(rounds)) + 2 * largest)
    assert limit["flat"] <= 2 * 2 * math.sqrt(rounds)
    for trace in (flat, curvy):
        assert trace.worst_regret(feasible) <= max(limit.values()) + 1e-6


def test_scale_free_ftrl_is_invariant_to_units():
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(50, 3)), rng.integers(0, 2, 50)
    margins = []
    for units in (np.ones(3), np.array([1e-3, 1.0, 1e4])):
        learner = FTRL(ScaleFree(0.5), Diagonal(), center="played")
        state, seen = learner.init(3), []
        for a, y in zip(rows * units, labels, strict=True):
            state = learner.observe(state, a)
            seen.append(a @ learner.play(state))
            state = learner.update(state, Example(Logistic(), a, int(y)))
        margins.append(seen)
    assert np.allclose(*margins, rtol=1e-9)
    with pytest.raises(ValueError, match="never saw it"):
        learner.update(learner.init(3), Linear(np.ones(3)))


@pytest.mark.parametrize("proximal", [False, True], ids=["centered", "proximal"])
def test_the_bound_of_scale_free_ftrl_is_the_same_in_all_units(proximal):
    """Against a comparator in the units of the features, as far as their squares are numbers."""
    rng = np.random.default_rng(0)
    rows, labels, comparator = rng.normal(size=(50, 3)), rng.integers(0, 2, 50), np.array([1.0, -2.0, 0.5])
    found = []
    for units in (np.ones(3), np.full(3, 1e-20), np.array([1e-140, 1e-30, 1e140])):
        losses = [Example(Logistic(), a, int(y)) for a, y in zip(rows * units, labels, strict=True)]
        trace = play(FTRL(ScaleFree(1.0), Diagonal(), "played" if proximal else "first"), losses)
        x = comparator / units
        limit, lemma = bound(trace, x).total, strong_ftrl_lemma(trace, x)
        assert trace.regret(x) <= surrogate_regret(trace, x) <= lemma.bound <= limit
        assert lemma.error <= 1e-12
        found.append([trace.regret(x), lemma.bound, limit])
    assert np.allclose(found[1:], found[0], rtol=1e-9, atol=0.0)


@pytest.mark.parametrize("proximal", [False, True], ids=["centered", "proximal"])
def test_strength_for_later_features_is_around_the_first_point(proximal):
    """The point before and after ``observe`` minimizes what the rounds and the features have added so far."""
    region, penalty, rng = Box(0.5, 3.0), l1(0.1), np.random.default_rng(0)
    learner = FTRL(
        ScaleFree(0.5),
        Diagonal(),
        "played" if proximal else "first",
        penalty=penalty,
        weights=EveryRound(),
        feasible=region,
    )
    state, g, added = learner.init(2), np.zeros(2), Regularizer.zero(Diagonal(), 2)
    first = learner.play(state)
    assert first.tolist() == [0.5, 0.5]

    def expected(t):
        return argmin(g, added, penalty, float(t), region)

    for t, a in enumerate(rng.normal(size=(12, 2)) * [1.0, 3.0] + 0.1, start=1):
        strength, rate = state.strength, state.rate
        state = learner.observe(state, a)
        added += Regularizer.around(Diagonal(), learner.rate.strength(state.rate) - strength, first)
        assert state.rate.largest.tolist() == np.maximum(rate.largest, np.abs(a)).tolist()
        assert np.allclose(learner.play(state), expected(t - 1), atol=1e-12)
        x, strength, loss = learner.play(state), state.strength, Linear(-rng.uniform(size=2) * a)
        state, g = learner.update(state, loss), g + loss.g
        added += Regularizer.around(Diagonal(), state.strength - strength, x if proximal else first)
        assert np.allclose(learner.play(state), expected(t), atol=1e-12)
        assert np.allclose(state.z, g - added.linear, atol=1e-12)
    assert np.ptp(g) > 0.1
    assert 0.5 < learner.play(state).max() < 3.0


def test_mirror_descent_steps_with_the_strength_of_the_features_to_come():
    learner, features = MirrorDescent(ScaleFree(0.5), Diagonal()), np.array([1.0, 4.0])
    state = learner.observe(learner.init(2), features)
    assert state.strength.tolist() == [2.0, 32.0]
    after = learner.update(state, Linear(features))
    assert np.allclose(after.x, -features / learner.rate.strength(after.rate))
    for plain in (gradient_descent(1.0), greedy_projection(1.0, Box(-1, 1))):
        state = plain.init(2)
        assert plain.observe(state, features) is state


def test_the_first_point_minimizes_the_geometry_and_not_the_penalty():
    penalty = l1([0.0, 1.0, 2.0, 3.0])
    for make in (FTRL, MirrorDescent):
        algorithm = make(Constant(1.0), Entropy(), penalty=penalty, feasible=Simplex())
        assert np.allclose(algorithm.play(algorithm.init(4)), 0.25)


REGION, PSI, HALVING = l2_ball(0.3), ElasticNet([0.1, 0.2, 0.3], 0.4), Given([2.0, 1.0])


# Strengths after t rounds of gradients (1, 0, −2), with R = 2 and G = 3.
NAMED = {
    "lazy": (lazy_projection(0.5, REGION), lambda t: 2.0),
    "greedy": (greedy_projection(0.5, REGION), lambda t: 2.0),
    "strongly convex": (strongly_convex_descent(4.0, REGION), lambda t: 4.0 * t),
    "FOBOS": (fobos(Constant(0.5), Euclidean(), PSI, REGION), lambda t: 2.0),
    "exponentiated": (exponentiated_gradient(0.25), lambda t: 4.0),
    "hedge": (hedge(3, 5.0), lambda t: math.sqrt((25 + 4 * t) / math.log(3))),
    "dual averaging": (dual_averaging(2.0, 3.0, REGION), lambda t: math.sqrt(2 * (t + 1)) * 3 / 2),
    "RDA": (
        regularized_dual_averaging(2.0, 3.0, PSI.l1, PSI.l2, HALVING, REGION),
        lambda t: math.sqrt(2 * (t + 1)) * 3 / 2,
    ),
    "AdaGrad dual averaging": (
        adagrad_dual_averaging(2.0, 3.0, PSI, HALVING, REGION),
        lambda t: np.sqrt(9 + t * np.array([1.0, 0, 4])) / 2,
    ),
    "matrix dual averaging": (
        matrix_dual_averaging(2.0, 3.0, REGION),
        lambda t: root(9 * np.eye(3) + t * np.outer([1, 0, -2], [1, 0, -2])) / 2,
    ),
    "FTRL-Proximal": (ftrl_proximal(2.0, 3.0, REGION), lambda t: 3 * math.sqrt(t) / (math.sqrt(2) * 2)),
    "AdaGrad FTRL-Proximal": (
        adagrad_ftrl_proximal([2.0, 3.0, 4.0], PSI, HALVING, REGION),
        lambda t: np.sqrt(t * np.array([1.0, 0, 4])) / (math.sqrt(2) * np.array([2.0, 3, 4])),
    ),
    "matrix FTRL-Proximal": (
        matrix_ftrl_proximal(2.0, REGION),
        lambda t: root(t * np.outer([1, 0, -2], [1, 0, -2])) / (math.sqrt(2) * 2),
    ),
    "curvature adaptive": (
        curvature_adaptive(2.0, REGION),
        lambda t: CurvatureAdaptive(2.0).strength(strength_after(CurvatureAdaptive(2.0), t)),
    ),
}


def root(matrix):
    values, basis = np.linalg.eigh(matrix)
    return basis @ np.diag(np.sqrt(np.maximum(values, 0))) @ basis.T


def strength_after(rate, t):
    state = rate.init(3)
    for _ in range(t):
        state = rate.update(state, np.array([1.0, 0, -2]))
    return state


@pytest.mark.parametrize("name", NAMED)
def test_named_algorithms_have_the_surveys_rates_and_the_parts_they_were_given(name):
    algorithm, strength = NAMED[name]
    trace = play(algorithm, [Linear([1.0, 0.0, -2.0])] * 3)
    for t in range(1, 4):
        assert np.allclose(trace.states[t].strength, strength(t), atol=1e-9)
    assert algorithm.feasible is REGION or isinstance(algorithm.feasible, Simplex)
    penalized = name in ("RDA", "AdaGrad dual averaging", "AdaGrad FTRL-Proximal", "FOBOS")
    assert algorithm.penalty(np.ones(3)) == pytest.approx(PSI(np.ones(3)) if penalized else 0)
    assert (algorithm.weights is HALVING) == (penalized and name != "FOBOS")
    proximal = isinstance(algorithm, MirrorDescent) or "Proximal" in name or name == "curvature adaptive"
    assert algorithm.proximal == proximal


def test_named_algorithms_stay_where_their_bounds_need_them():
    assert ftrl_proximal(2.0, 3.0).feasible.largest_norm(3) == 2.0
    assert matrix_ftrl_proximal(2.0).feasible.largest_norm(3) == 2.0
    assert curvature_adaptive(2.0).feasible.diameter(3) == 2.0
    lower, upper = adagrad_ftrl_proximal([1.0, 3.0]).feasible.bounds
    assert (lower.tolist(), upper.tolist()) == ([-1.0, -3.0], [1.0, 3.0])
    with pytest.raises(ValueError, match="radius: got -1, expected a positive number"):
        matrix_ftrl_proximal(-1, REGION)


def test_ad_click_is_the_papers_closed_form():
    alpha, beta, lambda1, lambda2 = 0.3, 1.0, 0.4, 0.2
    learner, rng = ad_click(alpha, beta, lambda1, lambda2), np.random.default_rng(0)
    state, z, squares = learner.init(4), np.zeros(4), np.zeros(4)
    for _ in range(50):
        x = np.where(
            np.abs(z) <= lambda1,
            0.0,
            -(z - np.sign(z) * lambda1) / ((beta + np.sqrt(squares)) / alpha + lambda2),
        )
        assert np.allclose(learner.play(state), x, atol=1e-12)
        assert ((learner.play(state) == 0) == (x == 0)).all()
        g = rng.normal(size=4)
        state = learner.update(state, Linear(g))
        sigma = (np.sqrt(squares + g * g) - np.sqrt(squares)) / alpha
        z, squares = z + g - sigma * x, squares + g * g


@pytest.mark.parametrize("make", ["centered", "proximal", "mirror", "mirror as FTRL"])
@pytest.mark.parametrize("seed", range(20))
def test_matrix_adagrad_plays_on_where_gradients_are_collinear(make, seed):
    """The sum of gradients may cancel down to its rounding, which is not in the range of the strength."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    direction = rng.normal(size=n)
    mirror = MirrorDescent(MatrixAdaGrad(1.0), FullMatrix())
    algorithm = {
        "centered": FTRL(MatrixAdaGrad(1.0), FullMatrix()),
        "proximal": FTRL(MatrixAdaGrad(1.0), FullMatrix(), "played"),
        "mirror": mirror,
        "mirror as FTRL": as_ftrl_proximal(mirror),
    }[make]
    trace = play(algorithm, [Linear(sign * direction) for sign in rng.choice([-1.0, 1.0], size=30)])
    assert not trace.suboptimality.any()
    assert np.allclose(trace.points, np.outer(trace.points @ direction, direction) / (direction @ direction))
    limit = bound(trace, -direction)
    assert trace.regret(-direction) <= limit.total if make != "centered" else "no strength" in limit.void


def test_matrix_adagrad_still_has_no_minimum_outside_of_the_range_of_its_strength():
    mover = FTRL(MatrixAdaGrad(1.0), FullMatrix())
    state = mover.update(mover.init(2), Linear([1.0, 0.0]))
    with pytest.raises(Unbounded):
        mover.argmin(np.array([1.0, 1e-6]), mover.rate.strength(state.rate))


@pytest.mark.parametrize("name", ["scalar", "entropy"])
def test_gradients_whose_squares_overflow_void_a_bound(name):
    algorithm = ftrl_proximal(1.0, 1.0) if name == "scalar" else hedge(2)
    trace = play(algorithm, [Linear([1e160, 0.0]), Linear([0.0, 1e160])])
    assert bound(trace, np.array([0.0, 1.0])).void == (
        "the square of the gradient of round 1 is too large for a float; rescale the losses"
    )
