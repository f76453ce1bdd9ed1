"""Every algorithm against adversaries: lemmas as equalities, bounds as inequalities."""

import functools
import math

import numpy as np
import pytest

from catalogue import ALGORITHMS, N
from forel.losses import (
    Linear,
)
from forel.theory.algorithms import (
    FTRL,
    Exact,
    Implicit,
    MirrorDescent,
    QuadraticBound,
    as_ftrl_proximal,
)
from forel.theory.analysis import (
    bound,
    conjugate_lemma,
    play,
    standard_ftrl_lemma,
    strong_ftrl_lemma,
    surrogate_regret,
    theorem_2,
    theorem_14,
)
from forel.theory.argmin import project
from forel.theory.geometries import Entropy
from forel.theory.norms import LINF
from forel.theory.rates import (
    DiagonalAdaGrad,
    MatrixAdaGrad,
    ScalarAdaGrad,
)
from forel.theory.sets import Reals
from forel.theory.weights import Given
from forel.validation import Unsupported
from tests.theory.games import combinations, curved, follows_the_player, random_gradients
from website.combinations import GEOMETRIES, penalties, sets

ROUNDS = 60


with_proof = pytest.mark.parametrize(
    "name", [name for name, a in ALGORITHMS.items() if not isinstance(a, Implicit) and not hasattr(a, "epochs")]
)


def alternating(t, x):
    return Linear((-1.0) ** t * np.eye(x.size)[0])


def spikes(t, x):
    return Linear(np.eye(x.size)[t % x.size] * (1.0 if t % 11 == 0 else 1e-3))


def one_coordinate(t, x):
    return Linear(np.eye(x.size)[-1] * (1 if t % 3 else -1))


ADVERSARIES = [random_gradients, follows_the_player, alternating, spikes, one_coordinate, curved]


every_adversary = pytest.mark.parametrize("adversary", ADVERSARIES, ids=lambda a: a.__name__)


@functools.cache
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
def test_every_point_minimizes_its_objective(name, adversary):
    """The oracle for wrong updates: h_{0:t}(x_{t+1}) ≤ h_{0:t}(x) in every round, at every feasible x."""
    trace = game(name, adversary, rounds=25)
    others = comparators(trace)
    for stage, x in zip(trace.stages, trace.points[1:], strict=True):
        assert trace.algorithm.feasible.contains(x)
        best = stage.objective(x)
        for other in others:
            for step in (1.0, 0.01):
                assert best <= stage.objective(x + step * (other - x)) + 1e-8 * (1 + abs(best))


@pytest.mark.parametrize("name", [n for n, a in ALGORITHMS.items() if isinstance(a, MirrorDescent)])
@every_adversary
def test_mirror_descent_keeps_the_tangent_of_a_penalty_at_the_next_point(name, adversary):
    """Below α_tΨ on all of X and equal to it at x_{t+1}: a subgradient of this round's penalty, and of no other's."""
    mirror = ALGORITHMS[name]
    for algorithm in (mirror, as_ftrl_proximal(mirror)):
        trace = play(algorithm, adversary, rounds=10, n=N)
        others = comparators(trace)
        for t, added in enumerate(trace.added, start=1):
            weight, following = mirror.weights(t), trace.points[t]
            assert added.penalty(following) == pytest.approx(weight * mirror.penalty(following), abs=1e-12)
            assert added.weight == 1
            for x in others:
                assert added.penalty(x) <= weight * mirror.penalty(x) + 1e-9


@with_proof
@every_adversary
def test_regret_is_below_the_bound_at_every_comparator(name, adversary):
    trace = game(name, adversary)
    unpenalized = not trace.penalty_values.any()
    for x in comparators(trace):
        for against in ("composite", "losses"):
            limit = bound(trace, x, against)
            if limit.void:
                assert "no strength" in limit.void, limit
                continue
            slack = 1e-9 * (1 + abs(limit.total))
            assert surrogate_regret(trace, x, against) <= limit.total + slack, (against, x)
            if against == "losses":
                assert trace.regret(x) <= trace.regret(x, linearized=True) + slack
            if trace.algorithm.proximal and unpenalized:
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


def kinds(parts):
    """FTRL centered and proximal, and Mirror Descent, with the same geometry, penalty and set."""
    g, p, s = parts
    geometry, penalty, feasible = GEOMETRIES[g], penalties(N)[p], sets(N)[s]
    rate = {"scalar": ScalarAdaGrad(1.0, 1.0), "diagonal": DiagonalAdaGrad(1.0, 1.0), "matrix": MatrixAdaGrad(1.0, 1.0)}
    rate = rate[geometry.shape]
    if geometry == Entropy():
        rate = ScalarAdaGrad(1.0, 1.0, LINF)
    yield FTRL(rate, geometry, "first", penalty=penalty, weights=Given([0.2, 0.1]), feasible=feasible)
    yield FTRL(rate, geometry, "played", penalty=penalty, weights=Given([0.2, 0.1]), feasible=feasible)
    yield MirrorDescent(rate, geometry, penalty, Given([0.2, 0.1]), feasible)


@pytest.mark.slow
@pytest.mark.parametrize("parts", combinations(), ids=", ".join)
def test_every_geometry_penalty_and_set_is_within_its_bound(parts):
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
