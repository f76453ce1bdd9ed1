"""Notebooks: what objects show, as valid HTML with true statements, and the notebooks of the examples."""

import ast
import html
import json
import pathlib
from xml.etree import ElementTree

import numpy as np
import pytest

import forel
from forel.doors.sklearn import FTRLClassifier
from forel.experts import Guarantee
from forel.losses import Linear as LinearLoss
from forel.notebook import card
from forel.theory.algorithms import gradient_descent
from forel.theory.analysis import Bound, play

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
    trained = forel.train(VISITS, label="click", bits=8, certified=True)
    rows, lines = cells(trained._repr_html_())
    assert rows["rows"] == "40"
    assert float(rows["log-loss"]) == pytest.approx(trained.report.loss, rel=1e-3)
    assert rows["guarantee"] == str(trained.model.guarantee())
    assert rows["certificate"] == trained.certificate
    assert lines == (trained.frontier is not None)
    settings = cells(trained.model._repr_html_())[0]
    assert len(settings) == 12
    proof = trained.model.certificate()
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
