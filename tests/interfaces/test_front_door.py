"""The public API: what ``import forel`` offers, to people, to editors and to type checkers."""

import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import forel

ROOT = pathlib.Path(__file__).parents[2]
INTERFACES = {"cli", "mlflow", "onnx", "optax", "ray", "report", "river", "sklearn", "torch"}
PACKAGES = {"data", "evidence", "experts", "learner", "losses", "store", "theory", "training"} | INTERFACES
CLICKS = [{"site": "news", "click": 1}, {"site": "shop", "click": 0}] * 20
WITHOUT_EXTRAS = (
    "import sys; sys.modules.update(river=None, cvxpy=None, matplotlib=None, jax=None, torch=None); import forel; "
)


def python(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_public_name_is_there_and_documented():
    assert sorted(forel.__all__) == forel.__all__
    assert set(forel.__all__) > PACKAGES
    assert {*forel.__all__, "__version__"} == set(dir(forel))
    assert all(getattr(forel, name).__doc__ for name in forel.__all__)
    with pytest.raises(AttributeError, match="module 'forel' has no attribute 'nothing'; it has FTRLClassifier, "):
        forel.nothing  # noqa: B018


def test_public_names_are_the_objects_of_their_modules():
    for name in {*forel.__all__} - PACKAGES:
        thing = getattr(forel, name)
        assert getattr(sys.modules[thing.__module__], thing.__name__) is thing
        assert thing.__module__.startswith("forel.")


HELP = """
import importlib, rlcompleter
for name in {names}:
    module = importlib.import_module(name)
    help(module)
    print("completed:")
    completer = rlcompleter.Completer({{"forel": forel}})
    print([completer.complete(name + ".", k) for k in range(40)])
    print("next module:")
"""
DOCUMENTED = ["forel.river", "forel.torch", "forel.optax", "forel"]  # inner packages first, before help imports them


@pytest.fixture(scope="module")
def help_texts():
    """What one process prints for each module: its help, and its completions."""
    texts = python(WITHOUT_EXTRAS + HELP.format(names=DOCUMENTED)).split("next module:\n")
    assert texts.pop() == ""
    return dict(zip(DOCUMENTED, texts, strict=True))


@pytest.mark.parametrize("module", DOCUMENTED)
def test_help_and_completion_work_without_extras(module, help_texts):
    shown, _, found = help_texts[module].partition("completed:")
    assert f"Help on package {module}" in shown
    assert module in found
    if module == "forel":
        assert "forel.train(" in found


def test_a_missing_extra_is_an_error_only_when_a_model_is_used():
    message = "forel.river needs river; install the extra: pip install 'forel[river]'"
    code = "try: forel.river.LinearClassifier\nexcept ModuleNotFoundError as error: print(error)"
    assert python(WITHOUT_EXTRAS + f"exec({code!r})").strip() == message
    code = "try: from forel.river import LinearRegressor\nexcept ModuleNotFoundError as error: print(error)"
    assert python(WITHOUT_EXTRAS + f"exec({code!r})").strip() == message


SCRIPT = """
import forel
from forel import FTRLClassifier, FTRLRegressor, Learner, Settings
from forel.river import LinearClassifier, LinearRegressor

rows = [{"site": "news", "click": 1}]
trained = forel.train(rows, Settings(alpha=0.1), label="click")
forel.save("m.forel", trained.learner)
forel.evaluate(forel.load("m.forel"), rows)
forel.read(rows)
"""


@pytest.mark.slow
def test_type_checkers_see_every_public_name(tmp_path):
    pytest.importorskip("mypy", reason="a tool of development")
    script = tmp_path / "script.py"
    river = ["river.LinearClassifier", "river.LinearRegressor"]
    names = [*forel.__all__, "__version__", "theory.sets.Box", *river]
    script.write_text(
        SCRIPT + "".join(f"reveal_type(forel.{name})\n" for name in names) + "forel.train(1, passes='x')\n"
    )
    # Types of other packages are Any: without numpy's, mypy takes 2 s in place of 20. `make lint` checks them.
    options = ["--config-file=", "--no-site-packages", "--ignore-missing-imports", "--follow-imports=silent"]
    command = [sys.executable, "-m", "mypy", *options, f"--cache-dir={tmp_path}", str(script)]
    environment = {**os.environ, "MYPYPATH": str(ROOT / "src")}
    shown = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment).stdout
    revealed = dict(zip(names, re.findall(r'Revealed type is "(.*)"', shown), strict=True))
    assert not {name: kind for name, kind in revealed.items() if re.fullmatch(r"Any|builtins\.object", kind)}
    assert revealed["train"].startswith("def (source: Any, settings: ")
    assert revealed["train"].endswith("-> forel.training.model.Model")
    assert revealed["Learner"].startswith("def (features: ")
    assert revealed["__version__"] in ("str", "builtins.str")
    (error,) = re.findall(r"\d: error: (.*)", shown)
    assert 'Argument "passes" to "train" has incompatible type "str"' in error


def test_predict_takes_a_path_a_stored_model_a_result_of_training_or_a_learner(tmp_path, interpreted):
    trained = forel.train(CLICKS, forel.Settings(alpha=1.0), label="click", bits=10)
    path = tmp_path / "m.forel"
    trained.save(path)
    rows = [{"site": "news"}, {"site": "shop"}, {"site": "never seen"}]
    wanted = forel.predict(path, rows)
    assert wanted.dtype == np.float64
    assert wanted[0] > 0.8 > 0.2 > wanted[1]
    for model in (str(path), forel.load(path), trained, trained.learner, forel.store.serving_model(trained.learner)):
        assert forel.predict(model, rows) == pytest.approx(wanted, rel=1e-6)
    margins = forel.predict(path, rows, margins=True)
    assert 1 / (1 + np.exp(-margins)) == pytest.approx(wanted, rel=1e-5)
    assert forel.predict(path, []).shape == (0,)
    assert forel.evaluate(path, CLICKS).report.rows == forel.evaluate(trained, CLICKS).report.rows == 40


def test_predictions_are_on_the_scale_of_labels(interpreted):
    rows = [{"x": k % 3, "y": 2 * (k % 3)} for k in range(60)]
    counts = forel.train(rows, forel.Settings("poisson", alpha=1.0), label="y", bits=6)
    margins = forel.predict(counts, rows, margins=True)
    assert forel.predict(counts, rows) == pytest.approx(np.exp(margins), rel=1e-6)
    signs = forel.train(CLICKS, forel.Settings("hinge", alpha=1.0), label="click", bits=6)
    assert forel.predict(signs, CLICKS).tolist() == forel.predict(signs, CLICKS, margins=True).tolist()
