"""The course of training: the same curves as from looking back, in memory that hardly grows."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forel.data import concatenate, read
from forel.data.clicks import write_clicks
from forel.learner.learner import Learner
from forel.learner.rows import Rows
from forel.learner.settings import Settings
from forel.losses import Logistic
from forel.training.history import LOSS_SPACING, PROBE_SPACING, History, certificate_values, mixture_weights
from forel.training.train import train

SETTINGS = Settings(alpha=0.3, l1=0.5)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("clicks") / "a.vw"
    with path.open("wb") as stream:
        write_clicks(stream, 3000, seed=4)
    return path


def followed(file, probes=None, **options):
    history = History(**(probes or {}))
    kept = []

    def progress(moment):
        history(moment)
        kept.append(moment.margins)

    trained = train(file, SETTINGS, bits=14, block_bytes=4000, progress=progress, **options)
    history.close()
    return trained, history, np.concatenate(kept)


def test_loss_curves_equal_averages_of_rows(file):
    trained, history, margins = followed(file, holdout=5)
    labels = (concatenate(read(file, bits=14)).labels + 1) / 2
    each, learned = Logistic()(margins.astype(float), labels), np.arange(1, 3001) % 5 != 0
    mine, held = each[learned], each[~learned]
    curves = history.curves["loss"]
    rows = curves["average"].rows
    assert np.allclose(curves["average"].values, [mine[:n].mean() for n in rows], rtol=1e-6)
    edges = [0, *rows]
    since = [mine[a:b].mean() for a, b in zip(edges, rows, strict=False)]
    assert np.allclose(curves["since"].values, since, rtol=1e-5)
    assert curves["held out"].values[-1] == pytest.approx(held.mean())
    assert curves["average"].values[-1] == trained.report.loss
    assert rows[-1] == 2400


def test_points_are_exponentially_spaced_in_the_first_pass(file):
    _, history, _ = followed(file, probes={"count": lambda moment: {"rounds": moment.model.rounds}}, passes=4)
    rows = np.array(history.curves["loss"]["average"].rows)
    assert rows[-1] == 3000
    assert rows.size <= 2 + math.log(rows[-1] / rows[0]) / math.log(LOSS_SPACING)
    assert (rows[1:-1] >= LOSS_SPACING * rows[:-2]).all()
    counted = history.curves["count"]["rounds"]
    assert counted.rows == counted.values
    assert counted.rows[-1] == 12_000
    assert len(counted.rows) <= 2 + math.log(12_000 / counted.rows[0]) / math.log(PROBE_SPACING)


def test_certificate_values_equal_those_of_a_separate_model(file):
    _, history, _ = followed(file, probes={"proof": certificate_values}, certificate=True)
    whole = concatenate(read(file, bits=14))
    curves = history.curves["proof"]
    for k, rows in enumerate(curves["regret"].rows):
        direct = Learner(1 << 14, SETTINGS, certified=True, mixed=False)
        some = whole.matrix(1 << 14)[:rows]
        direct.learn(Rows(some.indptr, some.indices, some.data), (whole.labels[:rows] + 1) / 2)
        proof, x = direct.certificate(), np.append(direct.weights, direct.bias).astype(float)
        norm = np.linalg.norm(x)
        best = -norm * proof.gradients / np.linalg.norm(proof.gradients)
        assert curves["regret"].values[k] == pytest.approx(proof.worst(l2=norm) / rows, rel=1e-6)
        assert curves["regret"].values[k] == pytest.approx(proof.regret(best) / rows, rel=1e-6)
        assert curves["bound"].values[k] == pytest.approx(proof.bound(best) / rows, rel=1e-6)
        assert curves["floor"].values[k] == pytest.approx(proof.loss_floor(l2=norm), rel=1e-6)
        assert curves["regret"].values[k] <= curves["bound"].values[k]


def test_void_bounds_are_left_out():
    rows = [{"x": 1.0, "z": k % 2, "y": k % 3 == 0} for k in range(200)]
    found = []
    for radius in (None, 0.01):
        history = History(proof=certificate_values)
        # Weights at the edge of the box: the worst model of their norm is beyond it, where no theorem holds.
        train(rows, Settings(alpha=9.0, radius=radius), label="y", bits=4, certificate=True, progress=history)
        history.close()
        found.append(sorted(history.curves["proof"]))
    assert found == [["bound", "floor", "loss", "regret"], ["floor", "loss", "regret"]]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=40))
def test_rows_without_importance_give_no_nan(weights):
    rows = [{"x": 1.0, "y": k % 2, "w": float(w)} for k, w in enumerate(weights)]
    history = History()
    train(rows, SETTINGS, label="y", importance="w", bits=4, block_bytes=1, progress=history)
    history.close()
    for curve in history.curves["loss"].values():
        assert np.isfinite(curve.values).all()
        assert curve.rows == sorted(set(curve.rows))


def test_tables_of_one_block_have_a_learning_curve(interpreted):
    history = History(weights=mixture_weights)
    rows = [{"a": k % 3, "y": k % 2} for k in range(600)]
    trained = train(rows, label="y", bits=4, progress=history)
    history.close()
    curve = history.curves["loss"]["average"]
    assert curve.rows == [64, 128, 256, 512, 600]
    assert curve.values[-1] == pytest.approx(trained.report.loss)
    assert next(iter(history.curves["weights"].values())).rows == curve.rows
