import math
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from forel.theory.norms import L1, L2, LINF, MatrixNorm
from forel.theory.rates import (
    Constant,
    CurvatureAdaptive,
    DiagonalAdaGrad,
    Doubling,
    InverseSqrt,
    InverseTime,
    MatrixAdaGrad,
    ScalarAdaGrad,
    ScaleFree,
    adagrad_dual_averaging_rate,
    adagrad_proximal_rate,
    dual_averaging_rate,
    entropic_rate,
    increment,
    proximal_rate,
    sum_over_roots,
    tuned_rate,
)

N = 3
CURVATURE = 0.25
ROUNDING = 1 + 1e-12


def states(rate, gradients, curvature=CURVATURE):
    """All states of a run; a rate that wants features gets the gradients, as if every derivative were 1."""
    path = [rate.init(len(gradients[0]) if len(gradients) else N)]
    for g in gradients:
        before = rate.observe(path[-1], g) if isinstance(rate, ScaleFree) else path[-1]
        path.append(rate.update(before, g, curvature))
    return path


def strengths(rate, gradients, curvature=CURVATURE):
    return [rate.strength(state) for state in states(rate, gradients, curvature)]


def root_sum(values):
    """√Σv², with exponents to spare."""
    with mpmath.workdps(30):
        return float(mpmath.sqrt(mpmath.fsum(mpmath.mpf(float(v)) ** 2 for v in values)))


def columns(gradients):
    return [[float(g[i]) for g in gradients] for i in range(N)]


def slow_diagonal(scale, offset=(0, 0, 0), beta=(0, 0, 0)):
    def strength(gradients):
        roots = [root_sum([*c, offset[i]]) for i, c in enumerate(columns(gradients))]
        return np.array([(beta[i] + roots[i]) / scale[i] for i in range(N)])

    return strength


def slow_scalar(scale, offset, norm):
    return lambda gradients: root_sum([offset, *(norm(np.array(g)) for g in gradients)]) / scale


def slow_scale_free(alpha, beta):
    def strength(gradients):
        entries = []
        for column in columns(gradients):
            s, root = max([0.0, *map(abs, column)]), root_sum(column)
            entries.append(s * (beta * s + root) / alpha)
        return np.array(entries)

    return strength


def slow_curvature_adaptive(diameter):
    def strength(gradients):
        with mpmath.workdps(700):  # the difference of a root near ¼ and ¼, for squares down to 1e-616
            added = mpmath.mpf(0)
            for t, g in enumerate(gradients, start=1):
                present = t * mpmath.mpf(CURVATURE) + added
                square = sum(mpmath.mpf(float(v)) ** 2 for v in g)
                added += (mpmath.sqrt(present**2 + 4 * square / diameter**2) - present) / 2
            return float(added)

    return strength


CASES = {
    "constant": (Constant(0.5), lambda gs: 2.0),
    "tuned": (tuned_rate(3.0, 2.0, 16), lambda gs: 2.0 * 4.0 / 3.0),
    "inverse sqrt": (InverseSqrt(2.0, 0.5), lambda gs: math.sqrt(len(gs) + 0.5) / 2.0),
    "inverse time": (InverseTime(1.5), lambda gs: 1.5 * len(gs)),
    "dual averaging": (dual_averaging_rate(3.0, 2.0), lambda gs: math.sqrt(2) * 2.0 * math.sqrt(len(gs) + 1) / 3.0),
    "proximal": (proximal_rate(3.0, 2.0), lambda gs: 2.0 * math.sqrt(len(gs)) / (math.sqrt(2) * 3.0)),
    "scalar": (ScalarAdaGrad(2.0), slow_scalar(2.0, 0.0, L2)),
    "scalar in L1": (ScalarAdaGrad(2.0, 0.5, L1), slow_scalar(2.0, 0.5, L1)),
    "entropic": (entropic_rate(N, 2.0), slow_scalar(math.sqrt(math.log(N)), 2.0, LINF)),
    "diagonal": (DiagonalAdaGrad(0.5, 0.1, 1.0), slow_diagonal([0.5] * N, [0.1] * N, [1.0] * N)),
    "per coordinate": (
        DiagonalAdaGrad([1.0, 2.0, 4.0], [0.0, 1.0, 3.0], [1.0, 0.0, 2.0]),
        slow_diagonal([1.0, 2.0, 4.0], [0.0, 1.0, 3.0], [1.0, 0.0, 2.0]),
    ),
    "adagrad proximal": (adagrad_proximal_rate(3.0), slow_diagonal([math.sqrt(2) * 3.0] * N)),
    "adagrad dual averaging": (adagrad_dual_averaging_rate(3.0, 2.0), slow_diagonal([3.0] * N, [2.0] * N)),
    "scale-free": (ScaleFree(0.5, 2.0), slow_scale_free(0.5, 2.0)),
    "curvature adaptive": (CurvatureAdaptive(3.0), slow_curvature_adaptive(3.0)),
    "matrix": (MatrixAdaGrad(2.0), None),
    "matrix with offset": (MatrixAdaGrad(2.0, 0.5), None),
}
RATES = [pytest.param(rate, id=name) for name, (rate, _) in CASES.items()]
FORMULAS = [pytest.param(rate, slow, id=name) for name, (rate, slow) in CASES.items() if slow]
MATRICES = [pytest.param(rate, id=name) for name, (rate, slow) in CASES.items() if not slow]

entry = st.one_of(st.just(0.0), st.floats(-1e6, 1e6), st.floats(-1e-9, 1e-9, allow_subnormal=False))
runs = st.lists(st.lists(entry, min_size=N, max_size=N).map(np.array), max_size=12)
steps = np.random.default_rng(7).normal(size=(40, N))
ADVERSARIES = {
    "zeros": np.zeros((5, N)),
    "zeros, then not": np.concatenate((np.zeros((5, N)), np.ones((5, N)))),
    "huge, then tiny": np.outer([1e12, 1e-12, 1e-12, 1.0, 1e-12], [1.0, -2.0, 0.5]),
    "tiny, then huge": np.outer([1e-12, 1e-12, 1e12], [1.0, -2.0, 0.5]),
    "one coordinate": np.outer(np.arange(1.0, 9.0), [0.0, 1.0, 0.0]),
    "alternating": np.outer((-1.0) ** np.arange(20), np.ones(N)),
    "doubling": np.outer(2.0 ** np.arange(20), [1.0, 0.0, -1.0]),
    "random": steps,
}
adversaries = pytest.mark.parametrize("gradients", ADVERSARIES.values(), ids=ADVERSARIES.keys())


def assert_never_decreases(rate, path):
    for before, after in pairwise(path):
        if rate.shape == "matrix":
            assert np.linalg.eigvalsh(after - before)[0] >= -1e-14 * max(1e-300, np.max(np.abs(after)))
        else:
            assert np.all(after >= before)


@pytest.mark.parametrize("rate", RATES)
@adversaries
def test_strength_never_decreases(rate, gradients):
    path = strengths(rate, gradients)
    assert_never_decreases(rate, path)
    assert_never_decreases(rate, [0 * path[0], path[0]])


@pytest.mark.parametrize("rate", RATES)
@settings(max_examples=40)
@given(gradients=runs)
def test_strength_never_decreases_on_any_gradients(rate, gradients):
    assert_never_decreases(rate, strengths(rate, gradients))


@pytest.mark.parametrize(("rate", "slow"), FORMULAS)
@adversaries
def test_strength_is_its_formula(rate, slow, gradients):
    for t, strength in enumerate(strengths(rate, gradients)):
        np.testing.assert_allclose(strength, slow(gradients[:t]), rtol=1e-12, atol=0)


@pytest.mark.parametrize(("rate", "slow"), FORMULAS)
@settings(max_examples=40)
@given(gradients=runs)
def test_strength_is_its_formula_on_any_gradients(rate, slow, gradients):
    np.testing.assert_allclose(strengths(rate, gradients)[-1], slow(gradients), rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("rate", RATES)
def test_shape_and_types(rate):
    dims = {"scalar": (), "diagonal": (N,), "matrix": (N, N)}[rate.shape]
    for strength in strengths(rate, steps[:3]):
        assert np.shape(strength) == dims
        assert isinstance(strength, float if rate.shape == "scalar" else np.ndarray)


@pytest.mark.parametrize("rate", RATES)
def test_increments_add_up(rate):
    path = states(rate, steps)
    total = rate.strength(path[0])
    for before, after in pairwise(path):
        total = total + increment(rate, before, after)
    np.testing.assert_allclose(total, rate.strength(path[-1]), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("rate", RATES)
def test_states_do_not_change(rate):
    path = states(rate, steps[:4])
    copies = [[np.copy(part) for part in state] for state in path]
    for state in path:
        g = np.array([1.0, -2.0, 3.0])
        seen = rate.observe(state, g) if isinstance(rate, ScaleFree) else state
        after = rate.update(seen, g, 1.0)
        strength, kept = rate.strength(after), np.copy(rate.strength(after))
        g[:] = 99.0
        if rate.shape != "scalar":
            strength[...] = -1.0
        np.testing.assert_array_equal(rate.strength(after), kept)
    for state, copy in zip(path, copies, strict=True):
        for part, was in zip(state, copy, strict=True):
            np.testing.assert_array_equal(part, was)


def test_constants_do_not_change_with_the_callers_array():
    scale = np.array([1.0, 2.0])
    rate = DiagonalAdaGrad(scale, offset=1.0)
    scale[:] = 100.0
    np.testing.assert_array_equal(rate.strength(rate.init(2)), [1.0, 0.5])


@pytest.mark.parametrize("rate", MATRICES)
@adversaries
def test_matrix_root_squares_to_the_sum(rate, gradients):
    for t, strength in enumerate(strengths(rate, gradients)):
        gram = (gradients[:t].T @ gradients[:t] + rate.offset**2 * np.eye(N)) / rate.scale**2
        np.testing.assert_array_equal(strength, strength.T)
        scale = max(np.max(np.abs(gram)), 1e-300)
        assert np.linalg.eigvalsh(strength)[0] >= -1e-15 * math.sqrt(scale)
        np.testing.assert_allclose(strength @ strength, gram, rtol=0, atol=1e-13 * scale)


def test_matrix_root_has_no_strength_where_no_gradient_was():
    rng = np.random.default_rng(3)
    basis = rng.normal(size=(2, 8))
    rate = MatrixAdaGrad(1.0)
    path = states(rate, [c @ basis for c in rng.normal(size=(30, 2))])
    eigenvalues = np.linalg.eigvalsh(rate.strength(path[-1]))
    assert np.all(np.abs(eigenvalues[:6]) < 1e-14 * eigenvalues[-1])
    assert eigenvalues[6] > 0.1
    dual = MatrixNorm(rate.strength(path[-1])).dual
    assert math.isfinite(dual(basis[0]))
    assert dual(rng.normal(size=8)) == math.inf


def test_matrix_root_keeps_a_direction_of_tiny_gradients():
    huge, tiny = np.array([3.0, 4.0]) / 5, np.array([-4.0, 3.0]) / 5
    strength = strengths(MatrixAdaGrad(1.0), [huge, 1e-11 * tiny])[-1]
    assert tiny @ strength @ tiny == pytest.approx(1e-11, rel=1e-4)


@pytest.mark.parametrize("rate", MATRICES)
@adversaries
def test_matrix_increments_are_semi_definite_by_their_own_measure(rate, gradients):
    path = states(rate, gradients)
    for before, after in pairwise(path):
        change = increment(rate, before, after)
        np.testing.assert_array_equal(change, change.T)
        if change.any():
            MatrixNorm(change)


@pytest.mark.parametrize("size", [1e-200, 1e200])
@pytest.mark.parametrize("rate", [ScalarAdaGrad(1.0), DiagonalAdaGrad(1.0), MatrixAdaGrad(1.0), CurvatureAdaptive(1.0)])
def test_squares_neither_vanish_nor_overflow(rate, size):
    if rate.shape == "matrix":
        gradients, expected = size * np.eye(2), size * np.eye(2)
    else:
        gradients, expected = size * np.ones((4, 1)), 2 * size
    if isinstance(rate, CurvatureAdaptive):
        gradients, expected = gradients[:1], size
    np.testing.assert_allclose(strengths(rate, gradients, 0.0)[-1], expected, rtol=1e-14, atol=0)


@pytest.mark.parametrize(
    ("rate", "expected"),
    [
        (Constant(0.25), 4.0),
        (InverseSqrt(2.0), 0.0),
        (InverseSqrt(2.0, 4.0), 1.0),
        (InverseTime(2.0), 0.0),
        (dual_averaging_rate(1.0, 2.0), 2 * math.sqrt(2)),
        (proximal_rate(1.0, 2.0), 0.0),
        (ScalarAdaGrad(2.0, 3.0), 1.5),
        (DiagonalAdaGrad(2.0, 3.0, 1.0), [2.0, 2.0]),
        (MatrixAdaGrad(2.0, 3.0), [[1.5, 0.0], [0.0, 1.5]]),
        (adagrad_proximal_rate(1.0), [0.0, 0.0]),
        (adagrad_dual_averaging_rate([1.0, 4.0], 2.0), [2.0, 0.5]),
        (entropic_rate(2, 2.0), 2 / math.sqrt(math.log(2))),
        (ScaleFree(1.0), [0.0, 0.0]),
        (CurvatureAdaptive(1.0), 0.0),
    ],
)
def test_strength_before_round_one(rate, expected):
    np.testing.assert_allclose(rate.strength(rate.init(2)), expected, rtol=1e-15)


@pytest.mark.parametrize(
    ("rate", "gradient_bound", "norm"),
    [
        (Constant(1.0), math.inf, L2),
        (tuned_rate(3.0, 2.0, 5), 2.0, L2),
        (Doubling(3.0, 2.0), 2.0, L2),
        (Doubling(3.0, 2.0).rate(4), 2.0, L2),
        (dual_averaging_rate(3.0, 2.0), 2.0, L2),
        (proximal_rate(3.0, 2.0), 2.0, L2),
        (InverseTime(1.0), math.inf, L2),
        (ScalarAdaGrad(1.0), math.inf, L2),
        (adagrad_proximal_rate(3.0), math.inf, LINF),
        (adagrad_dual_averaging_rate(3.0, 2.0), 2.0, LINF),
        (entropic_rate(4, 2.0), 2.0, LINF),
        (MatrixAdaGrad(1.0), math.inf, L2),
        (ScaleFree(1.0), math.inf, LINF),
        (CurvatureAdaptive(1.0), math.inf, L2),
    ],
)
def test_gradient_bounds_and_their_norms(rate, gradient_bound, norm):
    assert (rate.gradient_bound, rate.gradient_norm) == (gradient_bound, norm)


@pytest.mark.parametrize("rate", [tuned_rate(1.0, 1.0, 4), dual_averaging_rate(1.0, 1.0), entropic_rate(2, 1.0)])
def test_a_broken_promise_is_no_error(rate):
    assert math.isfinite(strengths(rate, [np.array([5.0, 5.0])])[-1])


# What is refused, and how.


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize(
    ("g", "said"),
    [
        ([1.0, math.nan, 0.0], "g: got nan at index 1, expected finite numbers"),
        ([-math.inf, 1.0, 0.0], "g: got -inf at index 0, expected finite numbers"),
        ([1.0, 2.0], r"g: got shape \(2,\), expected a vector of length 3"),
        ([[1.0, 2.0, 3.0]], r"g: got shape \(1, 3\), expected a vector of length 3"),
        (1.0, r"g: got shape \(\), expected a vector of length 3"),
    ],
)
def test_gradients_refused(rate, g, said):
    with pytest.raises(ValueError, match=said):
        rate.update(rate.init(N), np.array(g))


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("n", [0, -1, 2.5, None])
def test_dimensions_refused(rate, n):
    with pytest.raises(ValueError, match=r"n: got .*, expected a whole number of at least 1"):
        rate.init(n)


@pytest.mark.parametrize(
    ("build", "name"),
    [
        (Constant, "eta"),
        (InverseSqrt, "scale"),
        (InverseTime, "curvature"),
        (ScalarAdaGrad, "scale"),
        (DiagonalAdaGrad, "scale"),
        (lambda bad: DiagonalAdaGrad([1.0, bad]), "scale"),
        (MatrixAdaGrad, "scale"),
        (ScaleFree, "alpha"),
        (CurvatureAdaptive, "diameter"),
        (lambda bad: tuned_rate(bad, 1.0, 1), "radius"),
        (lambda bad: tuned_rate(1.0, bad, 1), "lipschitz"),
        (lambda bad: Doubling(bad, 1.0), "radius"),
        (lambda bad: Doubling(1.0, bad), "lipschitz"),
        (lambda bad: dual_averaging_rate(bad, 1.0), "radius"),
        (lambda bad: dual_averaging_rate(1.0, bad), "lipschitz"),
        (lambda bad: proximal_rate(bad, 1.0), "radius"),
        (lambda bad: proximal_rate(1.0, bad), "lipschitz"),
        (adagrad_proximal_rate, "radius"),
        (lambda bad: adagrad_dual_averaging_rate(bad, 1.0), "radius"),
        (lambda bad: adagrad_dual_averaging_rate(1.0, bad), "lipschitz"),
        (lambda bad: entropic_rate(2, bad), "lipschitz"),
    ],
)
@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, "fast"])
def test_what_must_be_positive(build, name, bad):
    with pytest.raises(ValueError, match=f"{name}: got .*{str(bad).strip('-')}.*, expected .*(positive|vector of)"):
        build(bad)


@pytest.mark.parametrize(
    ("build", "name"),
    [
        (lambda bad: InverseSqrt(1.0, bad), "offset"),
        (lambda bad: ScalarAdaGrad(1.0, bad), "offset"),
        (lambda bad: DiagonalAdaGrad(1.0, bad), "offset"),
        (lambda bad: DiagonalAdaGrad(1.0, beta=bad), "beta"),
        (lambda bad: MatrixAdaGrad(1.0, bad), "offset"),
        (lambda bad: ScaleFree(1.0, bad), "beta"),
        (lambda bad: CurvatureAdaptive(1.0).update(CurvatureAdaptive(1.0).init(1), np.ones(1), bad), "curvature"),
    ],
)
@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf])
def test_what_must_not_be_negative(build, name, bad):
    build(0.0)
    with pytest.raises(ValueError, match=f"{name}: got {bad}, expected .* of at least 0"):
        build(bad)


@pytest.mark.parametrize("gradient_bound", [0.0, -1.0, math.nan])
@pytest.mark.parametrize("rate", [Constant, InverseSqrt, ScalarAdaGrad, DiagonalAdaGrad])
def test_gradient_bounds_that_are_not_positive_are_refused(rate, gradient_bound):
    with pytest.raises(ValueError, match=r"gradient_bound: got .*, expected a positive number or infinity"):
        rate(1.0, gradient_bound=gradient_bound)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: tuned_rate(1.0, 1.0, 0), "horizon: got 0, expected a whole number of at least 1"),
        (lambda: entropic_rate(1, 1.0), "n: got 1, expected a whole number of at least 2"),
        (lambda: Doubling(1.0, 1.0).epoch(0), "t: got 0, expected a whole number of at least 1"),
        (lambda: Doubling(1.0, 1.0).rate(-1), "number: got -1, expected a whole number of at least 0"),
        (lambda: Doubling(1.0, 1.0).bound(-1), "rounds: got -1, expected a whole number of at least 0"),
        (lambda: sum_over_roots([1.0, -1.0]), "a: got -1.0 at index 1, expected numbers of at least 0"),
        (lambda: sum_over_roots([math.nan]), "a: got nan at index 0, expected finite numbers"),
        (lambda: DiagonalAdaGrad([1.0, 2.0]).init(3), "scale: got a vector of length 2, expected .* length 3"),
        (lambda: DiagonalAdaGrad(1.0, [2.0]).init(3), "offset: got a vector of length 1, expected .* length 3"),
        (lambda: DiagonalAdaGrad(1.0, beta=[1.0] * 4).init(3), "beta: got a vector of length 4, expected .* length 3"),
        (lambda: ScaleFree(1.0).observe(ScaleFree(1.0).init(1), np.array([math.nan])), "features: got nan at index 0"),
        (
            lambda: ScaleFree(1.0).update(ScaleFree(1.0).init(2), np.array([0.0, 3.0])),
            "got 3.0 at index 1.* observe",
        ),
    ],
)
def test_refused(call, said):
    with pytest.raises(ValueError, match=said):
        call()


# The sums of section 3 that belong to a rate alone.

ROUNDS = [1, 2, 3, 10, 1000]
R, G = 3.0, 2.0


def scalar_rates(rate, rounds):
    """η_0, …, η_T, infinite where there is no strength."""
    return [math.inf if s == 0 else 1 / s for s in strengths(rate, np.zeros((rounds, 1)))]


@pytest.mark.parametrize("rounds", ROUNDS)
def test_dual_averaging_sum(rounds):
    eta = scalar_rates(dual_averaging_rate(R, G), rounds)
    measured = R**2 / (2 * eta[rounds - 1]) + sum(eta[t - 1] * G**2 for t in range(1, rounds + 1)) / 2
    bound = math.sqrt(2) * R * G * math.sqrt(rounds)
    assert measured <= bound * ROUNDING
    assert measured >= bound * (1 - 0.5 / math.sqrt(rounds))


@pytest.mark.parametrize("rounds", ROUNDS)
def test_proximal_sum(rounds):
    eta = scalar_rates(proximal_rate(R, G), rounds)
    measured = (2 * R) ** 2 / (2 * eta[rounds]) + sum(eta[t] * G**2 for t in range(1, rounds + 1)) / 2
    bound = 2 * math.sqrt(2) * R * G * math.sqrt(rounds)
    assert measured <= bound * ROUNDING
    assert measured >= bound * (1 - 0.5 / math.sqrt(rounds))


@pytest.mark.parametrize("rounds", ROUNDS)
def test_strongly_convex_sum(rounds):
    eta = scalar_rates(InverseTime(0.5), rounds)
    measured = sum(eta[1:]) * G**2 / 2
    bound = G**2 / (2 * 0.5) * (1 + math.log(rounds))
    assert 0.6 * bound <= measured <= bound * ROUNDING


@pytest.mark.parametrize("horizon", [1, 7, 100])
@pytest.mark.parametrize("rounds", ROUNDS)
def test_tuned_sum(rounds, horizon):
    def bound(eta, rounds):
        return R**2 / (2 * eta) + eta * G**2 * rounds / 2

    eta = tuned_rate(R, G, horizon).eta
    formula = R * G / 2 * (math.sqrt(horizon) + rounds / math.sqrt(horizon))
    assert bound(eta, rounds) == pytest.approx(formula, rel=1e-14)
    assert bound(eta, horizon) == pytest.approx(R * G * math.sqrt(horizon), rel=1e-14)
    assert bound(eta, horizon) < min(bound(0.9 * eta, horizon), bound(1.1 * eta, horizon))


magnitudes = st.one_of(st.just(0.0), st.just(1.0), st.floats(0, 1, allow_subnormal=False), st.floats(1e-12, 1e-6))
columns_of = st.lists(magnitudes, min_size=1, max_size=40).map(np.array)
COLUMNS = [np.ones(50), 2.0 ** np.arange(-30, 1), np.r_[np.zeros(5), 1, 0, 1e-9, 1], (-1.0) ** np.arange(30)]


def check_adagrad_proximal_rate(g):
    rate = adagrad_proximal_rate(R)
    path = [float(s[0]) for s in strengths(rate, g[:, None])]
    stability = sum(v**2 / s for v, s in zip(g, path[1:], strict=True) if v != 0) / 2
    measured = (2 * R) ** 2 * path[-1] / 2 + stability
    bound = 2 * math.sqrt(2) * R * L2(g)  # which does not underflow, as g @ g does
    assert measured <= bound * ROUNDING
    return measured, bound


def check_adagrad_dual_averaging_rate(g):
    path = [float(s[0]) for s in strengths(adagrad_dual_averaging_rate(R, 1.0), g[:, None])]
    measured = R**2 * path[-2] / 2 + sum(v**2 / s for v, s in zip(g, path[:-1], strict=True)) / 2
    assert measured <= 1.5 * R * math.sqrt(1 + float(g[:-1] @ g[:-1])) * ROUNDING


def check_entropic(g, n=5):
    gradients = np.outer(g, [0.5, -1.0, 0.0, 0.25, 0.0])
    path = strengths(entropic_rate(n, 1.0), gradients)
    measured = math.log(n) * path[-2] + sum(v**2 / s for v, s in zip(g, path[:-1], strict=True)) / 2
    bound = 2 * math.sqrt((1 + float(g[:-1] @ g[:-1])) * math.log(n))
    assert measured <= bound * ROUNDING
    assert bound <= 2 * math.sqrt(len(g) * math.log(n)) * ROUNDING
    return measured, bound


CHECKS = [check_adagrad_proximal_rate, check_adagrad_dual_averaging_rate, check_entropic]


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("g", COLUMNS)
def test_adaptive_sums_on_adversarial_gradients(check, g):
    check(g)


@pytest.mark.parametrize("check", CHECKS)
@given(g=columns_of)
def test_adaptive_sums_on_any_gradients(check, g):
    check(g)


@pytest.mark.parametrize("check", [check_adagrad_proximal_rate, check_entropic])
def test_adaptive_sums_are_nearly_tight(check):
    measured, bound = check(np.ones(2000))
    assert measured >= 0.97 * bound


# Doubling.


def test_epochs_partition_the_rounds():
    doubling = Doubling(R, G)
    t = 1
    for number in range(8):
        for _ in range(2**number):
            assert doubling.epoch(t) == (number, 2**number, 2**number)
            t += 1
    assert [doubling.rate(k).eta for k in range(6)] == [tuned_rate(R, G, 2**k).eta for k in range(6)]


@pytest.mark.parametrize("rounds", [*range(70), 1023, 1024, 10**6, 10**12])
def test_doubling_bound(rounds):
    doubling = Doubling(R, G)
    measured = doubling.bound(rounds)
    slow, begin, number = 0.0, 0, 0
    while begin < rounds:
        eta, played = doubling.rate(number).eta, min(2**number, rounds - begin)
        slow += R**2 / (2 * eta) + eta * G**2 * played / 2
        begin, number = begin + 2**number, number + 1
    assert measured == pytest.approx(slow, rel=1e-13)
    assert measured <= math.sqrt(2) / (math.sqrt(2) - 1) * R * G * math.sqrt(rounds)
    # What an adaptive rate gains, a constant factor, shows from round 4 on.
    assert rounds < 4 or measured > math.sqrt(2) * R * G * math.sqrt(rounds)


# Scale-free rates.


@pytest.mark.parametrize("units", [[1.0, 1.0, 8.0], [1e-6, 3.0, 1e80]])
@pytest.mark.parametrize("beta", [0.0, 1.0])
def test_predictions_do_not_depend_on_units(units, beta):
    rng = np.random.default_rng(5)
    features = rng.normal(size=(60, N)) * (rng.random((60, N)) < 0.6)
    labels = rng.random(60) < 0.5
    rate = ScaleFree(0.3, beta)

    def learn(features):
        state, z, predictions, last = rate.init(N), np.zeros(N), [], None
        for a, y in zip(features, labels, strict=True):
            state = rate.observe(state, a)
            last = rate.strength(state)
            x = np.divide(-z, last, out=np.zeros(N), where=last > 0)
            predictions.append(float(a @ x))
            g = (1 / (1 + math.exp(-predictions[-1])) - y) * a
            state, z = rate.update(state, g), z + g
        return np.array(predictions), last

    predictions, strength = learn(features)
    rescaled, rescaled_strength = learn(features * units)
    np.testing.assert_allclose(rescaled, predictions, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(rescaled_strength, strength * np.square(units), rtol=1e-10)
    assert np.ptp(predictions) > 0.1


def test_the_present_example_counts():
    rate = ScaleFree(1.0)
    state = rate.observe(rate.init(2), np.array([-2.0, 0.0]))
    np.testing.assert_array_equal(rate.strength(state), [4.0, 0.0])
    state = rate.observe(rate.update(state, np.array([1.0, 0.0])), np.array([1.0, 3.0]))
    np.testing.assert_array_equal(rate.strength(state), [6.0, 9.0])


# Strength as needed.


def balance_cost(diameter, squares, curvatures, added):
    """½D²λ_{1:T} + ½Σ‖g_t‖²/(σ_{1:t} + λ_{1:t}), with 0/0 = 0."""
    total = np.cumsum(curvatures) + np.cumsum(added)
    terms = np.full(len(squares), math.inf)
    np.divide(squares, total, out=terms, where=total > 0)
    terms[np.asarray(squares) == 0] = 0.0
    return diameter**2 * float(np.sum(added)) / 2 + float(np.sum(terms)) / 2


def play(diameter, sizes, curvatures):
    """The strengths added by the rate, and what they cost."""
    rate = CurvatureAdaptive(diameter)
    state, added = rate.init(1), []
    for size, curvature in zip(sizes, curvatures, strict=True):
        before, state = state, rate.update(state, np.array([size]), curvature)
        added.append(increment(rate, before, state))
        assert rate.total(state) == pytest.approx(rate.strength(state) + sum(curvatures[: len(added)]), abs=1e-300)
    return np.array(added), balance_cost(diameter, np.square(sizes), curvatures, added)


def test_strength_added_balances():
    rng = np.random.default_rng(1)
    sizes, curvatures = rng.normal(size=50), rng.random(50) * (rng.random(50) < 0.5)
    added, _ = play(2.0, sizes, curvatures)
    np.testing.assert_allclose(2.0**2 * added, sizes**2 / (np.cumsum(curvatures) + np.cumsum(added)), rtol=1e-11)


@pytest.mark.parametrize("curvature", [1e3, 1e8, 1e16, 1e30])
def test_strength_added_to_much_curvature_does_not_cancel(curvature):
    rate = CurvatureAdaptive(2.0)
    state = rate.update(rate.init(1), np.array([3.0]), curvature)
    with mpmath.workdps(90):
        exact = (mpmath.sqrt(mpmath.mpf(curvature) ** 2 + 9) - mpmath.mpf(curvature)) / 2
    assert rate.strength(state) == pytest.approx(float(exact), rel=1e-15)


@pytest.mark.parametrize("curvature", [0.01, 1.0, 10.0])
def test_curved_losses_cost_a_logarithm(curvature):
    costs = {}
    for rounds in (100, 1000):
        sizes, curvatures = G * (-1.0) ** np.arange(rounds), [curvature] * rounds
        _, costs[rounds] = play(2 * R, sizes, curvatures)
        nothing = balance_cost(2 * R, sizes**2, curvatures, np.zeros(rounds))
        assert nothing <= G**2 / (2 * curvature) * (1 + math.log(rounds))
        assert costs[rounds] <= 2 * nothing
    if curvature >= 1:
        assert costs[1000] - costs[100] <= 2 * G**2 / (2 * curvature) * math.log(10) * 1.01


@pytest.mark.parametrize("rounds", [1, 10, 1000])
def test_flat_losses_cost_a_root(rounds):
    added, cost = play(2 * R, np.full(rounds, G), [0.0] * rounds)
    best_constant = 2 * R * G * math.sqrt(rounds)
    assert best_constant <= cost <= 2 * best_constant
    assert cost == pytest.approx((2 * R) ** 2 * added.sum(), rel=1e-12)
    assert cost == pytest.approx(math.sqrt(2) * best_constant, rel=0.3)


rounds_of = st.lists(
    st.tuples(magnitudes, st.one_of(st.just(0.0), st.floats(0, 2)), st.one_of(st.just(0.0), st.floats(0, 3))),
    min_size=1,
    max_size=25,
)


@given(rounds=rounds_of, diameter=st.floats(0.1, 10), first=st.floats(1e-6, 1e3))
def test_within_a_factor_two_of_any_strengths_in_hindsight(rounds, diameter, first):
    sizes, curvatures, added = (np.array(column) for column in zip(*rounds, strict=True))
    _, cost = play(diameter, sizes, curvatures)
    once = np.zeros(len(sizes))
    rivals = [added, once, np.where(np.arange(len(sizes)) == 0, first, added)]
    one_shots = np.geomspace(1e-4, 1e2, 60) * np.sqrt(np.sum(sizes**2)) / diameter
    rivals += [np.where(np.arange(len(sizes)) == 0, size, once) for size in [first, *one_shots]]
    best = min(balance_cost(diameter, sizes**2, curvatures, rival) for rival in rivals)
    assert cost <= 2 * best * ROUNDING


# Lemma 4.


@given(st.lists(st.one_of(st.just(0.0), st.floats(0, 1e308), st.floats(0, 1)), min_size=1, max_size=30))
def test_sum_over_roots(a):
    measured, bound = sum_over_roots(a)
    assert measured <= bound
    with mpmath.workdps(40):
        sums, total, slow = mpmath.mpf(0), sum(map(mpmath.mpf, a)), mpmath.mpf(0)
        for v in map(mpmath.mpf, a):
            sums += v
            slow += v / mpmath.sqrt(sums) if v else 0
        assert bound == pytest.approx(float(2 * mpmath.sqrt(total)), rel=1e-13, abs=0)
        assert measured == pytest.approx(float(slow), rel=1e-13, abs=0)


@given(st.lists(st.integers(-300, 300), min_size=1, max_size=20))
def test_sum_over_roots_of_huge_ratios(exponents):
    measured, bound = sum_over_roots([10.0**e for e in exponents])
    assert bound / 2 <= measured * ROUNDING
    assert measured <= bound


@pytest.mark.parametrize(("n", "ratio"), [(1, 0.5), (100, 0.92), (10_000, 0.99), (1_000_000, 0.999)])
def test_sum_over_roots_is_tight_in_the_limit(n, ratio):
    measured, bound = sum_over_roots(np.full(n, 3.0))
    assert ratio * bound <= measured * ROUNDING
    assert measured <= bound


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=20), st.integers(0, 20))
def test_sum_over_roots_ignores_zeros(a, at):
    assume(at <= len(a))
    assert sum_over_roots([*a[:at], 0.0, 0.0, *a[at:]]) == pytest.approx(sum_over_roots(a), rel=1e-13)
