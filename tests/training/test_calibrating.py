"""Online calibration: against matrices and batch regression, progressive, and the same at every interface."""

import json

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

import forel
from forel.cli.progress import calibration_sentence
from forel.learner.kernels.calibration import OFFSET, SLOPES, calibrate
from forel.learner.settings import Settings
from forel.report import page
from forel.river.stored import model_of
from forel.sklearn import estimator_of
from forel.store import ModelFileError, serving_model
from forel.store.calibration import Calibration, calibration_of
from forel.training.calibrating import PRIOR
from forel.training.history import History
from forel.training.model import Model, save
from forel.training.train import train
from tests.interfaces.test_cli import run

SETTINGS = Settings(alpha=3.0)
OPTIONS = {"label": "y", "bits": 8, "categories": ["c"]}
ROWS = [{"c": k * k % 37, "x": k % 5 / 4, "s": "ab"[k % 2], "y": (k * k + k // 50) % 11 % 3 % 2} for k in range(300)]


def reference_fit(margins, labels, importance):
    """The kernel's updates with matrices, and the calibrated margin of each row before its update."""
    theta, hessian, found = np.array([1.0, 0.0]), PRIOR * np.eye(2), []
    for m, y, w in zip(margins, labels, importance, strict=True):
        x = np.array([m, 1.0])
        found.append(theta @ x)
        if w > 0:
            p = expit(theta @ x)
            hessian += w * p * (1 - p) * np.outer(x, x)
            theta = np.clip(
                theta - np.linalg.solve(hessian, w * (p - y) * x), (SLOPES[0], -OFFSET), (SLOPES[1], OFFSET)
            )
    return theta, np.array(found)


def drawn(slope, offset, rows=400):
    rng = np.random.default_rng(5)
    margins = 3 * rng.normal(size=rows)
    return margins, (rng.random(rows) < expit(slope * margins + offset)).astype(float), rng.integers(0, 3, rows) * 1.0


@pytest.mark.parametrize(("slope", "offset"), [(1.0, 0.0), (0.3, -1.0), (2.0, 0.5), (-1.0, 0.0)])
def test_the_kernel_follows_its_formula(slope, offset):
    margins, labels, importance = drawn(slope, offset)
    state, out = np.array([1.0, 0.0, PRIOR, 0.0, PRIOR]), np.empty(margins.size)
    calibrate.py_func(margins, labels, importance, state, out)
    theta, expected = reference_fit(margins, labels, importance)
    assert out == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert state[:2] == pytest.approx(theta, rel=1e-9)


def test_the_kernel_tends_to_batch_platt_scaling():
    margins, labels, importance = drawn(0.3, -1.0, rows=4000)
    state, out = np.array([1.0, 0.0, PRIOR, 0.0, PRIOR]), np.empty(margins.size)
    calibrate.py_func(margins, labels, importance, state, out)
    batch = LogisticRegression(C=np.inf).fit(margins[:, None], labels, importance)
    assert state[:2] == pytest.approx([batch.coef_[0, 0], batch.intercept_[0]], abs=0.03)


def test_extreme_margins_leave_the_state_finite():
    margins = np.array([3e38, -3e38, 1e-30, 3e38, 0.0] * 20, np.float32)
    state, out = np.array([1.0, 0.0, PRIOR, 0.0, PRIOR]), np.empty(100)
    calibrate.py_func(margins, np.tile([0.0, 1.0], 50), np.full(100, 1e9), state, out)
    assert np.isfinite(state).all()
    assert np.isfinite(out).all()
    assert state[0] >= SLOPES[0]


def trained_with_margins(rows, **options):
    margins, calibrated = [], []

    def keep(now):
        margins.append(now.margins.copy())
        calibrated.append(now.calibrated.copy())

    trained = train(rows, SETTINGS, calibrate=True, progress=keep, **{**OPTIONS, **options})
    return trained, np.concatenate(margins).astype(float), np.concatenate(calibrated).astype(float)


@pytest.mark.usefixtures("interpreted")
def test_metrics_before_and_after_are_those_of_the_rows():
    trained, margins, calibrated = trained_with_margins(ROWS, holdout=4, block_bytes=500)
    y = np.array([row["y"] for row in ROWS])
    learned = (np.arange(len(ROWS)) + 1) % 4 > 0
    _, expected = reference_fit(margins, y, learned)
    assert calibrated == pytest.approx(expected, rel=1e-5, abs=1e-5)
    after = trained.training.calibrated
    for report, values, rows in (
        (trained.report, margins, learned), (after.report, calibrated, learned),
        (trained.training.holdout, margins, ~learned), (after.holdout, calibrated, ~learned),
    ):  # fmt: skip
        p = expit(values[rows])
        assert report.loss == pytest.approx(-np.mean(np.log(np.where(y[rows] == 1, p, 1 - p))), rel=1e-5)
        assert report.calibration == pytest.approx(p.sum() / y[rows].sum(), rel=1e-5)
    assert after.report.loss < trained.report.loss - 0.1


@pytest.mark.usefixtures("interpreted")
def test_a_row_is_calibrated_before_its_label_is_used():
    _, _, before = trained_with_margins(ROWS)
    changed = [{**row, "y": 1 - row["y"]} if k >= 150 else row for k, row in enumerate(ROWS)]
    _, _, after = trained_with_margins(changed)
    assert (before[:151] == after[:151]).all()
    assert (before[151:] != after[151:]).any()


@pytest.mark.usefixtures("interpreted")
def test_every_interface_applies_the_calibration(tmp_path):
    plain = train(ROWS, SETTINGS, **OPTIONS)
    trained = train(ROWS, SETTINGS, calibrate=True, **OPTIONS)
    known = trained.training.calibrated.calibration
    assert known != Calibration(1.0, 0.0)
    expected = expit(known.slope * forel.predict(plain, ROWS, margins=True).astype(float) + known.offset)
    paths = [tmp_path / name for name in ("m.forel", "s.forel")]
    trained.save(paths[0])
    save(paths[1], serving_model(trained.learner), trained.extra)
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    for path in paths:
        stored = forel.load(path)
        explained = stored.explain_one(ROWS[7])
        total = explained.bias + sum(part.contribution for part in explained.contributions)
        assert explained.margin == pytest.approx(total)
        assert explained.prediction == pytest.approx(expected[7], rel=1e-5)
        written = run("predict", tmp_path / "a.jsonl", "--model", path).stdout
        for found in (
            forel.predict(path, ROWS), stored.predict_many(ROWS), [stored.predict_one(row) for row in ROWS],
            np.array(written.split(), float),
        ):  # fmt: skip
            assert np.asarray(found, float) == pytest.approx(expected, rel=1e-5)
    y = np.array([row["y"] for row in ROWS])
    loss = -np.mean(np.log(np.where(y == 1, expected, 1 - expected)))
    assert forel.evaluate(paths[0], ROWS).report.loss == pytest.approx(loss, rel=1e-5)
    for convert in (estimator_of, model_of):
        with pytest.raises(ValueError, match="stored: got 'a calibrated model', expected one without calibration"):
            convert(forel.load(paths[0]))


@pytest.mark.usefixtures("interpreted")
def test_a_resumed_or_continued_run_has_the_same_calibration(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("c,x,s,y\n" + "".join(",".join(map(str, row.values())) + "\n" for row in ROWS))
    options = {**OPTIONS, "calibrate": True, "block_bytes": 400, "passes": 2, "holdout": 5}
    whole = train(path, SETTINGS, **options)
    assert (
        whole.training.calibrated.extra == train(path, SETTINGS, **(options | {"passes": 1})).training.calibrated.extra
    )
    seen, saving = iter(range(9)), {"checkpoint": tmp_path / "c", "checkpoint_every": 50}

    def stop(_):
        if next(seen, None) is None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(path, SETTINGS, progress=stop, **saving, **options)
    assert forel.load(tmp_path / "c").calibration is not None
    assert train(path, SETTINGS, resume=True, **saving, **options).training.calibrated == whole.training.calibrated
    first = train(ROWS[:150], SETTINGS, calibrate=True, **OPTIONS)
    again = train(ROWS[150:], model=first)
    assert again.training.calibrated.extra == train(ROWS, SETTINGS, calibrate=True, **OPTIONS).training.calibrated.extra


@pytest.mark.usefixtures("interpreted")
def test_certificate_and_guarantee_are_about_predictions_before_calibration():
    settings = Settings(alpha=(0.3, 3.0))
    plain, found = (train(ROWS, settings, certificate=True, calibrate=c, **OPTIONS) for c in (False, True))
    assert (found.training.certificate, str(found.learner.guarantee())) == (
        plain.training.certificate,
        str(plain.learner.guarantee()),
    )
    assert found.report == plain.report
    text = calibration_sentence(found.training.calibrated, True, True)
    assert text.endswith("; the mixture's guarantee and the certificate above are about predictions before calibration")
    assert str(found.training.calibrated.calibration) in text
    assert found.best().training.calibrated is None


@pytest.mark.usefixtures("interpreted")
def test_the_report_and_the_summary_show_both(tmp_path):
    history = History()
    trained = train(ROWS, SETTINGS, calibrate=True, progress=history, **OPTIONS)
    history.close()
    text = page(trained, history)
    for shown in (
        "decile, before calibration",
        "decile, after calibration",
        f'value="{trained.training.calibrated.report.loss!r}"',
    ):
        assert shown in text
    (tmp_path / "a.vw").write_text("".join(f"{row['y']} |c {row['c']}\n" for row in ROWS))
    arguments = ("train", tmp_path / "a.vw", "--alpha", 3, "--calibrate", "--quiet", "--bits", 8)
    shown = run(*arguments).stdout
    assert "┃ calibrated ┃" in shown
    found = json.loads(run(*arguments, "--json").stdout)["calibrated"]
    assert f"{found['report']['loss']:.6f}" in shown
    assert str(Calibration(found["slope"], found["offset"])) in shown
    refused = run("train", tmp_path / "a.vw", "--calibrate", "--best", "--model", tmp_path / "m")
    assert "--calibrate" in refused.output
    assert "--alpha" in refused.output


@pytest.mark.usefixtures("interpreted")
def test_what_cannot_be_calibrated_is_refused():
    with pytest.raises(ValueError, match="calibrate: got True, expected False for the loss squared"):
        train(ROWS, Settings("squared", alpha=0.3), calibrate=True, **OPTIONS)
    with pytest.raises(ValueError, match="calibrate: got True, expected False for 2 classes"):
        train(ROWS, Settings("softmax", alpha=0.3), calibrate=True, classes=2, **OPTIONS)
    for wrong in (3, {}, {"slope": -1.0, "offset": 0.0}, {"slope": 1.0, "offset": float("nan")}):
        with pytest.raises(ModelFileError, match="the calibration is not two numbers"):
            calibration_of({"calibration": wrong})
    assert Model(None).calibration is None


@pytest.mark.parametrize("by", [None, "country"])
def test_slices_of_a_calibrated_model_are_about_calibrated_predictions(by, interpreted):
    rng = np.random.default_rng(0)
    rows = [
        {"country": ["NO", "IT"][k % 2], "x": float(x), "z": 1, "y": int(rng.random() < 1 / (1 + np.exp(-x)))}
        for k, x in enumerate(rng.normal(size=400))
    ]
    options = {"label": "y", "bits": 6, "slices": ["z"], "by": by}
    before = forel.train(rows, Settings(alpha=30.0), **options).training
    found = forel.train(rows, Settings(alpha=30.0), calibrate=True, **options).training
    (calibrated,), (plain,) = found.slices[0].slices, before.slices[0].slices
    assert plain.report.loss == pytest.approx(before.report.loss, rel=1e-6)
    assert calibrated.report.loss == pytest.approx(found.calibrated.report.loss, rel=1e-6)
    assert calibrated.report.loss < 0.95 * plain.report.loss
