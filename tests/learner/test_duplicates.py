"""Misleading rows: repeated indices, imaginary parts, masks."""

import numpy as np
import pytest
from scipy import sparse

from forel.learner.kernels import kernel
from forel.learner.learner import Learner
from forel.learner.rows import CoalescedRows, Rows, rows_of
from forel.learner.settings import Settings
from forel.sklearn import FTRLClassifier, FTRLRegressor


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    monkeypatch.setattr(kernel, "kernel", kernel.uncompiled_kernel)


def rows(*lists):
    ends = np.cumsum([0, *map(len, lists)])
    return Rows(ends, np.array([k for row in lists for k in row], np.int32), np.ones(ends[-1], np.float32))


@pytest.mark.parametrize("alpha", [0.5, (0.5, 1.0)])
@pytest.mark.parametrize("given", [rows([1, 1]), rows([0, 1], [4, 2, 4]), rows([], [3], [3, 0, 1, 2, 4, 5, 6, 7, 3])])
def test_an_index_twice_in_a_row_is_one_of_the_sum(given, alpha):
    dense = sparse.csr_array((given.values, given.indices, given.indptr), shape=(given.number, 8)).toarray()
    assert dense.max() == 2
    model, other = (Learner(8, Settings(alpha=alpha), dtype=np.float64, mixed=False) for _ in range(2))
    model.learn(given, np.ones(given.number))
    other.learn(dense, np.ones(given.number))
    assert np.allclose(model.weights, other.weights, rtol=1e-12)
    assert np.allclose(model.margins(given), other.margins(dense), rtol=1e-12)


def test_rows_in_any_order_are_taken():
    given = rows([3, 1, 2], [], [2], [2, 1], [7, 0])
    model, summed = (Learner(8, Settings(alpha=0.5), dtype=np.float64) for _ in range(2))
    y = [1, 0, 1, 0, 1]
    model.learn(given, y)
    summed.learn(sparse.csr_array((given.values, given.indices, given.indptr), shape=(5, 8)), y)
    assert np.allclose(model.weights, summed.weights, rtol=1e-12)


def test_matrices_with_duplicates_are_summed_and_merged():
    twice = sparse.csr_array((np.ones(3), np.array([1, 1, 0]), np.array([0, 3])), shape=(1, 2))
    found = rows_of(twice, 2, np.float64)
    assert isinstance(found, CoalescedRows)
    assert dict(zip(found.indices.tolist(), found.values.tolist(), strict=True)) == {0: 1.0, 1: 2.0}


def test_rows_by_hand_are_checked():
    bad = rows([0, 1])
    bad.values[1] = np.nan
    for given, match in (
        (bad, "X: got nan in row 0, column 1, expected finite numbers"),
        (Rows(np.array([1, 2]), np.zeros(2, np.int32), np.ones(2)), "an indptr that does not increase from 0"),
        (Rows(np.array([0, 2, 1]), np.zeros(2, np.int32), np.ones(2)), "an indptr that does not increase from 0"),
        (Rows(np.array([0, 1]), np.zeros(1, np.int32), np.ones(1) * 1j), "X: got complex numbers"),
    ):
        with pytest.raises(ValueError, match=match):
            Learner(4, Settings()).learn(given, np.ones(given.number))


MASKED = np.ma.masked_equal([[1.0, 2.0], [-99.0, 1.0], [2.0, 3.0]], -99.0)
COMPLEX = np.array([[1, 2], [3, 4j], [1, 0]])


def test_imaginary_parts_and_masks_of_features_are_refused():
    for X, match in (
        (MASKED, r"X: got a masked entry at index \(1, 0\), expected numbers without a mask"),
        (COMPLEX, "X: got complex numbers, expected real ones"),
        (COMPLEX.tolist(), "X: got complex numbers, expected real ones"),
        (sparse.csr_array(COMPLEX), "X: got complex numbers, expected real ones"),
    ):
        model = Learner(2, Settings())
        with pytest.raises(ValueError, match=match):
            model.learn(X, [1, 0, 1])
        with pytest.raises(ValueError, match=match):
            model.margins(X)
    for estimator in (FTRLClassifier(alpha=0.1), FTRLRegressor(alpha=0.1)):
        with pytest.raises(ValueError, match="X: got a masked entry"):
            estimator.fit(MASKED, [1, 0, 1])
        with pytest.raises(ValueError, match=r"[Cc]omplex"):
            estimator.fit(COMPLEX, [1, 0, 1])
    Learner(2, Settings()).learn(np.ma.masked_array(np.eye(2)), [1, 0])  # nothing is masked


def test_imaginary_parts_and_masks_of_labels_and_weights_are_refused():
    X, y = np.eye(2), np.ma.masked_array([1.0, 0.0], [False, True])
    model = Learner(2, Settings())
    for name, arguments in (("y", (y,)), ("importance", ([1, 0], y))):
        with pytest.raises(ValueError, match=f"{name}: got a masked entry at index 1"):
            model.learn(X, *arguments)
    for name, arguments in (("y", ([1j, 0],)), ("importance", ([1, 0], [1j, 1]))):
        with pytest.raises(ValueError, match=f"{name}: got complex numbers"):
            model.learn(X, *arguments)
    with pytest.raises(ValueError, match="y: got a masked entry at index 1"):
        FTRLRegressor(alpha=0.1).fit(X, y)
    with pytest.raises(ValueError, match="Complex data not supported"):
        FTRLRegressor(alpha=0.1).fit(X, np.array([1j, 0]))
    with pytest.raises(ValueError, match="sample_weight: got a masked entry at index 1"):
        FTRLRegressor(alpha=0.1).fit(X, [1, 0], sample_weight=y)
