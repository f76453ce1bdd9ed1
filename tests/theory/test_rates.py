"""Rates: strengths against their formulas in high precision, on adversarial and random gradients."""

import math
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
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
from tests.theory.rate_runs import CURVATURE, N, states, strengths


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
            # A square root divides the rounding of its matrix, ε‖S²‖, by the eigenvalues of S.
            values = np.linalg.eigvalsh(after)
            smallest = np.min(values[values > 0], initial=np.inf)
            error = N * np.finfo(float).eps * (values[-1] + values[-1] ** 2 / smallest)
            assert np.linalg.eigvalsh(after - before)[0] >= -max(error, 1e-300)
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
def test_a_gradient_above_the_bound_is_no_error(rate):
    assert math.isfinite(strengths(rate, [np.array([5.0, 5.0])])[-1])


# What is refused, and how.


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize(
    ("g", "message"),
    [
        ([1.0, math.nan, 0.0], "g: got nan at index 1, expected finite numbers"),
        ([-math.inf, 1.0, 0.0], "g: got -inf at index 0, expected finite numbers"),
        ([1.0, 2.0], r"g: got shape \(2,\), expected a vector of length 3"),
        ([[1.0, 2.0, 3.0]], r"g: got shape \(1, 3\), expected a vector of length 3"),
        (1.0, r"g: got shape \(\), expected a vector of length 3"),
    ],
)
def test_invalid_gradients_raise(rate, g, message):
    with pytest.raises(ValueError, match=message):
        rate.update(rate.init(N), np.array(g))


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("n", [0, -1, 2.5, None])
def test_invalid_dimensions_raise(rate, n):
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
def test_parameters_that_must_be_positive(build, name, bad):
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
def test_parameters_that_must_not_be_negative(build, name, bad):
    build(0.0)
    with pytest.raises(ValueError, match=f"{name}: got {bad}, expected .* of at least 0"):
        build(bad)


@pytest.mark.parametrize("gradient_bound", [0.0, -1.0, math.nan])
@pytest.mark.parametrize("rate", [Constant, InverseSqrt, ScalarAdaGrad, DiagonalAdaGrad])
def test_gradient_bounds_that_are_not_positive_are_refused(rate, gradient_bound):
    with pytest.raises(ValueError, match=r"gradient_bound: got .*, expected a positive number or infinity"):
        rate(1.0, gradient_bound=gradient_bound)


@pytest.mark.parametrize(
    ("call", "message"),
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
def test_invalid_parameters_raise(call, message):
    with pytest.raises(ValueError, match=message):
        call()
