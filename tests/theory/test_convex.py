"""Norms, conjugates, and the convex analysis of the survey's section 4.2 and appendix B, over the whole vocabulary."""

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forel import cvx
from forel.losses import (
    Absolute,
    EpsilonInsensitive,
    Example,
    Hinge,
    Huber,
    Linear,
    Logistic,
    Poisson,
    Quadratic,
    Quantile,
    Softmax,
    Squared,
    SquaredHinge,
)
from forel.theory.argmin import Argmin
from forel.theory.geometries import Diagonal, Entropy, Euclidean, FullMatrix, SquaredPNorm
from forel.theory.norms import L1, L2, LINF, DiagonalNorm, MatrixNorm, PNorm, ScaledNorm
from forel.theory.penalties import NONE, Indicator
from forel.theory.regularizers import Regularizer, bregman, conjugate
from tests.theory.cases import FUNCTIONS, strengths
from website.combinations import GEOMETRIES, penalties, sets

N = 4
MATRIX = [[2.0, 0.5, 0, 0], [0.5, 1.0, 0, 0], [0, 0, 3.0, 1.0], [0, 0, 1.0, 1.0]]
NORMS = [L1, L2, LINF, PNorm(3), PNorm(1.2), ScaledNorm(L1, 3.0), DiagonalNorm([1, 2, 0.5, 9]), MatrixNorm(MATRIX)]
vectors = st.lists(st.floats(-5, 5).map(lambda v: round(v, 3)), min_size=N, max_size=N).map(np.array)

every_function = pytest.mark.parametrize("parts", FUNCTIONS, ids=", ".join)


@cache
def function(parts):
    """The function's argmin, its strength, and the norm in which it is 1-strongly convex."""
    g, p, s = parts
    geometry = GEOMETRIES[g]
    strength = strengths(geometry.shape, N, np.random.default_rng(3), spread=0.5)
    return Argmin(geometry, penalties(N)[p], sets(N)[s]), strength, geometry.norm(strength)


def value(play, strength, x):
    """φ_σ(x) + Ψ(x) for an x in X."""
    return play.geometry.value(strength, x) + (0 if isinstance(play.penalty, Indicator) else play.penalty(x))


@pytest.mark.parametrize("norm", NORMS, ids=str)
@given(x=vectors, y=vectors)
def test_norms_are_norms_and_satisfy_hoelder(norm, x, y):
    assert norm(x + y) <= norm(x) + norm(y) + 1e-9
    assert norm(-2 * x) == pytest.approx(2 * norm(x))
    assert x @ y <= norm(x) * norm.dual(y) + 1e-9


@pytest.mark.parametrize("norm", NORMS, ids=str)
def test_the_dual_norm_is_the_supremum_over_the_unit_ball(norm):
    cp, rng = cvx.cvxpy(), np.random.default_rng(0)
    for g in rng.normal(size=(3, N)):
        scale = norm.factor if isinstance(norm, ScaledNorm) else 1.0
        inner = norm.norm if isinstance(norm, ScaledNorm) else norm

        def unit(x, inner=inner, scale=scale):
            if isinstance(inner, DiagonalNorm):
                return [cp.norm2(cp.multiply(np.sqrt(inner.entries), x)) <= 1]
            if isinstance(inner, MatrixNorm):
                return [cp.norm2(np.linalg.cholesky(np.array(MATRIX)).T @ x) <= 1]
            return [scale * cp.pnorm(x, inner.p) <= 1]

        best = cvx.minimize(N, lambda x, g=g: -g @ x, unit)
        assert norm.dual(g) == pytest.approx(g @ best, rel=1e-6)
        assert norm.dual.dual(g) == pytest.approx(norm(g))


def test_norms_neither_overflow_nor_underflow():
    huge = np.full(3, 1e200)
    assert L2(huge) == pytest.approx(math.sqrt(3) * 1e200)
    assert PNorm(3)(huge * 1e-300) == pytest.approx(3 ** (1 / 3) * 1e-100)
    assert L2(np.zeros(3)) == 0


def test_quadratic_norms_of_singular_matrices_have_an_infinite_dual_off_the_range():
    norm = MatrixNorm([[1.0, 1.0], [1.0, 1.0]])
    assert norm.dual(np.array([2.0, 2.0])) == pytest.approx(2.0)
    assert norm.dual(np.array([1.0, -1.0])) == math.inf
    assert DiagonalNorm([0.0, 4.0]).dual(np.array([0.0, 2.0])) == 1.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PNorm(0.5), "p: got 0.5, expected a number of at least 1"),
        (lambda: PNorm(math.nan), "p: got nan"),
        (lambda: ScaledNorm(L2, -1), "factor: got -1, expected a positive number"),
        (lambda: DiagonalNorm([1, -2]), "entries: got -2.0 at index 1, expected numbers of at least 0"),
        (lambda: MatrixNorm([[1.0, 2.0], [0.0, 1.0]]), "expected a symmetric matrix"),
        (lambda: MatrixNorm([[1.0, 2.0], [2.0, 1.0]]), "got the eigenvalue -1"),
        (lambda: SquaredPNorm(3), "p: got 3, expected 1 < p ≤ 2"),
    ],
)
def test_bad_norms_are_refused_with_a_sentence(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("geometry", GEOMETRIES.values(), ids=GEOMETRIES)
def test_gradients_and_conjugate_gradients_are_inverse_and_match_differences(geometry):
    rng = np.random.default_rng(5)
    strength = strengths(geometry.shape, N, rng)
    x = rng.dirichlet(np.ones(N)) if geometry.on_simplex else rng.normal(size=N)
    g = geometry.gradient(strength, x)
    assert np.allclose(geometry.conjugate_gradient(strength, g), x, atol=1e-12)
    steps = 1e-6 * np.eye(N)
    slopes = [(geometry.value(strength, x + e) - geometry.value(strength, x - e)) / 2e-6 for e in steps]
    assert np.allclose(slopes, g, atol=1e-6)


@pytest.mark.parametrize("geometry", GEOMETRIES.values(), ids=GEOMETRIES)
@given(u=vectors, v=vectors, w=vectors)
def test_bregman_divergences_dominate_half_the_squared_norm(geometry, u, v, w):
    """Strong convexity itself, and r ≥ 0 with r = 0 at its point: what every theorem assumes of a regularizer."""
    if geometry.on_simplex:
        u, v, w = (np.exp(p) / np.exp(p).sum() for p in (u, v, w))
    strength = strengths(geometry.shape, N, np.random.default_rng(6), 0.5)
    r = Regularizer.around(geometry, strength, w)
    scale = 1 + abs(r(u)) + abs(r(v))
    assert bregman(r, u, v) >= 0.5 * r.norm(u - v) ** 2 - 1e-9 * scale
    assert bregman(r, u, w) == pytest.approx(r(u), abs=1e-9 * scale)
    assert r(u) >= -1e-12 * scale
    assert r(w) == pytest.approx(0, abs=1e-12 * (1 + geometry.value(strength, np.abs(w))))
    assert np.allclose(r.minimizer, w, atol=1e-8)
    if geometry.quadratic:
        assert bregman(r, u, v) == pytest.approx(0.5 * r.norm(u - v) ** 2, abs=1e-9 * scale)


@given(points=st.lists(vectors, min_size=1, max_size=6))
def test_running_sums_of_regularizers_are_the_sums_of_their_values(points):
    rng = np.random.default_rng(8)
    for geometry in (Euclidean(), Diagonal(), FullMatrix(), SquaredPNorm(1.5)):
        terms = [Regularizer.around(geometry, strengths(geometry.shape, N, rng), p) for p in points]
        total = sum(terms, Regularizer.zero(geometry, N))
        for x in points:
            assert total(x) == pytest.approx(sum(r(x) for r in terms), abs=1e-9 * (1 + abs(total(x))))
            assert np.allclose(total.gradient(x), sum(r.gradient(x) for r in terms))


def test_the_entropy_around_the_uniform_distribution_is_the_surveys():
    r = Regularizer.around(Entropy(), 2.0, np.full(4, 0.25))
    x = np.array([0.1, 0.2, 0.3, 0.4])
    assert r(x) == pytest.approx(2 * (math.log(4) + x @ np.log(x)))
    assert r(np.array([1.0, 0, 0, 0])) == pytest.approx(2 * math.log(4))
    with pytest.raises(ValueError, match="expected the same geometry, Entropy"):
        r + Regularizer.zero(Euclidean(), 4)


@given(sigmas=st.lists(st.floats(0, 5), min_size=1, max_size=6), x=vectors)
def test_lemma_3_strengths_add_up(sigmas, x):
    """r_{0:t} grows, its conjugate falls, and it is 1-strongly convex in √σ_{0:t}‖·‖, whose dual is ‖·‖/√σ_{0:t}."""
    total = Regularizer.around(Euclidean(), 1.0, np.zeros(N))
    for sigma in sigmas:
        grown = total + Regularizer.around(Euclidean(), sigma, np.zeros(N))
        assert grown(x) >= total(x)
        assert conjugate(grown, x) <= conjugate(total, x) + 1e-12
        total = grown
    cumulative = 1 + sum(sigmas)
    assert total.norm(x) == pytest.approx(math.sqrt(cumulative) * L2(x))
    assert total.dual_norm(x) == pytest.approx(L2(x) / math.sqrt(cumulative))


@every_function
@settings(max_examples=15)
@given(g=vectors, h=vectors)
def test_lemmas_9_15_and_16_of_strongly_convex_functions_and_their_conjugates(parts, g, h):
    conjugates_are_strongly_smooth(*function(parts), g, h)
    gradients_of_the_conjugate_are_argmins_and_lipschitz(*function(parts), g, h)
    a_linear_change_moves_the_minimum_by_at_most_its_dual_norm(
        *function(parts), z=g, b=h, equal=parts[1:] == ("none", "Reals")
    )


def conjugates_are_strongly_smooth(play, strength, norm, g, h):
    """Lemma 9."""
    x, y = play(-g, strength), play(-h, strength)
    rounding = 1e-8 * (1 + abs(value(play, strength, x)) + abs(value(play, strength, y)) + np.abs(g) @ np.abs(y - x))
    # g is a subgradient at x, so this is strong convexity ...
    assert value(play, strength, y) >= value(play, strength, x) + g @ (y - x) + 0.5 * norm(y - x) ** 2 - rounding
    # ... and this is strong smoothness of the conjugate, whose gradient at g is x.
    smooth = play.conjugate(g, strength) + x @ (h - g) + 0.5 * norm.dual(h - g) ** 2
    assert play.conjugate(h, strength) <= smooth + rounding


def gradients_of_the_conjugate_are_argmins_and_lipschitz(play, strength, norm, g, h):
    """Lemma 15."""
    x, y = play(-g, strength), play(-h, strength)
    assert norm(x - y) <= norm.dual(g - h) + 1e-8
    step = 1e-5 * (h - g)
    difference = (play.conjugate(g + step, strength) - play.conjugate(g - step, strength)) / 2
    assert difference == pytest.approx(x @ step, abs=norm.dual(step) ** 2 + 1e-9)


def a_linear_change_moves_the_minimum_by_at_most_its_dual_norm(play, strength, norm, z, b, equal):
    """Lemma 16; with equality for quadratic geometries without a penalty or a set."""
    first, second = play(z, strength), play(z + b, strength)

    def changed(x):
        return (z + b) @ x + value(play, strength, x)

    rounding = 1e-8 * (1 + abs(changed(first)))
    assert norm(first - second) <= norm.dual(b) + 1e-8
    assert changed(first) - changed(second) <= 0.5 * norm.dual(b) ** 2 + rounding
    if play.geometry.quadratic and equal:
        assert norm(first - second) == pytest.approx(norm.dual(b))
        assert changed(first) - changed(second) == pytest.approx(0.5 * norm.dual(b) ** 2, abs=rounding)


LOSSES = {
    "linear": Linear([0.5, -1.0, 2.0, 0.0]),
    "quadratic": Quadratic([1.0, 0.0, -1.0, 0.5], curvature=1.5, g=[1.0, 0, 0, -1.0]),
    **{
        type(loss).__name__: Example(loss, [1.0, -2.0, 0.5, 0.0], label)
        for loss, label in [
            (Squared(), 1.5),
            (Absolute(), 0.2),
            (EpsilonInsensitive(0.1), 1.0),
            (Huber(0.5), -1.0),
            (Quantile(0.3), 0.5),
            (Hinge(), 1),
            (SquaredHinge(), -1),
            (Logistic(), 1),
            (Poisson(), 2),
        ]
    },
    "softmax": Example(Softmax(2), [1.0, -2.0], 1),
}
# A function and a norm it is strongly convex in, one of each kind of geometry, penalty and set.
CHANGED = [
    ("Euclidean", "none", "Reals"),
    ("Euclidean", "L1", "L2 ball"),
    ("Diagonal", "elastic net", "Box"),
    ("Diagonal", "group L2", "Reals"),
    ("FullMatrix", "none", "HalfSpace"),
    ("Entropy", "none", "Simplex"),
    ("SquaredPNorm(1.5)", "L1", "Reals"),
    ("Euclidean", "none", "Simplex"),
]


@pytest.mark.parametrize("psi", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("parts", CHANGED, ids=", ".join)
def test_lemma_7_and_corollary_8_a_convex_change_costs_at_most_half_its_squared_gradient(parts, psi):
    play, strength, norm = function(parts)
    cp = cvx.cvxpy()
    x, slope = cp.Variable(N), cp.Parameter(N)
    objective = slope @ x + play.geometry.expression(play.geometry.factor(strength), x)
    objective += play.penalty.expression(x) + psi.expression(x)
    problem = cp.Problem(cp.Minimize(objective), play.feasible.constraints(x))
    for z in np.random.default_rng(9).normal(size=(2, N)):
        first = play(z, strength)
        b = psi.subgradient(first)

        def total(x, z=z):
            return z @ x + value(play, strength, x) + psi(x)

        slope.value = z
        found = cvx.solve(problem, x)
        second = np.maximum(found, 0) if play.feasible.on_simplex else found
        # φ₂ = φ₁ + ψ is at least as strongly convex as φ₁ is.
        assert norm(first - second) <= norm.dual(b) + 1e-5
        assert total(first) - total(second) <= 0.5 * norm.dual(b) ** 2 + 1e-7
        # Corollary 8: let the penalty arrive with ψ instead; what it gains on the way comes on top.
        before = Argmin(play.geometry, NONE, play.feasible)(z, strength)
        b = psi.subgradient(before)
        bound = 0.5 * norm.dual(b) ** 2 + play.penalty(before) - play.penalty(second)
        assert total(before) - total(second) <= bound + 1e-7
        if psi is LOSSES["quadratic"] and parts == ("Euclidean", "none", "Reals"):
            curved = ScaledNorm(L2, math.sqrt(strength + psi.curvature))
            assert curved(first - second) == pytest.approx(curved.dual(b), rel=1e-5)
            assert total(first) - total(second) == pytest.approx(0.5 * curved.dual(b) ** 2, rel=1e-6)
