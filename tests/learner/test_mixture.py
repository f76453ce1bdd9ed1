"""Mixtures of settings: regret to the best below the bound, and the same predictions as the rules of experts."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, log_expit, log_softmax, logsumexp
from typer.testing import CliRunner

from forel.cli.app import app
from forel.experts import AdaHedge, ExponentialWeights, FixedShare
from forel.learner.grid import default_grid
from forel.learner.kernels import kernel
from forel.learner.learner import Learner
from forel.learner.mixture import Ledger
from forel.learner.settings import Settings
from forel.losses import Absolute, Hinge

ALPHAS = (0.01, 0.1, 1.0, 10.0)
N, ROUNDS = 6, 300


def stream(loss, seed=0, rows=ROUNDS):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, N)) * (rng.random((rows, N)) < 0.5)
    score = X @ rng.normal(size=N) + 0.3
    if loss == "logistic":
        return X, (rng.random(rows) < expit(score)).astype(float)
    return X, np.where(score > 0, 1.0, -1.0) if loss == "hinge" else 100 * score + rng.normal(size=rows)


def adversarial(rows=ROUNDS):
    """One feature whose label is always what the present weights deny."""
    return np.ones((rows, N)), np.arange(rows) % 2.0


@pytest.mark.parametrize("weights", ["ones", "fractions", "large"])
@pytest.mark.usefixtures("interpreted")
def test_log_loss_is_mixed_by_bayes_rule(weights):
    X, y = stream("logistic")
    rng = np.random.default_rng(1)
    scale = {"ones": np.ones(ROUNDS), "fractions": rng.random(ROUNDS), "large": np.full(ROUNDS, 3.0)}[weights]
    model = Learner(N, Settings(alpha=ALPHAS), dtype=np.float64)
    found = model.progress(X, y, scale)[:, 0]
    margins = Learner(N, Settings(alpha=ALPHAS), dtype=np.float64, mixed=False).progress(X, y, scale)
    # The rule of experts, in which a loss is what it is; a large importance divides the rate instead.
    rule = ExponentialWeights(1 / max(1.0, scale.max()))
    state, suffered = rule.init(4), 0.0
    for m, label, c, got in zip(margins, y, scale, found, strict=True):
        w = rule.play(state)
        p = float(w @ expit(m))
        assert got == pytest.approx(np.log(p) - np.log1p(-p), rel=1e-9, abs=1e-12)
        suffered -= c * np.log(p if label else 1 - p)
        state = rule.update(state, -c * log_expit(m if label else -m))
    assert model.loss == pytest.approx(suffered, rel=1e-12)
    assert model.posterior == pytest.approx(rule.play(state), rel=1e-9, abs=1e-15)
    measured, bound = model.guarantee().pair
    assert measured <= bound == pytest.approx(np.log(4) * max(1.0, scale.max()))


def within(margins, labels, t):
    """Predictions kept within the labels before round t; 0 before the first."""
    seen = labels[:t] if t else np.zeros(1)
    return np.clip(margins[t], seen.min(), seen.max()), seen.max() - seen.min()


@pytest.mark.parametrize(("loss", "value"), [("absolute", Absolute()), ("hinge", Hinge())])
@pytest.mark.usefixtures("interpreted")
def test_other_losses_are_mixed_by_adahedge(loss, value):
    X, y = stream(loss)
    model = Learner(N, Settings(loss, alpha=ALPHAS), dtype=np.float64)
    found = model.progress(X, y)[:, 0]
    margins = Learner(N, Settings(loss, alpha=ALPHAS), dtype=np.float64, mixed=False).progress(X, y)
    rule, suffered = AdaHedge(), 0.0
    state = rule.init(4)
    for t, label in enumerate(y):
        m = margins[t] if loss == "hinge" else within(margins, y, t)[0]
        mixed = float(rule.play(state) @ m)
        assert found[t] == pytest.approx(mixed, rel=1e-9, abs=1e-12)
        suffered += float(value(mixed, label))
        state = rule.update(state, value(m, label))
    assert model.loss == pytest.approx(suffered, rel=1e-10)
    assert model.posterior == pytest.approx(rule.play(state), rel=1e-7, abs=1e-12)
    measured, bound = model.guarantee().pair
    assert measured <= bound == pytest.approx(float(rule.bound(state)[0]), rel=1e-9)


@pytest.mark.parametrize("importance", [1.0, 2.5])
@pytest.mark.usefixtures("interpreted")
def test_squared_loss_is_mixed_by_exponential_weights_within_the_labels_seen(importance):
    X, y = stream("squared")
    y[:20] *= 1e-3  # so that the first large label is far outside, and costs what mixing is not allowed to
    model = Learner(N, Settings("squared", alpha=(1.0, 10.0, 100.0, 1000.0)), dtype=np.float64)
    scale = np.full(ROUNDS, importance)
    found = model.progress(X, y, scale)[:, 0]
    margins = Learner(N, model.settings, dtype=np.float64, mixed=False).progress(X, y, scale)
    lost, suffered, beyond = np.zeros(4), 0.0, 0.0
    for t, label in enumerate(y):
        m, span = within(margins, y, t)
        certain = 1 / (importance * span**2) if span else np.inf
        eta = max(certain, np.log(4) / beyond if beyond else np.inf)
        w = np.exp(-eta * (lost - lost.min())) if eta < np.inf else 1.0 * (lost == lost.min())
        w /= w.sum()
        assert found[t] == pytest.approx(w @ m, rel=1e-9, abs=1e-12)
        each, mixed = importance * (m - label) ** 2 / 2, importance * (found[t] - label) ** 2 / 2
        if eta < np.inf:
            allowed = (logsumexp(-eta * lost) - logsumexp(-eta * (lost + each))) / eta
        else:
            allowed = (lost + each).min() - lost.min()
        outside = not (min(0, y[:t].min(initial=0)) <= label <= max(0, y[:t].max(initial=0)))
        # The inequality that the smallest rate is for.
        assert outside or eta > certain or mixed <= allowed + 1e-9 * (1 + allowed)
        lost, suffered, beyond = lost + each, suffered + mixed, beyond + max(0.0, mixed - allowed)
    assert model.loss == pytest.approx(suffered, rel=1e-10)
    assert model.losses == pytest.approx(lost, rel=1e-10)
    measured, bound = model.guarantee().pair
    span = np.ptp(np.append(y, 0))
    least = min(importance * span**2 * np.log(4), beyond)  # log K divided by the rate
    assert beyond > 0
    assert measured <= bound == pytest.approx(least + beyond, rel=1e-7)
    w = np.exp(-np.log(4) / least * (lost - lost.min()))
    assert model.posterior == pytest.approx(w / w.sum(), rel=1e-5)


@pytest.mark.parametrize("loss", ["logistic", "softmax"])
def test_classes_are_mixed_by_bayes_rule(loss, monkeypatch):
    compiled = kernel.kernel  # for softmax; the tests of estimators compile logistic loss for classes and settings

    def chosen(spec):
        return compiled(spec) if spec.joint and spec.settings > 1 else kernel.uncompiled_kernel(spec)

    monkeypatch.setattr(kernel, "kernel", chosen)
    X, _ = stream("logistic")
    y = np.argmax(X[:, :3] + np.random.default_rng(2).normal(size=(ROUNDS, 3)), axis=1)
    model = Learner(N, Settings(loss, alpha=ALPHAS), classes=3, dtype=np.float64)
    found = model.progress(X, y)
    rule, suffered = ExponentialWeights(), 0.0
    state = rule.init(4)
    each = [Learner(N, Settings(loss, alpha=a), classes=3, dtype=np.float64).progress(X, y) for a in ALPHAS]
    for r in range(ROUNDS):
        logs = np.array([log_softmax(m[r] if loss == "softmax" else log_expit(m[r])) for m in each])
        assert np.exp(found[r]) == pytest.approx(rule.play(state) @ np.exp(logs), rel=1e-9)
        suffered -= found[r, y[r]]
        state = rule.update(state, -logs[:, y[r]])
    assert model.loss == pytest.approx(suffered, rel=1e-12)
    assert model.posterior == pytest.approx(rule.play(state), rel=1e-9, abs=1e-15)
    assert model.guarantee().measured <= np.log(4) + 1e-9
    assert np.exp(model.margins(X)).sum(axis=1) == pytest.approx(np.ones(ROUNDS))
    # One setting by itself is the model that was learned, and goes on as it would.
    alone, linear = model.select_setting(2), Learner(N, Settings(loss, alpha=1.0), classes=3, dtype=np.float64)
    linear.learn(X, y)
    assert np.allclose(alone.weights, linear.weights, rtol=1e-12)
    assert alone.loss == pytest.approx(linear.loss)
    assert np.allclose(alone.progress(X, y), linear.progress(X, y), rtol=1e-12)


@pytest.mark.parametrize(
    "settings", [Settings(alpha=ALPHAS), Settings(alpha=ALPHAS, rate="scale_free", l1=(0, 1, 0, 1))]
)
@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.usefixtures("interpreted")
def test_the_mixture_is_never_more_than_log_k_behind_the_best(settings, shuffled):
    for X, y in (stream("logistic", 3), adversarial()):
        order = np.random.default_rng(4).permutation(ROUNDS) if shuffled else np.arange(ROUNDS)
        model = Learner(N, settings)
        model.learn(X[order], y[order])
        assert model.loss <= model.losses.min() + np.log(4) + 1e-9
        assert model.guarantee().measured <= model.guarantee().bound


@pytest.mark.usefixtures("interpreted")
def test_classes_of_other_losses_are_mixed_by_adahedge():
    """One weight for all classes, whose losses are one convex function of all margins."""
    X, _ = stream("logistic")
    y = np.argmax(X[:, :3], axis=1)
    model = Learner(N, Settings("hinge", alpha=ALPHAS), classes=3, dtype=np.float64)
    found = model.progress(X, y)
    signs = np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    each = [Learner(N, Settings("hinge", alpha=a), classes=3, dtype=np.float64).progress(X, y) for a in ALPHAS]
    rule, suffered = AdaHedge(), 0.0
    state = rule.init(4)
    for r in range(ROUNDS):
        mixed = rule.play(state) @ np.array([m[r] for m in each])
        assert found[r] == pytest.approx(mixed, rel=1e-9, abs=1e-12)
        suffered += float(Hinge()(mixed, signs[r]).sum())
        state = rule.update(state, [Hinge()(m[r], signs[r]).sum() for m in each])
    assert model.loss == pytest.approx(suffered, rel=1e-10)
    assert model.guarantee().measured <= model.guarantee().bound


@pytest.mark.parametrize("share", [0.001, 0.2, 0.75])
@pytest.mark.usefixtures("interpreted")
def test_streams_that_drift_are_mixed_by_fixed_share(share, tmp_path):
    from forel.training.model import load, save

    X, y = stream("logistic")
    y[150:] = 1 - y[150:]
    model = Learner(N, Settings(alpha=ALPHAS), dtype=np.float64, share=share)
    found = model.progress(X[:200], y[:200])[:, 0]
    save(tmp_path / "m", model)
    model = load(tmp_path / "m").learner
    found = np.append(found, model.progress(X[200:], y[200:]))
    margins = Learner(N, Settings(alpha=ALPHAS), dtype=np.float64, mixed=False).progress(X, y)
    rule, suffered = FixedShare(share=share), 0.0
    state = rule.init(4)
    for m, label, got in zip(margins, y, found, strict=True):
        p = float(rule.play(state) @ expit(m))
        assert got == pytest.approx(np.log(p) - np.log1p(-p), rel=1e-9, abs=1e-12)
        suffered -= np.log(p if label else 1 - p)
        state = rule.update(state, -log_expit(m if label else -m))
    assert model.loss == pytest.approx(suffered, rel=1e-12)
    assert model.posterior == pytest.approx(rule.play(state), rel=1e-9)
    measured, bound = model.guarantee().pair
    assert measured <= bound == pytest.approx(float(rule.bound(state)[0]))
    model.learn(X[:2], y[:2], [2.0, 1.0])
    assert "importance was above 1" in str(model.guarantee())


@given(st.lists(st.floats(-1e30, 1e30), min_size=4, max_size=4), st.sampled_from([0.0, 0.3, 1.0]))
def test_margins_of_any_size_leave_numbers(margins, label):
    from forel.learner.kernels import bayes, ledger_layout, mixing

    shared, out = np.append(np.zeros(ledger_layout.HEAD + 4), np.full(4, 0.25)), np.empty(3)
    mixing.fixed_share(np.array([margins] * 3, np.float32), np.full(3, label), np.ones(3), 0.01, shared, out)
    assert np.isfinite(shared).all()
    assert np.isfinite(out).all()
    least = shared[ledger_layout.HEAD : ledger_layout.HEAD + 4].min()
    assert least * (1 - 1e-9) - 1e-9 <= max(shared[0], least) <= least * (1 + 1e-9) + np.log(4) + 0.03
    found = np.array([margins] * 3, np.float32)
    for tracker in (False, True):
        ledger = Ledger(4, fixed_share_expert=tracker)
        bayes.bayes(found.ravel(), found.shape[1], np.full(3, label), np.ones(3), ledger.array, out)
        assert np.isfinite(ledger.array).all()
        assert np.isfinite(out).all()
        least = ledger.losses.min()
        assert ledger.loss <= least + np.log(4 + tracker) + 1e-9 + 1e-12 * least
        assert ledger.weights.sum() == pytest.approx(1.0 * tracker)


def test_rows_held_out_are_predicted_and_leave_no_trace():
    X, y = stream("logistic")
    held = np.arange(ROUNDS) % 5 == 0
    whole, without = (Learner(N, default_grid()) for _ in range(2))
    whole.progress(X, y, held_out=held)
    without.progress(X[~held], y[~held])
    assert np.array_equal(whole.mixture.ledger.array, without.mixture.ledger.array)
    assert whole.state.numbers.tobytes() == without.state.numbers.tobytes()


def test_the_same_rows_give_the_same_bits_in_whatever_pieces():
    for loss in ("logistic", "squared"):
        X, y = stream(loss)
        whole, pieces = (Learner(N, default_grid(loss=loss)) for _ in range(2))
        expected = whole.progress(X, y)
        found = np.concatenate([pieces.progress(X[a : a + 37], y[a : a + 37]) for a in range(0, ROUNDS, 37)])
        assert np.array_equal(found, expected)
        assert np.array_equal(pieces.mixture.ledger.array, whole.mixture.ledger.array)
        assert np.array_equal(whole.margins(X[:5]), pieces.margins(X[:5]))


@pytest.mark.usefixtures("interpreted")
def test_the_certificate_is_that_of_the_best_setting_and_what_mixing_cost():
    X, y = stream("logistic")
    model = Learner(N, Settings(alpha=ALPHAS), dtype=np.float64, certified=True)
    model.learn(X, y)
    proof, best = model.certificate(), model.unmixed.certificate(model.best)
    assert proof.loss == pytest.approx(model.loss, rel=1e-12)
    for x in (np.zeros(N + 1), np.linspace(-1, 1, N + 1)):
        true = model.loss - sum(
            -float(log_expit((2 * b - 1) * (a @ x[:-1] + x[-1]))) for a, b in zip(X, y, strict=True)
        )
        assert true <= proof.regret(x) + 1e-9
        assert proof.regret(x) <= proof.bound(x) + 1e-9
        assert proof.regret(x) == pytest.approx(best.regret(x) + model.guarantee().measured, rel=1e-9)
    # What a fixed model could have had is known as well as from the best setting alone.
    assert proof.loss_floor(l2=1.0) == pytest.approx(best.loss_floor(l2=1.0), rel=1e-9)
    # All settings together say no less.
    assert all(model.loss_floor().at(norm) >= proof.loss_floor(l2=norm) for norm in (0.1, 1.0, 10.0))


@pytest.mark.usefixtures("interpreted")
def test_mixtures_of_a_user_defined_loss_and_refused_options():
    def bent(m, y):
        return (m - y) ** 2 / 2, m - y

    X, y = stream("squared")
    own, known = (Learner(N, Settings(loss, alpha=ALPHAS), dtype=np.float64) for loss in (bent, "squared"))
    assert np.allclose(own.unmixed.progress(X, y), known.unmixed.progress(X, y), rtol=1e-12)
    own.reset()
    own.learn(X, y)
    assert own.guarantee().measured <= own.guarantee().bound
    with pytest.raises(ValueError, match="setting: got 4, expected 0 to 3"):
        known.select_setting(4)
    for share, loss, message in ((0.9, "logistic", "at most 0.75"), (0.1, "hinge", "None, but for log-loss")):
        with pytest.raises(ValueError, match=message):
            Learner(N, Settings(loss, alpha=ALPHAS), share=share)
    known.reset()
    assert known.loss == known.rounds == 0


@pytest.fixture(scope="module")
def clicks(tmp_path_factory):
    from forel.data.clicks import write_clicks

    path = tmp_path_factory.mktemp("clicks") / "clicks.vw"
    with path.open("wb") as file:
        write_clicks(file, 3000, seed=1)
    return path


def test_training_without_settings_mixes_and_continues_from_a_file(clicks, tmp_path):
    import forel
    from forel.training.model import evaluate

    whole = forel.train(clicks, bits=14, certificate=True)
    assert isinstance(whole.learner, Learner)
    assert whole.learner.settings.n_settings == 8
    assert whole.report.loss == pytest.approx(whole.learner.loss / whole.training.rows, rel=1e-9)
    assert whole.learner.loss <= whole.learner.losses.min() + np.log(11) + 1e-9
    # Whatever the blocks and threads, and however often it is stored in between, the same bits.
    again = forel.train(clicks, bits=14, certificate=True, block_bytes=5000, threads=2)
    assert again.learner.state.numbers.tobytes() == whole.learner.state.numbers.tobytes()
    assert np.array_equal(again.learner.mixture.ledger.array, whole.learner.mixture.ledger.array)
    lines = clicks.read_bytes().splitlines(keepends=True)
    (tmp_path / "1.vw").write_bytes(b"".join(lines[:1234]))
    (tmp_path / "2.vw").write_bytes(b"".join(lines[1234:]))
    forel.train(tmp_path / "1.vw", bits=14, certificate=True).save(tmp_path / "m.forel")
    more = forel.train(tmp_path / "2.vw", model=forel.load(tmp_path / "m.forel"))
    more.save(tmp_path / "m.forel")
    assert np.array_equal(more.learner.mixture.ledger.array, whole.learner.mixture.ledger.array)
    assert more.learner.state.numbers.tobytes() == whole.learner.state.numbers.tobytes()
    # The mixture and the best setting alone, from files.
    whole.best().save(tmp_path / "best.forel")
    losses = [evaluate(forel.load(tmp_path / name), clicks).report.loss for name in ("m.forel", "best.forel")]
    assert losses == [evaluate(one, clicks).report.loss for one in (whole, whole.best())]
    assert losses[0] < losses[1]
    assert (tmp_path / "best.forel").stat().st_size < (tmp_path / "m.forel").stat().st_size / 4


def test_the_command_and_the_estimator_learn_the_same_bits(clicks):
    import forel
    from forel.data import concatenate
    from forel.sklearn import FTRLClassifier

    block = concatenate(forel.read(clicks, bits=14))
    estimator = FTRLClassifier(shuffle=False).fit(block.matrix(1 << 14), block.labels)
    model = forel.train(clicks, bits=14).learner
    assert estimator._model.state.numbers.tobytes() == model.state.numbers.tobytes()
    assert np.array_equal(estimator._model.mixture.ledger.array, model.mixture.ledger.array)


def test_later_passes_do_not_weigh_settings(clicks):
    """Those that learn by heart would win."""
    import forel
    from forel.sklearn import FTRLClassifier

    once, thrice = (forel.train(clicks, bits=14, passes=n, holdout=10) for n in (1, 3))
    assert np.array_equal(once.learner.mixture.ledger.array, thrice.learner.mixture.ledger.array)
    assert (thrice.learner.rounds, thrice.learner.first_pass_rows) == (8100, 2700)
    assert thrice.training.passes[2].loss < thrice.training.passes[0].loss == once.report.loss
    X, y = stream("logistic")
    one, many = (FTRLClassifier(passes=n, certified=True).fit(X, y) for n in (1, 4))
    assert str(one.guarantee_) == str(many.guarantee_)
    assert one.progressive_loss_ == many.progressive_loss_
    best = many._model.unmixed.certificate(many._model.best)
    assert many.certificate_.lower == best.lower


def test_an_interrupted_mixture_resumes_to_the_same_bytes(clicks, tmp_path):
    import forel

    class Stop(Exception):
        pass

    def stop(moment):
        if moment.rows > 1500:
            raise Stop

    options = {"bits": 14, "block_bytes": 20_000, "checkpoint": tmp_path / "c", "checkpoint_every": 500}
    forel.train(clicks, bits=14).save(tmp_path / "never")
    with pytest.raises(Stop):
        forel.train(clicks, progress=stop, **options)
    forel.train(clicks, resume=True, **options).save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "never").read_bytes()


def test_the_command_lists_the_mixed_settings(clicks, tmp_path):
    def run(*words):
        done = CliRunner().invoke(app, list(map(str, words)))
        assert done.exit_code == 0, done.output
        return done.stdout

    found = json.loads(run("train", clicks, "-b", 14, "--model", tmp_path / "m.forel", "--quiet", "--json"))
    assert len(found["settings"]) == 11
    assert sum(one["posterior"] for one in found["settings"]) == pytest.approx(1)
    assert found["guarantee"].startswith(
        "within 0.00086 per example of the best of 11 experts over 3,000 rows, which is "
    )
    assert found["report"]["loss"] <= found["settings"][0]["loss"] + np.log(13) / 3000 + 1e-9
    page = tmp_path / "r.html"
    message = run("train", clicks, "-b", 14, "--lanes", 4, "--best", "--model", tmp_path / "b.forel", "--report", page)
    assert "best of 4 settings" in message
    assert "Weights of the mixture" in page.read_text()
    assert "learner, which can continue training" in run("inspect", tmp_path / "b.forel")
    assert "best of 11 experts" in run("inspect", tmp_path / "m.forel")
    one = run("train", clicks, "-b", 14, "--alpha", 0.1, "--l1", 1)
    assert "Mixture" not in one
