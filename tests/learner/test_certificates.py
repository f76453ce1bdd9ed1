"""Certificates of the fast learner against the theory engine."""

import numpy as np
import pytest

from forel.learner.learner import Learner
from forel.learner.settings import Settings
from forel.losses import Example, Logistic
from forel.theory.sets import Box, l1_ball, l2_ball
from tests.learner.reference import ROUNDS, N, stream

CERTIFIED = [
    Settings("logistic", "proximal", "adagrad", 0.4),
    Settings("logistic", "centered", "adagrad", 0.4, l1=0.02, radius=0.5),
    Settings("logistic", "proximal", "adagrad", 0.4, l1=0.02, l2=0.05),
    Settings("logistic", "proximal", "adagrad", 0.4, l1=0.01, penalty_weight="every", radius=0.5, bias=False),
    Settings("squared", "centered", "adagrad", 0.1, l2=0.05, penalty_weight="every"),
    Settings("hinge", "centered", "adagrad", 0.3, bias=False),
    Settings("logistic", "centered", "adagrad", 0.1, radius=0.5),
    Settings("logistic", "proximal", "adagrad", 0.1, l1=0.02, l2=0.05),
    Settings("logistic", "mirror", "adagrad", 0.4, l1=0.02, l2=0.05, penalty_weight="every"),
    Settings("squared", "mirror", "adagrad", 0.1, radius=0.5),
    Settings("logistic", "mirror", "adagrad", 0.1, l1=0.01, penalty_weight="every", bias=False),
]


BEST = {}  # by loss and whether there is a constant feature, which determine the losses of a trace


def smallest_average(loss, bias, trace):
    """The smallest average loss in the unit ball, by the solver, once for the same losses."""
    if (loss, bias) not in BEST:
        best = trace.best(l2_ball(1.0))
        BEST[loss, bias] = np.mean([one(best) for one in trace.losses])
    return BEST[loss, bias]


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("settings", CERTIFIED, ids=str)
def test_the_certificate_equals_that_of_the_theory_for_the_same_game(settings):
    """Regret, bound and worst case from running sums equal those of the reference trace."""
    from forel.theory.analysis import play, strong_ftrl_lemma, theorem_1, theorem_10, theorem_12

    dense, labels = stream(settings.loss)
    model = Learner(N, settings, dtype=np.float64, certified=True, mixed=False)
    model.learn(dense, labels)
    proof = model.certificate()
    rows = np.hstack([dense, np.ones((ROUNDS, 1))]) if settings.bias else dense
    algorithm = settings.reference(N)
    trace = play(algorithm, [Example(settings.loss_function, a, y) for a, y in zip(rows, labels, strict=True)])
    theorem = theorem_10 if algorithm.proximal else theorem_1
    theorem = theorem_12 if settings.algorithm == "mirror" else theorem
    for x in (trace.points[-1], np.zeros(rows.shape[1]), np.clip(np.linspace(-1, 1, rows.shape[1]), -0.5, 0.5)):
        assert proof.regret(x) == pytest.approx(trace.regret(x, linearized=True), rel=1e-9, abs=1e-9)
        limit = theorem(trace, x, "losses").total
        if theorem is theorem_12:
            assert proof.bound(x) == pytest.approx(limit, rel=1e-9)
        else:
            # The lemma is what the theorems are proved from, and the same as these without a penalty or a box.
            # Theorem 1 may leave out the last round's regularizer, which the lemma keeps.
            assert proof.bound(x) == pytest.approx(strong_ftrl_lemma(trace, x, "losses").bound, rel=1e-9)
            assert proof.bound(x) <= limit * (1.05 if theorem is theorem_1 else 1) + 1e-9
            if theorem is theorem_10 and settings.l1 == settings.l2 == 0 and settings.radius is None:
                assert proof.bound(x) == pytest.approx(limit, rel=1e-9)
        assert proof.regret(x) <= proof.bound(x) + 1e-9
    assert proof.worst(l2=1.0) == pytest.approx(trace.worst_regret(l2_ball(1.0), linearized=True))
    assert proof.worst(l1=1.0) == pytest.approx(trace.worst_regret(l1_ball(1.0), linearized=True))
    assert proof.worst(box=1.0) == pytest.approx(trace.worst_regret(Box(-1, 1), linearized=True))
    assert proof.loss_floor(l2=1.0) <= smallest_average(settings.loss, settings.bias, trace) + 1e-9


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("settings", [*CERTIFIED, Settings(rate="scale_free", alpha=0.4, l1=0.02)], ids=str)
def test_the_certificate_among_seen_coordinates_is_the_same(settings):
    dense, labels = stream(settings.loss)
    wide = np.zeros((ROUNDS, 3 * N))
    wide[:, 1::3] = dense
    model = Learner(3 * N, settings, dtype=np.float64, certified=True, mixed=False)
    model.learn(wide, labels)
    seen, every = model.active_coordinates, model.certificate()
    assert set(seen) == {*np.flatnonzero(wide.any(axis=0)), *([3 * N] if settings.bias else [])}
    proof, x = model.certificate(among=seen), model.weights_at(seen).ravel()
    whole = np.append(model.weights, model.bias) if settings.bias else model.weights.ravel()
    assert np.array_equal(x, whole[seen])
    assert proof.summary(x) == every.summary(whole) == model.summary()
    for ball in ({"l2": 2.0}, {"l1": 2.0}, {"box": 2.0}):
        assert proof.worst(**ball) == pytest.approx(every.worst(**ball), rel=1e-12)
    for part in (x, 0 * x, 0.3 * np.sign(x)):
        padded = np.zeros(whole.size)
        padded[seen] = part
        assert proof.regret(part) == pytest.approx(every.regret(padded), rel=1e-12)
        assert proof.bound(part) == pytest.approx(every.bound(padded), rel=1e-12)
    # A model given by a few coordinates is 0 in all others, where the learner was not.
    few = seen[::2]
    padded = np.zeros(whole.size)
    padded[few] = 0.2
    some = model.certificate(among=few)
    assert some.bound(np.full(few.size, 0.2)) == pytest.approx(every.bound(padded), rel=1e-9)
    assert some.regret(np.full(few.size, 0.2)) == pytest.approx(every.regret(padded), rel=1e-9)


@pytest.mark.slow
def test_the_certificate_in_float32_and_lanes():
    dense, labels = stream("logistic", rounds=2000)
    model = Learner(N, Settings(alpha=(0.1, 0.5), l1=0.05), certified=True, mixed=False)
    model.learn(dense, labels)
    plain = Learner(N, Settings(alpha=(0.1, 0.5), l1=0.05), mixed=False)
    plain.learn(dense, labels)
    assert np.allclose(
        model.state.numbers[:, :2], plain.state.numbers, rtol=1e-3, atol=1e-3
    )  # other instructions, other rounding
    for lane in range(2):
        proof = model.certificate(lane)
        x = np.append(model.weights[:, lane], model.bias[lane])
        assert proof.regret(x) <= proof.bound(x) * (1 + 1e-4)
        true = model.loss[lane] - sum(
            float(Logistic()(a @ x[:-1] + x[-1], y)) for a, y in zip(dense, labels, strict=True)
        )
        assert true <= proof.regret(x) + 1e-2


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: Learner(2, Settings()).certificate(), "expected a model made with certified=True"),
        (lambda m: m.certificate(3), "lane: got 3, expected 0 to 0"),
        (lambda m: m.certificate().worst(), "got 0 of them, expected exactly one"),
        (lambda m: m.certificate().worst(l1=1.0, l2=1.0), "got 2 of them"),
        (lambda m: m.certificate().worst(l2=-1.0), "l2: got -1.0"),
        (lambda m: m.certificate().regret([1.0]), "model: got shape"),
        (lambda m: m.certificate().bound([9.0, 0.0]), "outside the radius 0.5, where Lemma 5 is void"),
    ],
)
def test_certificates_that_cannot_be_given_are_refused(call, message):
    model = Learner(2, Settings(radius=0.5, bias=False), certified=True, dtype=np.float64)
    model.learn(np.eye(2), [1, 0])
    with pytest.raises(ValueError, match=message):
        call(model)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("l2", [0.0, 0.3])
def test_the_strong_ftrl_lemma_is_an_equality_from_the_kernels_sums(l2):
    """At x* = x_{T+1}, without a threshold, nothing is lost between regret and bound."""
    dense, labels = stream("logistic")
    for settings in (Settings(alpha=0.4, l2=l2), Settings(alpha=0.4, bias=False, l2=l2)):
        model = Learner(N, settings, dtype=np.float64, certified=True, mixed=False)
        model.learn(dense, labels)
        x = np.append(model.weights, model.bias)[: N + settings.bias]
        proof = model.certificate()
        assert proof.regret(x) == pytest.approx(proof.bound(x), rel=1e-11)
        assert proof.regret(x) < proof.bound(x + 0.01)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (Settings(algorithm="mirror", rate="scale_free"), "use algorithm='proximal'"),
    ],
)
def test_a_void_bound_has_a_reason_and_the_regret_is_still_computed(settings, reason):
    dense, labels = stream("logistic")
    model = Learner(N, settings, dtype=np.float64, certified=True, mixed=False)
    model.learn(dense, labels)
    proof, x = model.certificate(), np.full(N + 1, 0.1)
    with pytest.raises(ValueError, match=reason):
        proof.bound(x)
    rows = np.hstack([dense, np.ones((ROUNDS, 1))])
    best = sum(float(Logistic()(a @ x, y)) for a, y in zip(rows, labels, strict=True))
    assert model.loss[0] - best <= proof.regret(x)


def test_a_certificate_is_printed_without_its_tables(interpreted):
    proof = Learner(50, Settings(alpha=(0.1, 1.0), rate="scale_free"), certified=True, mixed=False)
    proof.learn(np.eye(50), np.arange(50) % 2)
    shown = repr(proof.certificate(0))
    assert "result='Lemma 5'" in shown
    assert not [word for word in ("array", "DualPoint") if word in shown]
