"""Every algorithm against adversaries: lemmas as equalities, bounds as inequalities, equivalences as equalities."""

import math

import numpy as np
import pytest

from catalogue import ALGORITHMS, N
from forel import cvx
from forel.cvx import cvxpy, minimize
from forel.losses import (
    Absolute,
    Convex,
    Example,
    Hinge,
    Huber,
    Linear,
    Logistic,
    MulticlassExample,
    Poisson,
    Quadratic,
    Quantile,
    Softmax,
    Squared,
    SquaredHinge,
    Total,
)
from forel.theory.algorithms import (
    FTRL,
    Exact,
    Implicit,
    Linearized,
    MirrorDescent,
    QuadraticBound,
    ad_click,
    adagrad_dual_averaging,
    adagrad_ftrl_proximal,
    as_ftrl_proximal,
    curvature_adaptive,
    doubling_trick,
    dual_averaging,
    exponentiated_gradient,
    fobos,
    follow_the_leader,
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
    conjugate_lemma,
    play,
    standard_ftrl_lemma,
    strong_ftrl_lemma,
    surrogate_regret,
    theorem_1,
    theorem_2,
    theorem_10,
    theorem_12,
    theorem_14,
)
from forel.theory.argmin import argmin, project
from forel.theory.argmin.methods import GEOMETRIES, penalties, sets
from forel.theory.geometries import Diagonal, Entropy, Euclidean, FullMatrix
from forel.theory.norms import LINF
from forel.theory.penalties import ElasticNet, l1, squared_l2
from forel.theory.rates import (
    Constant,
    CurvatureAdaptive,
    DiagonalAdaGrad,
    InverseSqrt,
    MatrixAdaGrad,
    ScalarAdaGrad,
    ScaleFree,
)
from forel.theory.regularizers import Regularizer
from forel.theory.sets import Box, Reals, Simplex, l2_ball
from forel.theory.weights import EveryRound, Given, Once
from forel.validation import Unbounded, Unsupported
from tests.theory.cases import FUNCTIONS

ROUNDS = 60
every_algorithm = pytest.mark.parametrize("name", ALGORITHMS)
with_proof = pytest.mark.parametrize(
    "name", [name for name, a in ALGORITHMS.items() if not isinstance(a, Implicit) and not hasattr(a, "epochs")]
)


def random_gradients(t, x, rng=None):
    g = np.random.default_rng([7, t]).normal(size=x.size)
    return Linear(g / max(1.0, np.linalg.norm(g)))


def follows_the_player(t, x):
    """The gradient that hurts most: along the point itself, or a corner at the start."""
    length = np.linalg.norm(x)
    return Linear(x / length if length > 1e-9 else np.eye(x.size)[t % x.size])


def alternating(t, x):
    return Linear((-1.0) ** t * np.eye(x.size)[0])


def spikes(t, x):
    return Linear(np.eye(x.size)[t % x.size] * (1.0 if t % 11 == 0 else 1e-3))


def one_coordinate(t, x):
    return Linear(np.eye(x.size)[-1] * (1 if t % 3 else -1))


def curved(t, x):
    return Quadratic(np.random.default_rng([3, t]).normal(size=x.size) / 2)


ADVERSARIES = [random_gradients, follows_the_player, alternating, spikes, one_coordinate, curved]
every_adversary = pytest.mark.parametrize("adversary", ADVERSARIES, ids=lambda a: a.__name__)


def game(name, adversary, rounds=ROUNDS):
    algorithm = ALGORITHMS[name]
    exact = isinstance(getattr(algorithm, "surrogate", None), Exact | QuadraticBound)
    if exact and adversary is not curved and not hasattr(algorithm.rate, "diameter"):
        adversary = curved  # the leader needs strongly convex losses
    return play(algorithm, adversary, rounds=rounds, n=N)


def comparators(trace):
    """Feasible points: random ones, far ones, every corner direction, and those that were played."""
    rng = np.random.default_rng(0)
    candidates = [*rng.normal(size=(4, N)), *(5 * np.eye(N)), *(-5 * np.eye(N)), trace.points[-1], trace.points[3]]
    feasible = trace.algorithm.feasible
    inside = [u if isinstance(feasible, Reals) else project(u, feasible) for u in candidates]
    return [x for x in inside if trace.algorithm.penalty(x) < math.inf]


@with_proof
@every_adversary
def test_the_lemmas_are_equalities_with_their_remainder(name, adversary):
    """Lemmas 5 and 13: both sides agree to rounding, and the remainder is never positive, at any comparator."""
    trace = game(name, adversary)
    for x in comparators(trace)[:6]:
        for against in ("composite", "losses"):
            for lemma in (strong_ftrl_lemma, standard_ftrl_lemma):
                parts = lemma(trace, x, against)
                assert parts.error <= 1e-9
                assert parts.remainder <= 1e-9 * (1 + abs(parts.regret) + abs(parts.regularization))
                assert parts.regret <= parts.bound + 1e-9 * (1 + abs(parts.regret))


@with_proof
@every_adversary
def test_every_point_minimises_its_objective(name, adversary):
    """The oracle for wrong updates: h_{0:t}(x_{t+1}) ≤ h_{0:t}(x) in every round, at every feasible x."""
    trace = game(name, adversary, rounds=25)
    for stage, x in zip(trace.stages, trace.points[1:], strict=True):
        assert trace.algorithm.feasible.contains(x)
        best = stage.objective(x)
        for other in comparators(trace):
            for step in (1.0, 0.01):
                assert best <= stage.objective(x + step * (other - x)) + 1e-8 * (1 + abs(best))


@pytest.mark.parametrize("name", [n for n, a in ALGORITHMS.items() if isinstance(a, MirrorDescent)])
@every_adversary
def test_what_mirror_descent_keeps_of_a_penalty_is_its_tangent_at_the_next_point(name, adversary):
    """Below α_tΨ on all of X and equal to it at x_{t+1}: a subgradient of this round's penalty, and of no other's."""
    mirror = ALGORITHMS[name]
    for algorithm in (mirror, as_ftrl_proximal(mirror)):
        trace = play(algorithm, adversary, rounds=10, n=N)
        for t, added in enumerate(trace.added, start=1):
            weight, following = mirror.weights(t), trace.points[t]
            assert added.penalty(following) == pytest.approx(weight * mirror.penalty(following), abs=1e-12)
            assert added.weight == 1
            for x in comparators(trace):
                assert added.penalty(x) <= weight * mirror.penalty(x) + 1e-9


@with_proof
@every_adversary
def test_regret_is_below_the_bound_at_every_comparator(name, adversary):
    trace = game(name, adversary)
    for against in ("composite", "losses"):
        for x in comparators(trace):
            limit = bound(trace, x, against)
            if limit.void:
                assert "no strength" in limit.void, limit
                continue
            slack = 1e-9 * (1 + abs(limit.total))
            assert surrogate_regret(trace, x, against) <= limit.total + slack, (against, x)
            if against == "losses":
                assert trace.regret(x) <= trace.regret(x, linearized=True) + slack
            if trace.algorithm.proximal and not any(trace.algorithm.penalty(p) for p in trace.points):
                assert theorem_2(trace, x).total <= theorem_14(trace, x).total


@pytest.mark.parametrize("name", [n for n, a in ALGORITHMS.items() if isinstance(a, FTRL) and n != "leader"])
@every_adversary
def test_corollary_6_conjugates_give_the_same_stability(name, adversary):
    if isinstance(ALGORITHMS[name].surrogate, Exact | QuadraticBound):
        with pytest.raises(Unsupported, match="linear losses"):
            conjugate_lemma(play(ALGORITHMS[name], curved, rounds=3, n=N), np.full(N, 1 / N))
        return
    trace = game(name, adversary)
    x = comparators(trace)[0]
    assert np.allclose(conjugate_lemma(trace, x).stability, strong_ftrl_lemma(trace, x, "losses").stability, atol=1e-9)


def combinations():
    return [(g, p, s) for g, p, s in FUNCTIONS if s != "Affine" or g != "FullMatrix"]


def kinds(parts):
    """FTRL centered and proximal, and Mirror Descent, with the same geometry, penalty and set."""
    g, p, s = parts
    geometry, penalty, feasible = GEOMETRIES[g], penalties(N)[p], sets(N)[s]
    rate = {"scalar": ScalarAdaGrad(1.0, 1.0), "diagonal": DiagonalAdaGrad(1.0, 1.0), "matrix": MatrixAdaGrad(1.0, 1.0)}
    rate = rate[geometry.shape]
    if geometry == Entropy():
        rate = ScalarAdaGrad(1.0, 1.0, LINF)
    yield FTRL(rate, geometry, False, penalty=penalty, weights=Given([0.2, 0.1]), feasible=feasible)
    yield FTRL(rate, geometry, True, penalty=penalty, weights=Given([0.2, 0.1]), feasible=feasible)
    yield MirrorDescent(rate, geometry, penalty, Given([0.2, 0.1]), feasible)


@pytest.mark.slow
@pytest.mark.parametrize("parts", combinations(), ids=", ".join)
def test_every_geometry_penalty_and_set_keeps_its_bound(parts):
    """Centered, proximal and Mirror Descent, against random and adversarial losses, at corners and in hindsight."""
    for algorithm in kinds(parts):
        for adversary in (random_gradients, follows_the_player):
            trace = play(algorithm, adversary, rounds=20, n=N)
            hindsight = -9 * trace.gradients.sum(axis=0)
            free = isinstance(algorithm.feasible, Reals)
            candidates = [
                trace.points[-1],
                *(u if free else project(u, algorithm.feasible) for u in (hindsight, *np.eye(N))),
            ]
            for x in candidates:
                if algorithm.penalty(x) == math.inf:
                    continue
                parts_of = strong_ftrl_lemma(trace, x)
                assert parts_of.error <= 1e-9
                assert parts_of.remainder <= 1e-8 * (1 + abs(parts_of.regret) + abs(parts_of.regularization))
                for against in ("composite", "losses"):
                    limit = bound(trace, x, against)
                    assert surrogate_regret(trace, x, against) <= limit.total + 1e-8 * (1 + abs(limit.total))


@pytest.mark.slow
@pytest.mark.parametrize("parts", combinations(), ids=", ".join)
def test_theorem_11_mirror_descent_is_ftrl_proximal(parts):
    """1,000 rounds, adaptive strengths, every geometry, penalty and set with a closed form: the same points."""
    g, p, s = parts
    geometry, n = GEOMETRIES[g], 4
    rate = {"scalar": ScalarAdaGrad(1.0, 1.0), "diagonal": DiagonalAdaGrad(1.0, 1.0), "matrix": MatrixAdaGrad(1.0, 1.0)}
    mirror = MirrorDescent(rate[geometry.shape], geometry, penalties(n)[p], EveryRound(), sets(n)[s])
    form = as_ftrl_proximal(mirror)
    rng = np.random.default_rng(1)
    rounds = 1000
    state, other = mirror.init(n), form.init(n)
    for _ in range(rounds):
        loss = Linear(rng.normal(size=n) + np.sign(mirror.play(state)))
        state, other = mirror.update(state, loss), form.update(other, loss)
        assert np.allclose(mirror.play(state), form.play(other), rtol=0, atol=1e-10)


def test_theorem_11_through_the_solver():
    """Where there is no closed form the two agree as far as the solver does."""
    for geometry, region in ((FullMatrix(), Box(-0.3, 0.3)), (Euclidean(), sets(3)["Polyhedron"])):
        rate = MatrixAdaGrad(1.0, 1.0) if geometry == FullMatrix() else ScalarAdaGrad(1.0, 1.0)
        mirror = MirrorDescent(rate, geometry, l1(0.1), feasible=region)
        losses = [random_gradients(t, np.zeros(3)) for t in range(1, 16)]
        a, b = play(mirror, losses), play(as_ftrl_proximal(mirror), losses)
        assert np.allclose(a.points, b.points, atol=1e-6)


def test_lazy_and_greedy_projection_differ_only_through_the_set():
    """Both are gradient descent without a set; with one, lazy remembers how far outside it was."""
    losses = [Linear([g]) for g in (3.0, -1.0, -1.0, -1.5)]
    lazy, greedy = (play(make(1.0, Box(-1, 1)), losses).points.ravel() for make in (lazy_projection, greedy_projection))
    assert lazy.tolist() == [0, -1, -1, -1, 0.5]
    assert greedy.tolist() == [0, -1, 0, 1, 1]
    free = [play(make(1.0, Reals()), losses).points for make in (lazy_projection, greedy_projection)]
    assert np.allclose(*free)
    assert np.allclose(free[0], play(gradient_descent(1.0), losses).points)


def test_four_ways_to_write_gradient_descent_for_strongly_convex_losses():
    """Section 3.7: FTL on the quadratics below, FTRL-Proximal with σ_t = 1, Mirror Descent with η = 1/t, x − g/t."""
    losses = [curved(t, np.zeros(N)) for t in range(1, 200)]
    losses = [Convex(f, lambda x, f=f: f.subgradient(x) + 0.1 * np.tanh(x), 1.0) for f in losses]
    below = play(follow_the_leader(surrogate=QuadraticBound()), losses, n=N)
    mirror = play(strongly_convex_descent(), losses, n=N)
    assert np.allclose(below.points, mirror.points, atol=1e-10)
    x = np.zeros(N)
    for t, loss in enumerate(losses, start=1):
        x = x - loss.subgradient(x) / t
        assert np.allclose(mirror.points[t], x, atol=1e-10)


def test_follow_the_leader_is_the_mean_for_quadratics_and_the_solvers_answer_for_others():
    centers = np.random.default_rng(0).normal(size=(20, 2))
    trace = play(follow_the_leader(), [Quadratic(c) for c in centers])
    for t in range(1, 21):
        assert np.allclose(trace.points[t], centers[:t].mean(axis=0))
    mixed = [Quadratic([1.0, 0.0]), Example(Logistic(), [1.0, 2.0], 1), Example(Hinge(), [1.0, -1.0], -1)]
    trace = play(follow_the_leader(Box(-1, 1)), mixed)
    total = Total.zero(2).plus(mixed[0]).plus(mixed[1]).plus(mixed[2])
    assert np.allclose(trace.points[-1], minimize(2, total.expression, Box(-1, 1).constraints), atol=1e-6)
    with pytest.raises(Unbounded):
        play(follow_the_leader(), [Linear([1.0])])
    with pytest.raises(Unsupported, match="leader of linear losses does not exist"):
        follow_the_leader(surrogate=Linearized())


EXACT = {
    "Euclidean, quadratics": (Euclidean(), Box(0.2, 1.0), False),
    "Diagonal, quadratics": (Diagonal(), Box(0.2, 1.0), False),
    "FullMatrix, quadratics": (FullMatrix(), l2_ball(0.5, [1.0, 0.5, 0.0]), False),
    "Entropy, quadratics": (Entropy(), Simplex(), False),
    "Euclidean": (Euclidean(), Box(0.2, 1.0), True),
    "Diagonal": (Diagonal(), Box(0.2, 1.0), True),
    "FullMatrix": (FullMatrix(), l2_ball(0.5, [1.0, 0.5, 0.0]), True),
    "Entropy": (Entropy(), Simplex(), True),
}


@pytest.mark.parametrize("proximal", [False, True], ids=["centered", "proximal"])
@pytest.mark.parametrize("name", EXACT)
def test_exact_ftrl_minimises_its_objective_in_every_geometry(name, proximal):
    """Quadratics join the strength or the solver's program, other losses the program; 0 is in none of the sets."""
    geometry, region, others = EXACT[name]
    rate = {"scalar": ScalarAdaGrad(0.2, 1.0), "diagonal": DiagonalAdaGrad(0.2, 1.0), "matrix": MatrixAdaGrad(0.2, 1.0)}
    penalty = squared_l2([0.5, 1.0, 2.0]) if geometry == FullMatrix() else ElasticNet([0.3, 0.0, 0.1], 0.5)
    algorithm = FTRL(rate[geometry.shape], geometry, proximal, Exact(), penalty, Given([2.0, 0.5]), region)
    rng = np.random.default_rng(4)
    losses = [Quadratic(c, 2.0) for c in rng.normal(size=(3, 3))]
    losses += [Example(Logistic(), a, 1) for a in rng.normal(size=(2, 3))] if others else []
    trace = play(algorithm, losses)
    assert np.ptp(trace.points, axis=0).max() > 0.05
    corners = [project(5 * u, region) for u in (*np.eye(3), *-np.eye(3))]
    for stage, x in zip(trace.stages, trace.points[1:], strict=True):
        assert region.contains(x)
        best = stage.objective(x)
        for corner in corners:
            for step in (1.0, 0.01):
                assert best <= stage.objective(x + step * (corner - x)) + 1e-8
    for corner in corners:
        assert strong_ftrl_lemma(trace, corner).error <= 1e-9
        assert strong_ftrl_lemma(trace, corner).remainder <= 1e-7


MARGIN_LOSSES = [
    (Squared(), 1.5),
    (Absolute(), 0.3),
    (Huber(0.5), -2.0),
    (Quantile(0.2), 1.0),
    (Hinge(), 1),
    (SquaredHinge(), -1),
    (Logistic(), 0),
    (Poisson(), 3),
]


@pytest.mark.parametrize(("loss", "label"), MARGIN_LOSSES, ids=lambda p: str(p))
@pytest.mark.parametrize("region", [Reals(), Box(-0.2, 0.2), l2_ball(0.3)], ids=str)
@pytest.mark.parametrize("eta", [0.1, 100.0])
def test_implicit_updates_minimise_the_loss_itself(loss, label, region, eta):
    """The one-dimensional solve against a program for the solver, at a kink or not, with and without a set."""
    implicit = Implicit(Constant(eta), Euclidean(), l1(0.05), feasible=region)
    state = implicit.init(3)
    for a in np.random.default_rng(2).normal(size=(3, 3)):
        example = Example(loss, a, label)
        x = state.x
        state = implicit.update(state, example)

        def objective(u, x=x, example=example):
            return example(u) + 0.05 * np.abs(u).sum() + (u - x) @ (u - x) / (2 * eta)

        def expression(u, x=x, example=example):
            cp = cvxpy()
            return example.expression(u) + 0.05 * cp.norm1(u) + cp.sum_squares(u - x) / (2 * eta)

        twin = minimize(3, expression, region.constraints)
        assert objective(state.x) <= objective(twin) + 1e-7
        assert region.contains(state.x)


def test_implicit_updates_of_other_losses_go_to_the_solver():
    implicit = Implicit(Constant(1.0), Euclidean())
    state = implicit.update(implicit.init(2), Quadratic([2.0, -4.0]))
    assert np.allclose(state.x, [1.0, -2.0], atol=1e-6)
    with pytest.raises(Unsupported, match="proves no bound for implicit"):
        _ = play(implicit, [Quadratic([2.0, -4.0])]).added


@pytest.mark.parametrize("geometry", [Euclidean(), Diagonal(), FullMatrix(), Entropy()], ids=str)
@pytest.mark.parametrize(
    "loss", [Example(Logistic(), [1.0, -2.0, 0.5], 1), Quadratic([1.0, 0.5, -2.0])], ids=["margin", "other"]
)
def test_implicit_updates_follow_their_rate_their_weights_and_their_set(geometry, loss):
    rate = {"scalar": ScalarAdaGrad(0.7, 1.0), "diagonal": DiagonalAdaGrad(0.7, 1.0), "matrix": MatrixAdaGrad(0.7, 1.0)}
    penalty = squared_l2(0.3) if geometry in (FullMatrix(), Entropy()) else ElasticNet([0.3, 0.0, 0.1], 0.2)
    region = {FullMatrix(): l2_ball(0.5, [0.5, 0.2, 0.1]), Entropy(): Simplex()}.get(geometry, Box(0.1, 0.8))
    implicit = Implicit(rate[geometry.shape], geometry, penalty, Given([4.0, 1.0, 0.5]), region)
    state = implicit.init(3)
    others = [project(u, region) for u in (*np.eye(3), *-np.eye(3), *np.random.default_rng(0).normal(size=(5, 3)))]
    for t in range(1, 5):
        after = implicit.update(state, loss)
        near = Regularizer.around(geometry, implicit.rate.strength(after.rate), state.x)

        def objective(u, t=t, near=near):
            return loss(u) + implicit.weights(t) * penalty(u) + near(u)

        assert after.t == t
        assert region.contains(after.x)
        for u in others:
            for step in (1.0, 0.01):
                assert objective(after.x) <= objective(after.x + step * (u - after.x)) + 1e-8
        state = after


def test_implicit_updates_of_margins_need_no_solver(monkeypatch):
    monkeypatch.setattr(cvx, "available", lambda: False)
    implicit = Implicit(Constant(1.0), Euclidean())
    state = implicit.update(implicit.init(1), Example(Squared(), [1.0], 3.0))
    assert state.x == pytest.approx([1.5])


def test_composite_ftrl_keeps_all_penalties_where_mirror_descent_keeps_one():
    """After t rounds Native FTRL thresholds at tλ, Mirror Descent at λ (Figure 3)."""
    losses = [Linear([1.0 if t % 2 else -0.98]) for t in range(1, 40)]
    native = play(FTRL(Constant(0.1), Euclidean(), penalty=l1(0.05), weights=EveryRound()), losses)
    mirror = play(fobos(Constant(0.1), Euclidean(), l1(0.05)), losses)
    assert not native.points[25:].any()
    assert mirror.points[25:].any()


def test_doubling_trick_restarts_and_keeps_its_bound():
    trick = doubling_trick(2.0, 1.0)
    trace = play(trick, follows_the_player, rounds=100, n=3)
    starts = [t for t in range(100) if not trace.points[t].any()]
    assert {0, 1, 3, 7, 15, 31, 63} <= set(starts)
    worst = trace.worst_regret(l2_ball(2.0))
    assert worst <= trick.epochs.bound(100)
    adaptive = play(dual_averaging(2.0, 1.0), follows_the_player, rounds=100, n=3).worst_regret(l2_ball(2.0))
    assert adaptive <= math.sqrt(2) * 2 * math.sqrt(100)
    with pytest.raises(Unsupported, match=r"Doubling.bound"):
        _ = trace.added


def test_doubling_trick_is_lazy_projection_anew_in_every_epoch():
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


def test_scale_free_ftrl_does_not_mind_units():
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(50, 3)), rng.integers(0, 2, 50)
    margins = []
    for units in (np.ones(3), np.array([1e-3, 1.0, 1e4])):
        learner = FTRL(ScaleFree(0.5), Diagonal(), proximal=True)
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
def test_strength_for_features_to_come_is_around_the_first_point(proximal):
    """The point before and after ``observe`` minimises what the rounds and the features have added so far."""
    region, penalty, rng = Box(0.5, 3.0), l1(0.1), np.random.default_rng(0)
    learner = FTRL(ScaleFree(0.5), Diagonal(), proximal, penalty=penalty, weights=EveryRound(), feasible=region)
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


def test_the_first_point_minimises_the_geometry_and_not_the_penalty():
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
        lambda t: CurvatureAdaptive(2.0).strength(told(CurvatureAdaptive(2.0), t)),
    ),
}


def root(matrix):
    values, basis = np.linalg.eigh(matrix)
    return basis @ np.diag(np.sqrt(np.maximum(values, 0))) @ basis.T


def told(rate, t):
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


@pytest.mark.parametrize(
    ("make", "trace_of", "reason"),
    [
        (theorem_2, dual_averaging(1.0, 1.0), "not proximal"),
        (theorem_14, dual_averaging(1.0, 1.0), "not proximal"),
        (theorem_10, dual_averaging(1.0, 1.0), "not proximal"),
        (theorem_12, dual_averaging(1.0, 1.0), "not Mirror Descent"),
        (theorem_1, greedy_projection(1.0, Box(-1, 1)), "use theorem_12"),
        (theorem_10, greedy_projection(1.0, Box(-1, 1)), "use theorem_12"),
        (theorem_10, adagrad_ftrl_proximal(1.0, l1(0.1), Given([1.0, 2.0])), "weights α_t increase"),
        (theorem_2, adagrad_ftrl_proximal(1.0, l1(0.1), Once()), "there is a penalty"),
        (theorem_14, adagrad_ftrl_proximal(1.0, l1(0.1), Once()), "there is a penalty"),
        (theorem_1, FTRL(Constant(1.0), Euclidean(), penalty=l1(0.1), weights=Given([1.0, 2.0])), ""),
        (bound, FTRL(Constant(1.0), Euclidean(), penalty=l1(0.1), weights=Given([1.0, 2.0])), "weights α_t increase"),
        (theorem_12, MirrorDescent(Constant(1.0), Euclidean(), l1(0.1), Given([1.0, 2.0])), "weights α_t increase"),
        (theorem_1, FTRL(Constant(1.0), Euclidean(), penalty=l1(0.1), feasible=Box(0.5, 1)), ""),
        (theorem_12, MirrorDescent(Constant(1.0), Euclidean(), l1(0.1), feasible=Box(0.5, 1)), ""),
        (theorem_10, as_ftrl_proximal(greedy_projection(1.0, Box(-1, 1))), "use theorem_12"),
        (theorem_1, gradient_descent(1.0), ""),
        (theorem_12, as_ftrl_proximal(greedy_projection(1.0, Box(-1, 1))), ""),
    ],
)
def test_bounds_are_void_with_a_reason(make, trace_of, reason):
    trace = play(trace_of, random_gradients, rounds=5, n=2)
    limit = make(trace, trace.points[0])
    assert reason in limit.void
    if reason:
        assert "void, because" in str(limit)
        with pytest.raises(ValueError, match="has no number"):
            _ = limit.total
    else:
        assert limit.total > 0


@pytest.mark.parametrize("against", ["composite", "losses"])
@pytest.mark.parametrize(
    ("theorem", "kind", "lag", "factor"),
    [
        (theorem_1, "centered", 1, 0.5),
        (theorem_1, "proximal", 1, 0.5),
        (theorem_10, "proximal", 0, 0.5),
        (theorem_12, "mirror", 0, 0.5),
        (bound, "centered", 1, 0.5),
        (bound, "proximal", 0, 0.5),
        (bound, "mirror", 0, 0.5),
        (theorem_2, "bare", 0, 0.5),
        (theorem_14, "bare", 0, 1.0),
    ],
    ids=lambda p: getattr(p, "__name__", str(p)),
)
def test_theorems_are_their_formulas_after_every_round(theorem, kind, lag, factor, against):
    """Σ σ_s/2 ‖x* − c_s‖² + α_{1:·}Ψ(x*) + factor·Σ ‖g_s‖²/σ_{0:·}, each up to t or t − 1 as the theorem says.

    FTRL keeps its penalties, whose curvature λ2·α_{1:t−1} adds to the strength; Mirror Descent keeps tangents.
    """
    rate, psi, alphas = InverseSqrt(0.5, 1), ElasticNet(0.3, 0.2), [4.0, 2.0, 0.5, 0.5, 0.5]
    algorithm = {
        "centered": FTRL(rate, Euclidean(), False, penalty=psi, weights=Given([4.0, 2.0, 0.5])),
        "proximal": FTRL(rate, Euclidean(), True, penalty=psi, weights=Given([4.0, 2.0, 0.5])),
        "mirror": MirrorDescent(rate, Euclidean(), psi, Given([4.0, 2.0, 0.5])),
        "bare": FTRL(rate, Euclidean(), True),
    }[kind]
    x, losses = np.array([0.7, -0.2]), [Linear(g) for g in 9 * np.random.default_rng(5).normal(size=(5, 2))]
    trace = play(algorithm, losses)
    cumulative = np.array([state.strength for state in trace.states])
    centers = np.vstack([trace.points[:1], trace.points[:-1] if kind != "centered" else np.zeros((5, 2))])
    added = np.diff(cumulative, prepend=0.0) / 2 * ((x - centers) ** 2).sum(axis=1)
    charge = np.concatenate([[0.0], alphas]) * (psi(x) if against == "losses" and kind != "bare" else 0.0)
    curvature = 0.2 * np.cumsum([0.0, *alphas[:-1]]) if kind in ("centered", "proximal") else 0.0
    stability = factor * (trace.gradients**2).sum(axis=1) / (cumulative[1 - lag : 6 - lag] + curvature)
    limit = theorem(trace, x) if kind == "bare" else theorem(trace, x, against)
    expected = np.cumsum(added + charge)[1 - lag : 6 - lag] + np.cumsum(stability)
    assert np.ptp(trace.points) > 1
    assert np.allclose(limit.over_rounds, expected, rtol=1e-12)
    assert limit.total == limit.over_rounds[-1]


def test_a_gradient_where_there_is_no_strength_voids_the_bound_from_its_round_on():
    trace = play(adagrad_ftrl_proximal(1.0), [Linear([0.0]), Linear([0.0]), Linear([1.0])])
    assert theorem_1(trace, np.ones(1)).void.startswith("in round 3 the gradient is not zero where")
    assert theorem_2(trace, np.ones(1)).total == pytest.approx(0.5 / math.sqrt(2) + 0.5 * math.sqrt(2))


def test_a_comparator_outside_the_set_voids_the_bound():
    trace = play(ftrl_proximal(1.0, 1.0), random_gradients, rounds=5, n=2)
    assert theorem_2(trace, np.array([3.0, 0.0])).void == "the comparator lies outside X"


def test_theorem_2_is_an_equality_at_the_last_point_for_quadratics():
    """Lemma 7 is one for quadratics, and at x* = x_{T+1} the remainder is 0."""
    for algorithm in (
        FTRL(DiagonalAdaGrad(0.5, beta=1.0), Diagonal(), proximal=True),
        FTRL(InverseSqrt(0.5, 1), Euclidean(), proximal=True),
        FTRL(MatrixAdaGrad(0.5, 1.0), FullMatrix(), proximal=True),
    ):
        trace = play(algorithm, random_gradients, rounds=80, n=3)
        x = trace.points[-1]
        assert theorem_2(trace, x).total == pytest.approx(trace.regret(x), rel=1e-8)


def test_the_game_goes_round_by_round_as_long_as_it_is_asked_to():
    losses, seen, asked = [Linear([1.0]), Linear([2.0]), Linear([4.0])], [], []
    trace = play(gradient_descent(1.0), losses, rounds=2, progress=seen.append)
    assert trace.losses == tuple(losses[:2])
    assert seen == [1, 2]
    assert trace.regrets(np.array([1.0])).tolist() == [-1.0, -5.0]
    assert trace.regrets(np.array([1.0]), linearized=True).tolist() == [-1.0, -5.0]

    def adversary(t, x):
        asked.append((t, x.tolist()))
        return losses[0]

    play(gradient_descent(1.0), adversary, rounds=2, n=1)
    assert asked == [(1, [0.0]), (2, [-1.0])]
    dimensions = {
        3: Linear(np.ones(3)),
        4: Quadratic(np.ones(4)),
        2: Example(Logistic(), np.ones(2), 1),
        6: MulticlassExample(Softmax(3), np.ones(2), 1),
    }
    for n, loss in dimensions.items():
        assert play(gradient_descent(1.0), [loss]).points.shape == (2, n)
    assert play(gradient_descent(1.0), [Convex(sum, np.sign)], n=5).points.shape == (2, 5)


def test_linearized_regret_is_of_the_gradients_that_were_seen():
    trace = play(strongly_convex_descent(), curved, rounds=30, n=3)
    total = trace.gradients.sum(axis=0)
    best = -total / np.linalg.norm(total)
    assert trace.worst_regret(l2_ball(1.0), linearized=True) == pytest.approx(trace.regret(best, linearized=True))
    assert trace.worst_regret(l2_ball(1.0), linearized=True) > trace.worst_regret(l2_ball(1.0)) + 0.1
    # Σf = x/2 + |x − 1/2| is smallest at its kink: not linear, though nothing in it is curved
    mixed = play(gradient_descent(0.1), [Linear([0.5]), Example(Absolute(), [1.0], 0.5)])
    assert mixed.best(Box(-1, 1)) == pytest.approx([0.5], abs=1e-6)
    assert mixed.worst_regret(Box(-1, 1)) == pytest.approx(mixed.regret(np.array([0.5])), abs=1e-6)


def test_worst_regret_is_attained_and_exact_for_linear_losses():
    trace = play(dual_averaging(1.0, 1.0), random_gradients, rounds=50, n=3)
    total = trace.gradients.sum(axis=0)
    best = -total / np.linalg.norm(total)
    assert trace.worst_regret(l2_ball(1.0)) == pytest.approx(trace.regret(best))
    curvy = play(strongly_convex_descent(), curved, rounds=30, n=3)
    assert curvy.worst_regret(l2_ball(1.0)) >= max(
        curvy.regret(u / np.linalg.norm(u)) for u in np.random.default_rng(0).normal(size=(50, 3))
    )
    middle = np.mean([f.center for f in curvy.losses], axis=0)
    assert np.allclose(curvy.best(Reals()), middle, atol=1e-6)
    assert np.allclose(curvy.best(Box(1.0, 2.0)), project(middle, Box(1.0, 2.0)), atol=1e-6)
    lopsided = Box([-1.0, 0.0, -5.0], [3.0, 0.5, 1.0])
    assert trace.worst_regret(lopsided) == pytest.approx(trace.regret(project(-1e6 * total, lopsided)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FTRL(DiagonalAdaGrad(1.0), Euclidean()), r"gives a diagonal strength.*use geometry=Diagonal\(\)"),
        (lambda: MirrorDescent(Constant(1.0), Diagonal()), r"use geometry=Euclidean\(\)"),
        (lambda: FTRL(Constant(1.0), Entropy()), "needs a subset of the simplex"),
        (lambda: gradient_descent(-1.0), "eta: got -1.0, expected a positive number"),
        (lambda: gradient_descent(1.0).init(0), "n: got 0, expected a whole number of at least 1"),
        (lambda: greedy_projection(1.0, Box(-1, 1)).init(2.5), "n: got 2.5, expected a whole number of at least 1"),
        (lambda: doubling_trick(1.0, 1.0).init(0), "n: got 0, expected a whole number of at least 1"),
        (lambda: play(gradient_descent(1.0), random_gradients), "rounds, n: got"),
        (lambda: play(gradient_descent(1.0), random_gradients, rounds=3), r"rounds, n: got \(3, None\), expected both"),
        (lambda: play(gradient_descent(1.0), random_gradients, n=3), r"rounds, n: got \(None, 3\), expected both"),
        (lambda: play(gradient_descent(1.0), random_gradients, 0, 3), "rounds: got 0, expected a whole number"),
        (lambda: play(gradient_descent(1.0), random_gradients, 3, 0), "n: got 0, expected a whole number"),
        (lambda: play(gradient_descent(1.0), []), r"losses: got \(\), expected at least one loss"),
        (lambda: play(gradient_descent(1.0), [Convex(sum, np.sign)]), "the dimension, which Convex does not have"),
        (lambda: play(gradient_descent(1.0), [Linear([1.0])]).regret([1.0, 2.0]), r"x: got shape \(2,\)"),
        (lambda: play(gradient_descent(1.0), lambda t, x: Convex(sum, lambda x: x * math.nan), 1, 1), "nan"),
        (lambda: hedge(1), "n"),
    ],
)
def test_what_cannot_work_is_refused_with_a_sentence(make, message):
    with pytest.raises(ValueError, match=message):
        make()
