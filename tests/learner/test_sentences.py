"""Every printed sentence is true as printed: an oracle that does not import forel recomputes it from the raw rows."""

import re

import numpy as np
import pytest

import forel
from forel.data.features.hashing import slot
from forel.learner.dual import DualPoint
from forel.learner.grid import default_grid
from forel.learner.kernels import bayes, ledger_layout
from forel.learner.learner import Learner
from forel.learner.loss_floor import LossFloor
from forel.learner.settings import Settings
from forel.losses import Choice
from forel.sklearn import FTRLClassifier, FTRLRegressor
from forel.training.metrics import Metrics
from forel.training.model import evaluate
from tests.fuzz import oracle, sentences
from tests.fuzz.checks import expert_margins, full_margins
from tests.fuzz.runs import run_violations


def test_random_and_adversarial_streams_refute_no_sentence():
    plays = {play: part for play, part in sentences.PLAYS.items() if play is not run_violations}
    played, violations = sentences.run(96, seed=20, plays=plays)
    assert violations == []
    assert {loss for loss, _, _ in played} == set(oracle.LOSSES)
    assert {experts for _, _, experts in played} == {"model", "mixture", "filters"}


def test_runs_of_decimals_with_options_together_refute_no_sentence():
    _, violations = sentences.run(40, seed=21, plays={run_violations: 1.0})
    assert violations == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (r"below 0\.\d", "below 0.9"),  # a floor that is too high
        (r"below 0\.(\d+)", r"below 0.\g<1>9"),  # rounded up instead of down
        (r"\d+ % of it", "101 % of it"),
        ("an average loss of", "an average loss per unit of importance of"),
        ("these features", "these 2^5 hashed features"),
        ("loss of 0", "loss of 1"),
        ("in norm", "in scaled norm"),
        ("these 400", "these 401"),
    ],
)
def test_the_oracle_refutes_what_is_false(old, new, interpreted):
    rng = np.random.default_rng(0)
    X, y = np.zeros((400, 3)), (rng.random(400) < 0.4).astype(float)  # all models are the same, and reach the floor
    model = Learner(3, Settings(alpha=0.3, bias=False), dtype=np.float64, certified=True)
    margins = model.progress(X, y)[:, 0]
    own, one = oracle.average("logistic", margins, y, np.ones(400)), np.ones(400)
    words = model.summary()
    assert oracle.certificate_violation(words, "logistic", X, y, one, own, model.weights[:, 0]) is None
    assert "below 0." in words
    false = re.sub(old, new, words)
    assert oracle.certificate_violation(false, "logistic", X, y, one, own, model.weights[:, 0]) is not None


def test_the_oracle_refutes_a_guarantee_that_does_not_hold(interpreted):
    X, y = np.ones((50, 1)), np.ones(50)
    model = Learner(1, Settings(alpha=(0.01, 1.0), bias=False), dtype=np.float64)
    mixed, settings = model.progress(X, y)[:, 0], model.settings
    each = Learner(1, settings, dtype=np.float64, mixed=False).progress(X, y)
    words, given = str(model.guarantee()), (each, list(settings.names), y, np.ones(50))
    assert oracle.mixture_violation(words, "logistic", mixed, *given) is None
    assert oracle.mixture_violation(words, "logistic", mixed - 0.1, *given) is not None
    assert oracle.mixture_violation(words.replace("alpha=1 ", "alpha=0.01 "), "logistic", mixed, *given) is not None


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_the_oracle_refutes_false_statements_about_the_default_experts(loss, interpreted):
    rng = np.random.default_rng(1)
    X, weight = rng.normal(size=(60, 3)), rng.exponential(size=60) * 3
    signal = X @ [1.0, -2.0, 0.0]
    y = (
        (rng.random(60) < 1 / (1 + np.exp(-signal))).astype(float)
        if loss == "logistic"
        else signal + rng.normal(size=60)
    )
    model = Learner(3, default_grid(loss=loss), dtype=np.float64)
    mixed, names = model.progress(X, y, weight)[:, 0], list(model.names)
    settings = Learner(3, model.settings, dtype=np.float64, mixed=False).progress(X, y, weight)
    full = full_margins(model.settings, loss, X, y, weight)
    experts = expert_margins(model, loss, settings, full, y, weight)
    words, given = str(model.guarantee()), (names, y, weight)
    table = [(one.name, one.loss, one.weight) for one in model.explain().experts]
    assert oracle.mixture_violation(words, loss, mixed, experts, *given) is None
    assert oracle.table_violation(table, loss, experts, *given) is None
    # As if mixers were not among the experts, or a better expert had been left out.
    assert oracle.mixture_violation(words, loss, mixed, settings, names[:8], y, weight) is not None
    better = np.column_stack([experts[:, :-1], 20 * (2 * y - 1) if loss == "logistic" else y])
    assert oracle.mixture_violation(words, loss, mixed, better, *given) is not None
    for column, change in ((1, 0.01), (2, 0.001)) if loss == "logistic" else ((1, 0.01),):
        for row in (0, 9):
            false = [list(one) for one in table]
            false[row][column] += change
            assert oracle.table_violation(false, loss, experts, *given) is not None
    if loss == "logistic":  # the bound is at most log K
        assert oracle.bayes_violation(words, len(names), weight) is None
        assert oracle.bayes_violation(words, 5, weight) is not None


def test_the_certificate_compares_with_the_best_setting_also_where_it_is_a_filter(interpreted):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(150, 3))
    y = (rng.random(150) < 1 / (1 + np.exp(-X @ [1.0, -2.0, 0.0]))).astype(float)
    model = Learner(3, default_grid(), dtype=np.float64, certified=True)
    model.learn(X, y)
    assert model.mixture.kinds[model.best] == "filter"
    learned = np.append(model.weights[:, 0], model.bias[0]) * np.append(np.abs(X).max(axis=0), 1.0)
    found = oracle.CERTIFICATE.fullmatch(model.summary())
    assert (found["learner"], found["expert"]) == ("the mixture", model.names[model.best])
    assert model.loss_floor().norm == pytest.approx(np.linalg.norm(learned))


@pytest.mark.parametrize("last", [15.0, 40.0, 400.0])
def test_a_setting_that_is_far_behind_is_still_there_when_the_leader_errs(last, interpreted):
    """400 rows put one setting hundreds of nats ahead; then comes one that it is sure of, and wrong about."""
    X = np.concatenate([np.full((400, 1), 1.0), [[last]]])
    y = np.concatenate([np.ones(400), [0.0]])
    model = Learner(1, Settings(alpha=(0.0001, 5.0), bias=False), dtype=np.float64)
    model.learn(X, y)
    assert model.loss <= model.losses.min() + np.log(2) + 1e-9
    behind = np.abs(np.diff(Learner(1, model.settings, dtype=np.float64, mixed=False).learn(X[:400], y[:400])))
    assert behind > 45


def test_weights_beyond_the_range_of_a_double_are_weighed_as_logarithms():
    margins = np.array([[0.0, 0.0], [3000.0, -3000.0]])
    ledger = np.zeros(ledger_layout.HEAD + 2)
    ledger[ledger_layout.HEAD] = 2000.0  # the first expert is 2,000 nats behind, and then right by 3,000
    out = np.empty(2)
    bayes.bayes(margins.ravel(), margins.shape[1], np.array([1.0, 1.0]), np.ones(2), ledger, out)
    lost = ledger[ledger_layout.HEAD :]
    assert ledger[0] <= min(lost[0], lost[1] + 2000) - 0 + np.log(2)
    assert ledger[0] == pytest.approx(2000 + np.log(2), rel=1e-12)


@pytest.mark.parametrize("loss", ["poisson", "squared_hinge", "hinge", "absolute"])
def test_adahedge_counts_on_weights_of_any_size(loss, interpreted):
    rng = np.random.default_rng(3)
    for _ in range(20):
        rows = 60
        X = rng.normal(size=(rows, 2)) * 10.0 ** rng.integers(-1, 2)
        y = {"poisson": rng.poisson(2, rows), "absolute": rng.normal(size=rows) * 1e3}.get(
            loss, rng.choice([-1.0, 1.0], rows)
        )
        y = np.asarray(y, float)
        X[-1], y[-1] = X[-1] * 1e3, y[-1] if loss.endswith("hinge") else abs(y[-1]) * 1e4 + 40
        weight = rng.exponential(size=rows) * 10.0 ** rng.integers(-1, 3)
        model = Learner(2, Settings(loss, alpha=(0.01, 1.0, 10.0)), dtype=np.float64)
        model.learn(X, y, weight)
        found = model.guarantee()
        assert found.measured <= found.bound


def test_averages_are_per_unit_of_importance(interpreted):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(300, 3)), (rng.random(300) < 0.4).astype(float)
    rows = [{"a": a, "b": b, "c": c, "y": label, "w": 10.0} for (a, b, c), label in zip(X, y, strict=True)]
    trained = forel.train(rows, label="y", importance="w", bits=8, certificate=True)
    own = float(re.search(r"loss per unit of importance of ([0-9]+\.[0-9]+)", trained.training.certificate)[1])
    assert own == pytest.approx(trained.report.loss, abs=6e-5)
    assert "per unit of importance" in str(trained.learner.guarantee())
    assert trained.learner.guarantee().other / 3000 == pytest.approx(trained.learner.averages.min())
    model = FTRLClassifier(certified=True).fit(X, y, sample_weight=np.full(300, 10.0))
    proof = model.certificate_
    assert proof.loss / proof.weight == pytest.approx(model.progressive_loss_)
    assert proof.loss_floor(l2=0.5) <= oracle.least_average(
        "logistic", np.column_stack([X, np.ones(300)]), y, np.full(300, 10.0), 0.5
    )


def _rows(rng, count, slope):
    X = rng.normal(size=(count, 2))
    return [{"a": a, "b": b, "y": float(rng.random() < 1 / (1 + np.exp(-slope * a)))} for a, b in X.tolist()]


def test_these_rows_are_the_rows_of_this_run_and_of_the_first_pass(interpreted):
    rng = np.random.default_rng(2)
    first, second = _rows(rng, 400, 3.0), _rows(rng, 150, -3.0)
    start = forel.train(first, label="y", bits=8, certificate=True)
    trained = forel.train(second, label="y", bits=8, certificate=True, model=start, passes=2)
    assert "on these 150 rows" in trained.training.certificate
    X = np.array([[row["a"], row["b"], 1.0] for row in second])
    y = np.array([row["y"] for row in second])
    words, own = trained.training.certificate, trained.report.loss
    # Scales are those of all rows that the model has learned from.
    scales = np.abs([[row["a"], row["b"], 1.0] for row in first + second]).max(axis=0)
    learned = trained.learner.weights_at(np.array([slot("a", bits=8), slot("b", bits=8)]))[:, 0]
    learned, known = np.append(learned, trained.learner.bias[0]), "these 2^8 hashed features"
    assert oracle.certificate_violation(words, "logistic", X, y, np.ones(150), own, learned, scales, known) is None


@pytest.mark.parametrize("settings", [Settings(alpha=0.5), None], ids=["one", "mixture"])
def test_a_resumed_run_prints_the_certificate_of_an_uninterrupted_one(tmp_path, settings):
    rng = np.random.default_rng(4)
    lines = [f"{2 * row['y'] - 1:g} | a:{row['a']:.4f} b:{row['b']:.4f}" for row in _rows(rng, 300, 2.0)]
    (tmp_path / "rows.vw").write_text("\n".join(lines) + "\n")
    options = {"bits": 8, "certificate": True, "passes": 2, "block_bytes": 1000}
    (tmp_path / "begin.vw").write_text("\n".join(lines[:50]) + "\n")
    start = forel.train(str(tmp_path / "begin.vw"), settings, bits=8, certificate=True)
    start.save(tmp_path / "start.forel")
    whole = forel.train(str(tmp_path / "rows.vw"), model=forel.load(tmp_path / "start.forel"), **options)

    class Stop(Exception):
        pass

    def stop(moment):
        if (moment.pass_number, moment.rows) >= (2, 100):
            raise Stop

    saving = {"checkpoint": tmp_path / "m.checkpoint", "checkpoint_every": 50}
    with pytest.raises(Stop):
        forel.train(
            str(tmp_path / "rows.vw"), model=forel.load(tmp_path / "start.forel"), progress=stop, **saving, **options
        )
    again = forel.train(
        str(tmp_path / "rows.vw"), model=forel.load(tmp_path / "start.forel"), resume=True, **saving, **options
    )
    assert again.training.certificate == whole.training.certificate
    assert again.training.frontier == whole.training.frontier is not None
    assert "on these 300 rows" in whole.training.certificate


@pytest.mark.parametrize("loss", ["squared", "absolute", "quantile", "huber"])
def test_a_mixture_of_regressions_reports_the_loss_of_its_predictions(loss, interpreted):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(200, 3)) * [1, 10, 100]
    y = X @ [1.0, 2.0, 3.0] + rng.normal(size=200) * 50
    model = FTRLRegressor(loss=loss, certified=True, lanes=4, shuffle=False).fit(X, y)._model
    alone = Learner(3, model.settings, mixed=False)
    margins, each = Learner(3, model.settings).progress(X, y)[:, 0], alone.progress(X, y).astype(float)
    own = oracle.average(loss, margins, y, np.ones(200))
    rows = np.column_stack([X, np.ones(200)])
    scales = np.abs(rows.astype(np.float32)).max(axis=0).astype(float)
    learned = np.append(model.weights[:, 0], model.bias[0])
    assert oracle.certificate_violation(model.summary(), loss, rows, y, np.ones(200), own, learned, scales) is None
    words = str(model.guarantee())
    assert "predictions clipped to the labels seen before" in words
    names = list(model.settings.names)
    assert oracle.mixture_violation(words, loss, margins, each, names, y, np.ones(200)) is None
    assert model.certificate().loss / 200 == pytest.approx(own, rel=1e-5)
    for _ in range(20):
        w = rng.normal(size=4) * 3
        regret = 200 * (own - oracle.average(loss, np.column_stack([X, np.ones(200)]) @ w, y, np.ones(200)))
        proof = model.certificate()
        assert regret <= proof.regret(w) + proof.slack + proof.rounding * np.linalg.norm(w)


def test_a_loss_that_can_be_negative_has_a_floor_below_zero(interpreted):
    model = Learner(1, Settings("poisson", alpha=0.5), certified=True)
    model.learn(np.ones((50, 1)), np.full(50, 20.0))
    assert re.search(r"could have had one below -\d", model.summary())


def test_the_sentence_states_whether_the_norm_includes_the_bias(interpreted):
    for bias in (True, False):
        model = Learner(2, Settings(alpha=0.5, bias=bias), dtype=np.float64, certified=True)
        model.learn([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]] * 30, [1, 0, 1] * 30)
        norm = float(np.hypot(np.linalg.norm(model.weights), model.bias[0] if bias else 0.0))
        assert model.loss_floor().norm == pytest.approx(norm)
        assert ("(in norm, bias included)" in model.summary()) == bias


def test_floors_are_rounded_down_and_what_may_be_left_up():
    rng = np.random.default_rng(7)
    for _ in range(300):
        rows = int(rng.integers(1, 10**6))
        norm, point = (
            rng.exponential() * 10.0 ** rng.integers(-4, 2),
            DualPoint(rows * rng.random(), rows * rng.exponential()),
        )
        floor = LossFloor(rows, float(rows), rows * 0.7, norm, (point,))
        found = oracle.CERTIFICATE.fullmatch(floor.summary()) or oracle.NOTHING.fullmatch(floor.summary())
        if "floor" in found.groupdict():
            least = floor.at(int(found["factor"] or 1) * norm)
            assert oracle.number(found["floor"]) <= least
            assert not found["percent"] or int(found["percent"]) <= 100 * least / 0.7
            assert not found["left"] or oracle.number(found["left"]) >= 0.7 - least
        if found["goal"]:
            assert oracle.number(found["times"]) * norm <= floor.needed_norm(oracle.number(found["goal"]))


def test_the_printed_area_is_the_exact_one_to_two_units_of_its_last_digit():
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(8)
    for scale in (1e-4, 0.01, 1.0, 30.0):
        margins = rng.normal(size=4000) * scale
        labels = (rng.random(4000) < 1 / (1 + np.exp(-margins / scale))).astype(float)
        seen = Metrics(forel.losses.Logistic())
        seen.add(margins, labels)
        shown = {name: text for _, name, text in seen.report().lines("log-loss")}["AUC"]
        unit = 10.0 ** -len(shown.partition(".")[2])
        assert abs(float(shown) - roc_auc_score(labels, margins)) <= 2 * unit
        assert "±" not in shown


def test_tables_label_half_the_squared_error(interpreted):
    rows = [{"x": 1.0, "y": 3.0}] * 5
    trained = forel.train(rows, Settings("squared", alpha=0.1), label="y", bits=4)
    names = [name for _, name, _ in trained.report.lines(trained.learner.settings.title)]
    assert "mean squared error / 2" in names
    found = evaluate(trained, rows, label="y").report
    assert found.loss == pytest.approx(
        np.mean([(3 - float(trained.learner.weights.sum() + trained.learner.bias[0])) ** 2 / 2])
    )


def a_hinge(m, y):
    short = 1 - y * m
    return (short, -y) if short > 0 else (0.0, 0.0)


def something_else(m, y):
    short = 1 - y * m
    return (short, -y) if short > 0 else (0.0, 0.0)


def with_signs(m, y):
    short = 1 - y * m
    return (short, -y) if short > 0 else (0.0, 0.0)


with_signs.labels = Choice((-1, 1))


def test_labels_are_coded_by_the_attributes_of_a_loss_and_not_by_its_name():
    X, y = np.eye(3), [0, 1, 2]
    named, other = (Learner(3, Settings(loss, alpha=0.5), classes=3) for loss in (a_hinge, something_else))
    signed, hinge = (Learner(3, Settings(loss, alpha=0.5), classes=3) for loss in (with_signs, "hinge"))
    with sentences.uncompiled():
        for model in (named, other, signed, hinge):
            model.learn(X, y)
        assert np.array_equal(named.weights, other.weights)
        assert np.array_equal(signed.weights, hinge.weights)
        assert not np.array_equal(signed.weights, named.weights)
    assert Settings(with_signs).signed
    assert not Settings(a_hinge).signed


def test_reports_are_written_with_the_same_sentence(tmp_path):
    from forel.report import write_report
    from forel.training.history import History, certificate_values, mixture_weights

    history = History(proof=certificate_values, shares=mixture_weights)
    rows = _rows(np.random.default_rng(9), 200, 2.0)
    trained = forel.train(rows, label="y", bits=8, certificate=True, progress=history)
    history.close()
    write_report(tmp_path / "r.html", trained, history)
    assert trained.training.certificate in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_mirror_descent_with_a_growing_scale_has_no_bound():
    """Strength that a scale adds is around the current point; counted around 0 it gave 81 for a regret of 10,598."""
    model = Learner(1, Settings("logistic", "mirror", "scale_free", 5.0, 1e4, bias=False), certified=True)
    with sentences.uncompiled():
        model.learn(np.array([[1.0]] * 20 + [[10.0]] * 30), [1] * 20 + [0] * 30)
        with pytest.raises(ValueError, match="Mirror Descent adds the strength of a growing scale around the current"):
            model.certificate().bound([0.0])


@pytest.mark.parametrize("loss", ["squared", "squared_error", "absolute", "huber"])
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e7])
def test_floors_hold_for_labels_that_float32_rounds(loss, offset, interpreted):
    rng = np.random.default_rng(10)
    X, y = np.ones((300, 1)), offset + rng.normal(size=300) * 3
    model = Learner(1, Settings(loss, alpha=1.0, rate="scale_free"), certified=True)
    for _ in range(3):
        before = model.snapshot()
        margins = model.progress(X, y)[:, 0].astype(float)
    words, own = model.loss_floor(since=before).summary(), oracle.average(loss, margins, y, np.ones(300))
    if offset == 1e7 and own < 10:
        assert "labels were rounded to float32, by up to 0.5; subtract a constant from them, or use float64" in words
    norm = float(np.hypot(model.weights[0, 0], model.bias[0]))
    floor = model.loss_floor(since=before).at(norm)
    assert floor <= oracle.least_average(loss, np.ones((300, 2)), y, np.ones(300), norm)


def test_averages_are_per_unit_of_importance_even_if_these_sum_to_the_number_of_rows(interpreted):
    X, y, weight = np.ones((40, 1)), [1.0, 0.0] * 20, np.array([0.5, 1.5] * 20)
    for alpha in (0.1, (0.1, 1.0)):
        model = Learner(1, Settings(alpha=alpha), certified=True)
        model.learn(X, y)
        assert "had an average loss of" in model.summary()
        model.learn(X, y, weight)
        assert model.total_importance == model.rounds
        assert "had an average loss per unit of importance of" in model.summary()
    assert "per unit of importance of the best" in str(model.guarantee())


def test_the_oracle_tries_models_in_the_units_of_the_features():
    rng = np.random.default_rng(8)
    y = (rng.random(200) < 0.5).astype(float)
    X = np.column_stack([rng.normal(size=200), 1e-20 * (y - 0.5), np.ones(200)])
    assert oracle.least_average("logistic", X, y, np.ones(200), 1e22) < 0.05
    assert oracle.least_average("logistic", X, y, np.ones(200), 1e19) > 0.6


def capped(margin, label):
    """The squared error up to 1, which is not convex."""
    error = margin - label
    return (error * error / 2, error) if abs(error) < 1 else (0.5, 0.0)


def half(margin, label):
    """The squared error with a slope that is half of its own."""
    return (margin - label) ** 2, margin - label


@pytest.mark.parametrize("loss", [capped, half])
def test_nothing_is_proved_of_a_function_below_its_tangents(loss, interpreted):
    model = Learner(1, Settings(loss, alpha=(0.1, 1.0)), certified=True)
    model.learn(np.ones((40, 1)), [1.0, 0.0] * 20)
    why = "because the loss is not convex, or its slope is wrong: for label 0 it is below its tangent at margin"
    assert model.summary().startswith("nothing is proved of the losses of fixed linear models")
    assert why in model.summary()
    assert str(model.guarantee()).startswith("nothing is proved against")
    for one in (a_hinge, with_signs, lambda m, y: (abs(m - y), 1.0 if m > y else -1.0)):
        assert Learner(1, Settings(one, alpha=1.0), certified=True).settings.loss_function.not_convex() == ""


@pytest.mark.parametrize("loss", [lambda m, y: m - y, lambda m, y: ("a", 1.0), lambda m, y: (m.of, 1.0)])
def test_functions_that_are_no_losses_are_refused_at_once(loss):
    with pytest.raises(ValueError, match=r"loss: got .*, expected a function .*that returns value and slope"):
        Settings(loss)
