"""The learner that is fed gradients, against the reference engine and the linear learner."""

import numpy as np
import pytest

from forel.learner.gradients import GradientLearner
from forel.learner.kernels import kernel
from forel.learner.linear import Linear, Settings
from forel.losses import Linear as LinearLoss
from forel.theory.algorithms import FTRL, MirrorDescent
from forel.theory.geometries import Diagonal
from forel.theory.penalties import ElasticNet
from forel.theory.rates import DiagonalAdaGrad
from forel.theory.weights import EveryRound, Once

N, LANES, ROUNDS = 6, 3, 200


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    monkeypatch.setattr(kernel, "kernel", kernel.uncompiled_kernel)


def gradients(seed=0):
    """Sparse gradients, some of no index at all."""
    rng = np.random.default_rng(seed)
    for _ in range(ROUNDS):
        indices = np.flatnonzero(rng.random(N) < 0.4)
        yield rng.permutation(indices), rng.normal(size=(indices.size, LANES)) + 0.3


@pytest.mark.parametrize("weight", ["once", "every"])
@pytest.mark.parametrize("algorithm", ["proximal", "centered", "mirror"])
def test_it_equals_the_reference(algorithm, weight):
    settings = Settings(algorithm=algorithm, alpha=0.4, l1=0.05, l2=0.1, penalty_weight=weight)
    learner = GradientLearner(N, settings, LANES, dtype=np.float64, certified=True)
    rate, penalty = DiagonalAdaGrad(0.4, beta=1.0), ElasticNet(0.05, 0.1)
    weights = Once() if weight == "once" else EveryRound()
    theory = (
        MirrorDescent(rate, Diagonal(), penalty, weights)
        if algorithm == "mirror"
        else FTRL(rate, Diagonal(), algorithm == "proximal", penalty=penalty, weights=weights)
    )
    state, regret, x = theory.init(N * LANES), 0.0, np.linspace(-1, 1, N * LANES)
    for indices, rows in gradients():
        dense = np.zeros((N, LANES))
        dense[indices] = rows
        regret += float(dense.ravel() @ (theory.play(state) - x))
        learner.feed(indices, rows)
        state = theory.update(state, LinearLoss(dense.ravel()))
        played = theory.play(state).reshape(N, LANES)
        assert np.allclose(learner.weights(), played, rtol=1e-12, atol=1e-13)
        assert ((learner.weights() == 0) == (played == 0)).all()
        assert np.array_equal(learner.weights(indices), learner.weights()[indices])
    proof, model = learner.certificate(), x.reshape(N, LANES).T.ravel()
    assert proof.regret(model) == pytest.approx(regret, rel=1e-11)
    assert proof.regret(model) <= proof.bound(model)
    assert learner.rounds == ROUNDS
    learner.reset()
    assert learner.rounds == 0
    assert not learner.weights().any()


def test_feeding_the_gradients_of_a_linear_model_is_learning_it():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(50, N)), rng.normal(size=50)
    model = Linear(N, Settings("squared", alpha=0.3, bias=False), dtype=np.float64)
    model.learn(X, y)
    learner = GradientLearner(N, Settings(alpha=0.3), dtype=np.float64)
    for a, label in zip(X, y, strict=True):
        learner.feed(np.arange(N), (a @ learner.weights().ravel() - label) * a)
    assert np.allclose(model.weights, learner.weights(), rtol=1e-12)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda m: m.feed([0, 9], [1.0, 1.0]), "indices: got 9, expected 0 to 5"),
        (lambda m: m.feed([-1], [1.0]), "indices: got -1"),
        (lambda m: m.feed([0, 0], [1.0, 1.0]), "indices: got one of them twice"),
        (lambda m: m.feed([0.5], [1.0]), "expected a vector of integers"),
        (lambda m: m.feed([0], [1.0, 2.0]), "gradient: got shape .*expected 1 rows of 1 numbers"),
        (lambda m: m.feed([0], [np.nan]), "gradient: got NaN"),
        (lambda m: m.feed([0], [1e39]), "gradient: got NaN or a number out of range"),
        (lambda m: m.weights([7]), "indices: got 7"),
        (lambda m: m.certificate(), "expected a learner made with certified=True"),
        (lambda m: GradientLearner(2, Settings(rate="scale_free")), "gradients come without them"),
        (lambda m: GradientLearner(2, Settings(algorithm="implicit")), "one that needs only the gradient of a loss"),
        (lambda m: GradientLearner(2, Settings(alpha=(1.0, 2.0)), lanes=3), "one for each of 3 lanes"),
    ],
)
def test_invalid_calls_are_refused_and_change_nothing(act, message):
    learner = GradientLearner(N, Settings())
    learner.feed([2], [1.0])
    before = learner._lanes.state.tobytes(), learner.rounds
    with pytest.raises(ValueError, match=message):
        act(learner)
    assert (learner._lanes.state.tobytes(), learner.rounds) == before
