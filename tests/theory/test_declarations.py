"""Whatever an algorithm declares of its rounds, a bound that is printed holds: seven false declarations."""

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forel.losses import Linear
from forel.theory.algorithms import FTRL, dual_averaging, ftrl_proximal, greedy_projection
from forel.theory.analysis import bound, play
from forel.theory.analysis.streams import classification, random_linear
from forel.theory.geometries import Euclidean, FullMatrix
from forel.theory.penalties import squared_l2
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
