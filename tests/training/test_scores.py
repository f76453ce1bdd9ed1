"""What is said about scores: which rows, which model, and in which unit."""

import io
import warnings

import numpy as np
import pytest

import forel
from forel.learner.settings import Settings
from forel.training import holdout
from forel.training.result import mixture_sentence, scores, time_sentence
from tests.interfaces.test_cli import run

ONE = Settings(alpha=1.0)

pytestmark = pytest.mark.usefixtures("interpreted")


def sentences(trained):
    return [str(one) for one in scores(trained)]


def ordered_noise(rows=400):
    rng = np.random.default_rng(0)
    return [
        {"x": float(x), "y": float(y)}
        for x, y in zip(rng.normal(size=rows), np.sort(rng.normal(size=rows)), strict=False)
    ]


@pytest.mark.filterwarnings("ignore:labels follow")
def test_rows_held_out_of_an_ordered_stream_are_measured_with_the_final_model_too():
    rows = ordered_noise()
    trained = forel.train(rows, loss="squared", label="y", bits=4, holdout=4)
    assert trained.training.holdout.r2 > 0.9
    assert trained.training.final.rows == trained.training.holdout.rows == 100
    held_out = rows[3::4]
    assert trained.training.final.loss == pytest.approx(forel.evaluate(trained, held_out).report.loss, rel=1e-6)
    assert trained.training.final.r2 < 0.2
    progressive, stream, final = sentences(trained)
    follows = "labels are in order, so this says how well the stream is followed"
    assert progressive == f"progressive: 300 rows, each predicted before the model learned from it; {follows}"
    assert stream == f"held out: 100 rows, never learned from, each predicted when it came; {follows}"
    assert final == "held out, final model: 100 rows, held out, predicted by the final model"


def test_a_stream_that_changes_is_measured_with_the_final_model_too():
    rng = np.random.default_rng(0)
    flips = rng.random(2000) < 0.5
    rows = [{"x": 1.0 if flip == (k < 1000) else -1.0, "y": int(flip)} for k, flip in enumerate(flips)]
    trained = forel.train(rows, ONE, label="y", bits=4, holdout=10)
    assert trained.training.label_order.warning() is None
    assert trained.training.final.loss > 2 * trained.training.holdout.loss
    follows = "the final model is worse, so this says how well the stream is followed"
    assert sentences(trained)[1] == f"held out: 200 rows, never learned from, each predicted when it came; {follows}"


def test_rows_at_the_end_are_predicted_by_the_final_model():
    rng = np.random.default_rng(0)
    rows = [{"x": float(x), "y": float(x)} for x in rng.normal(size=200)]
    trained = forel.train(rows, Settings("squared", alpha=1.0), label="y", bits=4, holdout_after=150, passes=2)
    assert trained.training.final is None
    assert trained.training.holdout.loss == pytest.approx(forel.evaluate(trained, rows[150:]).report.loss, rel=1e-6)
    assert sentences(trained)[1:] == [
        "pass 2, seen before: 150 rows, the same ones, after earlier passes learned from them",
        "held out: 50 rows, never learned from, predicted by the final model",
    ]
    shuffled = forel.train(
        rows, Settings("squared", alpha=1.0), label="y", bits=4, holdout_after=150, passes=2, shuffle=1
    )
    assert shuffled.training.final.loss == pytest.approx(forel.evaluate(shuffled, rows[150:]).report.loss, rel=1e-6)


def test_many_held_out_rows_are_thinned_evenly_whatever_the_blocks_and_interruptions(monkeypatch, tmp_path):
    monkeypatch.setattr(holdout, "MAX_ROWS", 30)
    rng = np.random.default_rng(1)
    flips = rng.random(600) < 0.5
    text = "".join(f"{int(flip)} |a f{k % 9}\n" for k, flip in enumerate(flips)).encode()
    path = tmp_path / "rows.vw"
    path.write_bytes(text)
    options = {"bits": 8, "holdout": 3}
    whole = forel.train(str(path), ONE, **options)
    assert whole.training.final.rows == 25  # every eighth of 200
    kept = [line for k, line in enumerate(text.splitlines(keepends=True)) if k in range(2, 600, 24)]
    expected = forel.evaluate(whole, io.BytesIO(b"".join(kept)), format="vw").report.loss
    assert whole.training.final.loss == pytest.approx(expected, rel=1e-9)
    assert forel.train(str(path), ONE, block_bytes=300, **options).training.final == whole.training.final
    assert (
        sentences(whole)[-1] == "held out, final model: 25 rows, held out, evenly spread, predicted by the final model"
    )

    def stop(progress):
        if progress.rows > 300:
            raise KeyboardInterrupt

    saved = {"checkpoint": tmp_path / "c", "checkpoint_every": 50, "block_bytes": 300}
    with pytest.raises(KeyboardInterrupt):
        forel.train(str(path), ONE, progress=stop, **saved, **options)
    assert forel.train(str(path), ONE, resume=True, **saved, **options).training.final == whole.training.final


def test_averages_are_per_unit_of_importance_even_if_these_sum_to_the_number_of_rows():
    rows = [{"x": k % 2, "y": k % 2, "w": (0.5, 1.5)[k // 50]} for k in range(100)]
    trained = forel.train(rows, ONE, label="y", importance="w", bits=4)
    assert trained.report.weight == trained.report.rows == 100
    unit = "averages are per unit of importance, of which these rows have 100"
    assert sentences(trained) == [f"progressive: 100 rows, each predicted before the model learned from it; {unit}"]
    assert ("weight", "sum of importances", "100") in trained.report.lines("log-loss")
    equal = forel.train(rows, ONE, label="y", bits=4, ignore=["w"])
    assert "importance" not in sentences(equal)[0]
    three = [{**row, "y": "abc"[k % 3]} for k, row in enumerate(rows)]
    several = forel.train(three, Settings("softmax", alpha=1.0), label="y", importance="w", bits=4)
    assert sentences(several)[0].endswith(unit)


def test_a_mixture_that_was_trained_before_says_which_rows_its_scores_are_about():
    two = Settings(alpha=(0.1, 1.0))
    rows = [{"x": k % 2, "y": int(k % 3 == 0)} for k in range(120)]
    first = forel.train(rows, two, label="y", bits=4)
    assert mixture_sentence(first) == str(first.learner.guarantee())
    second = forel.train(rows[:50], model=first)
    assert mixture_sentence(second).endswith("; the scores above are about the 50 rows of this run")
    assert mixture_sentence(forel.train(rows, ONE, label="y", bits=4)) is None


def test_compiling_is_not_counted_as_learning():
    assert time_sentence(2.0, 0.0, 1000) == "2.00 seconds, 500 rows per second"
    assert time_sentence(12.0, 10.0, 1000) == "2.00 seconds, 500 rows per second, after 10.0 seconds of compiling"


def test_inspect_says_that_rows_are_those_of_all_passes(tmp_path):
    rows = [{"x": k % 2, "y": int(k % 3 == 0)} for k in range(120)]
    for passes, title in ((1, "│ rows "), (3, "│ rows, in all passes and runs │ 360 ")):
        forel.train(rows, ONE, label="y", bits=4, passes=passes).save(tmp_path / "m")
        assert title in run("inspect", tmp_path / "m", COLUMNS="200").stdout


def test_one_row_is_not_called_rows():
    words = lambda trained: [trained.training.certificate, trained._repr_html_(), *sentences(trained)]  # noqa: E731
    one = forel.train([{"x": 1, "y": 1}], ONE, label="y", bits=4, certificate=True)
    mixed = forel.train([{"x": 1, "y": 1}], label="y", bits=4)
    found = [*words(one), str(mixed.learner.guarantee()), mixed.learner.explain().headline, *sentences(mixed)]
    assert not [each for each in found if "1 rows" in each]
    assert "on this row" in found[0]
    assert "over 1 row, which" in str(mixed.learner.guarantee())


@pytest.mark.filterwarnings("ignore:labels are sorted")
def test_sorted_labels_are_no_sign_of_a_column_that_is_known_after_them():
    rows = [{"x": k % 7, "y": int(k >= 4000)} for k in range(8000)]
    trained = forel.train(rows, ONE, label="y", bits=4, passes=1, holdout=10)
    assert trained.training.holdout.auc > 0.999
    assert trained.training.leak is None
    shuffled = [{"copy": row["y"], **row} for row in np.random.default_rng(0).permutation(rows)[:2000]]
    with pytest.warns(UserWarning, match="the column 'copy' alone predicts nearly all labels"):
        forel.train(shuffled, ONE, label="y", bits=4)


def test_a_large_negative_r2_has_few_digits():
    rows = [{"x": 1, "y": 1e7 + k % 3} for k in range(50)]
    report = forel.train(rows, Settings("squared", alpha=1.0), label="y", bits=4).report
    assert len({name: text for _, name, text in report.lines("")}["R²"]) <= 10


@pytest.mark.parametrize("options", [{"holdout": 60}, {"holdout_after": 50}])
def test_a_source_too_short_for_rows_to_be_held_out_is_warned_about(options):
    rows = [{"x": k % 2, "y": int(k % 3 == 0)} for k in range(50)]
    ((name, number),) = options.items()
    with pytest.warns(UserWarning, match=rf"^{name}: got {number}, expected .* the 50 rows of the source; none was"):
        forel.train(rows, ONE, label="y", bits=4, **options)
    with warnings.catch_warnings(action="error"):
        forel.train(rows, ONE, label="y", bits=4, **{name: number - 10})
