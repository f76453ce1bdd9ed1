"""The protocol that linear models and mixtures share."""

import numpy as np
import pytest

from forel.learner.factory import make_learner
from forel.learner.ledger import Ledger
from forel.learner.linear import Linear
from forel.learner.mixture import Mixture
from forel.learner.protocol import Learner
from forel.learner.settings import Settings
from forel.losses import Softmax

ROWS, LABELS = np.eye(3), np.array([1.0, 0.0, 1.0])
MEMBERS = [name for name in {**vars(Learner), **Learner.__annotations__} if not name.startswith("_")]


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("settings", [Settings(), Settings(alpha=(0.1, 1.0))], ids=["one model", "mixture"])
def test_both_learners_have_every_member_of_the_protocol(settings):
    model = make_learner(3, settings, certified=True)
    assert model.learn(ROWS, LABELS).shape == (1,)
    for name in MEMBERS:
        assert name in dir(model), name
    assert model.progress(ROWS, LABELS).shape == model.relearn(ROWS, LABELS).shape == model.margins(ROWS).shape
    assert isinstance(model.only(), Linear)
    assert isinstance(model.linear, Linear)
    mixed = model.kind == "mixture"
    assert (model.guarantee() is not None) == mixed
    assert (model.explain() is not None) == mixed
    assert {name: array.shape for name, array in model.pack().items()} == model.stored_arrays(settings)
    assert "on these 9 rows" in model.summary()
    model.reset()
    assert (model.rounds, float(np.sum(model.loss)), model.weight) == (0, 0.0, 0.0)


@pytest.mark.usefixtures("interpreted")
def test_only_of_one_model_is_the_model_and_relearn_is_progress():
    once, again = Linear(3, Settings()), Linear(3, Settings())
    assert once.only() is once
    np.testing.assert_array_equal(once.progress(ROWS, LABELS), again.relearn(ROWS, LABELS))
    np.testing.assert_array_equal(once.weights, again.weights)


def test_the_factory_chooses_by_the_number_of_settings():
    assert type(make_learner(3, Settings())) is Linear
    assert type(make_learner(3, Settings(alpha=(0.1, 1.0)), share=0.1)) is Mixture
    with pytest.raises(ValueError, match=r"share: got 0\.1, expected None for one model"):
        make_learner(3, Settings(), share=0.1)


def test_the_number_of_classes_is_that_of_the_loss():
    assert Linear(2, Settings(Softmax(3))).classes == 3
    assert Mixture(2, Settings(Softmax(3), alpha=(0.1, 1.0))).lanes == 3
    assert Linear(2, Settings("softmax"), classes=4).classes == 4
    with pytest.raises(ValueError, match="classes: got 4, expected 3, as the loss has"):
        Linear(2, Settings(Softmax(3)), classes=4)


def test_a_ledger_names_the_numbers_of_its_array():
    ledger = Ledger(2, shares=True)
    ledger.array[:] = np.arange(11.0)
    names = ("loss", "largest_importance", "gap", "lowest", "highest", "rows", "weight")
    assert [getattr(ledger, name) for name in names] == list(range(7))
    assert (ledger.losses.tolist(), ledger.weights.tolist()) == ([7.0, 8.0], [9.0, 10.0])
    copy = ledger.copy()
    copy.loss = copy.rows = 5
    assert (ledger.loss, ledger.rows, copy.array[0], copy.array[5]) == (0.0, 5, 5.0, 5.0)
    assert Ledger(3, shares=False).weights.size == 0


def test_the_ledger_has_the_layout_of_the_kernels():
    from forel.learner import ledger
    from forel.learner.kernels import mixing

    assert (ledger.HEAD, ledger.LOSS_LIMIT) == (mixing.HEAD, mixing.LOSS_LIMIT)
