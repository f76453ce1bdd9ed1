"""Every argmin against a solver, and against neighboring points."""

import math
import pathlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forel import cvx
from forel.theory.argmin import CLOSED_FORMS, SOLVER, Argmin, argmin, bregman_project, project
from forel.theory.geometries import Diagonal, Entropy, Euclidean, FullMatrix, SquaredPNorm
from forel.theory.penalties import NONE, ElasticNet, GroupL2, Indicator, Sum, l1, l2, squared_l2
from forel.theory.regularizers import Regularizer
from forel.theory.sets import Affine, Box, HalfSpace, Polyhedron, Reals, Simplex, intersect, l1_ball, l2_ball
from forel.validation import Infeasible, Unbounded, Unsupported
from tests.theory.cases import strengths
from website.argmin_page import markdown
from website.combinations import GEOMETRIES, REFUSED, method, penalties, sets

N = 5
NAMES = [pytest.param(g, p, s, id=f"{g}, {p}, {s}") for g in GEOMETRIES for p in penalties(N) for s in sets(N)]


def cases(shape, n):
    """Slopes, strengths and weights: random, and where closed forms have gone wrong before."""
    rng = np.random.default_rng(7)
    yield "random", rng.normal(size=n), strengths(shape, n, rng), 1.3
    yield "strong pull", 30 * rng.normal(size=n), strengths(shape, n, rng), 0.7
    yield "already feasible", 1e-3 * rng.normal(size=n), strengths(shape, n, rng) * 50, 0.0
    yield "zero slope", np.zeros(n), strengths(shape, n, rng), 1.0
    yield "ties", np.full(n, -2.0), strengths(shape, n, rng, spread=0.0), 1.0
    yield "one large", np.eye(n)[0] * -100, strengths(shape, n, rng), 1.0
    yield "badly scaled", 10 ** rng.uniform(-3, 3, n) * rng.choice([-1, 1], n), strengths(shape, n, rng, 2.0), 1.0


class NumericalArgmin:
    """The same objective written out for the solver, from the parts themselves."""

    def __init__(self, geometry, penalty, feasible, n):
        cp = cvx.cvxpy()
        self.geometry = geometry
        shape = {"scalar": (), "diagonal": (n,), "matrix": (n, n)}[geometry.shape]
        self.x, self.z, self.weight = cp.Variable(n), cp.Parameter(n), cp.Parameter(nonneg=True)
        self.factor = cp.Parameter(shape, nonneg=geometry.shape != "matrix")
        objective = self.z @ self.x + geometry.expression(self.factor, self.x)
        limits = feasible.constraints(self.x)
        if isinstance(penalty, Indicator):
            limits = [*limits, *penalty.feasible.constraints(self.x)]
        else:
            objective += self.weight * penalty.expression(self.x)
        self.problem = cp.Problem(cp.Minimize(objective), limits)

    def __call__(self, z, strength, weight):
        self.z.value, self.weight.value, self.factor.value = z, weight, self.geometry.factor(strength)
        x = cvx.solve(self.problem, self.x)
        return np.maximum(x, 0) if self.geometry.on_simplex else x


@pytest.mark.slow
@pytest.mark.parametrize(("geometry", "penalty", "feasible"), NAMES)
def test_every_combination_equals_the_solver_or_refuses(geometry, penalty, feasible):
    found = method(GEOMETRIES[geometry], penalties(N)[penalty], sets(N)[feasible])
    if found == REFUSED:
        with pytest.raises(Unsupported, match="use feasible=Simplex"):
            Argmin(GEOMETRIES[geometry], penalties(N)[penalty], sets(N)[feasible])
        return
    for n in (N, 1) if found != SOLVER else (3,):
        phi, psi, region = GEOMETRIES[geometry], penalties(n)[penalty], sets(n)[feasible]
        play, solver = Argmin(phi, psi, region), NumericalArgmin(phi, psi, region, n)
        points = {name: play(*case) for name, *case in cases(phi.shape, n)}
        for name, z, strength, weight in cases(phi.shape, n):
            x = points[name]
            assert region.contains(x, 1e-12 if found != SOLVER else 1e-7), (name, n, x)

            def objective(u, z=z, strength=strength, weight=weight, phi=phi, psi=psi):
                charge = 0.0 if isinstance(psi, Indicator) else weight * psi(u)
                return z @ u + charge + phi.value(strength, u)

            other = solver(z, strength, weight)
            scale = 1 + abs(objective(x)) + np.abs(z) @ np.abs(x)
            assert objective(x) == pytest.approx(objective(other), abs=1e-7 * scale), (name, n, x, other)
            for y in points.values():  # all feasible, so none on the way to them may be better
                for step in (1.0, 0.1, 1e-3):
                    assert objective(x + step * (y - x)) >= objective(x) - 1e-7 * step * scale, (name, n, step)


# Parts that the table has not: beyond one penalty of a kind, sets without 0, thresholds that outweigh everything else.
FURTHER = {
    "elastic net + groups, one left out": (
        ElasticNet(0.2, [0.1, 0.9, 0.5, 0.3, 0.7]) + GroupL2([0.4, 0.9], [0, 1, -1, 1, 0]),
        Reals(),
        "group shrinkage",
    ),
    "a group without members": (GroupL2([0.4, 5.0, 0.9], [0, 2, -1, 2, 0]), Reals(), "group shrinkage"),
    "groups without members, by the solver": (GroupL2([0.4, 5.0, 0.9], [0, 2, -1, 2, 0]), l2_ball(0.6), SOLVER),
    "no group at all": (GroupL2(3.0, [-1] * N) + squared_l2(0.1), l2_ball(0.6), SOLVER),
    "two kinds of groups": (l2(0.5) + GroupL2(0.4, [0, 0, 1, 1, 1]), Reals(), SOLVER),
    "two indicators": (Indicator(Box(-0.2, 0.3)) + Indicator(Box(-0.4, 0.1)) + l1(0.1), Reals(), "coordinate-wise"),
    "indicators of other sets": (Indicator(l2_ball(0.4)) + Indicator(Box(0, 1)), Reals(), SOLVER),
    "an L1 penalty away from 0": (l1(20.0), l2_ball(0.5, [1.0, -1, 1, 0, 2]), "threshold, then scale or root"),
    "a penalty a coordinate away from 0": (
        ElasticNet([0, 9.0, 0, 5, 1], 2.0),
        Box([1, -9, 0, 2, -3], 9),
        "coordinate-wise",
    ),
    "an L1 penalty over a half-space without 0": (l1(20.0), HalfSpace([1.0, -2, 0, 3, 1], -0.01), "one multiplier"),
    "an upper bound alone": (NONE, Box(-math.inf, 0.1), "coordinate-wise"),
    "a lower bound alone": (l1(0.2), Box([0.1, 0.2, -math.inf, 0.3, -5], math.inf), "coordinate-wise"),
    "some bounds": (NONE, Box([0.1, -math.inf, -1, 0, 0], [math.inf, 0.2, 1, 0, math.inf]), "coordinate-wise"),
    "two equations": (squared_l2([0.1, 0.9, 0.5, 0.3, 0.7]), Affine([[1.0] * N, range(N)], [0.5, -3]), "linear system"),
    "simplex of another total": (ElasticNet([0, 9.0, 0, 5, 1], [0.1, 2, 0, 3, 1]), Simplex(7.0), "sort"),
}


@pytest.mark.parametrize("geometry", ["Euclidean", "Diagonal"])
@pytest.mark.parametrize("name", FURTHER)
def test_further_combinations_equal_the_solver(name, geometry):
    penalty, region, expected = FURTHER[name]
    play = Argmin(GEOMETRIES[geometry], penalty, region)
    assert play.method == expected
    terms = [t for t in getattr(penalty, "terms", (penalty,)) if not isinstance(t, Indicator)]
    limits = [t.feasible for t in getattr(penalty, "terms", (penalty,)) if isinstance(t, Indicator)]
    charged = Sum(tuple(terms)) if terms else NONE
    solver = NumericalArgmin(GEOMETRIES[geometry], charged, intersect(region, *limits), N)
    for label, z, strength, weight in cases(play.geometry.shape, N):
        x, other = play(z, strength, weight), solver(z, strength, weight)

        def objective(u, z=z, strength=strength, weight=weight):
            return z @ u + weight * charged(u) + play.geometry.value(strength, u)

        assert all(s.contains(x, 1e-12 if expected != SOLVER else 1e-7) for s in (region, *limits)), label
        assert objective(x) <= objective(other) + 1e-7 * (1 + abs(objective(x)) + np.abs(z) @ np.abs(x)), label
        assert np.allclose(x, other, atol=1e-4 * (1 + np.abs(x).max())), label


@given(z=st.lists(st.floats(-100, 100), min_size=1, max_size=30).map(np.array), seed=st.integers(0, 99))
def test_groups_are_zero_or_stationary(z, seed):
    """z_i + σ_i x_i + λ x_i/‖x‖ = 0 for a group that is not zero, to nearly all digits."""
    strength = strengths("diagonal", z.size, np.random.default_rng(seed), spread=3.0)
    x = Argmin(Diagonal(), l2(2.0))(z, strength, weight=3.0)
    if np.linalg.norm(z) <= 6.0:
        assert not x.any()
    else:
        residual = z + strength * x + 6.0 * x / np.linalg.norm(x)
        assert np.allclose(residual, 0, atol=1e-9 * np.linalg.norm(z))


@given(z=st.lists(st.floats(-100, 100), min_size=2, max_size=30).map(np.array), seed=st.integers(0, 99))
def test_points_on_the_boundary_satisfy_their_optimality_conditions(z, seed):
    """There the slope z + σx is a negative multiple of the normal, to nearly all digits; l1 adds at most its λ."""
    rng = np.random.default_rng(seed)
    strength, center = strengths("diagonal", z.size, rng, spread=2.0), rng.normal(size=z.size)
    x = Argmin(Diagonal(), feasible=l2_ball(0.5, center))(z, strength)
    slope, out = z + strength * x, (x - center) / 0.5
    multiplier = -slope @ out if np.linalg.norm(out) > 1 - 1e-9 else 0.0
    assert multiplier >= -1e-9 * np.linalg.norm(z)
    assert np.allclose(slope, -multiplier * out, atol=1e-9 * (np.linalg.norm(z) + np.abs(strength * center).max()))
    half = HalfSpace(rng.normal(size=z.size), -1.0)
    x = Argmin(Diagonal(), l1(0.5), half)(z, strength)
    slope = z + strength * x
    tight = half.normal @ x >= half.offset - 1e-9 * (1 + np.abs(half.normal) @ np.abs(x))
    moved = (x != 0) & (half.normal != 0)
    ratios = -(slope + 0.5 * np.sign(x))[moved] / half.normal[moved] if tight else np.zeros(1)
    assert np.ptp(ratios) <= 1e-8 * (1 + np.abs(ratios).max()) * (1 + 1 / np.abs(half.normal).min())
    assert ratios.min() >= -1e-8 * np.abs(slope).max()


RADII = {
    "box": lambda r: Box(-r, r),
    "L2": l2_ball,
    "L2, center": lambda r: l2_ball(r, [0.1, 0.2, -0.3, 0.0, 0.4]),
    "L1": l1_ball,
    "L1, center": lambda r: l1_ball(r, [0.1, 0.2, -0.3, 0.0, 0.4]),
    "simplex": Simplex,
}


@pytest.mark.parametrize("radius", [1e-8, 1e-3, 1e3, 1e8])
@pytest.mark.parametrize("kind", RADII)
@pytest.mark.parametrize("geometry", ["Euclidean", "Diagonal"])
def test_tiny_and_huge_radii(geometry, kind, radius):
    """Scaling radius and slope together scales the solution; the solver runs at radius 1, where it is accurate."""
    rng = np.random.default_rng(11)
    phi, z = GEOMETRIES[geometry], 5 * rng.normal(size=N)
    strength = strengths(phi.shape, N, rng)
    small, unit = RADII[kind](radius), RADII[kind](1.0)
    if "center" in kind:  # centers do not scale along: shift the problem to the origin instead
        center = np.asarray(small.center)
        x = Argmin(phi, feasible=small)(z - strength * center, strength)
        expected = center + Argmin(phi, feasible=type(small)(small.norm, radius))(z, strength)
    else:
        x = Argmin(phi, feasible=small)(z, strength)
        expected = radius * NumericalArgmin(phi, NONE, unit, N)(z / radius, strength, 0.0) if radius >= 1 else None
        if expected is None:
            expected = radius * Argmin(phi, feasible=unit)(z / radius, strength)
    assert small.contains(x, 1e-12)
    assert np.allclose(x, expected, atol=1e-6 * min(radius, np.abs(x).max()) + 1e-15)


@given(
    z=st.lists(st.floats(-100, 100), min_size=1, max_size=30).map(np.array),
    total=st.floats(1e-3, 1e3),
    seed=st.integers(0, 99),
)
def test_the_simplex_satisfies_its_optimality_conditions(z, total, seed):
    """Where x_i > 0 the slope z_i + σ_i x_i is the same, and nowhere is it smaller."""
    strength = strengths("diagonal", z.size, np.random.default_rng(seed), spread=3.0)
    x = Argmin(Diagonal(), feasible=Simplex(total))(z, strength)
    slope = z + strength * x
    assert x.min() >= 0
    assert x.sum() == pytest.approx(total, rel=1e-12)
    scale = 1e-9 * (1 + np.abs(z).max() + np.abs(slope).max())
    assert np.ptp(slope[x > 0]) <= scale
    assert slope.min() >= slope[x > 0].min() - scale


@given(z=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30).map(np.array), seed=st.integers(0, 99))
def test_l1_gives_exact_zeros_exactly_where_the_slope_is_within_it(z, seed):
    rng = np.random.default_rng(seed)
    strength = strengths("diagonal", z.size, rng, spread=6.0)
    x = Argmin(Diagonal(), l1(1.0))(z, strength, weight=3.0)
    assert ((x == 0) == (np.abs(z) <= 3.0)).all()
    residual = z + strength * x + 3.0 * np.sign(x)
    assert np.allclose(residual[x != 0], 0, atol=1e-9 * (1 + np.abs(z).max()))
    ball = Argmin(Diagonal(), l1(1.0), l2_ball(0.1))(z, strength, weight=3.0)
    assert ((ball == 0) == (np.abs(z) <= 3.0)).all()


@pytest.mark.parametrize("feasible", [Box(-1, 1), l2_ball(1.0), l1_ball(1.0)], ids=str)
def test_a_coordinate_that_has_seen_nothing_stays_at_zero(feasible):
    """AdaGrad without an offset starts every coordinate with neither slope nor strength."""
    x = Argmin(Diagonal(), feasible=feasible)(np.array([0.3, 0.0, 0.0]), np.array([2.0, 0.0, 5.0]))
    assert np.allclose(x, [-0.15, 0, 0])
    pulled = Argmin(Diagonal(), feasible=feasible)(np.array([0.3, -4.0, 0.0]), np.array([2.0, 0.0, 5.0]))
    assert pulled in feasible
    assert pulled[1] > 0.9
    pushed = Argmin(Diagonal(), feasible=feasible)(np.array([0.3, 4.0, 0.0]), np.array([2.0, 0.0, 5.0]))
    assert pushed in feasible
    assert pushed[1] < -0.9


def test_the_simplex_divides_the_rest_among_coordinates_without_strength():
    play = Argmin(Diagonal(), feasible=Simplex())
    assert np.allclose(play(np.zeros(4), np.zeros(4)), 0.25)
    assert np.allclose(play(np.array([-1.0, 0.0, 0.0]), np.array([2.0, 0.0, 0.0])), [0.5, 0.25, 0.25])
    assert np.allclose(play(np.array([-9.0, 0.0, 0.0]), np.array([2.0, 0.0, 0.0])), [1.0, 0.0, 0.0])
    assert np.allclose(play(np.array([-1.0, 0.0, 0.5]), np.array([2.0, 0.0, 0.0])), [0.5, 0.5, 0.0])
    assert np.allclose(Argmin(Euclidean(), feasible=Simplex())(np.array([1.0, 0.0, 0.0]), 0.0), [0, 0.5, 0.5])


def test_projections_in_three_metrics_and_for_the_entropy():
    u, rng = np.array([1.0, 2.0, -1.0]), np.random.default_rng(0)
    matrix = strengths("matrix", 3, rng)
    for metric in (1.0, np.array([1.0, 4.0, 0.5]), matrix):
        x = project(u, l2_ball(1.0), metric)
        square = np.asarray(metric) if np.ndim(metric) == 2 else np.diag(np.broadcast_to(metric, 3))
        for angle in np.random.default_rng(1).normal(size=(50, 3)):
            y = angle / np.linalg.norm(angle)
            assert (y - u) @ square @ (y - u) >= (x - u) @ square @ (x - u) - 1e-12
    positive = np.array([0.2, 0.6, 1.2])
    assert np.allclose(bregman_project(positive, Simplex(), Entropy()), positive / 2)
    assert np.allclose(bregman_project(positive, Simplex(4.0), Entropy()), positive * 2)


def test_argmin_of_a_running_sum_is_the_surveys_ftrl_proximal_update():
    points, g = np.array([[0.0, 0.0], [1.0, -1.0]]), np.array([0.5, -2.0])
    total = sum((Regularizer.around(Diagonal(), [1.0, 2.0], p) for p in points), Regularizer.zero(Diagonal(), 2))
    x = argmin(g, total, l1(0.1), weight=2.0, feasible=Box(-9, 9))
    assert np.allclose(x, [(1 - 0.5 + 0.2) / 2 * 0 + (1.0 - 0.5 - 0.2) / 2, (-2.0 + 2.0 + 0) / 4])


def test_the_objective_is_minimized_and_infinite_outside_the_set():
    play, z, strength = Argmin(Diagonal(), l1(0.5), Box(-1, 1)), np.array([2.0, -3.0]), np.array([1.0, 4.0])
    x = np.array([-1.0, 0.5])
    assert play.objective(x, z, strength, weight=3.0) == pytest.approx(-3.5 + 3 * 0.75 + 0.5 * (1 + 1))
    assert play.objective(x, z, strength, weight=0.0) == pytest.approx(-3.5 + 1)
    assert play.objective(2 * x, z, strength) == math.inf
    assert play.conjugate(-z, strength, 3.0) == pytest.approx(-play.objective(play(z, strength, 3.0), z, strength, 3.0))
    boxed = Argmin(Diagonal(), Indicator(Box(-1, 1)))
    assert boxed.objective(2 * x, z, strength) == math.inf
    assert boxed(9 * z, strength, weight=0.0).tolist() == [-1.0, 1.0]


class Smallness:
    """A user-defined penalty: Σ x_i⁴."""

    strong_convexity = 0.0

    def __call__(self, x):
        return float(np.sum(x**4))

    def expression(self, x):
        return cvx.cvxpy().sum(cvx.cvxpy().power(x, 4))


def test_user_defined_penalties_use_the_solver_and_can_be_added_to_others():
    play = Argmin(Euclidean(), l1(0.5) + Smallness())
    assert play.method == SOLVER
    x = play(np.array([2.0, 0.1]), 1.0)
    assert x[0] + 4 * x[0] ** 3 == pytest.approx(-1.5, abs=1e-5)
    assert x[1] == pytest.approx(0, abs=1e-6)
    everywhere = [(Euclidean(), l2(1.0)), (Diagonal(), NONE), (FullMatrix(), NONE), (SquaredPNorm(1.5), NONE)]
    for geometry, penalty in everywhere:
        assert Argmin(geometry, penalty + Smallness()).method == SOLVER
    assert Argmin(Entropy(), NONE + Smallness(), Simplex()).method == SOLVER


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Argmin(Euclidean())([math.nan, 1.0], 1.0), ValueError, "z: got nan at index 0, expected finite"),
        (lambda: Argmin(Euclidean())([1.0, math.inf], 1.0), ValueError, "z: got inf at index 1, expected finite"),
        (lambda: Argmin(Euclidean())([[1.0]], 1.0), ValueError, r"z: got shape \(1, 1\), expected a vector"),
        (lambda: Argmin(Euclidean())([1.0], -1.0), ValueError, "strength: got -1.0, expected a number of at least 0"),
        (lambda: Argmin(Euclidean())([1.0], math.nan), ValueError, "strength: got nan"),
        (lambda: Argmin(Euclidean())([1.0], 1.0, -2), ValueError, "weight: got -2, expected a number of at least 0"),
        (lambda: Argmin(Euclidean())([0.0, 1.0], 0.0), Unbounded, "got 0 at index 1 where z is 1.0.*bounded feasible"),
        (
            lambda: Argmin(Diagonal())([1.0], [1.0, 2.0]),
            ValueError,
            r"strength: got shape \(2,\), expected a vector of",
        ),
        (lambda: Argmin(Diagonal())([1.0], [-1.0]), ValueError, "strength: got -1.0 at index 0"),
        (lambda: Argmin(FullMatrix())([1.0], [[-1.0]]), ValueError, "strength: got the eigenvalue -1"),
        (lambda: Argmin(FullMatrix())([1.0, 0], np.zeros((2, 2))), Unbounded, "no minimum"),
        (lambda: Argmin(Entropy(), feasible=Simplex())([1.0], 0), ValueError, "strength: got 0, expected a positive"),
        (lambda: Argmin(Entropy()), Unsupported, r"needs a subset of the simplex.*use feasible=Simplex\(\)"),
        (lambda: Argmin(Euclidean(), l1([1.0, 2.0]), Box(0, [1, 1, 1])), ValueError, r"dimensions \[2, 3\]"),
        (lambda: Argmin(Euclidean(), l1([1.0, 2.0]))([1.0], 1.0), ValueError, "z: got shape.*length 2"),
        (
            lambda: Argmin(Diagonal(), feasible=HalfSpace([1.0, 1.0], 0))([1.0, 1.0], [1.0, 0.0]),
            Unsupported,
            "give the rate an offset",
        ),
        (lambda: Argmin(Diagonal(), l2(1.0))(np.array([9.0, 0]), [0.0, 1.0]), Unbounded, "group penalty"),
        (lambda: Argmin(Diagonal(), l2(1.0))(np.array([9.0, 0]), [0.0, 0.0]), Unbounded, "group penalty"),
        (
            lambda: Argmin(Diagonal(), feasible=Affine([[1.0]], [1.0]))([1.0], [0.0]),
            Unsupported,
            "give the rate an offset",
        ),
        (lambda: project([0.0, 0.0], Polyhedron(A=[[1.0]], b=[1.0])), ValueError, "z: got shape"),
        (lambda: project([math.nan], Simplex()), ValueError, "u: got nan at index 0"),
        (lambda: Argmin(Euclidean(), squared_l2([1.0, 2.0]))([1.0], 1.0), ValueError, "z: got shape.*length 2"),
        (lambda: Argmin(Euclidean(), GroupL2(1.0, [0, 1]))([1.0], 1.0), ValueError, "z: got shape.*length 2"),
        (lambda: argmin([1.0], Regularizer.zero(Euclidean(), 2)), ValueError, r"z: got shape \(1,\).*length 2"),
        (lambda: ElasticNet(l1=-1), ValueError, "l1: got -1.0, expected numbers of at least 0"),
        (lambda: squared_l2([0, math.nan]), ValueError, "l2: got nan at index 1"),
        (lambda: GroupL2(1.0, [0.5]), ValueError, "groups: got .*one whole number"),
        (lambda: GroupL2(1.0, [-2]), ValueError, "at least -1"),
        (lambda: GroupL2(1.0, np.array([], dtype=int)), ValueError, "one whole number of at least -1 per coordinate"),
        (lambda: GroupL2(1.0, [[0, 1]]), ValueError, "one whole number of at least -1 per coordinate"),
        (lambda: GroupL2(-1.0), ValueError, "factor: got -1.0, expected numbers of at least 0"),
        (lambda: GroupL2([1.0], [0, 1]), ValueError, "one for each of the 2 groups"),
        (lambda: GroupL2([1.0, 2.0], [0, 0]), ValueError, "one for each of the 1 groups"),
        (lambda: GroupL2([1.0, 2.0]), ValueError, "one number when all coordinates are one group"),
        (lambda: Regularizer.zero(Euclidean(), 0), ValueError, "n: got 0, expected a whole number of at least 1"),
    ],
)
def test_unsupported_combinations_raise(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_penalties_add_up():
    x = np.array([1.0, -2.0, 0.0, 3.0])
    terms = [l1(0.5), squared_l2([1.0, 2, 3, 4]), l2(2.0), GroupL2([1.0, 3.0], [0, 1, 1, -1]), Indicator(Box(-5, 5))]
    total = sum(terms[1:], terms[0])
    assert total(x) == pytest.approx(sum(t(x) for t in terms))
    assert total.strong_convexity == 1.0
    assert (squared_l2([1.0, 3.0]) + squared_l2(0.5) + l2(1.0)).strong_convexity == 1.5
    assert Indicator(Simplex())(x) == math.inf


def test_groups_do_not_change_with_the_callers_array():
    labels = np.array([0, 0, 1])
    penalty = GroupL2(1.0, labels)
    labels[:] = 0
    assert penalty(np.array([3.0, 4.0, 2.0])) == 7.0
    with pytest.raises(ValueError, match="read-only"):
        penalty.groups[0] = 1


def test_the_table_in_the_docs_is_current():
    page = pathlib.Path(__file__).parents[2] / "docs" / "argmin.md"
    assert page.read_text() == markdown(), "run `make docs`"
    known = CLOSED_FORMS.keys() - {"the set's own"}  # of users, who are not in the table
    assert all(name in page.read_text() for name in (*known, SOLVER, REFUSED))


def test_an_empty_polyhedron_or_system_is_refused_at_construction():
    with pytest.raises(Infeasible):
        Polyhedron(A=[[1.0], [-1.0]], b=[0.0, -1.0])
    with pytest.raises(Infeasible):
        Affine([[1.0], [1.0]], [0.0, 1.0])
    assert Argmin(Euclidean(), feasible=intersect(Reals())).method == "coordinate-wise"


@dataclass(frozen=True)
class Cone:
    """The L2 ball as a second-order cone, which is neither an equation nor an inequality."""

    ball: Any

    def __getattr__(self, name):
        return getattr(object.__getattribute__(self, "ball"), name)

    def constraints(self, x):
        return [cvx.cvxpy().SOC(self.ball.radius, x)]


@pytest.mark.parametrize("radius", [1e-3, 1.0, 1e3])
def test_a_users_set_may_be_a_cone_of_any_size(radius):
    z = np.array([3.0, -4.0, 0.1])
    found = Argmin(Euclidean(), l1(0.2), Cone(l2_ball(radius)))
    assert found.method == "solver"
    np.testing.assert_allclose(found(z, 1.0), Argmin(Euclidean(), l1(0.2), l2_ball(radius))(z, 1.0), atol=1e-6 * radius)
