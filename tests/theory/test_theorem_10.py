"""Penalties in the bounds: the survey's Corollary 8 and Theorem 10 are false where Ψ is curved; what is true instead.

The oracle is a game in one dimension in plain Python, which knows nothing of forel: points from the closed form of
argmin b·x + λ1|x| + (a/2)x², regret at the comparator for which regret less bound is largest.
"""

import itertools

import numpy as np
import pytest

from forel.losses import Linear
from forel.theory.algorithms import FTRL, MirrorDescent
from forel.theory.analysis import bound, play, surrogate_regret, theorem_1, theorem_2, theorem_10, theorem_12
from forel.theory.analysis.gradient_norms import curvature_of
from forel.theory.geometries import Diagonal, Entropy, Euclidean, FullMatrix
from forel.theory.penalties import ElasticNet, GroupL2, Indicator, l1, squared_l2
from forel.theory.rates import Constant, DiagonalAdaGrad, MatrixAdaGrad, ScalarAdaGrad, Unregularized
from forel.theory.sets import Box, HalfSpace, Polyhedron, Reals, Simplex, intersect
from forel.theory.weights import EveryRound, Given, Once


def shrunk(b, l1, a):
    """Return argmin b·x + l1·|x| + (a/2)x²."""
    return -np.sign(b) * max(abs(b) - l1, 0.0) / a


class Game:
    """FTRL in one dimension with r_t = (σ_t/2)(x − c_t)² and αΨ, Ψ = λ1|x| + (λ2/2)x², all by hand."""

    def __init__(self, gradients, sigmas, alphas, l1, l2, proximal):
        self.psi = lambda x: l1 * abs(x) + l2 / 2 * x * x
        self.gradients, self.alphas, self.sigmas = gradients, alphas, sigmas
        self.totals, self.weights = np.cumsum(sigmas), np.concatenate([[0.0], np.cumsum(alphas)])
        self.points, self.centers, b = [0.0], [0.0], 0.0
        for t, g in enumerate(gradients, start=1):
            self.centers.append(self.points[-1] if proximal else 0.0)
            b += g - sigmas[t] * self.centers[-1]
            a = self.totals[t] + l2 * self.weights[t]
            self.points.append(shrunk(b, l1 * self.weights[t], a) if a else 0.0)
        last, lagging = len(gradients), 0 if proximal else 1
        pull = b + (0.0 if proximal else sigmas[last] * self.centers[last])
        self.upto = last + 1 - lagging
        # Regret less bound is −(g_{1:T}x + α_{1:T}Ψ + r_{0:T or T−1}) and a constant: largest at the argmin.
        a = self.totals[self.upto - 1] + l2 * self.weights[last]
        self.worst = shrunk(pull, l1 * self.weights[last], a) if a else 0.0
        lagged = self.totals[1 - lagging : last + 1 - lagging]
        self.corrected, self.printed = (lagged + l2 * weight for weight in (self.weights[:-1], self.weights[1:]))

    def regret(self, x):
        """Return Σ g_t x_t + α_tΨ(x_t) less the same at x."""
        rounds = zip(self.gradients, self.alphas, self.points, strict=False)
        return sum(g * (p - x) + alpha * (self.psi(p) - self.psi(x)) for g, alpha, p in rounds)

    def bound(self, x, strengths):
        """Return r_{0:T}(x), or r_{0:T−1}(x), plus ½Σ g_t²/strength_t."""
        regularizers = [s / 2 * (x - c) ** 2 for s, c in zip(self.sigmas, self.centers, strict=True)]
        return (
            sum(regularizers[: self.upto]) + sum(g * g / s for g, s in zip(self.gradients, strengths, strict=True)) / 2
        )


def random_games(count, seed):
    """Yield games whose penalties fall and whose gradients are random or go to and fro."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        rounds = int(rng.integers(1, 8))
        gradients = rng.normal(size=rounds) if rng.random() < 0.5 else (-1.0) ** np.arange(rounds)
        sigmas = np.concatenate([[rng.uniform(0.01, 1.0)], rng.random(rounds) * rng.integers(2)])
        alphas = -np.sort(-rng.random(rounds)) if rng.random() < 0.5 else np.ones(rounds)
        yield Game(
            gradients, sigmas, alphas, rng.random() * rng.integers(2), 10 ** rng.uniform(-1, 1), rng.random() < 0.5
        )


def test_corollary_8_as_printed_is_false_and_holds_in_the_norm_without_this_rounds_penalty():
    """φ_1 = (σ/2)x², ψ = gx, Ψ = (λ/2)x²: x_1 = 0, x_2 = −g/(σ + λ). With σ = 0, λ = 1: g²/2 left, 0 right."""
    for sigma, penalty, g in itertools.product((0.0, 0.1, 1.0), (1.0, 5.0), (1.0, -3.0)):
        after = -g / (sigma + penalty)
        left = -(g * after + (sigma + penalty) / 2 * after**2)
        change = -penalty / 2 * after**2  # Ψ(x_1) − Ψ(x_2)
        assert left > g * g / (2 * (sigma + penalty)) + change + 1e-3
        if sigma:
            assert left <= g * g / (2 * sigma) + change + 1e-12
    assert (left, g) == pytest.approx((9 / 12, -3.0))


def test_theorem_10_as_printed_is_false_in_two_rounds():
    """r = 0, α = 1, Ψ = x²/2, g = (1, −1): regret 1.5 at x* = 0, the printed bound 0.75; nothing is proved, so void."""
    game = Game([1.0, -1.0], [0.0, 0.0, 0.0], [1.0, 1.0], 0.0, 1.0, True)
    assert (game.points, game.worst) == ([0.0, -1.0, 0.0], 0.0)
    assert (game.regret(0.0), game.bound(0.0, game.printed)) == (1.5, 0.75)
    trace = play(
        FTRL(Unregularized(), Euclidean(), "played", penalty=squared_l2(1.0), weights=EveryRound()),
        [Linear([1.0]), Linear([-1.0])],
    )
    assert trace.points.ravel().tolist() == game.points
    assert surrogate_regret(trace, np.zeros(1), "composite") == 1.5
    assert (
        theorem_10(trace, np.zeros(1)).void == "in round 1 the gradient is not zero where the objective has no strength"
    )


def test_the_corrected_bound_holds_in_random_games_and_is_attained_where_the_printed_one_is_exceeded():
    corrected, printed = [], []
    for game in random_games(3000, 0):
        regret = game.regret(game.worst)
        limit = game.bound(game.worst, game.corrected)
        assert regret <= limit + 1e-12 * (1 + abs(limit))
        corrected.append(regret / limit)
        printed.append(regret / game.bound(game.worst, game.printed))
    assert max(corrected) > 0.999
    assert max(printed) > 1.9
    assert np.mean(np.greater(printed, 1 + 1e-9)) > 0.2


@pytest.mark.parametrize("proximal", [True, False], ids=["proximal", "centered"])
def test_forel_has_the_oracles_points_and_bound(proximal):
    for seed in range(20):
        gradients = np.random.default_rng(seed).normal(size=6)
        squares = np.sqrt(1 + np.concatenate([[0.0], np.cumsum(gradients**2)]))
        game = Game(gradients, np.diff(squares, prepend=0.0), np.ones(6), 0.2, 5.0, proximal)
        algorithm = FTRL(
            ScalarAdaGrad(1.0, 1.0),
            Euclidean(),
            "played" if proximal else "first",
            penalty=ElasticNet(0.2, 5.0),
            weights=EveryRound(),
        )
        trace = play(algorithm, [Linear([g]) for g in gradients])
        assert np.allclose(trace.points.ravel(), game.points, rtol=1e-12, atol=1e-14)
        for x in (game.worst, 0.3):
            assert surrogate_regret(trace, np.array([x]), "composite") == pytest.approx(
                game.regret(x), rel=1e-10, abs=1e-12
            )
            assert bound(trace, np.array([x])).total == pytest.approx(game.bound(x, game.corrected), rel=1e-10)


RATES = {"scalar": ScalarAdaGrad, "diagonal": DiagonalAdaGrad, "matrix": MatrixAdaGrad}


def drawn(rng, n):
    """Return a random algorithm with a curved penalty: centered, proximal or Mirror Descent."""
    geometry = (Euclidean(), Diagonal(), FullMatrix())[rng.integers(3)]
    free = geometry == FullMatrix()
    region = Reals() if free else (Reals(), Box(-1, 1), Box(0.5, 2))[rng.integers(3)]  # 0 is not in the last
    penalty = ElasticNet(0.0 if free else rng.random() * rng.integers(2), 10 ** rng.uniform(-2, 1) * rng.random(n))
    weights = (Once(), EveryRound(), Given(-np.sort(-rng.random(5))), Given(rng.random(5)))[rng.integers(4)]
    rate = RATES[geometry.shape](rng.uniform(0.05, 2.0), rng.uniform(0.05, 1.0))
    if rng.integers(3) == 2:
        return MirrorDescent(rate, geometry, penalty, weights, region)
    return FTRL(
        rate,
        geometry,
        "played" if bool(rng.integers(2)) else "first",
        penalty=penalty,
        weights=weights,
        feasible=region,
    )


@pytest.mark.parametrize("seed", range(8))
def test_bounds_hold_with_curved_penalties_for_every_kind_of_algorithm(seed):
    """Random geometries, sets, penalties (a λ2 per coordinate) and weights; at played and at random comparators."""
    rng, ratios = np.random.default_rng(seed), []
    for _ in range(60):
        n, rounds = int(rng.integers(1, 4)), int(rng.integers(1, 9))
        gradients = 10 ** rng.uniform(-1, 1) * rng.normal(size=(rounds, n))
        if rng.integers(2):
            gradients = np.abs(gradients) * (-1.0) ** np.arange(rounds)[:, None]
        algorithm = drawn(rng, n)
        trace = play(algorithm, [Linear(g) for g in gradients])
        low, high = (-np.inf, np.inf) if isinstance(algorithm.feasible, Reals) else algorithm.feasible.bounds
        for x in (*trace.points, *np.clip(rng.normal(size=(3, n)), low, high)):
            for against in ("composite", "losses"):
                limit = bound(trace, x, against)
                regret = surrogate_regret(trace, x, against)
                assert regret <= limit.total + 1e-10 * (1 + abs(limit.total))
                ratios.append(regret / limit.total)
    assert max(ratios) > 0.99


def test_curvature_makes_bounds_tighter():
    """With λ2 = 5 the bound without the penalty's curvature is more than 1.4 times as large."""
    rng = np.random.default_rng(0)
    losses = [Linear(g) for g in 3 * rng.normal(size=(40, 2)) * (-1.0) ** np.arange(40)[:, None]]
    trace = play(FTRL(Constant(0.5), Euclidean(), "played", penalty=squared_l2(5.0)), losses)
    x = trace.points[-1]
    limit = theorem_10(trace, x)
    without = limit.regularization[-1] + 0.5 * sum(0.5 * float(g @ g) for g in trace.gradients)
    assert limit.total < without / 1.4
    assert surrogate_regret(trace, x, "composite") <= limit.total


@pytest.mark.parametrize(
    ("penalty", "expected"),
    [
        (l1(3.0), 0.0),
        (squared_l2(2.0), 2.0),
        (ElasticNet(1.0, [0.0, 2.0]), [0.0, 2.0]),
        (squared_l2([1.0, 3.0]) + squared_l2(2.0) + GroupL2(4.0), [3.0, 5.0]),
        (Indicator(Box(-1, 1)) + squared_l2(1.5), 1.5),
        (Linear([1.0, 2.0]), 0.0),
    ],
)
def test_the_curvature_of_a_penalty_is_per_coordinate(penalty, expected):
    assert np.array_equal(curvature_of(penalty), expected)


def test_norms_count_penalties_of_earlier_rounds_and_no_tangents():
    """‖g_t‖² over σ_{0:·} + α_{1:t−1}λ2, per coordinate also where the strength is one number."""
    curvature, losses = np.array([0.0, 4.0]), [Linear(g) for g in np.random.default_rng(1).normal(size=(4, 2))]
    for geometry in (Euclidean(), Diagonal(), FullMatrix()):
        rate = RATES[geometry.shape](1.0, 1.0)
        kept = play(FTRL(rate, geometry, "played", penalty=squared_l2(curvature), weights=Given([2.0, 1.0])), losses)
        tangents = play(MirrorDescent(rate, geometry, squared_l2(curvature), Given([2.0, 1.0])), losses)
        for t, weight in enumerate([0.0, 2.0, 3.0, 4.0]):
            for trace, factor in ((kept, weight), (tangents, 0.0)):
                g = trace.gradients[t]
                for found, state in zip(trace.squared_norms, trace.states[t : t + 2], strict=True):
                    matrix = state.strength if geometry == FullMatrix() else np.diag(np.broadcast_to(state.strength, 2))
                    assert found[t] == pytest.approx(g @ np.linalg.solve(matrix + factor * np.diag(curvature), g))


def test_theorem_12_would_be_false_with_the_penaltys_curvature():
    """Mirror Descent keeps tangents: with λ2 = 1, g = (1, −1) and hardly any r, regret is 1.5, and ½Σg²/λ2 only 1."""
    trace = play(MirrorDescent(Constant(1e6), Euclidean(), squared_l2(1.0)), [Linear([1.0]), Linear([-1.0])])
    x = np.zeros(1)
    assert surrogate_regret(trace, x, "composite") == pytest.approx(1.5, rel=1e-5)
    assert theorem_12(trace, x).total > 1e5


# What the hypotheses on Ψ and α_t come to: the survey shifts Ψ by a constant, and asks more of α_t than it needs.


@pytest.mark.parametrize("geometry", [Euclidean(), Entropy()], ids=str)
@pytest.mark.parametrize("make", [FTRL, MirrorDescent], ids=lambda make: make.__name__)
def test_a_penalty_that_is_constant_on_x_changes_no_bound(make, geometry):
    losses = [Linear(g) for g in np.random.default_rng(2).normal(size=(30, 3))]
    bare, penalized = (
        play(make(ScalarAdaGrad(1.0, 1.0), geometry, penalty=penalty, weights=EveryRound(), feasible=Simplex()), losses)
        for penalty in (ElasticNet(), l1(2.0))
    )
    assert np.allclose(bare.points, penalized.points, atol=1e-12)
    for x in (np.eye(3)[0], np.full(3, 1 / 3)):
        for against in ("composite", "losses"):
            assert bound(penalized, x, against).total == pytest.approx(bound(bare, x, against).total, rel=1e-12)


@pytest.mark.parametrize("kind", ["centered", "proximal", "mirror"])
@pytest.mark.parametrize("penalty", [squared_l2(3.0), l1([5.0, 0.0, 1.0]), GroupL2(2.0, [0, 0, 1])], ids=str)
def test_a_penalty_on_the_simplex_is_bounded_whether_or_not_it_is_smallest_at_the_first_point(kind, penalty):
    """Against a search of the simplex for the comparator at which regret less bound is largest."""
    rate, options = ScalarAdaGrad(1.0, 1.0), {"penalty": penalty, "weights": Given([2.0, 1.0]), "feasible": Simplex()}
    mirror = kind == "mirror"
    algorithm = (
        MirrorDescent(rate, Euclidean(), **options)
        if mirror
        else FTRL(rate, Euclidean(), "played" if kind == "proximal" else "first", **options)
    )
    rng = np.random.default_rng(3)
    trace = play(algorithm, [Linear(g) for g in rng.normal(size=(8, 3))])
    for x in (*trace.points, *np.eye(3), *rng.dirichlet(np.ones(3), size=60)):
        for against in ("composite", "losses"):
            assert surrogate_regret(trace, x, against) <= bound(trace, x, against).total + 1e-12


def test_a_first_point_that_is_zero_but_for_the_solvers_rounding_voids_nothing():
    region = intersect(Polyhedron([[1.0, 2.0], [-1.0, 0.0]], [1.0, 1.0]), HalfSpace([1.0, -1.0], 1.0))
    trace = play(
        FTRL(ScalarAdaGrad(1.0, 1.0), Euclidean(), "played", penalty=l1(0.1), feasible=region),
        [Linear([1.0, -1.0])] * 4,
    )
    assert 0 < l1(0.1)(trace.points[0]) < 1e-6
    assert bound(trace, np.zeros(2)).total >= surrogate_regret(trace, np.zeros(2), "composite")


@pytest.mark.parametrize("make", [theorem_1, theorem_10, theorem_12], ids=lambda make: make.__name__)
def test_weights_may_increase(make):
    """In the objective Σα_t(Ψ(x_t) − Ψ(x_{t+1})) is charged; in the regularizer Lemma 5 subtracts α_tΨ(x_t) itself."""
    penalty, weights = ElasticNet(0.3, 0.5), Given([0.1, 1.0, 5.0])
    algorithm = FTRL(
        Constant(1.0), Euclidean(), "played" if make is theorem_10 else "first", penalty=penalty, weights=weights
    )
    if make is theorem_12:
        algorithm = MirrorDescent(Constant(1.0), Euclidean(), penalty, weights)
    for seed in range(30):
        trace = play(algorithm, [Linear(g) for g in 3 * np.random.default_rng(seed).normal(size=(6, 2))])
        for x in (*trace.points, np.ones(2)):
            assert surrogate_regret(trace, x, "losses") <= make(trace, x, "losses").total + 1e-9
            assert surrogate_regret(trace, x, "composite") <= make(trace, x, "composite").total + 1e-9
    early = play(FTRL(Constant(1.0), Euclidean(), penalty=penalty, weights=Given([1.0, 1.0, 5.0])), trace.losses[:2])
    assert not theorem_1(early, np.ones(2), "composite").void


def test_increasing_weights_in_the_objective_are_charged_for_a_reason():
    """g_1 pulls x_2 far out, and then the penalty comes: regret 25 and more, where r_{0:T}(x*) + ½Σg² would be 13."""
    trace = play(
        FTRL(Constant(1.0), Euclidean(), penalty=l1(5.0), weights=Given([0.0, 1.0])), [Linear([5.0]), Linear([0.0])]
    )
    x = np.zeros(1)
    assert surrogate_regret(trace, x, "composite") >= 25 > 0.5 * 5.0**2 + 0.5
    assert theorem_1(trace, x, "composite").total >= surrogate_regret(trace, x, "composite")


def test_theorem_2_stays_the_bound_without_a_penalty():
    trace = play(FTRL(Constant(1.0), Euclidean(), "played"), [Linear([1.0]), Linear([-2.0])])
    assert theorem_2(trace, np.ones(1)).total == theorem_10(trace, np.ones(1)).total == 3.0
