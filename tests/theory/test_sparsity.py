"""With L1 in every round, FTRL-Proximal and dual averaging find far sparser models than FOBOS, as good at ranking."""

import importlib.util
import math
import pathlib

import numpy as np
import pytest
from scipy.sparse import csr_array

from forel.losses import Example, Logistic

spec = importlib.util.spec_from_file_location("sparsity", pathlib.Path(__file__).parents[2] / "benchmarks/sparsity.py")
sparsity = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sparsity)

REVIEWS = "kitchen"
TELLING = 10


def compare(task, penalty, scales):
    models = {
        (name, penalty, scale): sparsity.learn(build(scale, penalty), task)
        for name, build in sparsity.ALGORITHMS.items()
        for scale in scales
    }
    return sparsity.curve(task, [penalty], models)[0]


def synthetic(rows=1000, rare=3000, words=12):
    """Synthetic reviews: a few common words that determine the label, and many rare ones that are noise."""
    rng = np.random.default_rng(0)
    x = np.concatenate((rng.choice([-1.5, 1.5], TELLING), np.zeros(rare)))
    dense = np.zeros((rows, TELLING + rare))
    dense[:, :TELLING] = rng.random((rows, TELLING)) < 0.5
    for row in dense:
        row[TELLING + rng.integers(rare, size=words)] = 1.0
    labels = (rng.random(rows) < 1 / (1 + np.exp(-dense @ x))).astype(np.float64)
    split = rows * 4 // 5
    return sparsity.Task(csr_array(dense[:split]), labels[:split], csr_array(dense[split:]), labels[split:])


def frequent(task, rows):
    """The task with only the features that occur in at least a number of examples."""
    kept = np.flatnonzero(np.bincount(task.examples.indices, minlength=task.examples.shape[1]) >= rows)
    return task._replace(examples=task.examples[:, kept], unseen=task.unseen[:, kept])


def test_ftrl_is_sparser_than_fobos_on_rare_words():
    task = synthetic()
    line = compare(task, penalty=0.005, scales=(1.0,))
    assert line.spread <= 0.02
    assert line.ratio >= 30
    # Both FTRL algorithms keep the words that tell and no other; on real text nobody knows which these are.
    for name in ("FTRL-Proximal", "RDA"):
        _, x = sparsity.fit(sparsity.ALGORITHMS[name](1.0, 0.005), task)
        assert np.flatnonzero(x).tolist() == list(range(TELLING))


@pytest.mark.slow
@pytest.mark.skipif(
    not (sparsity.DATA / f"amazon_{REVIEWS}.vw.gz").is_file(),
    reason="needs the reviews, in shared/data next to the checkout",
)
def test_ftrl_is_sparser_than_fobos_on_reviews():
    # Without the words of fewer than four reviews, for speed; most of what FOBOS keeps too much of is among them.
    line = compare(frequent(sparsity.read(REVIEWS), rows=4), penalty=0.002, scales=(0.1, 0.2))
    assert line.spread <= 0.02
    assert line.ratio >= 5
    assert all(model.auc > 0.92 for _, model in line.best.values())


@pytest.mark.parametrize("name", sparsity.ALGORITHMS)
def test_without_penalty_every_word_seen_keeps_a_weight(name):
    task = synthetic(rows=100, rare=200)
    seen = np.count_nonzero(task.examples.sum(axis=0))
    assert sparsity.learn(sparsity.ALGORITHMS[name](0.2, 0.0), task).nonzeros == seen


def test_sparse_examples_are_examples():
    task, rng = synthetic(rows=20, rare=30), np.random.default_rng(1)
    for loss, features, label in zip(sparsity.losses(task), task.examples.toarray(), task.labels, strict=True):
        x, same = rng.normal(size=features.size), Example(Logistic(), features, label)
        assert loss(x) == pytest.approx(same(x), rel=1e-12)
        np.testing.assert_allclose(loss.subgradient(x), same.subgradient(x), rtol=1e-12)


def test_auc_counts_pairs():
    rng = np.random.default_rng(2)
    margins, labels = rng.integers(5, size=60).astype(np.float64), rng.integers(2, size=60).astype(np.float64)
    pairs = [(a > b) + 0.5 * (a == b) for a in margins[labels == 1] for b in margins[labels == 0]]
    assert sparsity.auc(margins, labels) == pytest.approx(math.fsum(pairs) / len(pairs))
