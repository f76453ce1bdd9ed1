"""One model and a mixture have one interface; settings, blocks, and the ledger."""

import numpy as np
import pytest

from forel.data import read
from forel.learner.grid import default_grid
from forel.learner.learner import Learner
from forel.learner.mixture import Ledger
from forel.learner.rows import CoalescedRows
from forel.learner.settings import Settings
from forel.losses import Softmax

ROWS, LABELS = np.eye(3), np.array([1.0, 0.0, 1.0])


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("settings", [Settings(), Settings(alpha=(0.1, 1.0))], ids=["one model", "mixture"])
def test_one_model_and_a_mixture_have_the_same_interface(settings):
    model = Learner(3, settings, certified=True)
    assert model.learn(ROWS, LABELS).shape == (1,)
    assert (
        model.progress(ROWS, LABELS).shape
        == model.progress(ROWS, LABELS, again=True).shape
        == model.margins(ROWS).shape
    )
    assert isinstance(model.select_setting(), Learner)
    assert model.unmixed.mixture is None
    mixed = model.kind == "mixture"
    assert (model.guarantee() is not None) == (model.explain() is not None) == (model.mixture is not None) == mixed
    assert "on these 9 rows" in model.summary()
    model.reset()
    assert (model.rounds, float(np.sum(model.loss)), model.total_importance) == (0, 0.0, 0.0)


@pytest.mark.usefixtures("interpreted")
def test_the_setting_of_one_model_is_the_model_and_learns_again_as_before():
    once, again = Learner(3, Settings()), Learner(3, Settings())
    assert once.select_setting() is once
    np.testing.assert_array_equal(once.progress(ROWS, LABELS), again.progress(ROWS, LABELS, again=True))
    np.testing.assert_array_equal(once.weights, again.weights)


@pytest.mark.usefixtures("interpreted")
def test_several_settings_are_mixed_unless_they_predict_alone():
    several = Settings(alpha=(0.1, 1.0))
    assert Learner(3, Settings()).kind == "linear"
    assert Learner(3, several, share=0.1).kind == "mixture"
    mixed, alone = Learner(3, several), Learner(3, several, mixed=False)
    mixed.learn(ROWS, LABELS)
    np.testing.assert_array_equal(alone.progress(ROWS, LABELS).shape, (3, 2))
    np.testing.assert_array_equal(mixed.unmixed.margins(ROWS), alone.margins(ROWS))
    for options in ({"settings": Settings()}, {"settings": several, "mixed": False}):
        with pytest.raises(ValueError, match=r"share: got 0\.1, expected None for one model"):
            Learner(3, share=0.1, **options)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("settings", [Settings(), default_grid()], ids=["one model", "mixture"])
def test_blocks_are_learned_with_their_labels_and_importances(settings):
    (block,) = read([{"a": 1, "b": 2, "y": 1, "w": 2}, {"b": 3, "y": 0, "w": 0.5}], label="y", importance="w", bits=8)
    whole, arrays = Learner(1 << 8, settings), Learner(1 << 8, settings)
    whole.learn(block)
    arrays.learn(CoalescedRows(*block.rows), block.labels, block.importance)
    assert whole.state.records.tobytes() == arrays.state.records.tobytes()
    assert whole.total_importance == 2.5
    np.testing.assert_array_equal(whole.margins(block), arrays.margins(CoalescedRows(*block.rows)))
    whole.learn(block, [0, 1], [1, 1])
    assert whole.total_importance == 4.5
    with pytest.raises(ValueError, match="y: got None, expected a label for each row; only blocks"):
        whole.learn(ROWS)


def test_the_number_of_classes_is_that_of_the_loss():
    assert Learner(2, Settings(Softmax(3))).classes == 3
    assert Learner(2, Settings(Softmax(3), alpha=(0.1, 1.0))).n_outputs == 3
    assert Learner(2, Settings("softmax"), classes=4).classes == 4
    with pytest.raises(ValueError, match="classes: got 4, expected 3, as the loss has"):
        Learner(2, Settings(Softmax(3)), classes=4)


def test_a_ledger_names_the_numbers_of_its_array():
    ledger = Ledger(2, shares=True)
    ledger.array[:] = np.arange(11.0)
    names = ("loss", "largest_importance", "gap", "lowest", "highest", "rows", "total_importance")
    assert [getattr(ledger, name) for name in names] == list(range(7))
    assert (ledger.losses.tolist(), ledger.weights.tolist()) == ([7.0, 8.0], [9.0, 10.0])
    copy = ledger.copy()
    copy.loss = copy.rows = 5
    assert (ledger.loss, ledger.rows, copy.array[0], copy.array[5]) == (0.0, 5, 5.0, 5.0)
    assert Ledger(3, shares=False).weights.size == 0
