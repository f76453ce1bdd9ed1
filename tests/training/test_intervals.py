"""Intervals of predictions at all interfaces, and the coverage of buckets, computed from the raw rows."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit
from typer.testing import CliRunner

import forel
from forel.cli.app import app
from forel.learner.settings import Settings
from forel.learner.uncertainty import Intervals, standard_errors
from forel.training.coverage import Coverage, coverage, needed_scales

pytestmark = pytest.mark.usefixtures("interpreted")
FILTER = Settings(algorithm="filter", alpha=1.0)


def rows(count=240, seed=0):
    rng = np.random.default_rng(seed)
    return [{"site": f"s{k % 4}", "y": int(rng.random() < 0.2 * (1 + k % 4))} for k in range(count)]


def test_predict_returns_intervals_and_the_command_writes_them(tmp_path):
    trained = forel.train(rows(), FILTER, label="y", bits=8)
    found = forel.predict(trained, rows(8), uncertainty=True, level=0.5)
    margins = forel.predict(trained, rows(8), margins=True).astype(float)
    assert found.prediction == pytest.approx(expit(margins), rel=1e-6)
    assert found.low == pytest.approx(expit(margins - 0.6744897501960817 * found.error), rel=1e-6)
    assert found.high == pytest.approx(expit(margins + 0.6744897501960817 * found.error), rel=1e-6)
    assert (found.error > 0).all()
    model, table, out = tmp_path / "m.forel", tmp_path / "new.csv", tmp_path / "out"
    trained.save(model)
    table.write_text("site\n" + "".join(f"s{k % 4}\n" for k in range(8)))
    words = ["predict", str(table), "--model", str(model), "--uncertainty", "--level", "0.5", "--output", str(out)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    written = np.loadtxt(out)
    assert np.allclose(written, np.column_stack(found[:3]), rtol=1e-4)


def test_models_without_variances_are_refused(tmp_path):
    trained = forel.train(rows(), FILTER, label="y", bits=8)
    with pytest.raises(ValueError, match="uncertainty: got True, expected False with margins"):
        forel.predict(trained, rows(8), uncertainty=True, margins=True)
    forel.save(tmp_path / "m", forel.store.serving_model(trained.model), trained.extra)
    with pytest.raises(ValueError, match="uncertainty: got True, expected False for a serving model"):
        forel.predict(tmp_path / "m", rows(8), uncertainty=True)


def test_a_bucket_needs_what_its_average_label_is_beyond_noise():
    rng = np.random.default_rng(0)
    X = sparse.random_array((300, 6), density=0.5, rng=rng, format="csr")
    p, half, y = rng.random(300), 0.1 + rng.random(300), rng.random(300) + 0.3
    v = p * (1 - p)
    found = needed_scales(X, Intervals(p, p - half, p + half, half), y, v, level=0.8)
    expected = []
    for column in X.toarray().T:
        used = column != 0
        rest = (y[used].mean() - p[used].mean()) ** 2 - 1.2815515655446004**2 * v[used].mean() / used.sum()
        expected.append(np.sqrt(max(rest, 0)) / half[used].mean())
    assert found == pytest.approx(expected)
    assert Coverage(found, 0.5).covered(Coverage(found, 0.5).scale) == 0.5
    dense = needed_scales(
        sparse.csr_array(rng.random((600, 1)) + 1), Intervals(*np.ones((4, 600))), np.ones(600), np.ones(600)
    )
    assert dense.size == 10  # tenths by value


def test_coverage_reads_labelled_rows_and_intervals_cover_true_chances():
    trained = forel.train(rows(2000), FILTER, label="y", bits=8)
    measured = coverage(trained, rows(2000, seed=1), label="y")
    assert measured.needed.size == 4
    assert measured.covered() >= 0.75
    found = forel.predict(trained, rows(4), uncertainty=True, level=0.999)
    truth = 0.2 * np.arange(1, 5)
    assert ((found.low < truth) & (truth < found.high)).all()
    assert found.error == pytest.approx(standard_errors_of(trained, rows(4)))
    with pytest.raises(ValueError, match="loss: got 'absolute', expected log-loss or squared"):
        coverage(forel.train(rows(), Settings("absolute"), label="y", bits=8), rows(), label="y")


def standard_errors_of(trained, examples):
    block = next(iter(forel.read(examples, label="y", bits=8)))
    return standard_errors(trained.model, block.matrix(1 << 8))
