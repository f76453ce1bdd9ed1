"""Polished floors: below the optimum of a solver that knows nothing of forel, and the same in any blocks."""

import re

import numpy as np
import pytest
from scipy.optimize import minimize
from typer.testing import CliRunner

import forel
from forel.cli.app import app
from forel.report import page
from forel.training import run_certificate
from forel.training.history import History

ROWS, SMALL = 2500, 400


def rows(kind, seed, count=ROWS):
    """Rows of four features, one rare and one large, with importances; the last labels are adversarial."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([
        rng.normal(size=count), rng.random(count) < 0.02, 1000 * rng.random(count), rng.choice([-1.0, 1.0], count)
    ]).round(3)  # fmt: skip
    margin = X @ np.array([1.5, 2.0, 0.002, -0.7]) - 1
    margin, late = 3 * margin, np.arange(count) >= 0.95 * count
    if kind == "logistic":
        y = (rng.random(count) < 1 / (1 + np.exp(-np.where(late, -margin, margin)))).astype(float)
    elif kind == "squared":
        y = (np.where(late, -margin, margin) + rng.normal(size=count)).round(3)
    else:
        y = rng.poisson(np.exp(np.clip(np.where(late, -margin, margin) / 6, -3, 3))).astype(float)
    return X, y, rng.integers(0, 3, count).astype(float)


def smallest(kind, X, y, weight, norm):
    """The smallest average loss of models of raw rows whose scaled weights have at most this norm, by a penalty."""
    Z = np.column_stack([X / np.abs(X[weight > 0]).max(axis=0), np.ones(len(X))])
    best = np.zeros(Z.shape[1])

    def loss(m):
        if kind == "logistic":
            return np.logaddexp(0, m) - y * m, 1 / (1 + np.exp(-m)) - y
        if kind == "squared":
            return (m - y) ** 2 / 2, m - y
        e = np.exp(np.minimum(m, 50))
        return e - y * m, e - y

    low, high = -12.0, 6.0
    for _ in range(26):
        penalty = 10 ** ((low + high) / 2) * weight.sum()

        def objective(x, penalty=penalty):
            value, slope = loss(Z @ x)
            return weight @ value + penalty / 2 * x @ x, Z.T @ (weight * slope) + penalty * x

        best = minimize(objective, best, jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-9}).x
        low, high = (low, (low + high) / 2) if np.linalg.norm(best) <= norm else ((low + high) / 2, high)
    best *= min(1.0, norm / np.linalg.norm(best))
    return weight @ loss(Z @ best)[0] / weight.sum()


def table(path, X, y, weight):
    lines = [
        f"{label} {w:g} | {' '.join(f'{name}:{value}' for name, value in zip('abcd', row, strict=True))}\n"
        for row, label, w in zip(X.tolist(), y.tolist(), weight, strict=True)
    ]
    path.write_text("".join(lines))
    return str(path)


def certified(path, kind, **options):
    return forel.train(path, loss=kind, certificate=True, bits=8, **options)


@pytest.mark.parametrize("kind", ["logistic", "squared", "poisson"])
@pytest.mark.parametrize("sample", [SMALL, 10_000])
def test_floors_are_below_the_optimum_and_close_to_it(kind, sample, tmp_path, monkeypatch):
    monkeypatch.setattr(run_certificate, "ROWS", sample)
    X, y, weight = rows(kind, 0)
    model = certified(table(tmp_path / "t.vw", X, y, weight), kind)
    floor = model.training.floor
    norm = floor["norm"]
    best = smallest(kind, X, y, weight, norm * (1 + 1e-6))
    assert floor["floor"] <= best * (1 + 1e-9)
    assert sample < ROWS or floor["floor"] >= 0.98 * best
    assert kind != "squared" or floor["floor"] >= 0.9999 * best  # from sums of products
    frontier = model.training.frontier
    for at, value in frontier.points[::20]:
        assert value <= smallest(kind, X, y, weight, at * (1 + 1e-6)) * (1 + 1e-9), at
    alone = model.learner.loss_floor(loss=model.report.loss * model.report.weight)
    assert floor["floor"] > alone.at(norm) + 0.05 * (best - alone.at(norm))


@pytest.mark.parametrize("kind", ["logistic", "squared"])
def test_the_same_for_other_blocks_held_out_rows_and_where_a_run_was_resumed(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(run_certificate, "ROWS", SMALL)
    path = table(tmp_path / "t.vw", *rows(kind, 1))
    options = {"holdout": 7, "passes": 2}
    whole = certified(path, kind, **options)
    assert certified(path, kind, block_bytes=8192, **options).training.floor == whole.training.floor

    def stop(moment):
        if moment.pass_number == 2 and moment.rows > 1000:
            raise KeyboardInterrupt

    saving = {"checkpoint": tmp_path / "c", "checkpoint_every": 300, "block_bytes": 8192, **options}
    with pytest.raises(KeyboardInterrupt):
        certified(path, kind, progress=stop, **saving)
    resumed = certified(path, kind, resume=True, **saving)
    assert resumed.training.floor == whole.training.floor
    assert resumed.training.certificate == whole.training.certificate


def test_the_verdict_is_first_and_true_as_printed(tmp_path):
    X, y, weight = (each[:2300] for each in rows("logistic", 2))
    model = certified(table(tmp_path / "t.vw", X, y, weight), "logistic", progress=(history := History()))
    verdict, norm = model.training.floor["verdict"], model.training.floor["norm"]
    percent = int(re.search(r"could save (?:at most|up to) (\d+) % of the loss", verdict)[1])
    saved = 1 - smallest("logistic", X, y, weight, norm * (1 + 1e-6)) / model.report.loss
    assert 0 < saved <= percent / 100 < saved + 0.1
    assert verdict.startswith("Good: " if percent <= 10 else "Open: ")
    model.save(tmp_path / "m.forel")
    shown = CliRunner().invoke(app, ["inspect", str(tmp_path / "m.forel")])
    assert shown.output.startswith(verdict)
    text = page(model, history)
    assert 0 < text.index(verdict) < text.index("Metrics")
