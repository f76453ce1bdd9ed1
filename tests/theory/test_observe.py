"""What an algorithm observes before it plays: the game shows it, lemmas and bounds hold for it, the kernels agree."""

import math

import numpy as np
import pytest

from forel.learner.kernels import kernel
from forel.learner.learner import Learner as FastLinear
from forel.learner.settings import Settings
from forel.losses import Absolute, Example, Hinge, Linear, Logistic, Softmax
from forel.theory.algorithms import (
    FTRL,
    Implicit,
    MirrorDescent,
    adagrad_ftrl_proximal,
    as_ftrl_proximal,
    dual_averaging,
    gradient_descent,
)
from forel.theory.analysis import (
    bound,
    play,
    standard_ftrl_lemma,
    strong_ftrl_lemma,
    surrogate_regret,
    theorem_1,
    theorem_2,
    theorem_10,
    theorem_12,
)
from forel.theory.geometries import Diagonal
from forel.theory.penalties import ElasticNet
from forel.theory.rates import ScaleFree
from forel.theory.sets import Box, Reals
from forel.theory.weights import EveryRound, Once

N, ROUNDS = 3, 60
RATE = ScaleFree(0.5)
PENALTY = ElasticNet(0.05, 0.1)
MIRROR = MirrorDescent(RATE, Diagonal(), ElasticNet(0.01, 0.02))
OBSERVERS = {
    "proximal": FTRL(RATE, Diagonal(), "played"),
    "proximal, beta 0": FTRL(ScaleFree(0.5, 0.0), Diagonal(), "played"),
    "proximal, box": FTRL(RATE, Diagonal(), "played", feasible=Box(-0.5, 0.75)),
    "proximal, box without 0": FTRL(RATE, Diagonal(), "played", feasible=Box(0.25, 0.75)),
    "proximal, elastic net": FTRL(RATE, Diagonal(), "played", penalty=PENALTY, weights=Once()),
    "proximal, elastic net in every round": FTRL(RATE, Diagonal(), "played", penalty=PENALTY, weights=EveryRound()),
    "centered": FTRL(RATE, Diagonal()),
    "centered, L1": FTRL(RATE, Diagonal(), penalty=ElasticNet(0.3), weights=Once()),
    "mirror": MIRROR,
    "mirror, box": MirrorDescent(RATE, Diagonal(), feasible=Box(-0.5, 0.75)),
    "mirror as FTRL-Proximal": as_ftrl_proximal(MIRROR),
}
every_observer = pytest.mark.parametrize("name", OBSERVERS)


def random_rows(units, loss=None, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(ROUNDS, N)) * (rng.random((ROUNDS, N)) < [0.9, 0.5, 0.2]) * units
    return [Example(loss or Logistic(), a, int(y)) for a, y in zip(rows, rng.integers(0, 2, ROUNDS), strict=True)]


def growing(factor):
    """Features that grow in every round, by 1.7 up to 1e13: each one dwarfs all that was observed before."""
    rows = [np.eye(N)[t % N] * factor**t * (-1) ** t for t in range(ROUNDS)]
    return [Example(Hinge(), a, 1 if t % 5 else -1) for t, a in enumerate(rows)]


class Contrary:
    """Chooses features that bring the point to bear on them, and then the label that was not predicted."""

    def features(self, t, x):
        rng = np.random.default_rng([5, t])
        return (rng.normal(size=N) + 3 * np.sign(x)) * 10 ** rng.uniform(-3, 3, N)

    def __call__(self, t, x):
        a = self.features(t, np.zeros(N)) if t == 1 else self.features(t, self.before)
        return Example(Absolute(), a, -1.0 if a @ x > 0 else 1.0)


class Recorded(Contrary):
    def features(self, t, x):
        self.before = x
        return super().features(t, x)


STREAMS = {
    "random": lambda: random_rows(1.0),
    "badly scaled": lambda: random_rows(np.array([1e-6, 1.0, 1e6])),
    "growing": lambda: growing(1.7),
    "growing slowly": lambda: growing(1.2),
    "contrary": Recorded,
}
every_stream = pytest.mark.parametrize("stream", STREAMS)


def game(algorithm, stream):
    if stream == "growing" and not isinstance(algorithm, FTRL):
        # Mirror Descent does not go back to 0 as scales grow: its objective would be 1e12 times as large as its regret
        stream = "growing slowly"
    losses = STREAMS[stream]()
    return play(algorithm, losses, rounds=ROUNDS, n=N) if callable(losses) else play(algorithm, losses)


def comparators(trace):
    scale = trace.states[-1].rate.largest
    rng = np.random.default_rng(0)
    candidates = [np.zeros(N), trace.points[-1], *(rng.normal(size=(6, N)) / scale), *(10 * np.eye(N) / scale)]
    region = trace.algorithm.feasible
    return candidates if isinstance(region, Reals) else [np.clip(c, *region.bounds) for c in candidates]


@every_observer
@every_stream
def test_lemmas_are_equalities_and_regret_is_below_every_bound(name, stream):
    trace = game(OBSERVERS[name], stream)
    for x in comparators(trace):
        for against in ("composite", "losses"):
            for lemma in (strong_ftrl_lemma, standard_ftrl_lemma):
                parts = lemma(trace, x, against)
                assert parts.error <= 1e-9
                assert parts.remainder <= 1e-9 * (1 + abs(parts.regret) + abs(parts.regularization))
            limit = bound(trace, x, against)
            if not limit.void:
                assert surrogate_regret(trace, x, against) <= limit.total * (1 + 1e-9)
                assert trace.regret(x) <= limit.total * (1 + 1e-9) or against == "composite"
    if "box without" not in name:
        assert not limit.void


@every_observer
@every_stream
def test_every_point_minimizes_the_sum_of_rounds_and_observations(name, stream):
    """h_{0:t}(x_{t+1}) ≤ h_{0:t}(x): strength for the features to come is in h_{0:t}, around x_1 for FTRL."""
    trace = game(OBSERVERS[name], stream)
    for stage, x in zip(trace.stages, trace.points[1:], strict=True):
        best = stage.objective(x)
        size = abs(best) + stage.regularizer.geometry.value(stage.regularizer.strength, x) + abs(stage.losses(x))
        for other in comparators(trace):
            for step in (1.0, 0.01):
                assert best <= stage.objective(x + step * (other - x)) + 1e-9 * (1e-9 + size)


@pytest.mark.parametrize("proximal", [False, True], ids=["Theorem 1", "Theorem 2"])
def test_theorems_are_their_formulas_from_the_raw_rows(proximal):
    """Strengths s(βs + √n)/α by hand: of each round's observation around 0, of its gradient around x_t."""
    losses = random_rows(np.array([1e-6, 1.0, 1e6]))
    trace = play(FTRL(ScaleFree(0.5, 2.0), Diagonal(), "played" if proximal else "first"), losses)
    x = np.array([3e5, -0.4, 2e-6])
    largest, squares, z, strength = np.zeros(N), np.zeros(N), np.zeros(N), np.zeros(N)
    regularization = stability = regret = 0.0
    for loss in losses:
        a = loss.features
        largest = np.maximum(largest, np.abs(a))
        before = strength
        strength = largest * (2.0 * largest + np.sqrt(squares)) / 0.5
        regularization += 0.5 * float((strength - before) @ (x * x))
        point = np.divide(-z, strength, out=np.zeros(N), where=strength > 0)
        g = (1 / (1 + math.exp(-a @ point)) - loss.label) * a
        regret += g @ (point - x)
        squares += g * g
        before, strength = strength, largest * (2.0 * largest + np.sqrt(squares)) / 0.5
        measure = strength if proximal else before
        stability += 0.5 * float(np.sum(np.divide(g * g, measure, out=np.zeros(N), where=g != 0)))
        last = 0.5 * float((strength - before) @ (x - (point if proximal else 0)) ** 2)
        regularization += last
        z += g - (strength - before) * (point if proximal else 0)
    limit = (theorem_2 if proximal else theorem_1)(trace, x)
    assert trace.regret(x, linearized=True) == pytest.approx(regret, rel=1e-9)
    # Theorem 1 may leave out what the last round added
    assert limit.total == pytest.approx(regularization - (0 if proximal else last) + stability, rel=1e-9)
    assert trace.regret(x) <= regret <= limit.total


def test_a_gradient_is_not_measured_by_later_features():
    """A feature a million times as large, later on: were round 1 measured with it, its stability would vanish."""
    algorithm = FTRL(ScaleFree(1.0), Diagonal(), "played")
    first, second = Example(Absolute(), [1.0], 1.0), Example(Absolute(), [1e6], 1e6)
    alone, both = play(algorithm, [first]), play(algorithm, [first, second])
    x = np.array([1.0])
    assert theorem_2(alone, x).stability[0] == theorem_2(both, x).stability[0] == pytest.approx(0.25)
    assert both.stages[0].regularizer.strength[0] > 1e12
    assert both.stages[0].strength.tolist() == alone.stages[0].strength.tolist() == [2.0]


def test_the_game_shows_features_before_the_point_is_played():
    calls = []

    class Adversary:
        def features(self, t, x):
            calls.append(("features", t, x.tolist()))
            return [2.0 * t]

        def __call__(self, t, x):
            calls.append(("loss", t, x.tolist()))
            return Example(Absolute(), [2.0 * t], 1.0)

    trace = play(FTRL(ScaleFree(1.0, 0.0), Diagonal()), Adversary(), rounds=2, n=1)
    # g_1 = −2, so that x would be 2/4; with the feature 4 observed the strength is 4·2 and x = 2/8
    assert calls == [("features", 1, [0.0]), ("loss", 1, [0.0]), ("features", 2, [0.5]), ("loss", 2, [0.25])]
    assert trace.points[:2].ravel().tolist() == [0.0, 0.25]
    calls.clear()
    play(gradient_descent(1.0), Adversary(), rounds=1, n=1)
    assert [kind for kind, *_ in calls] == ["loss"]  # nobody looks


def test_multiclass_features_are_those_of_every_class():
    losses = [Example(Softmax(3), [1.0, -4.0], k % 3) for k in range(9)]
    trace = play(FTRL(RATE, Diagonal(), "played"), losses)
    assert trace.states[0].rate.largest.tolist() == [1.0, 1.0, 1.0, 4.0, 4.0, 4.0]
    assert trace.regret(np.zeros(6)) <= bound(trace, np.zeros(6)).total


@pytest.mark.parametrize(
    ("losses", "message"),
    [
        ([Linear(np.ones(2))], "losses: got Linear.* expected examples, such as Example, whose features"),
        (lambda t, x: Linear(np.ones(2)), r"expected an adversary with features\(t, x\), which ScaleFree"),
    ],
)
def test_losses_without_features_are_refused_with_a_sentence(losses, message):
    with pytest.raises(ValueError, match=message):
        play(FTRL(RATE, Diagonal()), losses, rounds=1, n=2)


def test_algorithms_that_use_features_have_the_attribute():
    assert all(algorithm.observes for algorithm in (*OBSERVERS.values(), Implicit(RATE, Diagonal())))
    for plain in (dual_averaging(1.0, 1.0), adagrad_ftrl_proximal(1.0), gradient_descent(1.0)):
        state = plain.init(2)
        assert not plain.observes
        assert plain.observe(state, np.ones(2)) is state


def test_mirror_descent_as_ftrl_proximal_observes_the_same():
    losses = random_rows(np.array([1e-2, 1.0, 1e2]))
    mirror, form = play(MIRROR, losses), play(as_ftrl_proximal(MIRROR), losses)
    assert np.allclose(mirror.points, form.points, rtol=1e-8, atol=1e-12)
    for x in comparators(mirror)[:4]:
        assert theorem_12(mirror, x).total == pytest.approx(theorem_12(form, x).total, rel=1e-8)


FAST = [
    Settings("logistic", "proximal", "scale_free", 0.4),
    Settings("logistic", "proximal", "scale_free", 0.4, l1=0.02, l2=0.05, bias=False),
    Settings("logistic", "proximal", "scale_free", 0.4, l1=0.01, penalty_weight="every", radius=0.5, bias=False),
    Settings("squared", "centered", "scale_free", 0.1, l2=0.05),
    Settings("logistic", "mirror", "scale_free", 0.4, l1=0.02, penalty_weight="every"),
]


@pytest.mark.parametrize("units", [1.0, np.array([1e-3, 1.0, 1e3])], ids=["one scale", "badly scaled"])
@pytest.mark.parametrize("settings", FAST, ids=str)
def test_the_fast_learner_plays_and_certifies_the_same_game(settings, units, monkeypatch):

    monkeypatch.setattr(kernel, "kernel", kernel.uncompiled_kernel)
    rows = np.array([loss.features for loss in random_rows(units)])
    labels = np.array([loss.label for loss in random_rows(units)])
    model, margins = FastLinear(N, settings, dtype=np.float64, certified=True), []
    for a, y in zip(rows, labels, strict=True):
        margins.append(float(model.progress(a[None], [y])[0, 0]))  # predicting would clip values to those seen
    proof = model.certificate()
    rows = np.hstack([rows, np.ones((ROUNDS, 1))]) if settings.bias else rows
    algorithm = settings.reference(N)
    trace = play(algorithm, [Example(settings.loss_function, a, y) for a, y in zip(rows, labels, strict=True)])
    assert np.allclose(margins, np.einsum("ti,ti->t", rows, trace.points[:-1]), rtol=1e-11, atol=1e-12)
    for x in (trace.points[-1], np.zeros(rows.shape[1]), np.full(rows.shape[1], 0.1) / np.abs(rows).max()):
        assert proof.regret(x) == pytest.approx(trace.regret(x, linearized=True), rel=1e-9, abs=1e-9)
        theorem = theorem_12 if settings.algorithm == "mirror" else theorem_10 if algorithm.proximal else theorem_1
        limit = theorem(trace, x, "losses").total
        if theorem is not theorem_12:
            assert proof.bound(x) == pytest.approx(strong_ftrl_lemma(trace, x, "losses").bound, rel=1e-9)
            assert theorem is theorem_1 or proof.bound(x) <= limit * (1 + 1e-9)
        assert trace.regret(x) <= limit
