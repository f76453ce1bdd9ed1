"""The guarantee of mixtures holds on real data, shuffled, sorted by label, and with labels against the predictions.

``python -m tests.fuzz.guarantees`` compiles kernels and runs every data set, order and loss on more rows.
"""

import itertools

import pytest

from forel.learner.grid import default_grid
from tests.fuzz import guarantees, oracle

OTHERS = [loss for loss in oracle.LOSSES if loss != "logistic"]
# Every loss on every data set; orders in turn, so that every loss and every data set has each of them.
CASES = [
    (name, loss, guarantees.ORDERS[(k + j) % 3])
    for (k, name), (j, loss) in itertools.product(enumerate(guarantees.SETS), enumerate(OTHERS))
]


def data(name):
    if not guarantees.path_of(name).exists():
        pytest.skip(f"needs {guarantees.path_of(name).name} in ../shared/data or in the directory FOREL_DATA")
    return name


@pytest.mark.slow
@pytest.mark.parametrize("order", guarantees.ORDERS)
@pytest.mark.parametrize("name", guarantees.SETS)
def test_default_mixtures_stay_within_their_bound(name, order):
    rows = 200 if order == "adversarial" else 500  # full-covariance filters take time in the oracle
    for loss in ("squared", "absolute") if name in ("bike_sharing", "nyse_o") else ("logistic", "hinge"):
        assert guarantees.violations(data(name), loss, order, rows) == []


@pytest.mark.parametrize(("name", "loss", "order"), CASES)
def test_mixtures_of_other_losses_stay_within_their_bound(name, loss, order, interpreted):
    settings = default_grid(loss=loss, lanes=2)
    assert guarantees.violations(data(name), loss, order, 30, settings, longest=8) == []


@pytest.mark.parametrize("order", guarantees.ORDERS)
@pytest.mark.parametrize("loss", guarantees.CLASSES)
@pytest.mark.parametrize("name", ["a9a", "amazon_books", "bike_sharing"])
def test_mixtures_of_several_classes_stay_within_their_bound(name, loss, order, interpreted):
    settings = default_grid(loss=loss, lanes=2)
    assert guarantees.class_violations(data(name), loss, order, 30, settings, longest=8) == []
