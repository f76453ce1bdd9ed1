"""Feasible sets against their programs for the solver."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forel import cvx
from forel.losses import Linear
from forel.theory.algorithms import FTRL
from forel.theory.analysis import bound, play
from forel.theory.argmin import SOLVER, Argmin, project
from forel.theory.geometries import Euclidean
from forel.theory.norms import LINF
from forel.theory.penalties import l1
from forel.theory.rates import InverseSqrt
from forel.theory.sets import (
    Affine,
    Ball,
    Box,
    HalfSpace,
    Intersection,
    Oracle,
    Polyhedron,
    Reals,
    Simplex,
    intersect,
    l1_ball,
    l2_ball,
    linf_ball,
)
from forel.validation import Infeasible, Unbounded, Unsupported
from website.combinations import sets

N = 4
EVERY = pytest.mark.parametrize("name", sets(N))
FAST = pytest.mark.parametrize(
    "name", [name for name, s in sets(N).items() if Argmin(Euclidean(), feasible=s).method != SOLVER]
)
vectors = st.lists(st.floats(-3, 3), min_size=N, max_size=N).map(np.array)


@EVERY
def test_contains_agrees_with_the_constraints(name):
    feasible, rng = sets(N)[name], np.random.default_rng(0)
    for u in rng.normal(size=(10, N)):
        inside = project(u, feasible)
        assert inside in feasible
        for point in (inside, inside + 0.01 * rng.normal(size=N), u):
            x = cvx.cvxpy().Variable(N)
            limits = feasible.constraints(x)
            x.value = point
            violation = max((float(np.max(limit.violation())) for limit in limits), default=0.0)
            assert feasible.contains(point) == (violation <= 1e-6), (point, violation)


@EVERY
def test_a_tolerance_is_relative_and_not_exceeded(name):
    feasible, u = sets(N)[name], np.array([9.0, -9.0, 9.0, 8.0])
    inside = project(u, feasible)
    if isinstance(feasible, Reals):
        assert [1.0, math.inf] not in feasible
        return
    outside = inside + 1e-4 * (u - inside) / np.linalg.norm(u - inside)
    assert inside in feasible
    assert outside not in feasible
    assert not feasible.contains(outside, 1e-6)
    assert feasible.contains(outside, 1e-2)


@pytest.mark.parametrize("feasible", [Simplex(1e-6), l2_ball(1e-6), Box(1e9, 2e9), HalfSpace([1e9, 0.0], 1e9)], ids=str)
def test_a_tolerance_grows_and_shrinks_with_the_set(feasible):
    inside = project([0.0, 0.0], feasible) if isinstance(feasible, Box) else project([9.0, 9.0], feasible)
    assert inside * (1 - 1e-9) in feasible
    assert inside * (1 + 1e-9) in feasible
    wrong = inside * (1 - 1e-5) if isinstance(feasible, Box) else inside * (1 + 1e-5)
    assert wrong not in feasible


@pytest.mark.parametrize(
    "feasible",
    [
        Box(-1e-9, 1e-9),
        Box([0.0, -1e-9], [1.0, 1e-9]),
        Box(0.0, 1e-9),
        HalfSpace([1.0, 1.0], 1e-9),
        Affine([[1.0, 1.0]], [1e-9]),
        Polyhedron([[1.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], [1e-9, 0.0, 0.0]),
        Simplex(1e-9),
        l1_ball(1e-9),
        l2_ball(1e-9, center=[1.0, 1.0]),
    ],
    ids=str,
)
def test_points_far_outside_of_a_small_set_are_not_in_it(feasible):
    middle = np.ones(2) if isinstance(feasible, Ball) and np.any(feasible.center) else np.zeros(2)
    assert project(middle + 0.6e-9, feasible) in feasible
    assert middle + 1.01e-9 not in feasible
    assert middle + 1e-7 not in feasible


@pytest.mark.parametrize("feasible", [Box(0.0, math.inf), Polyhedron(A=-np.eye(2), b=np.zeros(2))], ids=str)
def test_a_tolerance_of_a_cone_is_relative_to_the_point(feasible):
    for size in (1e-12, 1.0, 1e12):
        assert [size, -1e-9 * size] in feasible
        assert [size, -1e-5 * size] not in feasible


@pytest.mark.parametrize("name", [name for name, s in sets(N).items() if s.rotatable])
def test_a_rotated_set_has_the_rotated_points(name):
    feasible, rng = sets(N)[name], np.random.default_rng(3)
    basis, _ = np.linalg.qr(rng.normal(size=(N, N)))
    turned = feasible.rotated(basis)
    for u in 2 * rng.normal(size=(20, N)):
        assert np.allclose(project(basis.T @ u, turned), basis.T @ project(u, feasible), atol=1e-9)


@EVERY
def test_support_is_the_maximum_of_a_linear_function(name):
    feasible, rng = sets(N)[name], np.random.default_rng(1)
    along = [np.ones(N), -np.ones(N), np.zeros(N)]  # finite for half-spaces and subspaces too
    for g in [*rng.normal(size=(5, N)), *along]:
        try:
            expected = float(g @ cvx.minimize(N, lambda x, g=g: -g @ x, feasible.constraints))
        except Unbounded:
            expected = math.inf
        assert feasible.support(g) == pytest.approx(expected, abs=1e-6)


@EVERY
def test_radius_and_diameter_bound_all_points_and_pairs(name):
    feasible, rng = sets(N)[name], np.random.default_rng(2)
    points = [project(10 * u, feasible) for u in np.vstack([np.eye(N), -np.eye(N), rng.normal(size=(6, N))])]
    longest = max(np.linalg.norm(p) for p in points)
    farthest = max(np.linalg.norm(p - q) for p in points for q in points)
    assert longest <= feasible.largest_norm(N) * (1 + 1e-7)
    assert farthest <= feasible.diameter(N) * (1 + 1e-7)


@pytest.mark.parametrize(
    "name", ["Box", "L∞ ball", "L2 ball", "L2 ball, center", "L1 ball", "L1 ball, center", "Simplex"]
)
def test_the_largest_norm_and_diameter_are_attained(name):
    feasible = sets(N)[name]
    far = [project(1e3 * u, feasible) for u in (*np.eye(N), *-np.eye(N))]
    center = getattr(feasible, "center", None)
    if np.any(center) and name.startswith("L2"):
        far.append(project(1e3 * center, feasible))
    if name in ("Box", "L∞ ball"):
        far = [
            project(1e3 * np.array(signs), feasible)
            for signs in np.ndindex(*(2,) * N)
            for signs in [np.array(signs) * 2 - 1]
        ]
    assert max(np.linalg.norm(p) for p in far) == pytest.approx(feasible.largest_norm(N))
    farthest = max(np.linalg.norm(p - q) for p in far for q in far)
    assert farthest == pytest.approx(feasible.diameter(N), rel=0.05 if "center" in name else 1e-6)


@FAST
@given(u=vectors, v=vectors)
def test_projection_is_nearest_idempotent_and_does_not_expand(name, u, v):
    feasible = sets(N)[name]
    p, q = project(u, feasible), project(v, feasible)
    assert np.allclose(project(p, feasible), p, atol=1e-9)
    assert np.linalg.norm(p - q) <= np.linalg.norm(u - v) + 1e-9
    assert (u - p) @ (q - p) <= 1e-8  # the obtuse angle that characterizes a projection


def test_intersections_simplify():
    ball = l2_ball(1.0)
    assert isinstance(intersect(), Reals)
    assert intersect(ball) is ball
    assert intersect(Reals(), ball) is ball
    nested = intersect(intersect(ball, Simplex()), Box(0, 1), Box([0, 0.2], 2))
    assert isinstance(nested, Intersection)
    assert [type(m).__name__ for m in nested.members] == ["Box", "Ball", "Simplex"]
    assert nested.on_simplex
    assert nested.dimension == 2


def test_intersections_are_no_larger_than_their_smallest_member():
    both = intersect(l2_ball(0.6), Simplex(), Box(-1, 1))
    assert both.largest_norm(3) == 0.6
    assert both.diameter(3) == 1.2
    wedge = intersect(HalfSpace([1.0, 0.0], 1.0), HalfSpace([0.0, 1.0], 2.0))
    assert wedge.support(np.array([1.0, 1.0])) == pytest.approx(3.0)
    assert wedge.support(np.array([1.0, -1.0])) == math.inf
    assert not wedge.on_simplex


def test_half_spaces_and_subspaces_are_bounded_in_their_normals_alone():
    half, normal = HalfSpace([1.0, -2.0], 3.0), np.array([1.0, -2.0])
    assert half.support(2 * normal) == pytest.approx(6.0)
    assert half.support(-normal) == math.inf
    assert half.support(np.array([1.0, -1.999])) == math.inf
    line = Affine([[2.0, -4.0]], [6.0])
    assert line.support(2 * normal) == pytest.approx(6.0)
    assert line.support(-normal) == pytest.approx(-3.0)
    assert line.support(np.array([1.0, -1.999])) == math.inf
    assert line.diameter(2) == line.largest_norm(2) == half.diameter(2) == half.largest_norm(2) == math.inf
    assert Affine(np.eye(2), [3.0, 4.0]).diameter(2) == 0


def test_a_polyhedron_keeps_its_equations_and_both_sides_of_its_inequalities():
    flow = Polyhedron(A=-np.eye(3), b=np.full(3, 2.0), C=[[1.0, 1.0, 0.0], [1.0, 0.0, -1.0]], d=[1.0, 0.0])
    assert [0.5, 0.5, 0.5] in flow
    for wrong in ([0.5, 0.4, 0.5], [0.5, 0.6, 0.5], [-3.0, 4.0, -3.0]):
        assert wrong not in flow
    assert np.allclose(project([9.0, 9.0, 9.0], flow), [3.0, -2.0, 3.0], atol=1e-6)
    assert flow.largest_norm(3) == pytest.approx(math.sqrt(3 * 9))
    assert Polyhedron(A=[[-1.0], [1.0]], b=[5.0, 1.0]).largest_norm(1) == pytest.approx(5.0)
    assert Polyhedron(A=[[-1.0], [1.0]], b=[5.0, 1.0]).diameter(1) == pytest.approx(6.0)
    assert np.allclose(project([9.0, 1.0], Polyhedron(A=[[1.0, 0.0]], b=[2.0])), [2.0, 1.0], atol=1e-6)
    assert Simplex(2.0).largest_norm(3) == 2.0
    assert Simplex(2.0).diameter(3) == pytest.approx(2 * math.sqrt(2))
    assert Simplex(2.0).diameter(1) == 0


def test_an_affine_set_drops_redundant_rows():
    twice = Affine([[1.0, 1.0, 0.0], [2.0, 2.0, 0.0]], [1.0, 2.0])
    assert twice.matrix.shape == (1, 3)
    assert [0.25, 0.75, 9.0] in twice
    assert Affine(np.eye(2), [3.0, 4.0]).largest_norm(2) == pytest.approx(5.0)


def test_sets_copy_the_arrays_of_the_caller():
    upper = np.ones(2)
    box = Box(0, upper)
    upper[:] = 5
    assert [2.0, 2.0] not in box
    with pytest.raises(ValueError, match="read-only"):
        box.upper[0] = 7


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Box(1, 0), r"lower, upper: got \(1.0, 0.0\) at index 0, expected lower ≤ upper"),
        (lambda: Box([0, 3], [1, 2]), r"got \(3.0, 2.0\) at index 1"),
        (lambda: Box(math.inf, math.inf), "with a number between"),
        (lambda: Box([0, math.nan], 1), "lower: got nan at index 1, expected numbers or -inf"),
        (lambda: Box([0, 0], [1, 1, 1]), r"lower and upper: got shapes \[\(2,\), \(3,\)\], expected the same length"),
        (lambda: l2_ball(-1), "radius: got -1, expected a positive number"),
        (lambda: l1_ball(0), "radius: got 0, expected a positive number"),
        (lambda: l2_ball(math.nan), "radius: got nan"),
        (lambda: l2_ball(1, center=[math.inf]), "center: got inf at index 0, expected finite numbers"),
        (lambda: Simplex(-2), "total: got -2, expected a positive number"),
        (lambda: HalfSpace([0.0, 0.0], 1), "normal: got zeros"),
        (lambda: HalfSpace([1.0], math.nan), "offset: got nan, expected a finite number"),
        (lambda: Affine([[0.0, 0.0]], [0.0]), "matrix: got zeros"),
        (lambda: Affine([[1.0, 1.0], [1.0, 1.0]], [0.0, 1.0]), "contradict each other"),
        (lambda: Affine([[1.0, 1.0]], [0.0, 1.0]), "target: got shape"),
        (lambda: Polyhedron(), "expected inequalities, equations or both"),
        (lambda: Polyhedron(A=[[1.0]]), "A, b: got only one of the two"),
        (lambda: Polyhedron(A=[[1.0], [-1.0]], b=[-1.0, -1.0]), "no point satisfies"),
        (lambda: Intersection((Reals(),)), "members: got 1, expected at least two sets"),
        (lambda: Intersection((Box(0, [1, 1]), HalfSpace([1.0], 1))), r"members: got dimensions \[2, 1\]"),
        (lambda: intersect(Box(0, 1), Box(2, 3)), r"got \(2.0, 1.0\)"),
        (lambda: l1_ball(1).rotated(np.eye(2)), "check ``rotatable`` first"),
        (lambda: Ball(LINF, 1.0), "norm: got PNorm.*L1 or L2; the L∞ ball is linf_ball"),
        (lambda: linf_ball(-1), "radius: got -1, expected a positive number"),
        (lambda: linf_ball(1, [math.nan]), "center: got nan at index 0"),
        (lambda: Box(-math.inf, -math.inf), "with a number between"),
        (lambda: Polyhedron(A=[[1.0, 1.0]], b=[1.0], C=[[1.0]], d=[0.0]), "C: got shape.*a matrix with 2 columns"),
        (lambda: Polyhedron(C=[[1.0]]), "C, d: got only one of the two"),
        (lambda: Polyhedron(b=[1.0], C=[[1.0]], d=[1.0]), "A, b: got only one of the two"),
        (lambda: Polyhedron(A=[[1.0]], b=[1.0, 2.0]), r"b: got shape \(2,\), expected a vector of length 1"),
        (lambda: l2_ball(1, [0.0, 0.0]).support(np.ones(3)), "g: got shape"),
        (lambda: l2_ball(1, [0.0, 0.0]).contains(np.ones(1)), "x: got shape"),
        (lambda: HalfSpace([1.0, 1.0], 1).support(np.ones(1)), "g: got shape"),
        (lambda: HalfSpace([1.0, 1.0], 1).contains(np.ones(1)), "x: got shape"),
        (lambda: Affine([[1.0, 1.0]], [1.0]).support(np.ones(3)), "g: got shape"),
        (lambda: Affine([[1.0, 1.0]], [1.0]).contains(np.ones(3)), "x: got shape"),
        (lambda: Polyhedron(A=[[1.0, 1.0]], b=[1.0]).support(np.ones(3)), "g: got shape"),
        (lambda: Polyhedron(A=[[1.0, 1.0]], b=[1.0]).contains(np.ones(3)), "x: got shape"),
        (lambda: intersect(l2_ball(1, [0.0, 0.0]), Simplex()).support(np.ones(3)), "g: got shape"),
        (lambda: Box(0, [1, 1]).contains(np.ones(1)), "x: got shape"),
        (lambda: l2_ball(1).contains([math.nan]), "x: got nan at index 0"),
        (lambda: Box(0, [1, 1]).support(np.ones(3)), r"g: got shape \(3,\), expected a vector of length 2"),
    ],
)
def test_bad_sets_are_refused_with_a_sentence(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_an_empty_intersection_raises_when_it_is_used():
    empty = intersect(Simplex(), HalfSpace([1.0, 1.0], 0.5))
    with pytest.raises(Infeasible, match="no point"):
        project([0.0, 0.0], empty)


def test_sets_without_the_extra_name_it(monkeypatch):
    monkeypatch.setattr(cvx, "available", lambda: False)
    with pytest.raises(Unsupported, match=r"pip install 'forel\[cvx\]'"):
        Argmin(Euclidean(), feasible=sets(N)["Polyhedron"])


def test_a_set_of_the_users_own_plays_as_the_ball_that_it_is_and_refuses_what_it_cannot_do():
    ball = l2_ball(0.7)
    own = Oracle(lambda x: np.linalg.norm(x) - 0.7, lambda z, strength: project(-z / strength, ball))
    losses = [Linear(g) for g in np.random.default_rng(0).normal(size=(20, 3))]
    traces = [
        play(FTRL(InverseSqrt(0.5, 1.0), Euclidean(), "played", feasible=region), losses) for region in (ball, own)
    ]
    np.testing.assert_allclose(traces[0].points, traces[1].points, atol=1e-12)
    x = np.array([0.7, 0.0, 0.0])
    assert bound(traces[1], x).total == pytest.approx(bound(traces[0], x).total)
    assert bound(traces[1], 1.01 * x).void == "the comparator lies outside X"
    with pytest.raises(Unsupported, match=r"^feasible: an Oracle is no constraint for a solver"):
        play(FTRL(InverseSqrt(0.5, 1.0), Euclidean(), penalty=l1(0.1), feasible=own), losses)
    with pytest.raises(ValueError, match=r"^argmin\(z, strength\): got shape \(\), expected a vector of length 3"):
        play(FTRL(InverseSqrt(0.5, 1.0), Euclidean(), feasible=Oracle(np.max, lambda z, s: 0.0)), losses)
