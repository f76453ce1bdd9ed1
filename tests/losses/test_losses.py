"""Losses against high precision, their own definitions, and the solver's words for them."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import cvxpy as cp
import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forel.losses import (
    Absolute,
    Choice,
    Classes,
    Constants,
    Convex,
    EpsilonInsensitive,
    Example,
    Hinge,
    Huber,
    Interval,
    Linear,
    Logistic,
    MulticlassExample,
    Poisson,
    Quadratic,
    Quantile,
    Softmax,
    Squared,
    SquaredError,
    SquaredHinge,
    linear_bound,
    quadratic_bound,
)
from forel.losses.sigmoid import sigmoid
from forel.validation import Unsupported

EPS = float(np.finfo(np.float64).eps)
TINY = 1e-307  # Below this, numbers are subnormal and no relative accuracy is promised.


@pytest.fixture(autouse=True)
def _precision() -> Iterator[None]:
    # log(1 + e^m) − m at m = 700 starts in the 305th digit.
    with mp.workdps(400):
        yield


@dataclass(frozen=True)
class Case:
    """A margin loss, its definition in high precision, labels to try, and where it has kinks."""

    loss: Any
    exact: Callable[[Any, Any], Any]
    labels: tuple[float, ...]
    kinks: Callable[[float], list[float]] = lambda y: []
    # Where the result is a difference, rounding is relative to its terms.
    terms: Callable[[float, float], float] = lambda m, y: 0.0
    slope_terms: Callable[[float, float], float] = lambda m, y: 0.0
    ranges: tuple[tuple[float, float], ...] = field(default=((0.5, 0.25), (0.5, 0.5), (1.0, 1.0), (3.0, 2.0)))

    def grid(self, label: float) -> np.ndarray:
        """The labels of the domain up to ``label``."""
        domain = self.loss.labels
        if isinstance(domain, Choice):
            return np.array(domain.values, dtype=float)
        return np.linspace(max(domain.low, -label), min(domain.high, label), 5)


def _huber(m: Any, y: Any) -> Any:
    d = abs(m - y)
    return d * d / 2 if d <= mp.mpf(0.75) else mp.mpf(0.75) * (d - mp.mpf(0.75) / 2)


def _poisson(m: Any, y: Any, cap: float = 80.0) -> Any:
    return (mp.exp(m) if m <= cap else mp.exp(cap) * (1 + m - cap)) - y * m


REAL = (0.0, 1.0, -2.5, 0.1)
CASES = {
    "squared": Case(Squared(), lambda m, y: (m - y) ** 2 / 2, REAL),
    "squared error": Case(SquaredError(), lambda m, y: (m - y) ** 2, REAL),
    "absolute": Case(Absolute(), lambda m, y: abs(m - y), REAL, lambda y: [y]),
    "epsilon": Case(
        EpsilonInsensitive(0.375),
        lambda m, y: max(mp.mpf(0), abs(m - y) - mp.mpf(0.375)),
        REAL,
        lambda y: [y - 0.375, y + 0.375],
        terms=lambda m, y: abs(m - y),
    ),
    "huber": Case(Huber(0.75), _huber, REAL),
    "quantile": Case(
        Quantile(0.3), lambda m, y: max(mp.mpf(0.3) * (y - m), (1 - mp.mpf(0.3)) * (m - y)), REAL, lambda y: [y]
    ),
    "logistic": Case(
        Logistic(),
        lambda m, y: mp.log(1 + mp.exp(m)) - y * m,
        (0.0, 1.0, 0.3),
        slope_terms=lambda m, y: 0.0 if y in (0, 1) else 1.0,
    ),
    "hinge": Case(
        Hinge(),
        lambda m, y: max(mp.mpf(0), 1 - y * m),
        (-1.0, 1.0),
        lambda y: [y],
        ranges=((1.5, 1.0), (3.0, 1.0)),  # Up to 1 it is linear, and the constants are those of larger ranges.
    ),
    "squared hinge": Case(SquaredHinge(), lambda m, y: max(mp.mpf(0), 1 - y * m) ** 2 / 2, (-1.0, 1.0)),
    "poisson": Case(
        Poisson(),
        _poisson,
        (0.0, 1.0, 7.0),
        terms=lambda m, y: abs(y * m),
        slope_terms=lambda m, y: y,
    ),
}
every = pytest.mark.parametrize("case", CASES.values(), ids=CASES)

_random = np.random.default_rng(0)
MARGINS = [0.0, 0.25, 0.5, 1.0, *_random.normal(size=6), *_random.normal(scale=30, size=6)]
MARGINS += [s * m for m in (1e-12, 1e-3, 40.0, 700.0, 1e4, 1e30) for s in (-1, 1)]


def close(got: float, want: Any, terms: float = 0.0, ulps: int = 8) -> bool:
    return math.isfinite(got) and abs(mp.mpf(got) - want) <= ulps * EPS * (abs(want) + terms) + TINY


# --- values, slopes, links -------------------------------------------------------------------------------------------


@every
def test_value_matches_high_precision(case: Case) -> None:
    for y in case.labels:
        values = case.loss(np.array(MARGINS), y)
        for m, got in zip(MARGINS, values, strict=True):
            want = case.exact(mp.mpf(m), mp.mpf(y))
            assert close(float(got), want, case.terms(m, y)), (m, y, got, mp.nstr(want))


@every
def test_slope_matches_high_precision(case: Case) -> None:
    for y in case.labels:
        slopes = case.loss.slope(np.array(MARGINS), y)
        for m, got in zip(MARGINS, slopes, strict=True):
            if m not in case.kinks(y):
                want = mp.diff(lambda u, y=y: case.exact(u, mp.mpf(y)), mp.mpf(m))
                assert close(float(got), want, case.slope_terms(m, y)), (m, y, got, mp.nstr(want))


@every
@given(m=st.floats(-50, 50), u=st.floats(-50, 50), pick=st.integers(0, 9))
def test_slope_is_a_subgradient(case: Case, m: float, u: float, pick: int) -> None:
    y = case.labels[pick % len(case.labels)]
    for at in (m, *case.kinks(y)):
        here, there, rise = case.loss(at, y), case.loss(u, y), case.loss.slope(at, y) * (u - at)
        assert there >= here + rise - 1e-12 * (1 + abs(here) + abs(there) + abs(rise))


@every
def test_slope_at_a_kink_is_the_smallest_subgradient(case: Case) -> None:
    for y in case.labels:
        for kink in case.kinks(y):
            left, right = case.loss.slope(kink - 1e-6, y), case.loss.slope(kink + 1e-6, y)
            assert left < right
            assert case.loss.slope(kink, y) == min(max(left, 0.0), right) == 0.0
        assert case.loss.smooth == (not case.kinks(y))


@every
def test_arrays_broadcast_and_narrow_numbers_neither_wrap_nor_round(case: Case) -> None:
    labels = np.array(case.labels)
    margins = np.array([[-2.0], [0.0], [3.0]])
    for method in (case.loss, case.loss.slope):
        got = method(margins, labels)
        assert got.shape == (3, len(labels))
        assert got.dtype == np.float64
        for i, j in np.ndindex(got.shape):
            single = method(float(margins[i, 0]), float(labels[j]))
            assert np.shape(single) == ()
            assert single == got[i, j]
        unsigned = method(np.array([0, 2], dtype=np.uint8), np.uint8(1))
        assert unsigned.dtype == np.float64
        assert unsigned.tolist() == method(np.array([0.0, 2.0]), 1.0).tolist()
        for narrow in (np.int8, np.float32):
            got = method(np.array([-128, 1, 100], dtype=narrow), narrow(case.labels[0]))
            assert got.tolist() == method(np.array([-128.0, 1.0, 100.0]), float(narrow(case.labels[0]))).tolist()


def test_links() -> None:
    m = np.array([-800.0, -40.0, -1.5, 0.0, 2.0, 1e4])
    for case in CASES.values():
        predicted = case.loss.link(m)
        assert predicted.shape == m.shape
        if isinstance(case.loss, Logistic):
            assert all(close(p, 1 / (1 + mp.exp(-mp.mpf(u)))) for p, u in zip(predicted, m, strict=True))
        elif isinstance(case.loss, Poisson):
            assert all(close(p, mp.exp(min(u, 80))) for p, u in zip(predicted, m, strict=True))
        elif isinstance(case.loss, Hinge | SquaredHinge):
            assert predicted.tolist() == [-1, -1, -1, -1, 1, 1]
        else:
            assert predicted.tolist() == m.tolist()
    assert float(Poisson().link(np.int8(1))) == math.exp(1)


def test_poisson_is_finite_for_huge_margins_and_meets_its_tangent() -> None:
    for m in (-1e80, -1e30, 79.0, 80.0, 81.0, 1e30, 1e80):
        for y in (0.0, 3.0, 1e200):
            assert close(float(Poisson()(m, y)), _poisson(mp.mpf(m), mp.mpf(y)), abs(y * m))
            assert math.isfinite(Poisson().slope(m, y))
    loss = Poisson(cap=60.0)
    assert float(loss(60.0, 1)) == pytest.approx(math.exp(60.0))
    assert float(loss(62.0, 0)) == pytest.approx(3 * math.exp(60.0))
    assert float(loss.slope(59.999999, 0)) == pytest.approx(float(loss.slope(61.0, 0)), rel=2e-6)


# --- constants -------------------------------------------------------------------------------------------------------


@every
def test_constants_are_valid_and_tight(case: Case) -> None:
    for margin, label in case.ranges:
        constants = case.loss.constants(margin, label)
        m, h = np.linspace(-margin, margin, 4001, retstep=True)
        y = case.grid(label)[:, np.newaxis]
        slopes = case.loss.slope(m, y)
        curvatures = np.diff(slopes) / h

        assert np.max(np.abs(slopes)) == pytest.approx(constants.lipschitz, rel=1e-12)

        assert np.max(curvatures) <= constants.smoothness * (1 + 1e-9)
        if case.loss.smooth:
            assert np.max(curvatures) >= constants.smoothness * (1 - 2e-3)
        else:
            assert constants.smoothness == math.inf
            assert np.max(curvatures) > 100

        assert np.min(curvatures) >= constants.strong_convexity * (1 - 1e-9)
        assert np.min(curvatures) <= constants.strong_convexity * (1 + 2e-3)

        def bend(alpha: float, m: np.ndarray = m, y: np.ndarray = y) -> float:
            return float(np.max(np.diff(np.exp(-alpha * case.loss(m, y)), 2)))

        assert bend(constants.exp_concavity) <= 1e-14
        assert bend(constants.exp_concavity * 1.1 or 0.05) > 1e-12


@pytest.mark.parametrize(
    ("loss", "arguments", "expected"),
    [
        (Squared(), {}, (math.inf, 1, 1, 0)),
        (Squared(), {"margin": 2, "label": 2}, (4, 1, 1, 1 / 16)),
        (Squared(), {"margin": 0, "label": 0}, (0, 1, 1, math.inf)),
        (Squared(), {"margin": 1e200, "label": 1}, (1e200, 1, 1, 0)),
        (Absolute(), {}, (1, math.inf, 0, 0)),
        (Huber(2), {}, (2, 1, 0, 0)),
        (Huber(2), {"margin": 1, "label": 1}, (2, 1, 1, 0.25)),
        (Quantile(0.9), {}, (0.9, math.inf, 0, 0)),
        (Logistic(), {}, (1, 0.25, 0, 0)),
        (Logistic(), {"margin": 2, "label": 0.5}, Logistic().constants(2)),
        (Hinge(), {"margin": 3}, (1, math.inf, 0, 0)),
        (SquaredHinge(), {}, (math.inf, 1, 0, 0)),
        (SquaredHinge(), {"margin": 1}, (2, 1, 1, 0.25)),
        (Poisson(), {}, (math.inf, math.exp(80), 0, 0)),
        (Poisson(50), {"label": 3}, (math.exp(50), math.exp(50), 0, 0)),
        (Poisson(50), {"margin": 51, "label": 3}, (math.exp(50), math.exp(50), 0, 0)),
        (Poisson(), {"margin": 0.0, "label": 9}, (8, 1, 1, 1 / 64)),
        (Softmax(4), {}, (math.sqrt(2), 0.5, 0, 0)),
        (Softmax(2), {"margin": 1}, (math.sqrt(2), 0.5, 0, math.exp(-2))),
    ],
)
def test_constants_by_hand(loss: Any, arguments: dict[str, float], expected: tuple[float, ...]) -> None:
    assert loss.constants(**arguments) == pytest.approx(Constants(*expected), rel=1e-12, abs=0)


@pytest.mark.parametrize("name", ["margin", "label"])
@pytest.mark.parametrize("value", [-1.0, math.nan])
def test_constants_refuse_impossible_ranges(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name}: got {value}, expected a number of at least 0, or infinity"):
        Squared().constants(**{name: value})


# --- softmax ---------------------------------------------------------------------------------------------------------


def _softmax(m: list[Any], y: int) -> Any:
    return mp.log(sum(mp.exp(v) for v in m)) - m[y]


SPREADS = [0.0, 1e-12, 1.0, 40.0, 700.0, 1e4, 1e30]


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("classes", [2, 5])
def test_softmax_matches_high_precision(spread: float, classes: int) -> None:
    loss = Softmax(classes)
    # Integers times the spread, so that differences of margins are exact and the test is of the formula.
    rows = np.round(np.random.default_rng(classes).normal(size=(3, classes)) * 4) * spread / 4
    for row in [*rows, spread * np.eye(classes)[0]]:
        exact = [mp.mpf(float(v)) for v in row]
        p = [mp.exp(v) / sum(mp.exp(u) for u in exact) for v in exact]
        assert all(close(got, want, ulps=16) for got, want in zip(loss.link(row), p, strict=True))
        for y in range(classes):
            assert close(float(loss(row, y)), _softmax(exact, y), ulps=16)
            for k, got in enumerate(loss.slope(row, y)):
                assert close(got, p[k] - (k == y), ulps=16)


def test_softmax_of_two_classes_is_logistic() -> None:
    m = np.array(MARGINS)
    margins = np.stack([np.zeros_like(m), m], axis=-1)
    for y in (0, 1):
        np.testing.assert_allclose(Softmax(2)(margins, y), Logistic()(m, y), rtol=8 * EPS, atol=TINY)
        np.testing.assert_allclose(Softmax(2).slope(margins, y)[:, 1], Logistic().slope(m, y), rtol=8 * EPS, atol=TINY)


def test_softmax_broadcasts() -> None:
    loss, rng = Softmax(3), np.random.default_rng(1)
    margins, labels = rng.normal(size=(4, 1, 3)), np.array([0, 2])
    assert loss(margins, labels).shape == (4, 2)
    assert loss.slope(margins, labels).shape == (4, 2, 3)
    assert loss(margins, labels)[3, 1] == loss(margins[3, 0], 2)
    np.testing.assert_array_equal(loss.slope(margins, labels)[3, 1], loss.slope(margins[3, 0], 2))


vectors = st.lists(st.floats(-30, 30), min_size=3, max_size=3).map(np.array)


@given(m=vectors, u=vectors, y=st.integers(0, 2))
def test_softmax_slope_is_a_subgradient(m: np.ndarray, u: np.ndarray, y: int) -> None:
    loss = Softmax(3)
    assert loss(u, y) >= loss(m, y) + loss.slope(m, y) @ (u - m) - 1e-12 * (1 + np.sum(np.abs(u - m)))


@given(m=vectors.map(lambda v: v / 15), y=st.integers(0, 2))
def test_softmax_constants_are_valid(m: np.ndarray, y: int) -> None:
    constants = Softmax(3).constants(margin=2.0)
    p, g = Softmax(3).link(m), Softmax(3).slope(m, y)
    hessian = np.diag(p) - np.outer(p, p)
    assert np.linalg.norm(g) <= constants.lipschitz
    assert np.linalg.eigvalsh(hessian)[-1] <= constants.smoothness + 1e-12
    assert np.linalg.eigvalsh(hessian - constants.exp_concavity * np.outer(g, g))[0] >= -1e-12


def test_softmax_constants_are_tight() -> None:
    loss = Softmax(3)
    assert np.linalg.norm(loss.slope([50.0, -50.0, -50.0], 1)) == pytest.approx(loss.constants(50).lipschitz)
    p = loss.link([50.0, 50.0, -50.0])
    assert np.linalg.eigvalsh(np.diag(p) - np.outer(p, p))[-1] == pytest.approx(loss.constants(50).smoothness)
    worst = np.array([2.0, -2.0, 2.0])
    p, g = loss.link(worst), loss.slope(worst, 1)
    above = 1.01 * loss.constants(2).exp_concavity
    assert np.linalg.eigvalsh(np.diag(p) - np.outer(p, p) - above * np.outer(g, g))[0] < -1e-6


# --- in the solver's words -------------------------------------------------------------------------------------------


@every
def test_expression_is_the_same_convex_function(case: Case) -> None:
    m = np.array([-4.0, -1.0, -0.25, 0.0, 0.5, 1.0, 3.0])
    for y in case.labels:
        np.testing.assert_allclose(case.loss.expression(cp.Constant(m), y).value, case.loss(m, y), atol=1e-12)
        assert case.loss.expression(cp.Variable(), y).is_dcp()
        assert case.loss.expression(cp.Variable(), y).is_convex()
    many = np.resize(case.labels, m.size)
    np.testing.assert_allclose(case.loss.expression(cp.Constant(m), many).value, case.loss(m, many), atol=1e-12)


def test_softmax_expression() -> None:
    margins, labels = np.random.default_rng(2).normal(size=(4, 3)), np.array([0, 1, 2, 1])
    got = Softmax(3).expression(cp.Constant(margins), labels)
    np.testing.assert_allclose(got.value, Softmax(3)(margins, labels), rtol=1e-12)
    assert float(Softmax(3).expression(cp.Constant(margins[0]), 2).value) == pytest.approx(Softmax(3)(margins[0], 2))
    assert Softmax(3).expression(cp.Variable(3), 2).is_convex()


# --- label domains and parameters ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("domain", "y", "message"),
    [
        (Interval(), math.nan, "label: got nan, expected a finite number"),
        (Interval(), [0, 1, -math.inf], "label: got -inf at index 2, expected a finite number"),
        (Interval(), "spam", "label: got 'spam', expected a finite number"),
        (Interval(), None, "label: got None, expected a finite number"),
        (Interval(), [[1], [1, 2]], "label: got [[1], [1, 2]], expected a finite number"),
        (Interval(high=2), 3, "label: got 3.0, expected a finite number of at most 2"),
        (Interval(0), [[1, 2], [3, -4]], "label: got -4.0 at index (1, 1), expected a finite number of at least 0"),
        (Interval(0), math.inf, "label: got inf, expected a finite number of at least 0"),
        (Interval(0, 1), -0.5, "label: got -0.5, expected a finite number of at least 0 and at most 1"),
        (Choice((-1, 1)), [1, 0, 2], "label: got 0.0 at index 1, expected -1 or 1"),
        (Choice((-1, 1)), math.nan, "label: got nan, expected -1 or 1"),
        (Classes(3), 3, "label: got 3.0, expected a whole number from 0 to 2"),
        (Classes(3), [0, 0.5], "label: got 0.5 at index 1, expected a whole number from 0 to 2"),
        (Classes(3), -1, "label: got -1.0, expected a whole number from 0 to 2"),
        (Classes(3), math.nan, "label: got nan, expected a whole number from 0 to 2"),
    ],
)
def test_labels_outside_the_domain(domain: Any, y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=r"^label: ") as error:
        domain.check("label", y)
    assert str(error.value) == message


def test_labels_inside_the_domain() -> None:
    for domain, y in ((Interval(), [-1e300, 3]), (Interval(0, 1), [0, 0.5, 1]), (Choice((-1, 1)), [1, -1])):
        assert domain.check("label", y).tolist() == y
        assert domain.check("label", y).dtype == np.float64
    assert Classes(3).check("label", np.uint8(2)) == 2
    assert Interval().check("label", []).shape == (0,)
    with pytest.raises(ValueError, match=r"^label: got 1000+, expected a finite number$"):
        Interval().check("label", 10**400)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: EpsilonInsensitive(-1), "epsilon: got -1, expected a number of at least 0"),
        (lambda: Huber(0), "delta: got 0, expected a positive number"),
        (lambda: Quantile(1), "q: got 1, expected a number strictly between 0 and 1"),
        (lambda: Quantile(0.0), "q: got 0.0, expected a number strictly between 0 and 1"),
        (lambda: Poisson(cap=600), "cap: got 600, expected a number from 50 to 500"),
        (lambda: Softmax(1), "classes: got 1, expected a whole number of at least 2"),
        (lambda: Interval(2, 1), "low: got 2, expected a number of at most high = 1"),
        (lambda: Linear([1, math.nan]), "g: got nan at index 1, expected finite numbers"),
        (lambda: Quadratic([0.0], curvature=-1), "curvature: got -1, expected a number of at least 0"),
        (lambda: Quadratic([0.0], g=[1, 2]), "center and g: got shapes [(1,), (2,)], expected the same length"),
        (lambda: Example(Hinge(), [1.0], 0), "label: got 0.0, expected -1 or 1"),
        (lambda: Example(Hinge(), [math.inf], 1), "features: got inf at index 0, expected finite numbers"),
        (lambda: Example(Hinge(), [1.0], [1]), "label: got shape (1,), expected one number"),
        (lambda: Example(Softmax(3), [1.0], 1), "Softmax has a margin for each class; use MulticlassExample"),
        (lambda: MulticlassExample(Softmax(3), [1.0], 3), "label: got 3.0, expected a whole number from 0 to 2"),
        (lambda: Convex(1.0, lambda x: x), "value: got 1.0, expected a function of x"),
        (lambda: Convex(sum, lambda x: x, expression=2), "expression: got 2, expected a function of x"),
    ],
)
def test_impossible_parts_are_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=r".") as error:
        make()
    assert str(error.value) == message


# --- functions of the point ------------------------------------------------------------------------------------------


FEATURES = np.array([0.5, -1.25, 2.0])
EXAMPLES = {name: Example(case.loss, FEATURES, case.labels[1]) for name, case in CASES.items()}
LOSSES = {
    **EXAMPLES,
    "linear": Linear([1.0, -2.0, 0.5], constant=3.0),
    "quadratic": Quadratic([1.0, 0.0, -1.0], curvature=2.0, g=[0.5, 0.0, 1.0], constant=-1.0),
    "convex": Convex(
        lambda x: float(np.sum(np.abs(x)) + x @ x),
        lambda x: np.sign(x) + 2 * x,
        strong_convexity=2.0,
        expression=lambda x: cp.norm1(x) + cp.sum_squares(x),
    ),
    "one dimension": Example(Squared(), [-1.5], 2.0),
    "multiclass": MulticlassExample(Softmax(3), [1.0, -0.5], 2),
}
DIMENSION = {"one dimension": 1, "multiclass": 6}
every_loss = pytest.mark.parametrize(("name", "loss"), LOSSES.items(), ids=LOSSES)
entries = st.floats(-3, 3)


@every_loss
def test_subgradient_matches_finite_differences(name: str, loss: Any) -> None:
    n = DIMENSION.get(name, 3)
    for x in np.random.default_rng(3).normal(size=(5, n)):
        steps = 1e-6 * np.eye(n)
        slopes = [(loss(x + step) - loss(x - step)) / 2e-6 for step in steps]
        np.testing.assert_allclose(loss.subgradient(x), slopes, rtol=1e-6, atol=1e-7)
        assert isinstance(loss(x), float)
        assert loss.subgradient(x).shape == (n,)


@every_loss
def test_loss_expression_is_the_loss(name: str, loss: Any) -> None:
    n = DIMENSION.get(name, 3)
    for x in np.random.default_rng(4).normal(size=(3, n)):
        assert float(loss.expression(cp.Constant(x)).value) == pytest.approx(loss(x), rel=1e-12)
    assert loss.expression(cp.Variable(n)).is_convex()


@every_loss
@given(data=st.data())
def test_linear_bound_is_below_and_tight(name: str, loss: Any, data: st.DataObject) -> None:
    n = DIMENSION.get(name, 3)
    x, u = (np.array(data.draw(st.lists(entries, min_size=n, max_size=n))) for _ in range(2))
    bound = linear_bound(loss, x)
    # Poisson's margins reach 11 here, so values and gradients reach 1e5.
    slack = 1e-13 * (1 + abs(loss(x)) + 20 * np.sum(np.abs(bound.g)))
    assert isinstance(bound, Linear)
    assert bound(x) == pytest.approx(loss(x), abs=slack)
    assert bound(u) <= loss(u) + slack + 1e-13 * abs(loss(u))
    np.testing.assert_array_equal(bound.subgradient(u), loss.subgradient(x))


@pytest.mark.parametrize("name", ["quadratic", "convex", "one dimension"])
@given(data=st.data())
def test_quadratic_bound_is_below_and_tight(name: str, data: st.DataObject) -> None:
    loss: Any = LOSSES[name]
    n = DIMENSION.get(name, 3)
    x, u = (np.array(data.draw(st.lists(entries, min_size=n, max_size=n))) for _ in range(2))
    bound = quadratic_bound(loss, x)
    assert bound.strong_convexity == loss.strong_convexity > 0
    assert bound(x) == loss(x)
    assert bound(u) <= loss(u) + 1e-11
    assert bound(u) >= linear_bound(loss, x)(u) - 1e-11
    np.testing.assert_array_equal(bound.subgradient(x), loss.subgradient(x))
    if name != "convex":
        assert bound(u) == pytest.approx(loss(u), rel=1e-11, abs=1e-11)


def test_quadratic_bound_takes_a_curvature_and_needs_one() -> None:
    assert quadratic_bound(LOSSES["squared"], np.ones(3), curvature=0.5).curvature == 0.5
    for name, curvature in (("squared", None), ("linear", None), ("quadratic", 0.0), ("quadratic", -1.0)):
        with pytest.raises(ValueError, match=r"^curvature: got .*, expected a positive number; .* use linear_bound$"):
            quadratic_bound(LOSSES[name], np.ones(3), curvature)


def test_bounds_refuse_points_where_the_loss_is_infinite() -> None:
    loss = Convex(lambda x: math.inf, lambda x: x)
    for bound in (linear_bound, lambda loss, x: quadratic_bound(loss, x, 1.0)):
        with pytest.raises(ValueError, match=r"^loss\(x\): got inf, expected a finite number$"):
            bound(loss, [1.0])


def test_lipschitz_of_an_example() -> None:
    length = np.linalg.norm(FEATURES)
    for name, factor in (("logistic", 1), ("hinge", 1), ("huber", 0.75), ("quantile", 0.7), ("squared", math.inf)):
        assert EXAMPLES[name].lipschitz == pytest.approx(factor * length)
    assert Example(Squared(), [0.0, 0.0], 1).lipschitz == 0
    assert MulticlassExample(Softmax(3), FEATURES, 1).lipschitz == pytest.approx(math.sqrt(2) * length)


def test_strong_convexity_of_an_example() -> None:
    assert Example(Squared(), [-1.5], 2.0).strong_convexity == 2.25
    assert Example(Squared(), [-1.5, 0.0], 2.0).strong_convexity == 0
    assert Example(Logistic(), [2.0], 1).strong_convexity == 0


def test_what_a_loss_keeps_does_not_change_with_the_callers_arrays() -> None:
    g, center, features = np.ones(2), np.ones(2), np.ones(2)
    linear, quadratic, example = Linear(g), Quadratic(center, g=g), Example(Hinge(), features, 1)
    g[:] = center[:] = features[:] = 9.0
    assert linear.g.tolist() == quadratic.center.tolist() == quadratic.g.tolist() == example.features.tolist() == [1, 1]
    with pytest.raises(ValueError, match="read-only"):
        linear.subgradient(g)[0] = 5.0


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (math.nan, "value(x): got nan, expected one number, or infinity where x is not allowed"),
        (-math.inf, "value(x): got -inf, expected one number, or infinity where x is not allowed"),
        (np.ones(2), "value(x): got [1.0, 1.0], expected one number, or infinity where x is not allowed"),
        (None, "value(x): got None, expected one number, or infinity where x is not allowed"),
    ],
)
def test_values_of_a_loss_of_ones_own(value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=r"^value") as error:
        Convex(lambda x: value, lambda x: x)(np.ones(2))
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("gradient", "message"),
    [
        ([1.0, math.nan], "subgradient(x): got nan at index 1, expected finite numbers"),
        ([1.0, 2.0, 3.0], "subgradient(x): got shape (3,), expected a vector of length 2"),
        (1.0, "subgradient(x): got shape (), expected a vector of length 2"),
        ("up", "subgradient(x): got 'up', expected a vector of numbers"),
    ],
)
def test_subgradients_of_a_loss_of_ones_own(gradient: Any, message: str) -> None:
    with pytest.raises(ValueError, match=r"^subgradient") as error:
        Convex(lambda x: 0.0, lambda x: gradient).subgradient(np.ones(2))
    assert str(error.value) == message


def test_a_loss_of_ones_own_without_expression_says_so() -> None:
    with pytest.raises(Unsupported, match=r"give one as Convex\(..., expression=...\)"):
        Convex(lambda x: 0.0, lambda x: x).expression(cp.Variable(2))
    assert Convex(lambda x: math.inf, lambda x: x)(np.ones(2)) == math.inf


def test_the_logistic_function_is_right_to_the_last_digits():
    m = np.concatenate([np.random.default_rng(0).normal(size=300) * scale for scale in (0.01, 1.0, 30.0, 200.0)])
    with mp.workdps(40):
        exact = [1 / (1 + mp.exp(-mp.mpf(float(x)))) for x in m]
        wrong = [abs(mp.mpf(float(p)) / q - 1) for p, q in zip(sigmoid(m), exact, strict=True)]
    assert max(wrong) < 2 * np.finfo(np.float64).eps
    assert sigmoid(m.astype(np.float32)).dtype == np.float32
    assert np.isnan(sigmoid(np.nan))
    assert sigmoid([-np.inf, np.inf]).tolist() == [0.0, 1.0]
