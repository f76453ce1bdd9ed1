"""Streams and adversaries: each keeps the promise its docstring makes."""

import math

import numpy as np
import pytest
from scipy import optimize, sparse

from forel.losses import Example, Hinge, Logistic, Softmax, Squared
from forel.theory.algorithms import FTRL, MirrorDescent
from forel.theory.analysis.adversaries import (
    alternating,
    l1_example,
    l1_example_alternating,
    orthogonal,
    spikes,
    worst_linear,
)
from forel.theory.analysis.game import play
from forel.theory.analysis.streams import (
    classification,
    examples_from,
    experts,
    quadratics,
    random_linear,
    regression,
    switching,
)
from forel.theory.geometries import Diagonal, Euclidean
from forel.theory.norms import L1, L2, LINF, DiagonalNorm, MatrixNorm, PNorm, ScaledNorm
from forel.theory.penalties import l1
from forel.theory.rates import Constant, DiagonalAdaGrad, proximal_rate
from forel.theory.sets import Box
from forel.theory.weights import EveryRound
from forel.validation import Unsupported

STREAMS = [regression, classification, experts, switching, random_linear, quadratics]
NORMS = {
    "L1": L1,
    "L2": L2,
    "LINF": LINF,
    "p = 3": PNorm(3),
    "p = 1.2": PNorm(1.2),
    "diagonal": DiagonalNorm([4.0, 1.0, 0.25]),
    "one entry": DiagonalNorm(9.0),
    "matrix": MatrixNorm([[2.0, 1.0, 0.0], [1.0, 3.0, 0.0], [0.0, 0.0, 1.0]]),
    "scaled": ScaledNorm(L1, 3.0),
}
norms = pytest.mark.parametrize("norm", NORMS.values(), ids=NORMS)


def gradients(losses, n):
    return np.array([loss.subgradient(np.zeros(n)) for loss in losses])


# Streams


@pytest.mark.parametrize("stream", STREAMS)
def test_streams_have_their_length_and_depend_on_nothing_but_the_seed(stream):
    x = np.array([0.3, -0.2, 0.1])
    first, again, other = ([loss(x) for loss in stream(3, 40, seed=seed)] for seed in (5, 5, 6))
    assert len(first) == 40
    assert first == again
    assert first != other


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize(("n", "rounds", "seed", "named"), [(0, 1, 0, "n"), (1, 0, 0, "rounds"), (1, 1, -1, "seed")])
def test_streams_refuse_with_the_name_of_the_argument(stream, n, rounds, seed, named):
    with pytest.raises(ValueError, match=rf"^{named}: got -?\d, expected a whole number of at least"):
        stream(n, rounds, seed=seed)


@pytest.mark.parametrize("n", [1, 4, 20])
def test_regression_has_a_sparse_truth(n):
    losses = regression(n, rounds=3 * n, noise=0.0)
    features, labels = (np.array([getattr(loss, name) for loss in losses]) for name in ("features", "label"))
    truth = np.linalg.lstsq(features, labels)[0]
    assert np.sum(np.abs(truth) > 1e-9) == max(1, n // 5)
    assert sum(loss(truth) for loss in losses) < 1e-20


def test_the_noise_of_regression_has_its_standard_deviation():
    quiet, loud = regression(3, 4000, seed=2, noise=0.0), regression(3, 4000, seed=2, noise=0.5)
    assert np.std([b.label - a.label for a, b in zip(quiet, loud, strict=True)]) == pytest.approx(0.5, rel=0.05)
    with pytest.raises(ValueError, match="noise: got -1, expected a number of at least 0"):
        regression(3, 4, noise=-1)


def test_the_labels_of_classification_are_drawn_from_a_logistic_model():
    losses = classification(4, 6000, seed=1)
    assert {loss.label for loss in losses} == {0.0, 1.0}
    features, labels = (np.array([getattr(loss, name) for loss in losses]) for name in ("features", "label"))
    fitted = optimize.minimize(lambda w: Logistic()(features[:3000] @ w, labels[:3000]).sum(), np.zeros(4)).x
    for low, high in ((-9, -1), (-1, 0), (0, 1), (1, 9)):  # on the other half, each kind of margin is calibrated
        margins = features[3000:] @ fitted
        kind = (low < margins) & (margins <= high)
        assert labels[3000:][kind].mean() == pytest.approx(Logistic().link(margins[kind]).mean(), abs=0.05)


def test_experts_lose_nothing_or_one_and_the_better_one_less_by_the_gap():
    means = gradients(experts(5, 20_000, seed=1, gap=0.2), 5)
    assert set(means.ravel()) == {0.0, 1.0}
    assert np.sort(means.mean(axis=0)) == pytest.approx([0.3] + [0.5] * 4, abs=0.02)
    for gap in (-0.1, 0.6):
        with pytest.raises(ValueError, match=r"gap: got .*, expected a number from 0 to 0.5"):
            experts(5, 10, gap=gap)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_switching_changes_the_best_point_every_period(n):
    g = gradients(switching(n, 50, period=15), n)
    assert np.linalg.norm(g, axis=1) == pytest.approx(np.ones(50))
    changes = np.flatnonzero((g[1:] != g[:-1]).any(axis=1)) + 1
    assert changes.tolist() == [15, 30, 45]
    assert all(g[t] @ g[t - 1] <= 0 for t in changes)
    with pytest.raises(ValueError, match="period: got 0"):
        switching(n, 50, period=0)


@norms
def test_random_linear_has_the_promised_dual_norm(norm):
    g = gradients(random_linear(3, 500, norm=norm, lipschitz=2.5), 3)
    assert [norm.dual(row) for row in g] == pytest.approx([2.5] * 500)
    directions = g / np.linalg.norm(g, axis=1)[:, None]
    assert np.linalg.norm(directions.mean(axis=0)) < 0.15


def test_random_linear_refuses_norms_without_a_finite_dual():
    with pytest.raises(ValueError, match=r"norm: got DiagonalNorm.*, expected a norm that is positive and finite"):
        random_linear(2, 3, norm=DiagonalNorm([1.0, 0.0]))
    with pytest.raises(ValueError, match="lipschitz: got 0, expected a positive number"):
        random_linear(2, 3, lipschitz=0)


def test_quadratics_are_strongly_convex_with_centers_uniform_in_the_ball():
    losses = quadratics(3, 2000)
    assert {loss.strong_convexity for loss in losses} == {1.0}
    radii = np.array([np.linalg.norm(loss.center) for loss in losses])
    assert radii.max() <= 1 + 1e-15
    assert np.mean(radii <= 0.5 ** (1 / 3)) == pytest.approx(0.5, abs=0.04)
    assert losses[0](losses[0].center) == 0


# Real data


@pytest.mark.parametrize("form", [list, np.array, sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
def test_examples_from_rows_of_any_form(form):
    rows = [[1.0, 0.0, 2.0], [0.0, 0.0, 0.0]]
    losses = examples_from(form(rows), [1, -1], Hinge())
    assert [loss.features.tolist() for loss in losses] == rows
    assert [loss.label for loss in losses] == [1.0, -1.0]
    assert play(FTRL(Constant(1.0), Euclidean()), losses).points[-1].tolist() == [1.0, 0.0, 2.0]


def test_examples_from_classes():
    losses = examples_from(np.eye(2), [2, 0], Softmax(3))
    assert all(isinstance(loss, Example) for loss in losses)
    assert play(FTRL(Constant(1.0), Euclidean()), losses).points.shape == (3, 6)


@pytest.mark.parametrize(
    ("X", "y", "loss", "message"),
    [
        (np.eye(2), [1, 2], Logistic(), r"y: got 2.0 at index 1, expected a finite number of at least 0 and at most 1"),
        (np.eye(2), [1], Logistic(), "y: got '1 labels', expected one for each of the 2 rows of X"),
        (np.eye(2), [[1], [0]], Logistic(), r"y: got shape \(2, 1\), expected a vector"),
        ([1.0, 2.0], [1, 0], Squared(), r"X: got shape \(2,\), expected a matrix"),
        ([[1.0], [math.nan]], [1, 0], Squared(), r"X: got nan at index \(1, 0\), expected finite numbers"),
        (sparse.csr_array([[1.0], [math.inf]]), [1, 0], Squared(), "X: got inf at index 1, expected finite numbers"),
    ],
)
def test_examples_from_refuses(X, y, loss, message):
    with pytest.raises(ValueError, match=message):
        examples_from(X, y, loss)


# Adversaries


@norms
def test_no_gradient_within_the_bound_costs_more_than_the_worst_linear(norm):
    rng = np.random.default_rng(0)
    adversary = worst_linear(norm, lipschitz=2.0)
    points = [*rng.normal(size=(20, 3)), np.array([0.0, -3.0, 0.0]), np.array([1.0, 1.0, -1.0]), np.zeros(3)]
    for t, x in enumerate(points, start=1):
        loss = adversary(t, x)
        assert norm.dual(loss.g) <= 2 * (1 + 1e-12)
        assert loss(x) == pytest.approx(2 * norm(x))
        others = rng.normal(size=(50, 3))
        assert all(2 * g @ x / norm.dual(g) <= loss(x) + 1e-12 for g in others)
    assert norm.dual(adversary(1, np.zeros(3)).g) == pytest.approx(2)


@norms
@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_the_worst_linear_does_not_depend_on_the_size_of_the_point(norm, scale):
    x = np.array([1.0, -2.0, 3.0])
    assert worst_linear(norm)(1, scale * x).g == pytest.approx(worst_linear(norm)(1, x).g)


def test_the_worst_linear_refuses_norms_it_cannot_turn_around():
    with pytest.raises(ValueError, match=r"norm: got DiagonalNorm.*, expected a norm that is positive and finite"):
        worst_linear(DiagonalNorm([1.0, 0.0]))
    with pytest.raises(ValueError, match=r"(?s)norm: got MatrixNorm.*, expected a norm that is positive and finite"):
        worst_linear(MatrixNorm([[1.0, 0.0], [0.0, 0.0]]))
    with pytest.raises(Unsupported, match="expected a PNorm, DiagonalNorm or MatrixNorm"):
        worst_linear(abs)
    with pytest.raises(ValueError, match=r"x_t: got shape \(3,\), expected a vector of length 2"):
        worst_linear(DiagonalNorm([1.0, 2.0]))(1, np.ones(3))


@pytest.mark.parametrize("make", [worst_linear, orthogonal, alternating, spikes, l1_example, l1_example_alternating])
@pytest.mark.parametrize("lipschitz", [0, -1, math.nan, "much"])
def test_adversaries_refuse_bounds_that_are_none(make, lipschitz):
    with pytest.raises(ValueError, match=r"lipschitz: got .*, expected a positive number"):
        make(lipschitz=lipschitz)


@pytest.mark.parametrize("n", [2, 3, 10])
def test_orthogonal_gradients_make_the_bound_of_gradient_descent_tight(n):
    R, G, T = 3.0, 2.0, 100
    eta = R / (G * math.sqrt(T))
    trace = play(FTRL(Constant(eta), Euclidean()), orthogonal(G), rounds=T, n=n)
    assert np.linalg.norm(trace.gradients, axis=1) == pytest.approx(np.full(T, G))
    assert np.abs(trace.values).max() < 1e-12
    sums = np.cumsum(trace.gradients, axis=0)
    assert np.linalg.norm(sums, axis=1) == pytest.approx(G * np.sqrt(np.arange(1, T + 1)))
    best = -R * sums[-1] / np.linalg.norm(sums[-1])
    bound = R**2 / (2 * eta) + eta / 2 * np.sum(trace.gradients**2)
    assert trace.regret(best) == pytest.approx(bound, rel=1e-12)
    assert bound == pytest.approx(R * G * math.sqrt(T))


@pytest.mark.parametrize("n", [3, 5])
def test_orthogonal_is_orthogonal_to_any_point_and_to_all_before(n):
    rng = np.random.default_rng(1)
    adversary, total = orthogonal(), np.zeros(n)
    for t in range(1, 200):
        x = rng.normal(size=n) * 10.0 ** rng.integers(-6, 6)
        x = x if t % 3 else total * (1 + 1e-11 * rng.normal(size=n))  # also almost parallel
        g = adversary(t, x).g
        assert np.linalg.norm(g) == pytest.approx(1)
        assert abs(g @ x) <= 1e-12 * np.linalg.norm(x)
        assert abs(g @ total) <= 1e-12 * (1 + np.linalg.norm(total))
        total = total + g


def test_orthogonal_starts_anew_with_each_game():
    adversary, player = orthogonal(), FTRL(Constant(1.0), Euclidean())
    first, second = (play(player, adversary, rounds=5, n=3).gradients for _ in range(2))
    assert (first == second).all()


@pytest.mark.parametrize("n", [1, 2])
def test_orthogonal_refuses_where_there_is_no_such_direction(n):
    adversary = orthogonal()
    adversary(1, np.zeros(n))
    with pytest.raises(Unsupported, match=f"dimension {n} .*; play in three dimensions or more"):
        adversary(2, np.ones(n))


def test_alternating_gradients_do_not_depend_on_the_points():
    x = np.random.default_rng(2).normal(size=(6, 3))
    g = np.array([alternating(2.0)(t, x[t - 1]).g for t in range(1, 7)])
    assert g.tolist() == [[2.0 * (-1) ** t, 0.0, 0.0] for t in range(6)]


def test_spikes_are_rare_and_large_and_favour_adagrad():
    around, G, T, n = Box(-1, 1), 5.0, 2000, 4
    counts_gradients = FTRL(DiagonalAdaGrad(math.sqrt(2)), Diagonal(), center="played", feasible=around)
    counts_rounds = FTRL(proximal_rate(2.0, G), Euclidean(), center="played", feasible=around)
    adaptive, fixed = (play(p, spikes(G, period=50), rounds=T, n=n) for p in (counts_gradients, counts_rounds))
    g = adaptive.gradients
    assert np.flatnonzero(g.any(axis=1)).tolist() == list(range(49, T, 50))
    assert np.count_nonzero(g, axis=0).tolist() == [T // 50 // n] * n
    assert np.abs(g).max() == G
    assert adaptive.worst_regret(around) < 0.5 * fixed.worst_regret(around)
    with pytest.raises(ValueError, match="period: got 0, expected a whole number of at least 1"):
        spikes(period=0)


# The one-dimensional L1 example: G = 11, T = 16, λ = ½, R = 2G, η = R/(G√T) = 2/√T


def l1_points(adversary, rounds=16):
    rate, around = Constant(2 / math.sqrt(16)), Box(-22, 22)
    mirror = MirrorDescent(rate, Euclidean(), l1(0.5), EveryRound(), around)
    native = FTRL(rate, Euclidean(), penalty=l1(0.5), weights=EveryRound(), feasible=around)
    return [play(player, adversary, rounds, n=1).points[:-1, 0] for player in (mirror, native)]


@pytest.mark.parametrize("adversary", [l1_example(), l1_example_alternating()], ids=["section 6.2", "appendix D"])
def test_mirror_descent_oscillates_for_ever(adversary):
    mirror, native = l1_points(adversary, rounds=200)
    assert mirror[0] == native[0] == 0
    assert native[1] == 2.625
    assert mirror[1:].tolist() == [2.625 * (-1) ** t for t in range(199)]


def test_native_ftrl_stays_at_zero_against_alternating_gradients():
    _, native = l1_points(l1_example_alternating(), rounds=200)
    assert (native[:12] != 0).tolist() == [False] + [True] * 11
    assert (native[12:] == 0).all()


def test_native_ftrl_is_driven_off_zero_by_the_adversary_as_worded():
    _, native = l1_points(l1_example())
    assert (native[:12] == l1_points(l1_example_alternating())[1][:12]).all()
    assert native[12:15].tolist() == [0.0, 0.0, 4.875]


@pytest.mark.parametrize("make", [l1_example, l1_example_alternating])
def test_the_l1_example_is_one_dimensional(make):
    assert make(4.0, 1.0)(1, np.zeros(1)).g == [-2.5]
    with pytest.raises(ValueError, match=r"x_t: got shape \(2,\), expected a vector of length 1"):
        make()(2, np.zeros(2))
    with pytest.raises(ValueError, match="penalty: got -1, expected a number of at least 0"):
        make(penalty=-1)
