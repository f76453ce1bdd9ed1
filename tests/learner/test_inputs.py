"""Rows, labels, importances and settings: valid and invalid input of the learner."""

import math

import numpy as np
import pytest
from scipy import sparse

from forel.learner.learner import Learner
from forel.learner.rows import SMALL, Rows, rows_of
from forel.learner.settings import Settings
from forel.learner.state import summed
from forel.losses import Example, Huber, Quantile
from tests.learner.reference import ROUNDS, N, stream


@pytest.mark.usefixtures("interpreted")
def test_block_size_format_dtype_and_order_of_rows_do_not_matter():
    dense, labels = stream("logistic")
    settings = Settings(alpha=0.3, l1=0.05)
    whole, pieces, shuffled = (Learner(N, settings, dtype=np.float64, mixed=False) for _ in range(3))
    whole.learn(dense, labels)
    csr = sparse.csr_array(dense)
    for start in range(0, ROUNDS, 37):
        pieces.learn(csr[start : start + 37], labels[start : start + 37])
    assert np.array_equal(whole.state.numbers, pieces.state.numbers)
    wide = sparse.csr_matrix(dense)
    wide.indptr, wide.indices = wide.indptr.astype(np.int64), wide.indices.astype(np.int64)
    other = sparse.csr_array((np.r_[1.0, 1.0, 2.0], np.r_[2, 0, 2], np.r_[0, 3]), shape=(1, N))  # unsorted, twice
    shuffled.learn(wide, labels)
    assert np.array_equal(whole.state.numbers, shuffled.state.numbers)
    assert np.allclose(whole.margins(other), whole.margins(other.toarray()))


def test_rows_of_the_right_type_are_not_copied():
    matrix = sparse.random_array((10, 5), density=0.5, format="csr", dtype=np.float32, random_state=0)
    matrix.sort_indices()
    assert np.shares_memory(rows_of(matrix, 5, np.float32).values, matrix.data)


def test_rows_have_one_type_whatever_they_are_given_as():
    """numba compiles kernels again for other integers, and for arrays that are read-only."""
    dense = np.arange(1.0, 13).reshape(4, 3)
    wide, fixed = sparse.csr_array(dense), sparse.csr_array(dense.astype(np.float32))
    wide.indptr, wide.indices = wide.indptr.astype(np.int64), wide.indices.astype(np.int64)
    for array in (fixed.data, fixed.indices, fixed.indptr):
        array.flags.writeable = False
    strided = Rows(np.arange(9)[::2], np.tile(np.uint32([0, 1]), 4), np.ones((8, 2))[:, 0])
    for X in (dense, wide, fixed, strided, rows_of(fixed, 3, np.float32)):
        rows = rows_of(X, 3, np.float32)
        assert [array.dtype for array in rows] == [np.int64, np.int32, np.float32]
        assert all(array.flags.writeable and array.flags.c_contiguous for array in rows)
    assert np.shares_memory(rows_of(fixed, 3, np.float32).values, fixed.data)
    assert not fixed.data.flags.writeable
    assert rows_of(sparse.csr_array((1, 1 << 33)), 1 << 33, np.float32).indices.dtype == np.int64


@pytest.mark.usefixtures("interpreted")
def test_importance_multiplies_the_loss_and_differs_from_repeating_a_row():
    row, label = [[1.0, 2.0]], [1]
    settings = Settings("squared", algorithm="mirror", alpha=0.1, bias=False)
    once, double, twice = (Learner(2, settings, dtype=np.float64, mixed=False) for _ in range(3))
    once.learn(row, label)
    double.learn(row, label, importance=[2.0])
    twice.learn(row * 2, label * 2)
    g = np.array([1.0, 2.0])  # of the loss at 0, with the opposite sign
    assert np.allclose(double.weights.ravel(), 0.1 * 2 * g / (1 + 2 * g))
    assert not np.allclose(double.weights, twice.weights)
    assert double.loss == pytest.approx(2 * once.loss)
    none = Learner(2, settings, dtype=np.float64, mixed=False)
    none.learn(row, label, importance=[0.0])
    assert not none.weights.any()


def broken(**parts):
    matrix = sparse.csr_array(np.eye(3))
    for name, value in parts.items():
        setattr(matrix, name, np.asarray(value))
    return matrix


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(
    ("X", "y", "importance", "message"),
    [
        ([[math.nan, 0, 0]], [1], None, "X: got nan in row 0, column 0, expected finite numbers"),
        ([[1e300, 0, 0]], [1], None, r"X: got 1e\+300 in row 0, column 0, .* within the range of float32"),
        ([[0, 1.0, 0], [0, 0, math.inf]], [1, 0], None, "X: got inf in row 1, column 2"),
        (broken(indices=[0, 7, 2]), [1, 0, 1], None, "X: got the column index 7, expected 0 to 2"),
        (broken(indices=[0, -1, 2]), [1, 0, 1], None, "X: got the column index -1"),
        (broken(indptr=[0, 2, 1, 3]), [1, 0, 1], None, "indptr that does not increase"),
        (broken(indptr=[0, 1, 2, 9]), [1, 0, 1], None, "whose lengths do not match indptr"),
        (broken(data=[1.0, 2.0]), [1, 0, 1], None, "whose lengths do not match"),
        ([[1.0, 2.0]], [1], None, "X: got 2 features, expected 3"),
        ([1.0, 2.0, 3.0], [1], None, r"X: got shape \(3,\), expected two dimensions"),
        (np.eye(3), [1, 0], None, "y: got shape .*expected one label for each of 3 rows"),
        (np.eye(3), [1, 0, 2], None, "y: got 2.0 at index 2, expected a finite number of at least 0 and at most 1"),
        (np.eye(3), [1, 0, math.nan], None, "y: got nan at index 2"),
        (np.eye(3), ["a", "b", "c"], None, "y: got .*encode classes as numbers"),
        (np.eye(3), [1, 0, 1], [1.0], "importance: got shape"),
        (np.eye(3), [1, 0, 1], [1.0, -1.0, 0.0], "importance: got -1.0 in row 1"),
        (np.eye(3), [1, 0, 1], [1.0, 1.0, math.inf], "importance: got inf in row 2"),
        (np.eye(3), [1, 0, 1], [1.0, 1e39, 1.0], "importance: got 1e\\+39 in row 1, expected .*range of float32"),
        (np.eye(3), np.float32([1, 2, 1]), None, "y: got 2.0 at index 1"),
        (np.eye(3), np.float32([1, 0, math.nan]), None, "y: got nan at index 2"),
        (np.eye(3), np.float32([1, 0, 1]), np.float32([1, -1, 0]), "importance: got -1.0 in row 1"),
        (np.eye(3), np.float32([1, 0, 1]), np.float32([1, 1, math.inf]), "importance: got inf in row 2"),
        (np.eye(3), np.float32([1, 0, 1]), np.float32([math.nan, 1, 1]), "importance: got nan in row 0"),
        (np.eye(3) * 1e39, [1, 0, 1], None, "X: got 1e\\+39 in row 0, column 0"),
    ],
)
def test_bad_input_is_refused_before_anything_changes(X, y, importance, message):
    model = Learner(3, Settings())
    model.learn(np.eye(3), [1, 0, 1])
    before = model.state.numbers.tobytes(), model.rounds
    with pytest.raises(ValueError, match=message):
        model.learn(X, y, importance)
    assert (model.state.numbers.tobytes(), model.rounds) == before


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Settings(loss="log"),
            "loss: got 'log', expected one of logistic, hinge, squared_hinge, softmax, squared",
        ),
        (lambda: Settings(algorithm="sgd"), "algorithm: got 'sgd', expected one of proximal"),
        (lambda: Settings(alpha=0), "alpha: got 0.0, expected positive numbers"),
        (lambda: Settings(l1=-1), "l1: got -1.0, expected numbers of at least 0"),
        (lambda: Settings(alpha=(1.0, 2.0), l1=(1.0, 2.0, 3.0)), r"got \[2, 3\], expected sequences of one length"),
        (lambda: Settings(loss=3), "loss: got 3, expected one of logistic"),
        (lambda: Settings(loss=lambda m: m), "or a function of margin and label"),
        (
            lambda: Learner(2, Settings(loss="softmax")),
            "classes: got None, expected the number of classes, for the loss 'softmax'",
        ),
        (lambda: Learner(0, Settings()), "features: got 0"),
        (lambda: Learner(1, Settings(alpha=1e-300)), "expected 1/alpha and the others to be at most 1e\\+18"),
        (lambda: Settings(alpha="0.1"), "alpha: got '0.1', expected positive numbers"),
        (lambda: Settings(alpha=None), "alpha: got None, expected positive numbers"),
        (lambda: Learner(3, Settings(), dtype="half"), "dtype: got 'half', expected float32 or float64"),
        (lambda: Learner(3, Settings(), dtype=np.float16), "expected float32 or float64"),
    ],
)
def test_settings_that_cannot_work_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(("loss", "name"), [(Quantile(0.9), "quantile"), (Huber(0.3), "huber")])
def test_losses_of_the_vocabulary_may_be_given_themselves(loss, name):
    dense, labels = stream("squared")
    model = Learner(N, Settings(loss, alpha=0.3), dtype=np.float64)
    model.learn(dense, labels)
    theory = Settings(name, alpha=0.3).reference(N)
    state = theory.init(N + 1)
    for a, y in zip(np.hstack([dense, np.ones((ROUNDS, 1))]), labels, strict=True):
        state = theory.update(state, Example(loss, a, y))
    assert np.allclose(np.append(model.weights, model.bias), theory.play(state), rtol=1e-12)


@pytest.mark.usefixtures("interpreted")
def test_progress_is_what_was_predicted_before_learning():
    dense, labels = stream("logistic")
    whole, single = (Learner(N, Settings(alpha=(0.1, 0.3)), dtype=np.float64, mixed=False) for _ in range(2))
    found = whole.progress(dense, labels)
    for a, y, margins in zip(dense, labels, found, strict=True):
        assert np.allclose(single.margins([a])[0], margins)
        single.learn([a], [y])
    assert np.array_equal(whole.state.numbers, single.state.numbers)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("rate", ["adagrad", "scale_free"])
@pytest.mark.parametrize("algorithm", ["proximal", "centered", "mirror"])
@pytest.mark.parametrize("penalty_weight", ["once", "every"])
def test_held_out_rows_are_predicted_in_order_and_do_not_change_the_model(rate, algorithm, penalty_weight):
    dense, labels = stream("logistic")
    held = np.arange(ROUNDS) % 4 == 2
    settings = Settings(rate=rate, algorithm=algorithm, penalty_weight=penalty_weight, l1=0.02, alpha=0.5)
    whole, without, before = (Learner(N, settings, dtype=np.float64, certified=True, mixed=False) for _ in range(3))
    margins = whole.progress(dense, labels, held_out=held)
    without.learn(dense[~held], labels[~held])
    assert whole.state.numbers.tobytes() == without.state.numbers.tobytes()
    assert whole.state.scales.tobytes() == without.state.scales.tobytes()
    assert (whole.rounds, whole.loss.tolist()) == (without.rounds, without.loss.tolist())
    last = np.flatnonzero(held)[-1]
    before.learn(dense[:last][~held[:last]], labels[:last][~held[:last]])
    assert np.array_equal(before.margins(dense[last : last + 1]), margins[last : last + 1])


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (Rows(np.array([0, 1]), np.array([7]), np.ones(1, np.float32)), "X: got the column index 7, expected 0 to 2"),
        (Rows(np.array([0, 1]), np.array([-1]), np.ones(1, np.float32)), "X: got the column index -1"),
        (Rows(np.array([0, 9]), np.array([1]), np.ones(1, np.float32)), "whose lengths do not match indptr"),
    ],
)
def test_rows_for_another_number_of_features_are_refused(rows, message):
    model = Learner(3, Settings())
    with pytest.raises(ValueError, match=message):
        model.learn(rows, [1])
    with pytest.raises(ValueError, match=message):
        model.margins(rows)
    assert model.rounds == 0


@pytest.mark.parametrize("start", [0.0, 0.1, 7.0, 2.0**53 - 2, 2.0**60])
@pytest.mark.parametrize("terms", [np.ones(1000, np.float32), np.full(1000, 0.3, np.float32), np.empty(0)])
def test_sums_of_importances_are_those_of_one_term_at_a_time(start, terms):
    expected = start
    for term in terms.tolist():
        expected += term
    assert summed(start, terms) == expected


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "i4", "u1", "?"])
@pytest.mark.parametrize("shape", [(5, 7), (1, 3), (3, 1), (0, 3), (2, 4000), (3, 4000)])
def test_dense_arrays_are_the_rows_of_their_sparse_matrix(shape, dtype):
    """Small arrays are converted without scipy; the last shape is too large for that."""
    dense = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    assert (dense.size > SMALL) == (shape == (3, 4000))
    for given in (dense, np.asfortranarray(dense)):
        found, wanted = (rows_of(X, shape[1], np.float32) for X in (given, sparse.csr_array(dense)))
        for one, other in zip(found, wanted, strict=True):
            assert one.dtype == other.dtype
            assert one.tobytes() == other.tobytes()
