"""What is served: the best setting or the mixture, with losses and sizes recomputed from rows and files."""

from dataclasses import fields, replace

import numpy as np
import pytest
from scipy.special import expit

import forel
from forel.learner.grid import default_grid
from forel.learner.learner import Learner
from forel.learner.settings import Settings
from forel.store import ModelFileError, choose_serving, serving_model
from forel.store.serving import NEGLIGIBLE
from forel.training.model import save
from forel.training.train import train
from tests.interfaces.test_cli import run
from tests.store.cases import header_and_arrays

pytestmark = pytest.mark.usefixtures("interpreted")


def rows_of(count=150, features=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (count, features)).astype(np.float32)
    return X, (rng.random(count) < expit(X @ rng.normal(size=features) - 1)).astype(float)


def log_loss(margins, y):
    return np.mean(np.logaddexp(0, margins) - y * margins)


@pytest.mark.parametrize(
    "settings", [Settings(alpha=(0.01, 0.3, 1.0)), default_grid(alpha=None)], ids=["settings", "default"]
)
def test_the_mixture_that_is_served_predicts_as_the_learner_does(settings, tmp_path):
    X, y = rows_of()
    model = Learner(6, settings)
    model.learn(X, y)
    small = serving_model(model, mixed=True)
    save(tmp_path / "s", small)
    stored = forel.load(tmp_path / "s")
    expected = expit(model.margins(X))
    assert np.abs(expit(stored.learner.margins(X)) - expected).max() <= NEGLIGIBLE + 1e-6
    assert stored.learner.predict(X) == pytest.approx(expected, abs=NEGLIGIBLE + 1e-6)
    half = serving_model(model, dtype="float16", mixed=True)
    assert expit(half.margins(X)) == pytest.approx(expected, abs=3e-3)
    assert stored.learner.weights_at(np.arange(6))[:, 0] == pytest.approx(model.weights[:, 0])
    assert (stored.classes, stored.learner.n_outputs) == (None, 1)


@pytest.mark.parametrize(("filters", "classes"), [(True, None), (False, None), (False, 3)])
def test_the_best_setting_is_served_from_the_kernel_of_all_settings(filters, classes, monkeypatch):
    X, y = rows_of()
    settings = Settings(rate="scale_free", alpha=(0.01, 0.3, 1.0), l1=0.05)
    if filters:
        settings = replace(default_grid(alpha=None), full_filters=())
    model = Learner(6, settings, classes=classes)
    model.learn(X, y + (X[:, 0] > 1) if classes else y)
    expected = serving_model(model.select_setting(model.best_model))
    monkeypatch.setattr(Learner, "select_setting", lambda *given: pytest.fail("needs a kernel of one setting"))
    small = serving_model(model)
    for field in fields(expected):
        assert np.array_equal(getattr(small, field.name), getattr(expected, field.name)), field.name


def test_experts_of_little_weight_are_left_out():
    X, y = rows_of(400)
    model = Learner(6, Settings(alpha=(1e-4, 1e-3, 0.3, 1.0)))
    model.learn(X, y)
    dropped = model.posterior[model.posterior < 1e-6]
    assert dropped.size
    small = serving_model(model, mixed=True)
    assert small.weights.shape[1] <= 4 - dropped.size
    assert small.mixture.weights.sum() == pytest.approx(1)


@pytest.mark.parametrize("alpha", [(0.01, 1.0), (0.3, 0.31)])
def test_stated_losses_and_sizes_are_those_of_rows_and_files(alpha, tmp_path):
    X, y = rows_of()
    model = Learner(6, Settings(alpha=alpha))
    mixture_loss = log_loss(model.progress(X, y)[:, 0], y)
    losses = [log_loss(Learner(6, Settings(alpha=a), mixed=False).progress(X, y)[:, 0], y) for a in alpha]
    choice = choose_serving(model)
    assert choice.loss == pytest.approx(min(losses), rel=1e-6)
    assert choice.mixture_loss == pytest.approx(mixture_loss, rel=1e-6)
    assert choice.mixed is bool(min(losses) > 1.01 * mixture_loss)
    for one, size in ((serving_model(model), choice.bytes), (serving_model(model, mixed=True), choice.mixture_bytes)):
        save(tmp_path / "s", one)
        assert sum(array.nbytes for array in header_and_arrays(tmp_path / "s")[1].values()) == size
    message = str(choice)
    for number in (
        f"{min(losses):.6f}",
        f"{mixture_loss:.6f}",
        f"{choice.bytes:,} bytes",
        f"alpha={alpha[np.argmin(losses)]}",
    ):
        assert number.removesuffix(".0") in message


def test_a_mixture_that_is_better_is_served(tmp_path):
    # Neither setting is good on both halves of the features, and the mixer is.
    rows = [{"c": f"w{k * k % 101}", "x": k % 7 / 3, "y": (k % 7 > 3) ^ (k * k % 101 > 80)} for k in range(400)]
    trained = train(rows, default_grid(alpha=None), label="y", bits=8, features="linear")
    choice = choose_serving(trained.learner)
    settings, mixture = trained.learner.averages[: trained.learner.settings.n_settings].min(), trained.report.loss
    assert choice.mixed is bool(settings > 1.01 * mixture)
    assert choice.mixed
    assert str(choice).startswith(f"the mixture ({choice.mixture_bytes:,} bytes of weights) instead of")
    assert str(choice).endswith("more than 1% less")
    save(tmp_path / "s", choice.model, trained.extra)
    served = forel.predict(tmp_path / "s", rows)
    assert served == pytest.approx(forel.predict(trained, rows), abs=2 * NEGLIGIBLE)
    stored = forel.load(tmp_path / "s")
    assert stored.predict_one(rows[3]) == pytest.approx(served[3])
    assert stored.explain_one(rows[3]).margin == pytest.approx(trained.explain_one(rows[3]).margin, rel=1e-5)


def test_several_classes_and_single_settings_are_served_alone():
    X, y = rows_of(40)
    classes = Learner(6, Settings(alpha=(0.1, 1.0)), classes=3)
    classes.learn(X, y)
    assert "mixtures of several classes are not served" in str(choose_serving(classes))
    assert choose_serving(Learner(6, Settings())).setting is None
    with pytest.raises(ValueError, match="mixed: got True, expected False for several classes"):
        serving_model(classes, mixed=True)


@pytest.mark.parametrize("wrong", ["experts", "limits"])
def test_damaged_mixtures_are_refused(wrong, tmp_path, monkeypatch):
    X, y = rows_of(40)
    model = Learner(6, Settings(alpha=(0.3, 1.0)))
    model.learn(X, y)
    small = serving_model(model, mixed=True)
    if wrong == "experts":
        small.mixture.weights[0] += 1
    else:
        object.__setattr__(small.mixture, "clip", -1.0)
    save(tmp_path / "s", small)
    with pytest.raises(ModelFileError):
        forel.load(tmp_path / "s")


def test_commands_print_the_choice(tmp_path):
    path = tmp_path / "a.vw"
    path.write_text("".join(f"{k * k % 3 % 2} |f w{k % 7}\n" for k in range(60)))
    shown = run("train", path, "--lanes", 2, "--bits", 6, "--serving", "--model", tmp_path / "s", "--quiet").stdout
    model = forel.load(tmp_path / "s").learner
    chosen = shown.partition("Serving: ")[2].partition(" instead of ")[0]
    assert (model.mixture is None) is (" alone (" in chosen)
    size = sum(array.nbytes for array in header_and_arrays(tmp_path / "s")[1].values())
    assert f"({size:,} bytes of weights)" in chosen
