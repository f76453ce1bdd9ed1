"""Bounds are void, with the round, where a point is not an argmin or a round was declared wrongly."""

import functools
import math
import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

from catalogue import ALGORITHMS, N
from forel.cvx import minimize
from forel.losses import Linear, quadratic_bound
from forel.theory.algorithms import (
    FTRL,
    Exact,
    Implicit,
    Linearized,
    MirrorDescent,
    QuadraticBound,
    Round,
    dual_averaging,
    ftrl_proximal,
)
from forel.theory.analysis import (
    bound,
    dual_averaging_formula,
    play,
    strong_ftrl_lemma,
    surrogate_regret,
    theorem_1,
    theorem_2,
    theorem_10,
    theorem_14,
    tuned_formula,
)
from forel.theory.analysis.streams import classification, quadratics, random_linear
from forel.theory.geometries import Diagonal, Entropy, Euclidean, FullMatrix, SquaredPNorm
from forel.theory.penalties import NONE, ElasticNet, Indicator, l1
from forel.theory.rates import Constant, DiagonalAdaGrad, InverseSqrt, MatrixAdaGrad, ScalarAdaGrad, ScaleFree
from forel.theory.regularizers import Regularizer
from forel.theory.sets import Box, Simplex, l1_ball, l2_ball
from forel.theory.weights import EveryRound, Once
from forel.validation import Unsupported


@dataclass(frozen=True)
class Wrong:
    """An algorithm whose points are changed in some rounds; its terms of the objective are correct."""

    right: Any
    change: Any  # (t, x_t) -> what is played instead

    def __getattr__(self, name):
        return getattr(object.__getattribute__(self, "right"), name)

    def play(self, state):
        return self.change(state.t + 1, state.x)

    def update(self, state, loss):
        return self.right.update(state._replace(x=self.play(state)), loss)

    def added(self, before, loss, after):
        return self.right.added(before._replace(x=self.play(before)), loss, after._replace(x=self.play(after)))


def test_a_last_point_that_is_right_does_not_make_a_bound_for_those_before_it():
    """Garbage in 49 of 50 rounds: the lemma's remainder at T = 50 is at most 0, and regret is many times the bound."""
    right = FTRL(InverseSqrt(0.5, 1), Euclidean(), feasible=l2_ball(1.0))
    losses = random_linear(2, 50, lipschitz=1.0)
    garbage = Wrong(right, lambda t, x: x if t in (1, 51) else losses[t - 1].g if t <= 50 else x)
    trace = play(garbage, losses)
    x = trace.points[-1]
    assert strong_ftrl_lemma(trace, x).remainder <= 1e-12
    formula = 0.5 * float(trace.squared_norms[0].sum()) + trace.stages[-2].regularizer(x)
    assert surrogate_regret(trace, x) > 2 * formula
    assert bound(trace, x).void.startswith("the point of round 2 is not an argmin: its objective is ")
    assert play(right, losses).suboptimality.tolist() == [0.0] * 51


KINDS = {
    "centered": dual_averaging(1.0, 1.0, l2_ball(1.0)),
    "proximal": ftrl_proximal(1.0, 1.0),
    "L1": FTRL(DiagonalAdaGrad(1.0, 1.0), Diagonal(), "played", penalty=l1(0.1), weights=EveryRound()),
    "matrix": FTRL(MatrixAdaGrad(1.0, 1.0), FullMatrix()),
    "entropy": FTRL(Constant(0.3), Entropy(), feasible=Simplex()),
    "mirror": MirrorDescent(Constant(0.3), Euclidean(), ElasticNet(0.1, 0.2), feasible=Box(-1, 1)),
    "mirror, entropy": MirrorDescent(Constant(0.3), Entropy(), feasible=Simplex()),
}


@pytest.mark.parametrize("wrong", [2, 17, 30, 31])
@pytest.mark.parametrize("name", KINDS)
def test_the_one_round_in_which_a_point_is_no_argmin_is_named(name, wrong):
    """Half way to another point of X, in one round; in those after it the algorithm goes on as it should from there."""
    other = np.eye(3)[0]
    changed = Wrong(KINDS[name], lambda t, x: (x + other) / 2 if t == wrong else x)
    trace = play(changed, random_linear(3, 30))
    assert not trace.suboptimality[: wrong - 1].any()
    assert trace.suboptimality[wrong - 1] > 1e-3
    limit = bound(trace, np.full(3, 1 / 3))
    assert limit.void.startswith(f"the point of round {wrong} is not an argmin: its objective is ")


def in_units(loss, unit):
    """Algorithms for losses of size ``loss`` and points of size ``unit``, and a point of size ``unit`` in every set."""
    slope, weights = loss / unit, EveryRound()
    elastic = ElasticNet(0.1 * slope, 0.2 * slope / unit)
    return {
        "centered": dual_averaging(unit, slope, l2_ball(unit)),
        "proximal": ftrl_proximal(unit, slope),
        "L1": FTRL(DiagonalAdaGrad(unit, slope), Diagonal(), "played", penalty=l1(0.1 * slope), weights=weights),
        "L1 ball": FTRL(DiagonalAdaGrad(unit), Diagonal(), "played", feasible=l1_ball(unit, [unit / 5, 0, unit / 5])),
        "matrix": FTRL(MatrixAdaGrad(unit, slope), FullMatrix()),
        "solver": FTRL(MatrixAdaGrad(unit, slope), FullMatrix(), feasible=Box(-unit, unit)),
        "entropy": FTRL(Constant(0.3 / slope), Entropy(), feasible=Simplex(unit)),
        "mirror": MirrorDescent(Constant(0.3 * unit / slope), Euclidean(), elastic, feasible=Box(-unit, unit)),
        "mirror, entropy": MirrorDescent(Constant(0.3 / slope), Entropy(), feasible=Simplex(unit)),
    }


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("loss", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("name", in_units(1.0, 1.0))
def test_rounding_voids_no_bound_and_a_millionth_of_the_bound_does_in_all_units(name, loss, unit):
    """A point whose objective is 1e-6 of the bound above its minimum, in one round of thirty; all is scaled."""
    right, middle = in_units(loss, unit)[name], np.full(3, unit / 3)
    losses = [Linear(f.g * (loss / unit)) for f in random_linear(3, 30)]
    trace = play(right, losses)
    of_one = game_in_units_of_one(name)
    np.testing.assert_allclose(trace.points / unit, of_one.points, atol=1e-6)
    assert bound(trace, middle).total == pytest.approx(loss * bound(of_one, middle / unit).total, rel=1e-6)
    excess, objective, best = 1e-6 * bound(trace, middle).total, trace.stages[15].objective, trace.points[16]

    def change(t, x):
        return x + step * (middle - x) if t == 17 else x

    step = brentq(lambda s: (objective(best + s * (middle - best)) - objective(best)) / excess - 1, 0.0, 1.0)
    wrong = bound(play(Wrong(right, change), losses), middle)
    assert wrong.void.startswith("the point of round 17 is not an argmin: its objective is ")


@functools.cache
def game_in_units_of_one(name):
    return play(in_units(1.0, 1.0)[name], random_linear(3, 30))


def test_a_point_that_is_zero_but_for_rounding_is_an_argmin():
    """All terms of the objective vanish there, so that rounding is not small relative to them."""
    for right in (KINDS["centered"], KINDS["L1"], KINDS["mirror"]):
        losses = [Linear([1.0, 0.0, 0.0]), Linear([-1.0, 0.0, 0.0]), Linear([0.0, 1.0, 0.0])]
        rounded = play(Wrong(right, lambda t, x: x + 5e-17), losses)
        assert not bound(rounded, np.zeros(3)).void


def test_points_outside_of_x_are_no_argmins_however_low_the_objective_is_there():
    for right in (KINDS["proximal"], FTRL(Constant(1.0), Euclidean(), penalty=Indicator(Box(-1, 1)))):
        trace = play(Wrong(right, lambda t, x: 5 * x if t == 4 else x), [Linear([1.0, 2.0])] * 6)
        assert trace.suboptimality[3] == math.inf
        assert bound(trace, np.zeros(2)).void == (
            "the point of round 4 is not an argmin: it lies outside X, or its objective has no minimum"
        )


def test_suboptimality_is_the_objective_less_its_minimum_by_the_solver():
    """The reference: each round's objective, written for the solver, at the point that was played and at its argmin."""
    penalty = ElasticNet(0.1, 0.3)
    right = FTRL(
        DiagonalAdaGrad(1.0, 1.0), Diagonal(), "played", penalty=penalty, weights=EveryRound(), feasible=Box(-1, 1)
    )
    trace = play(Wrong(right, lambda t, x: np.clip(x + (0.3 if t % 3 == 0 else 0.0), -1, 1)), random_linear(3, 9))
    for t, (stage, x) in enumerate(zip(trace.stages, trace.points[1:], strict=True), start=1):
        root, linear = np.sqrt(stage.regularizer.strength), stage.losses.g - stage.regularizer.linear

        def objective(u, root=root, linear=linear, t=t):
            return linear @ u + t * penalty.expression(u) + Diagonal().expression(root, u)

        best = minimize(3, objective, Box(-1, 1).constraints)
        expected = stage.objective(x) - stage.objective(best)
        assert trace.suboptimality[t] == pytest.approx(expected, abs=1e-9)
    assert (trace.suboptimality > 0.01).sum() == 3


def test_suboptimality_of_exact_losses_is_found_by_the_solver():
    exact = FTRL(InverseSqrt(0.5, 1), Euclidean(), surrogate=Exact(), feasible=Box(-2, 2))
    assert not play(exact, classification(2, 6)).suboptimality.any()
    assert not play(exact, quadratics(2, 6)).suboptimality.any()
    wrong = play(Wrong(exact, lambda t, x: x + (0.1 if t == 5 else 0.0)), classification(2, 6))
    assert np.flatnonzero(wrong.suboptimality).tolist() == [4]


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_plays_argmins(name):
    algorithm = ALGORITHMS[name]
    surrogate = getattr(algorithm, "surrogate", Linearized())
    losses = random_linear(N, 40) if isinstance(surrogate, Linearized) else quadratics(N, 40)
    try:
        trace = play(algorithm, losses)
        _ = trace.added
    except Unsupported:
        return  # the survey does not cover it
    assert not trace.suboptimality.any()


@pytest.mark.parametrize("geometry", [Euclidean(), Entropy(), SquaredPNorm(1.5)], ids=str)
def test_every_point_is_an_argmin_of_the_empty_objective(geometry):
    """r_0 = 0: a rate that counts gradients has no strength before the first."""
    region = Simplex() if geometry == Entropy() else l2_ball(1.0)
    for make in (FTRL, MirrorDescent):
        options = {"center": "played"} if make is FTRL else {}
        trace = play(make(ScalarAdaGrad(1.0), geometry, feasible=region, **options), random_linear(3, 5))
        assert not trace.suboptimality.any()
        assert surrogate_regret(trace, trace.points[-1]) <= bound(trace, trace.points[-1]).total + 1e-12


def test_formulas_are_void_as_well():
    """Garbage, and updates of which the survey proves nothing, at the rate that the formula is for."""
    losses, x = random_linear(2, 20), np.array([0.6, 0.8])
    garbage = play(Wrong(dual_averaging(1.0, 1.0), lambda t, x: x + 1 if t == 7 else x), losses)
    assert dual_averaging_formula(garbage, x, 1.0, 1.0).void.startswith("the point of round 7 is not an argmin")
    implicit = play(Implicit(Constant(20**-0.5), Euclidean()), losses)
    assert tuned_formula(implicit, x, 1.0, 1.0, 20).void.startswith("the survey proves no bound for implicit updates")


def test_an_algorithm_that_only_claims_to_be_proximal_has_no_proximal_bound():
    """Centered AdaGrad that calls itself proximal: its points are argmins, but Theorem 10 is not about them."""

    @dataclass(frozen=True)
    class Misdeclared(Wrong):
        proximal: bool = True

    centered = FTRL(DiagonalAdaGrad(1.0), Diagonal(), feasible=Box(-1, 1))
    trace = play(
        Misdeclared(centered, lambda t, x: x), lambda t, x: Linear([1.0 if x[0] >= 0 else -1.0]), rounds=40, n=1
    )
    assert not trace.suboptimality.any()
    for theorem in (bound, theorem_2, theorem_10, theorem_14):
        assert theorem(trace, np.ones(1)).void == (
            "the regularizer of round 2 is not 0 and smallest at x_2, so that it is not proximal; use theorem_1"
        )


def test_an_objective_without_a_minimum_is_no_proof():
    """A user-defined algorithm that never moves, and claims to add no strength."""

    @dataclass(frozen=True)
    class Stays:
        rate = Constant(1.0)
        penalty, weights, feasible, proximal = NONE, Once(), KINDS["matrix"].feasible, True

        def init(self, n):
            return np.zeros(n)

        def play(self, state):
            return state

        def update(self, state, loss):
            return state

        def initial(self, state):
            return Regularizer.zero(Euclidean(), state.size)

        def added(self, before, loss, after):
            return Round(loss.g, loss, 0.0, NONE, Regularizer.zero(Euclidean(), before.size))

    trace = play(Stays(), [Linear([1.0]), Linear([1.0])])
    assert trace.suboptimality.tolist() == [0.0, math.inf, math.inf]
    assert bound(trace, np.ones(1)).void


@dataclass(frozen=True)
class Declares(Wrong):
    """An algorithm that plays as it should and declares something else of the rounds in which ``edit`` changes them."""

    edit: Any = None  # (round, t) -> the round to declare

    def added(self, before, loss, after):
        return self.edit(self.right.added(before, loss, after), after.t)


def declares(name, edit, only=7):
    """Play a game in which one round is declared wrongly."""
    changed = Declares(RIGHT[name], lambda t, x: x, lambda r, t: edit(r) if t == only else r)
    return play(changed, quadratics(3, 20) if name == "exact" else classification(3, 20))


RIGHT = KINDS | {
    "exact": FTRL(InverseSqrt(0.5, 1), Euclidean(), surrogate=Exact(), feasible=Box(-2, 2)),
    "observes": FTRL(ScaleFree(1.0), Diagonal(), "played"),
}


def more(r, factor=1 + 1e-6):
    """Another regularizer of the strength times a factor, around the same point."""
    return Regularizer(r.geometry, factor * r.strength, factor * r.linear, factor * r.constant, r.center)


MISDECLARED = {
    "a loss that is lower where it was played": (
        "proximal",
        lambda r: r._replace(loss=Linear(r.loss.g, r.loss.constant - 1e-6)),
        "the loss declared for round 7 is .* at x_7, where that of the round is ",
    ),
    "a gradient of another size": (
        "centered",
        lambda r: r._replace(g=r.g * (1 - 1e-6)),
        "the gradient declared for round 7 is not that of its loss at x_7",
    ),
    "a penalty that there is not": (
        "proximal",
        lambda r: r._replace(weight=1e-6, penalty=ElasticNet(0.0, 1.0)),
        "the penalty declared for round 7 is not the algorithm's α_7Ψ",
    ),
    "another weight": (
        "L1",
        lambda r: r._replace(weight=r.weight * (1 + 1e-6)),
        "the penalty declared for round 7 is not the algorithm's α_7Ψ",
    ),
    "the tangent of a penalty at another point": (
        "mirror",
        lambda r: r._replace(penalty=Linear(r.penalty.g, r.penalty.constant - 1e-3)),
        "the penalty declared for round 7 is not the algorithm's α_7Ψ",
    ),
    "more strength than there is": (
        "observes",
        lambda r: r._replace(strength=1e3 * r.strength),
        "the strength declared for round 7 is more than that of the regularizers",
    ),
}


@pytest.mark.parametrize("case", MISDECLARED)
def test_a_round_that_was_declared_wrongly_voids_bounds_and_is_named(case):
    name, edit, reason = MISDECLARED[case]
    right = play(RIGHT[name], classification(3, 20))
    assert not bound(right, np.full(3, 0.1)).void
    trace = declares(name, edit)
    assert re.match(reason, trace.misdeclared)
    assert bound(trace, np.full(3, 0.1)).void


def test_a_lower_bound_of_the_loss_that_is_above_it_at_the_comparator_voids_the_bound_there():
    """The losses are linear; a curvature that they do not have makes regret small."""
    losses = random_linear(3, 20)

    @dataclass(frozen=True)
    class Curved(QuadraticBound):
        def lower_bound(self, loss, x):
            return quadratic_bound(loss, x, curvature=0.5)

    trace = play(FTRL(InverseSqrt(0.5, 1), Euclidean(), surrogate=Curved(), feasible=l2_ball(1.0)), losses)
    assert not trace.suboptimality.any()
    assert bound(trace, np.array([1.0, 0.0, 0.0])).void == (
        "the loss declared for round 1 is above that of the round at the comparator"
    )


def test_a_regularizer_around_another_point_is_not_proximal_however_small_it_is_at_the_point_played():
    def elsewhere(r):
        shifted = Regularizer.around(Euclidean(), r.regularizer.strength, r.regularizer.center + 1e-3)
        least = shifted(r.regularizer.center)
        return r._replace(regularizer=replace(shifted, constant=shifted.constant - least, least=-least))

    trace = declares("proximal", elsewhere)
    assert trace.not_proximal == ("the regularizer of round 7 is not 0 and smallest at x_7, so that it is not proximal")
    assert theorem_2(trace, np.zeros(3)).void.startswith(trace.not_proximal)


def test_a_negative_regularizer_is_no_proof():
    def negative(r):
        return r._replace(regularizer=replace(r.regularizer, least=-0.5, constant=r.regularizer.constant - 0.5))

    trace = declares("centered", negative)
    assert trace.misdeclared == "the regularizer of round 7 is negative"
    assert theorem_1(trace, np.zeros(3)).void == trace.misdeclared


@pytest.mark.parametrize("center", [True, False, 1, "centered", None])
def test_center_takes_only_the_names_of_two_points(center):
    with pytest.raises(ValueError, match=r"^center: got .*, expected 'first' for regularizers around x_1, or 'played'"):
        FTRL(Constant(1.0), Euclidean(), center)
