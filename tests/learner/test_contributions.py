"""What the experts of a mixture contribute: the loss without a kind is that of a mixture of the others, row by row."""

import numpy as np
import pytest

import forel
from forel.learner.full_filters import MOST
from forel.learner.grid import default_grid
from forel.learner.learner import Learner
from forel.learner.settings import Settings
from forel.sklearn import FTRLClassifier
from tests.fuzz import oracle
from tests.fuzz.checks import expert_margins, full_margins

pytestmark = pytest.mark.usefixtures("interpreted")
KINDS = ["setting", "filter", "full filter", "mixer", "fixed share"]


def stream(rows=80, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3))
    return X, (rng.random(rows) < 1 / (1 + np.exp(-X @ [1.0, -2.0, 0.0]))).astype(float)


def played(X, y, importance):
    """A mixture of the default experts, their margins, and those of the mixture."""
    model = Learner(X.shape[1], default_grid(), dtype=np.float64)
    mixed = model.progress(X, y, importance)[:, 0]
    lanes = Learner(X.shape[1], model.settings, dtype=np.float64, mixed=False).progress(X, y, importance)
    full = full_margins(model.settings, "logistic", X, y, importance)
    return model, expert_margins(model, "logistic", lanes, full, y, importance), mixed


def violation(found, model, experts, mixed, y, importance):
    own, kinds = oracle.average("logistic", mixed, y, importance), [one.kind for one in found.experts]
    table = [(one.kind, one.experts, one.loss, one.others, one.without) for one in found.kinds]
    return oracle.kinds_violation(table, found.exact, "logistic", own, experts, kinds, y, importance)


def test_the_loss_without_a_kind_is_that_of_a_mixture_of_the_others():
    X, y = stream()
    model, experts, mixed = played(X, y, np.ones(len(y)))
    found = model.explain()
    assert found.exact
    assert [one.kind for one in found.kinds] == KINDS
    assert violation(found, model, experts, mixed, y, np.ones(len(y))) is None
    assert violation(found, model, experts, mixed + 0.1, y, np.ones(len(y))) is not None
    assert sum(one.weight for one in found.kinds) == pytest.approx(1)
    assert min(one.behind for one in found.experts) == 0
    best = min(one.loss for one in found.experts)
    assert [one.behind for one in found.experts] == pytest.approx([one.loss - best for one in found.experts])
    assert found.loss == pytest.approx(model.loss / len(y))


@pytest.mark.parametrize("largest", [0.9, 4.0])
def test_with_importances_it_is_an_upper_bound(largest):
    X, y = stream()
    importance = np.resize([0.3, largest, 0.0, 0.7], len(y))
    counted = importance > 0
    model = Learner(X.shape[1], default_grid(), dtype=np.float64)
    model.learn(X, y, importance)
    _, experts, mixed = played(X[counted], y[counted], importance[counted])
    found = model.explain()
    assert not found.exact
    assert violation(found, model, experts, mixed, y[counted], importance[counted]) is None
    assert "without it, at most" in str(found)
    assert "importances differ from 1" in str(found)


def test_kinds_that_were_dropped_are_not_listed():
    rows = MOST + 20
    X, y = np.eye(rows, MOST + 10), np.resize([1.0, 0.0, 0.0], rows)
    X[np.arange(MOST + 10, rows), 0] = 1
    model = Learner(MOST + 10, default_grid())
    model.learn(X, y)
    found = model.explain()
    assert [one.kind for one in found.kinds] == ["setting", "filter", "mixer", "fixed share"]
    kept = np.array([one.kind != "mixer" for one in found.experts])
    expected = np.log(kept.sum()) - np.logaddexp.reduce(-model.losses[kept]) - model.loss
    assert found.exact
    assert found.kinds[-2].without == pytest.approx(expected / rows)


def test_a_single_kind_and_other_rules_have_no_loss_without_it():
    X, y = stream()
    grid, shared = Learner(3, Settings(alpha=(0.1, 1.0))), Learner(3, default_grid(), share=0.01)
    squared = Learner(3, default_grid(loss="squared"))
    for model in (grid, shared, squared):
        model.learn(X, y)
        found = model.explain()
        assert all(one.without is None for one in found.kinds)
        assert "without it" not in str(found).lower()
    assert grid.explain().kinds[0].others is None
    losses, kinds = squared.averages, np.array(squared.mixture.kinds)
    for one in squared.explain().kinds:
        assert (one.loss, one.others) == (losses[kinds == one.kind].min(), losses[kinds != one.kind].min())


def test_text_and_html_have_a_row_for_each_expert_and_kind():
    X, y = stream()
    model, _, _ = played(X, y, np.ones(len(y)))
    found = model.explain()
    lines, page = str(found).splitlines(), model._repr_html_()
    assert len(lines) == 1 + (1 + 13) + (1 + 5) + 2
    assert lines[2].split()[-2] == "+0.000000"  # the best is first
    assert page.count("<tr>") == 2 + 13 + 5
    assert str(model.guarantee()) in lines[-1] in page
    assert all(one.name in page for one in found.experts)
    assert "over 0 rows" in str(Learner(3, default_grid()).explain())


def test_models_files_and_estimators_explain_their_mixture(tmp_path):
    X, y = stream()
    estimator = FTRLClassifier(shuffle=False).fit(X, y)
    assert [one.kind for one in estimator.explain_mixture().kinds] == KINDS
    assert FTRLClassifier(alpha=0.1).fit(X, y).explain_mixture() is None
    rows = [{"a": float(x[0]), "b": float(x[1]), "y": int(label)} for x, label in zip(X, y, strict=True)]
    trained = forel.train(rows, label="y", bits=4)
    trained.save(tmp_path / "m")
    assert trained.inspect().mixture == forel.load(tmp_path / "m").inspect().mixture
    assert forel.train(rows, Settings(alpha=0.1), label="y", bits=4).inspect().mixture is None
    forel.save(tmp_path / "s", forel.store.serving_model(trained.learner))
    assert forel.load(tmp_path / "s").inspect().mixture is None
