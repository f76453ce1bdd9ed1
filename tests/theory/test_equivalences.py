"""Algorithms that are the same algorithm: Mirror Descent and FTRL-Proximal, leaders and means, exact losses."""

import numpy as np
import pytest

from catalogue import N
from forel.cvx import minimize
from forel.losses import (
    Convex,
    Example,
    Hinge,
    Linear,
    Logistic,
    Quadratic,
    Total,
)
from forel.theory.algorithms import (
    FTRL,
    Exact,
    Linearized,
    MirrorDescent,
    QuadraticBound,
    as_ftrl_proximal,
    follow_the_leader,
    gradient_descent,
    greedy_projection,
    lazy_projection,
    strongly_convex_descent,
)
from forel.theory.analysis import (
    play,
    strong_ftrl_lemma,
)
from forel.theory.argmin import project
from forel.theory.geometries import Diagonal, Entropy, Euclidean, FullMatrix
from forel.theory.penalties import ElasticNet, l1, squared_l2
from forel.theory.rates import (
    DiagonalAdaGrad,
    MatrixAdaGrad,
    ScalarAdaGrad,
)
from forel.theory.sets import Box, Reals, Simplex, l2_ball
from forel.theory.weights import EveryRound, Given
from forel.validation import Unbounded, Unsupported
from tests.theory.games import combinations, curved, random_gradients
from website.combinations import GEOMETRIES, penalties, sets


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
    points = np.empty((2, rounds, n))
    for t, noise in enumerate(rng.normal(size=(rounds, n))):
        loss = Linear(noise + np.sign(mirror.play(state)))
        state, other = mirror.update(state, loss), form.update(other, loss)
        points[:, t] = mirror.play(state), form.play(other)
    assert np.allclose(*points, rtol=0, atol=1e-10)


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
def test_exact_ftrl_minimizes_its_objective_in_every_geometry(name, proximal):
    """Quadratics join the strength or the solver's program, other losses the program; 0 is in none of the sets."""
    geometry, region, others = EXACT[name]
    rate = {"scalar": ScalarAdaGrad(0.2, 1.0), "diagonal": DiagonalAdaGrad(0.2, 1.0), "matrix": MatrixAdaGrad(0.2, 1.0)}
    penalty = squared_l2([0.5, 1.0, 2.0]) if geometry == FullMatrix() else ElasticNet([0.3, 0.0, 0.1], 0.5)
    algorithm = FTRL(
        rate[geometry.shape], geometry, "played" if proximal else "first", Exact(), penalty, Given([2.0, 0.5]), region
    )
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
