"""Whatever an algorithm declares of its rounds, a bound that is printed holds: seven false declarations."""

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forel.losses import Convex, Linear
from forel.theory.algorithms import (
    FTRL,
    Bound,
    MirrorDescent,
    dual_averaging,
    exponentiated_gradient,
    ftrl_proximal,
    greedy_projection,
)
from forel.theory.analysis import bound, play
from forel.theory.analysis.streams import classification, random_linear
from forel.theory.argmin import Argmin
from forel.theory.geometries import Euclidean, FullMatrix
from forel.theory.penalties import l1, squared_l2
from forel.theory.rates import Constant, MatrixAdaGrad
from forel.theory.regularizers import Regularizer
from forel.theory.sets import Affine, Box, HalfSpace, Polyhedron, Simplex, l2_ball


@dataclass(frozen=True)
class Claims:
    """An algorithm that plays as ``right`` does, and declares what ``edits`` make of it: {attribute: value}."""

    right: Any
    edits: Any
    edit: Any = None  # (round, t) -> round
    start: Any = None  # r_0 -> r_0

    def __getattr__(self, name):
        edits = object.__getattribute__(self, "edits")
        return edits[name] if name in edits else getattr(object.__getattribute__(self, "right"), name)

    def initial(self, state):
        r = self.right.initial(state)
        return self.start(r) if self.start else r

    def added(self, before, loss, after):
        declared = self.right.added(before, loss, after)
        return self.edit(declared, after.t) if self.edit else declared


class Flat:
    """A linear loss whose subgradient is declared to be 0."""

    strong_convexity = 0.0

    def __init__(self, loss):
        self.loss, self.expression = loss, loss.expression

    def __call__(self, x):
        return self.loss(x)

    def subgradient(self, x):
        return np.zeros_like(x)


def tilted(r, t):
    """A regularizer that is 0 at x_t, with a slope there: optimism, or anything else, as a linear function."""
    slope = 0.2 * np.array([1.0, -1.0, 0.5])
    linear = r.regularizer.linear + slope
    constant = r.regularizer.constant + float(slope @ r.regularizer.center)
    return r._replace(regularizer=Regularizer(Euclidean(), r.regularizer.strength, linear, constant))


CENTERED, PROXIMAL = dual_averaging(0.3, 1.0, l2_ball(1.0)), ftrl_proximal(1.0, 1.0)
FALSE = {
    "r_0 − 1000": (CENTERED, {}, None, lambda r: replace(r, constant=-1e3, least=-1e3), "the regularizer r_0 is neg"),
    "no gradient": (
        PROXIMAL,
        {},
        lambda r, t: r._replace(g=0 * r.g, loss=Flat(r.loss)),
        None,
        r"the objective falls more in round 1 than",
    ),
    "strength": (
        PROXIMAL,
        {},
        lambda r, t: r._replace(strength=1e9),
        None,
        "the strength declared for round 1 is more",
    ),
    "observes": (
        FTRL(Constant(1.0), Euclidean(), feasible=l2_ball(1.0)),
        {"observes": True, "proximal": True},
        lambda r, t: r._replace(regularizer=Regularizer.around(Euclidean(), 4.0, np.zeros(3))),
        None,
        "the point of round 2 is not an argmin|the objective falls more in round",
    ),
    "penalty": (
        CENTERED,
        {},
        lambda r, t: r._replace(weight=1.0, penalty=squared_l2(9.0)),
        None,
        "the penalty declared for round 1 is not",
    ),
    "linear regularizer": (
        CENTERED,
        {},
        tilted,
        None,
        "the point of round 2 is not an argmin|the regularizer of round 1 is negative",
    ),
    "proximal, but for the slope": (PROXIMAL, {}, tilted, None, "the regularizer of round . is not 0 and smallest"),
}


@pytest.mark.parametrize("name", FALSE)
def test_a_false_declaration_voids_the_bound_and_names_the_round(name):
    right, edits, edit, start, reason = FALSE[name]
    losses, x = classification(3, 30), np.array([0.5, 0.5, 0.0])
    assert not bound(play(right, losses), x).void
    found = bound(play(Claims(right, edits, edit, start), losses), x).void
    assert re.match(reason, found), found


def test_optimism_written_as_a_linear_regularizer_is_void():
    """Hints of the wrong sign, as r_t(x) = (m_{t+1} − m_t)·x: regret is three times what Theorem 1 would print."""

    @dataclass(frozen=True)
    class Optimist:
        right: Any = CENTERED
        observes = False

        def __getattr__(self, name):
            return getattr(object.__getattribute__(self, "right"), name)

        def update(self, state, loss):
            after, sign = self.right.update(state, loss), 1.0 if state.t == 0 else 2.0
            linear = after.linear + sign * loss.g  # m_{t+1} = −g_t
            x = self.right.argmin(after.total.g - linear, after.strength)
            return after._replace(linear=linear, x=x)

        def added(self, before, loss, after):
            r = Regularizer.around(Euclidean(), after.strength - before.strength, np.zeros(3))
            slope = Regularizer(Euclidean(), 0.0, after.linear - before.linear, 0.0)
            return self.right.added(before, loss, after)._replace(regularizer=r + slope)

    trace = play(Optimist(), [Linear([(-1.0) ** t, 0.0, 0.0]) for t in range(40)])
    assert bound(trace, np.array([1.0, 0.0, 0.0])).void == "the regularizer of round 1 is negative"


REPEATED, FAR = [Linear([1.0, 0.0, 0.0])] * 30, np.array([-1000.0, 0.0, 0.0])


@dataclass(frozen=True)
class Everywhere:
    """A set whose ``contains`` accepts all points, also those that it has no constraint for."""

    right: Any

    def __getattr__(self, name):
        return getattr(object.__getattribute__(self, "right"), name)

    def contains(self, x, tolerance=0.0):
        return True


@pytest.mark.parametrize(
    "algorithm",
    [
        FTRL(Constant(100.0), Euclidean(), feasible=Everywhere(l2_ball(1.0))),
        FTRL(Constant(100.0), Euclidean(), "played", feasible=Everywhere(l2_ball(1.0))),
        MirrorDescent(Constant(100.0), Euclidean(), feasible=Everywhere(l2_ball(1.0))),
    ],
    ids=["centered", "proximal", "mirror"],
)
def test_a_set_that_contains_what_it_does_not_hold_voids_the_bounds_of_comparators_there(algorithm):
    trace = play(algorithm, REPEATED)
    assert trace.regret(FAR) > 29_000
    assert bound(trace, FAR).void
    assert trace.regret(-FAR / 1000) <= bound(trace, -FAR / 1000).total
    if isinstance(algorithm, MirrorDescent):
        path = np.tile(FAR, (30, 1))
        assert re.match("the comparator of round 1 lies outside X", bound(trace, path).void)
        assert trace.regret(path / 1000) <= bound(trace, path / 1000).total


class Hollow(Regularizer):
    """A regularizer that is 0 at one point alone."""

    def __call__(self, x):
        return 0.0 if np.array_equal(x, FAR) else super().__call__(x)

    def __add__(self, other):
        return Hollow(**vars(super().__add__(other)))


@pytest.mark.parametrize("rounds", [1, 30])
def test_a_regularizer_that_is_smaller_at_the_comparator_than_its_strength_allows_is_void(rounds):
    right = FTRL(Constant(1.0), Euclidean())
    edit = lambda r, t: r._replace(regularizer=Hollow(**vars(r.regularizer)))  # noqa: E731
    trace = play(Claims(right, {}, edit, lambda r: Hollow(**vars(r))), REPEATED[:rounds])
    assert bound(trace, FAR).void.startswith("the comparator lies outside X, or what was declared does not hold")


def test_a_norm_that_is_too_large_is_void_also_where_the_last_regularizer_hides_it():
    """After one round of a huge r_1 the objective has not fallen, but Theorem 1 has no r_1."""

    @dataclass(frozen=True)
    class Stiff(Euclidean):
        def norm(self, strength):
            return super().norm(1e8 * strength)

    @dataclass(frozen=True)
    class Last:
        shape = "scalar"

        def init(self, n):
            return 1.0

        def update(self, state, g, curvature=0.0):
            return 1e12

        def strength(self, state):
            return state

    one = [Linear([1.0, 0.0])]
    assert not bound(play(FTRL(Last(), Euclidean()), one), [-1.0, 0.0]).void
    trace = play(FTRL(Last(), Stiff()), one)
    assert trace.regret([-1.0, 0.0]) == 1.0
    assert bound(trace, [-1.0, 0.0]).void


@pytest.mark.parametrize(
    "declared",
    [np.eye(3), np.nan, np.inf, np.full((3, 3), np.nan), np.diag([1.0, 1.0, -5.0])],
    ids=["matrix", "nan", "inf", "nan matrix", "indefinite"],
)
@pytest.mark.parametrize("matrices", [False, True])
def test_a_strength_that_is_none_is_void_and_no_error(declared, matrices):
    right = FTRL(MatrixAdaGrad(1.0, 1.0), FullMatrix(), feasible=l2_ball(1.0)) if matrices else PROXIMAL
    trace = play(Claims(right, {}, lambda r, t: r._replace(strength=declared)), classification(3, 5))
    found = bound(trace, np.zeros(3))
    assert found.void or (matrices and np.array_equal(declared, np.eye(3)))


@pytest.mark.parametrize("values", [np.full(30, np.nan), np.ones(1)], ids=["nan", "short"])
def test_a_bound_of_its_own_that_is_no_number_for_each_round_is_void(values):
    own = {"bound": lambda trace, x: Bound("own", values, np.zeros(values.size))}
    assert bound(play(Claims(CENTERED, own), REPEATED), np.zeros(3)).void.startswith("it is not a number")


def test_gradients_that_are_none_void_the_bound_of_a_path():
    steep = Convex(lambda x: 10.0 * x[0], lambda x: np.array([0.1, 0.0, 0.0]))
    trace = play(MirrorDescent(Constant(0.01), Euclidean(), feasible=l2_ball(1.0)), [steep] * 30, n=3)
    path = np.tile([-1.0, 0.0, 0.0], (30, 1))
    assert trace.regret(path) > 200
    assert bound(trace, path).void.startswith("the loss declared for round 1 is above that of the round")


def rescaled(r, factor, shift, slope):
    """A regularizer of another strength, with a constant and a slope that it does not have."""
    strength, linear = factor * np.asarray(r.strength), r.linear * factor + slope
    strength = float(strength) if strength.ndim == 0 else strength
    return Regularizer(r.geometry, strength, linear, r.constant * factor + shift)


EDITS = {
    "strength": lambda r, v, g: r._replace(regularizer=rescaled(r.regularizer, 1 + v, 0.0, 0.0)),
    "constant": lambda r, v, g: r._replace(regularizer=rescaled(r.regularizer, 1.0, -v, 0.0)),
    "slope": lambda r, v, g: r._replace(regularizer=rescaled(r.regularizer, 1.0, 0.0, v * g)),
    "gradient": lambda r, v, g: r._replace(g=r.g * (1 - v)),
    "norm": lambda r, v, g: r._replace(strength=np.asarray(r.regularizer.strength) * 0 + 10 * v),
    "loss": lambda r, v, g: r._replace(loss=Linear(r.loss.g, r.loss.constant - v)),
    "other loss": lambda r, v, g: r._replace(g=r.g - v * g, loss=Linear(r.g - v * g, r.loss.constant)),
    "hint": lambda r, v, g: r._replace(hint=v * r.g),
}


@given(st.integers(0, 10_000), st.sampled_from(list(EDITS)), st.floats(1e-6, 3.0), st.integers(0, 12))
@settings(max_examples=150, deadline=None)
def test_whatever_is_declared_a_bound_that_is_printed_holds(seed, name, size, only):
    """Any of several edits, of any size, in one round or in all: void, or at least the regret that was measured."""
    rng = np.random.default_rng(seed)
    right = [CENTERED, PROXIMAL, dual_averaging(1.0, 1.0), greedy_projection(0.3, l2_ball(1.0))][seed % 4]
    g = rng.normal(size=3)

    def edit(r, t):
        return EDITS[name](r, size, g) if only in (0, t) else r

    trace = play(Claims(right, {}, edit), [Linear(v) for v in rng.normal(size=(12, 3)) + (seed % 3 == 0)])
    for x in (-trace.gradients.sum(axis=0), rng.normal(size=3), np.zeros(3)):
        x = x / max(1.0, np.linalg.norm(x))
        limit = bound(trace, x)
        assert limit.void or trace.regret(x) <= limit.total * (1 + 1e-5) + 1e-9, (name, limit)


@pytest.mark.parametrize("eta", [1e-9, 1e-6, 1e-3])
def test_rounding_of_large_strengths_voids_no_bound_of_mirror_descent(eta):
    """On the simplex a step's normal is a difference of gradients of the entropy, which are of size 1/η."""
    trace = play(exponentiated_gradient(eta), random_linear(4, 12))
    for x in np.eye(4):
        assert trace.regret(x) <= bound(trace, x).total


SIZE = 1e-9
THIN = [
    (Box(-SIZE, SIZE), [0.0, 0.0], [100 * SIZE, 0.0]),
    (HalfSpace([1.0, 0.0], SIZE), [0.0, 1e3], [100 * SIZE, 1e3]),
    (Affine([[1.0, 0.0]], [SIZE]), [SIZE, 1e3], [100 * SIZE, 1e3]),
    (Polyhedron(A=[[1.0, 0], [-1, 0], [0, 1], [0, -1]], b=[SIZE, SIZE, 1, 1]), [0.0, 1.0], [100 * SIZE, 1.0]),
]


@pytest.mark.parametrize(("feasible", "inside", "outside"), THIN, ids=lambda v: type(v).__name__)
def test_a_comparator_100_times_outside_of_a_thin_set_is_outside(feasible, inside, outside):
    assert feasible.contains(inside)
    assert not feasible.contains(outside)


def test_a_comparator_outside_by_less_than_a_solver_could_tell_has_no_bound_that_would_be_false():
    """All of the regret is against what 1e-7 of the set's distance from 0 buys."""
    thin = Polyhedron(A=[[1.0, 0], [-1, 0], [0, 1], [0, -1]], b=[1 + SIZE, -1.0, SIZE, SIZE])
    trace = play(FTRL(Constant(1e-9), Euclidean(), feasible=thin), [Linear([-1.0, 0.0])] * 9)
    outside = np.array([1 + 100 * SIZE, 0.0])
    assert thin.contains(outside)
    limit = bound(trace, outside)
    assert limit.void == "the comparator lies outside X" or trace.regret(outside) <= limit.total


@pytest.mark.parametrize("seed", range(12))
def test_matrix_adagrad_plays_on_collinear_gradients(seed):
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=rng.integers(2, 6))
    losses = [Linear(c * direction) for c in rng.normal(size=40)]
    trace = play(FTRL(MatrixAdaGrad(1.0), FullMatrix(), "played"), losses)
    x = -direction / np.linalg.norm(direction)
    assert trace.regret(x) <= bound(trace, x).total * (1 + 1e-9)


@pytest.mark.parametrize("strength", [1e6, 1e10])
def test_solver_programs_stay_on_the_simplex_whatever_the_strength(strength):
    tilt = squared_l2(1.0)
    trace = play(
        FTRL(Constant(1 / strength), Euclidean(), penalty=tilt, feasible=Simplex()), random_linear(3, 5), rounds=5
    )
    assert np.abs(trace.points.sum(axis=1) - 1).max() < 1e-9
    assert not bound(trace, np.eye(3)[0]).void


@pytest.mark.parametrize("algorithm", [CENTERED, PROXIMAL], ids=["centered", "proximal"])
def test_gradients_whose_squares_overflow_raise_no_overflow_error(algorithm):
    trace = play(algorithm, [Linear([1e155, 0.0]), Linear([-1e155, 0.0])])
    assert bound(trace, np.array([0.5, 0.0])).void.startswith("the square of the gradient of round 1 is too large")


@pytest.mark.parametrize("seed", range(4))
def test_projections_onto_a_polyhedron_through_the_start_have_a_bound(seed):
    """Points that no constraint moves are exact, and not as far from an equation as the solver leaves them."""
    rng = np.random.default_rng(seed)
    flow = Polyhedron(A=np.vstack([np.eye(4), -np.eye(4)]), b=np.full(8, 40.0), C=rng.normal(size=(1, 4)), d=[0.0])
    trace = play(greedy_projection(2.0, flow), [Linear(g) for g in rng.normal(size=(12, 4))])
    assert not trace.points[0].any()
    for x in (np.zeros(4), trace.points[-1]):
        assert trace.regret(x) <= bound(trace, x).total
    inside = Polyhedron(A=np.eye(3), b=np.ones(3))
    np.testing.assert_array_equal(
        Argmin(Euclidean(), l1(0.5), inside)(np.array([1.5, 0.2, 3.0]), 2.0), [-0.5, 0, -1.25]
    )
