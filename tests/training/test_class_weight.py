"""Balanced classes: weights are those of a plain count, for any blocks and resumed or not, and rare rows count more."""

import numpy as np
import pytest

import forel
from forel.learner.settings import Settings
from forel.sklearn import FTRLClassifier
from forel.training.result import scores

RNG = np.random.default_rng(0)
RARE = [{"x": int(x), "y": int(x + RNG.integers(30) > 31)} for x in RNG.integers(0, 10, 900)]
KINDS = [{"x": k % 7, "kind": "abc"[0 if k % 10 else 1 + k % 20 // 10]} for k in range(300)]


def weights(labels, classes, holdout=0):
    """t / (K n_k), counted row by row; rows that are held out count only for themselves."""
    seen, found = dict.fromkeys(classes, 0), []
    for k, label in enumerate(labels, 1):
        seen[label] += 1
        found.append(sum(seen.values()) / (len(classes) * seen[label]))
        if holdout and k % holdout == 0:
            seen[label] -= 1
    return found


@pytest.mark.parametrize("holdout", [0, 5])
def test_training_is_that_on_importances_counted_row_by_row(holdout, interpreted):
    own = weights([row["y"] for row in RARE], [0, 1], holdout)
    weighted = [{**row, "w": w} for row, w in zip(RARE, own, strict=True)]
    options = {"label": "y", "bits": 6, "categories": ["x"], "holdout": holdout}
    balanced = forel.train(RARE, class_weight="balanced", block_bytes=500, **options)
    same = forel.train(weighted, importance="w", **options)
    assert balanced.report.loss == same.report.loss
    assert (
        balanced.learner.margins == same.learner.margins
        or (balanced.predict(RARE[:50]) == same.predict(weighted[:50])).all()
    )
    plain = forel.train(RARE, **options)
    # Mean predictions are those of classes that are equally frequent.
    assert plain.report.mean_prediction < 0.3 < 0.4 < balanced.report.mean_prediction < 0.6
    assert balanced.report.auc == pytest.approx(plain.report.auc, abs=0.03)


@pytest.mark.parametrize("chosen", [{"holdout": 3}, {"holdout_after": 600, "shuffle": 1}, {"importance": "w"}])
def test_labels_of_rows_that_are_not_learned_change_nothing(chosen, interpreted):
    out = [k >= 600 if "holdout_after" in chosen else k % 3 == 2 for k in range(900)]
    rows = [{**row, "w": 1.0 - left} for row, left in zip(RARE, out, strict=True)]
    other = [{**row, "y": 1 - row["y"]} if left else row for row, left in zip(rows, out, strict=True)]
    options = {"label": "y", "keep": ["x"], "bits": 6, "passes": 2, "class_weight": "balanced", **chosen}
    found = [forel.train(one, **options).predict(RARE[:50]) for one in (rows, other)]
    assert np.array_equal(*found)


def test_no_interval_of_the_average_loss_is_said_where_importances_depend_on_labels(interpreted):
    options = {"label": "y", "keep": ["x"], "bits": 6, "slices": ["x"]}
    plain, balanced = (forel.train(RARE, class_weight=rule, **options).training for rule in (None, "balanced"))
    assert "mean_loss" in plain.statements.to_json()
    assert plain.slices[0].slices[0].mean_loss is not None
    assert "mean_loss" not in balanced.statements.to_json()
    assert balanced.slices[0].slices[0].mean_loss is None


def test_a_certificate_is_about_the_importances_of_the_first_pass(interpreted):
    options = {"label": "y", "keep": ["x"], "bits": 6, "class_weight": "balanced", "certificate": True}
    once, again = (forel.train(RARE, passes=passes, **options).training for passes in (1, 2))
    assert again.floor["average"] == again.report.loss
    assert again.floor["norm"] != once.floor["norm"]  # that of the final model
    assert again.floor["weight"] == pytest.approx(again.report.weight)
    assert again.floor["weight"] != pytest.approx(again.passes[1].weight)


def test_several_classes_and_resuming(tmp_path, interpreted):
    options = {"label": "kind", "bits": 6, "categories": ["x"], "loss": "softmax", "class_weight": "balanced"}
    path = tmp_path / "kinds.csv"
    path.write_text("x,kind\n" + "".join(f"{row['x']},{row['kind']}\n" for row in KINDS))
    whole = forel.train(str(path), passes=2, **options)
    check = tmp_path / "check"

    def interrupt(progress):
        if progress.rows > 150:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        forel.train(
            str(path), passes=2, block_bytes=200, checkpoint=check, checkpoint_every=50, progress=interrupt, **options
        )
    resumed = forel.train(str(path), passes=2, block_bytes=200, checkpoint=check, resume=True, **options)
    assert (resumed.predict(KINDS, probabilities=True) == whole.predict(KINDS, probabilities=True)).all()
    assert whole.report.weight == pytest.approx(sum(weights([row["kind"] for row in KINDS], "abc")), rel=1e-4)


def test_weights_tend_to_those_of_scikit_learn(interpreted):
    X, y = np.array([[row["x"]] for row in RARE], float), np.array([row["y"] for row in RARE])
    estimator = FTRLClassifier(class_weight="balanced").fit(X, y)
    balanced = forel.train(RARE, label="y", bits=6, class_weight="balanced")
    assert balanced.report.mean_prediction == pytest.approx(estimator.predict_proba(X)[:, 1].mean(), abs=0.15)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"class_weight": "rare"}, "class_weight: got 'rare', expected balanced"),
        (
            {"class_weight": "balanced", "loss": "squared"},
            "class_weight: got 'balanced', expected none for a regression",
        ),
        ({"class_weight": "balanced", "by": "x"}, "class_weight: got 'balanced', expected none with by"),
    ],
)
def test_other_uses_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        forel.train(RARE[:9], label="y", bits=4, **options)


@pytest.mark.usefixtures("interpreted")
def test_scores_say_that_averages_are_weighted_by_classes():
    rows = [{"x": k % 5, "y": int(k % 10 == 0)} for k in range(300)]
    model = forel.train(rows, Settings(alpha=0.1), label="y", bits=4, holdout=10, class_weight="balanced")
    weight = model.training.holdout.weight
    held_out = next(str(one) for one in scores(model) if one.name == "held out")
    unit = "averages are per unit of importance times balanced class weight, of which these rows have"
    assert held_out.endswith(f"{unit} {weight:,.6g}")
    assert weight != model.training.holdout.rows
