"""Reproduced claims of the literature at small sizes, and the page written from them."""

import os
import pathlib
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from benchmarks import sparsity
from forel.learner.kernels import kernel
from reproduce import additive, bounds, mixing, offset, rates, sparse_models
from reproduce.figure_4 import figure_4
from reproduce.page import markdown, write
from reproduce.progressive import progressive
from reproduce.sources import clicks

ROOT = pathlib.Path(__file__).parents[2]
SCALES = 0.0625, 0.25, 1.0


def synthetic(rows, informative=10, rare=3000, words=12):
    rng = np.random.default_rng(0)
    x = np.concatenate((rng.choice([-1.5, 1.5], informative), np.zeros(rare)))
    dense = np.zeros((rows, informative + rare))
    dense[:, :informative] = rng.random((rows, informative)) < 0.5
    for row in dense:
        row[informative + rng.integers(rare, size=words)] = 1.0
    labels = (rng.random(rows) < 1 / (1 + np.exp(-dense @ x))).astype(np.float64)
    split = rows * 4 // 5
    return sparsity.Task(csr_array(dense[:split]), labels[:split], csr_array(dense[split:]), labels[split:])


def rentals(rows):
    """A table whose labels are a curve of one column, and of it together with another one."""
    rng = np.random.default_rng(5)
    hour, warm, free = rng.integers(24, size=rows), rng.random(rows), rng.integers(2, size=rows)
    label = 10 * np.sin(hour / 4) * free + 5 * np.abs(warm - 0.5) + rng.normal(size=rows)
    return pd.DataFrame({"hour": hour, "warm": warm, "free": free, "y": label})


CLAIMS = {
    "figure_4": figure_4,
    "sparse_models": lambda: sparse_models.compare(
        {"synthetic": sparse_models.curve(synthetic(500), (0.002, 0.005), (0.3, 1.0))}
    ),
    "rates": lambda: rates.compare({"clicks": rates.losses(clicks(5000), SCALES)}, SCALES),
    "progressive": lambda: progressive(20_000, 20_000),
    "mixing": lambda: mixing.compare({"clicks": mixing.learn(clicks(20_000))}),
    "additive": lambda: additive.compare(rentals(2000), "y", ("hour", "warm", "free")),
    "offset": lambda: offset.offset(600),
    "bounds": lambda: bounds.bounds(60),
}


UNCOMPILED = ("sparse_models",)  # compiling its three kernels takes longer than its 400 rows of 12 words


@pytest.fixture(scope="module")
def claims():
    found = {}
    for name, measure in CLAIMS.items():
        with pytest.MonkeyPatch.context() as patch:
            if name in UNCOMPILED:
                patch.setattr(kernel, "kernel", kernel.uncompiled_kernel)
            found[name] = measure()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", CLAIMS)
def test_every_claim_holds(claims, name):
    claim = claims[name]
    assert claim.holds, (claim.measured, claim.table)
    assert len({len(row) for row in claim.table}) == 1


@pytest.mark.slow
def test_the_page_has_every_claim_and_its_figures(claims, tmp_path):
    write(list(claims.values()), tmp_path)
    page = (tmp_path / "reproduced.md").read_text()
    for claim in claims.values():
        assert claim.statement in page
        assert (tmp_path / "reproduced" / f"{claim.key}.svg").stat().st_size > 1000
        assert (tmp_path / "reproduced" / f"{claim.key}_dark.svg").stat().st_size > 1000


def test_claim_that_fails_is_reported_as_failed():
    assert "**Holds:** **no**" in markdown([replace(figure_4(), holds=False)])


def test_fast_learner_and_reference_engine_give_the_same_sparsity(interpreted):
    task = synthetic(rows=100, rare=200)
    for line in sparse_models.curve(task, (0.002, 0.005), (0.3, 1.0)):
        for name, (scale, fast) in line.best.items():
            slow = sparsity.learn(sparsity.ALGORITHMS[name](scale, line.penalty), task)
            assert fast == pytest.approx(slow, rel=1e-9)


def test_missing_data_are_listed(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "reproduce", str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "FOREL_DATA": str(tmp_path)},
        check=False,
    )
    assert done.returncode == 2
    assert "sparse_models needs amazon_books.vw.gz" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_page_in_the_docs_is_up_to_date():
    page = (ROOT / "docs" / "reproduced.md").read_text()
    claim = bounds.bounds(400)
    assert claim.measured in page, "run `make reproduce`"
