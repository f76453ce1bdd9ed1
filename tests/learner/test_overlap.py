"""Margins processed on another thread: in order, the same bits as without, and no error or row is lost."""

from dataclasses import replace
from threading import current_thread, main_thread

import numpy as np
import pytest

from forel.learner import overlap
from forel.learner.linear import Linear
from forel.learner.mixture import Mixture
from forel.learner.overlap import learn_in_pieces
from forel.learner.rows import rows_of
from forel.learner.settings import Settings

N, ROWS = 4, 60
SETTINGS = Settings(alpha=(0.1, 10.0), rate="scale_free", filters=((1.0, 1.0), (0.1, 0.0)))


def stream():
    rng = np.random.default_rng(0)
    return rng.normal(size=(ROWS, N)), 1.0 * (rng.random(ROWS) < 0.4), rng.choice([0.0, 0.3, 1.0], ROWS)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("held_out", [None, np.arange(ROWS) % 5 == 0])
@pytest.mark.parametrize("piece", [1, 7, 59])
@pytest.mark.parametrize(
    "settings", [SETTINGS, replace(SETTINGS, loss="squared"), Settings("absolute", alpha=(0.1, 1.0))]
)
def test_pieces_give_the_same_bits(settings, piece, held_out, monkeypatch):
    X, y, importance = stream()
    whole, pieces = Mixture(N, settings), Mixture(N, settings)
    expected = whole.progress(X, y, importance, held_out)
    monkeypatch.setattr(overlap, "PIECE", piece)
    found = pieces.progress(X, y, importance, held_out)
    assert np.array_equal(found, expected)
    assert np.array_equal(pieces.ledger.array, whole.ledger.array)
    assert np.array_equal(pieces.linear.weights, whole.linear.weights)
    assert pieces.rounds == whole.rounds


def copying(stop=ROWS):
    """Learner that copies labels to margins, and does not learn row ``stop`` and those after it."""

    def learn(rows, labels, importance, out):
        count = int(np.sum(labels < stop))
        out[:count, 0] = labels[:count]
        return count

    return learn


@pytest.mark.parametrize("stop", [0, 1, 10, 14, 25, ROWS])
def test_every_learned_row_is_processed_once_and_in_order_on_another_thread(stop, monkeypatch):
    monkeypatch.setattr(overlap, "PIECE", 10)
    calls, out = [], np.full((ROWS, 1), -1.0)
    rows, labels = rows_of(np.ones((ROWS, 1)), 1, np.float64), np.arange(ROWS, dtype=np.float64)

    def follow(margins, start):
        calls.append((start, margins[:, 0].tolist(), current_thread() is main_thread()))

    assert learn_in_pieces(copying(stop), rows, labels, labels, out, follow) == stop
    assert [m for _, margins, _ in calls for m in margins] == list(range(stop))
    assert all(margins[:1] in ([], [start]) and not mine for start, margins, mine in calls)


def test_an_error_in_processing_is_raised_after_learning(monkeypatch):
    monkeypatch.setattr(overlap, "PIECE", 10)
    rows, labels = rows_of(np.ones((ROWS, 1)), 1, np.float64), np.arange(ROWS, dtype=np.float64)
    out = np.full((ROWS, 1), -1.0)

    def follow(margins, start):
        raise ValueError(f"row {start}")

    with pytest.raises(ValueError, match="row 0"):
        learn_in_pieces(copying(), rows, labels, labels, out, follow)
    assert out[-1, 0] == ROWS - 1


@pytest.mark.usefixtures("interpreted")
def test_invalid_rows_change_nothing(monkeypatch):
    monkeypatch.setattr(overlap, "PIECE", 10)
    X, y, _ = stream()
    model = Mixture(N, SETTINGS)
    before = model.ledger.array.copy()
    with pytest.raises(ValueError, match=r"^y: got"):
        model.progress(X, np.where(np.arange(ROWS) == ROWS - 1, 7.0, y))
    assert model.rounds == 0
    assert np.array_equal(model.ledger.array, before)
    assert Linear(N, Settings()).progress(X[:0], y[:0]).shape == (0, 1)
    assert model.progress(X[:0], y[:0]).shape == (0, 1)
