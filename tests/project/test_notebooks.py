"""Notebooks: what objects show, as valid HTML with true statements, and the notebooks of the examples."""

import ast
import html
import io
import json
import pathlib
import sys
import types
from xml.etree import ElementTree

import numpy as np
import pytest
from rich.console import Console

import forel
from forel.experts import Guarantee
from forel.losses import Linear as LinearLoss
from forel.notebook import card, plain
from forel.sklearn import FTRLClassifier
from forel.theory.algorithms import gradient_descent
from forel.theory.analysis import Bound, play
from forel.training import progress as watched

pytestmark = pytest.mark.usefixtures("interpreted")
ROOT = pathlib.Path(__file__).parents[2]
VISITS = [{"site": "news", "click": 1}, {"site": "shop", "click": 0}] * 20


def cells(text):
    """Return the rows of the table, and the number of lines that are drawn."""
    tree = ElementTree.fromstring(text)
    rows = {row[0].text: row[1].text for row in tree.iter("tr")}
    return rows, len(list(tree.iter("polyline")))


def test_a_card_escapes_text_and_draws_finite_points():
    rows, lines = cells(
        card("<b>", [("a<b", "1 & 2"), ("left out", None), ("n", 12345)], up=[0.0, np.inf, 1.0], one=[1.0])
    )
    assert rows == {"a<b": "1 & 2", "n": "12,345"}
    assert lines == 1
    assert cells(card("nothing", [("x", 1.0)], empty=[np.nan, np.nan])) == ({"x": "1"}, 0)


def test_games_and_bounds():
    trace = play(gradient_descent(0.1), [LinearLoss([1.0, -1.0])] * 5)
    rows, lines = cells(trace._repr_html_())
    assert (rows["rounds"], rows["dimension"], lines) == ("5", "2", 1)
    assert float(rows["total loss"]) == pytest.approx(trace.values.sum(), rel=1e-3)
    rows, lines = cells(Bound("Theorem 1", np.ones(3), np.ones(3))._repr_html_())
    assert (rows["bound"], rows["regularization"], rows["stability"], lines) == ("4", "1", "3", 1)
    rows, lines = cells(Bound("Theorem 1", np.ones(3), np.ones(3), void="X is empty")._repr_html_())
    assert (rows, lines) == ({"void": "X is empty"}, 0)


def test_guarantees():
    proof = Guarantee("log K", "the best of 2", 10, 5.0, 4.0, 2.0)
    assert cells(proof._repr_html_())[0] == {"result": "log K", "rounds": "10", "regret": "1", "bound": "2"}
    void = Guarantee("log K", "the best of 2", 10, 5.0, 4.0, 2.0, void="a loss is infinite")
    assert "bound" not in cells(void._repr_html_())[0]


def test_trained_models_mixtures_and_certificates():
    trained = forel.train(VISITS, label="click", bits=8, certificate=True)
    rows, lines = cells(trained._repr_html_())
    assert rows["rows"] == "40"
    assert float(rows["log-loss"]) == pytest.approx(trained.report.loss, rel=1e-3)
    assert rows["guarantee"] == str(trained.learner.guarantee())
    assert rows["certificate"] == trained.training.certificate
    assert lines == (trained.training.frontier is not None)
    shown = cells(trained.learner._repr_html_())[0]
    assert {*trained.learner.names} < shown.keys()
    proof = trained.learner.certificate()
    rows = cells(proof._repr_html_())[0]
    for name, value in rows.items():
        if name.startswith("loss of any model"):
            norm, floor = float(name.split()[-1]), float(value.removeprefix("≥ "))
            assert floor <= proof.loss_floor(scaled=norm) < floor + 1e-4


def test_estimators_show_what_they_learned():
    model = FTRLClassifier(lanes=2, certified=True)
    assert "progressive" not in model._html_repr()
    shown = html.unescape(model.fit(np.eye(4), [0, 1, 0, 1])._html_repr())
    assert str(model.guarantee_) in shown
    assert model._model.summary() in shown
    assert f"progressive log-loss</th><td>{model.progressive_loss_:.4g}<" in shown


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebooks_run(path):
    """Execute the cells in order, and render the last expression of each as a notebook does."""
    names = {"__name__": path.stem}
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] != "code":
            continue
        assert not cell["outputs"]
        tree = ast.parse("".join(cell["source"]))
        last = ast.Expression(tree.body.pop().value) if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, str(path), "exec"), names)
        if last is not None:
            shown = eval(compile(last, str(path), "eval"), names)
            assert getattr(shown, "_repr_html_", shown.__repr__)()


class Shown:
    """What a notebook shows: one output, which is updated in place."""

    def __init__(self):
        self.contents = []

    def display(self, content, display_id):
        assert display_id
        self.contents.append(content)
        return self

    def update(self, content):
        self.contents.append(content)


@pytest.fixture
def notebook(monkeypatch):
    """A process that looks like the kernel of a notebook, with bars that are shown at once."""
    shown = Shown()
    shell = types.SimpleNamespace(kernel=object())
    module = types.ModuleType("IPython")
    module.get_ipython = lambda: shell
    module.display = types.ModuleType("IPython.display")
    module.display.display, module.display.HTML = shown.display, str
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", module.display)
    monkeypatch.setattr(watched, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr(watched, "UPDATE_SECONDS", 0.0)
    shown.shell = shell
    return shown


def test_training_in_a_notebook_shows_a_bar_that_disappears(notebook, tmp_path):
    options = {"label": "click", "bits": 8, "passes": 2}
    trained = forel.train(VISITS, **options)
    *bars, last = notebook.contents
    assert last == ""
    trees = [ElementTree.fromstring(bar) for bar in bars]
    values = [float(tree.find("progress").get("value")) for tree in trees]
    assert values == [0.5, 1.0]
    assert "pass 2 of 2, 40 rows, loss" in trees[-1].find("progress").tail
    plain = forel.train(VISITS, progress=False, **options)
    assert plain.learner.weights.tolist() == trained.learner.weights.tolist()
    notebook.contents.clear()
    path = tmp_path / "rows.vw"
    path.write_text("1 |a x\n0 |a y\n" * 50)
    forel.train(path, bits=8, block_bytes=64)
    values = [float(ElementTree.fromstring(bar).find("progress").get("value")) for bar in notebook.contents[:-1]]
    assert len(values) > 4
    assert values == sorted(values)
    assert values[-1] == 1.0
    notebook.contents.clear()
    forel.train(iter(VISITS), label="click", bits=8)  # of unknown length
    assert ElementTree.fromstring(notebook.contents[0]).find("progress").get("value") is None
    forel.train(VISITS, label="click", by="site", bits=8)
    assert notebook.contents[-1] == ""


def test_there_is_no_bar_where_nobody_looks(notebook, capsys):
    seen = []
    for progress in (False, seen.append):
        forel.train(VISITS, label="click", bits=8, progress=progress)
    del notebook.shell.kernel  # IPython on a terminal
    for progress in (None, True):
        forel.train(VISITS, label="click", bits=8, progress=progress)
    assert seen[-1].rows == 40
    assert not notebook.contents
    assert capsys.readouterr() == ("", "")
    with pytest.raises(ValueError, match="progress: got 'yes', expected a function, or True, False or None"):
        forel.train(VISITS, label="click", bits=8, progress="yes")


def test_a_bar_on_a_terminal(notebook, monkeypatch):
    del notebook.shell.kernel
    monkeypatch.setenv("TERM", "xterm")
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=100)
    monkeypatch.setattr("rich.console.Console", lambda stderr: console)
    forel.train(VISITS, label="click", bits=8, block_bytes=64, progress=True)
    assert "40 rows" in text.getvalue()


def test_a_bar_is_removed_when_training_fails(notebook, tmp_path):
    path = tmp_path / "rows.vw"
    path.write_text("1 |a x\n0 |a y\n" * 50 + "7 |a x\n")
    with pytest.raises(ValueError, match="got the label 7"):
        forel.train(path, bits=8, block_bytes=64)
    assert len(notebook.contents) > 1
    assert notebook.contents[-1] == ""


def test_summaries_as_text_have_no_terminal_escapes_and_marks_of_direction():
    shown = plain("Model \x1b[31m", [("file", "\u202egnp.exe\x1b]0;title\x07"), ("loss", 1_234_567.8)])
    assert not set(shown) & set("\x1b\x07\u202e")
    assert shown.endswith("\n  loss: 1,234,568")
