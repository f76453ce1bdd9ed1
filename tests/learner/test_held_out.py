"""Rows that are held out are predicted as any other rows are, also beyond the range of those learned from."""

from dataclasses import replace

import numpy as np
import pytest

from forel.learner.grid import default_grid
from forel.learner.learner import Learner
from forel.learner.settings import Settings

SETTINGS = {
    "one": Settings(rate="scale_free", alpha=0.5),
    "mirror": Settings(rate="scale_free", alpha=0.5, algorithm="mirror"),
    "several": Settings(rate="scale_free", alpha=(0.1, 0.5, 2.0)),
    "default": default_grid(),
    "without full filters": replace(default_grid(), full_filters=()),
}


def check(settings):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(60, 5)).astype(np.float32), rng.integers(0, 2, 60)
    model = Learner(6, settings)
    model.learn(np.column_stack([X, np.zeros(60)]), y)
    # Larger values, and a feature that did not occur.
    new = np.column_stack([20 * X, rng.normal(size=60)]).astype(np.float32)
    expected = model.margins(new)
    assert np.array_equal(model.progress(new, y, held_out=np.ones(60, bool)), expected)


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_margins_of_held_out_rows_are_those_of_predictions(settings, interpreted):
    check(settings)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["one", "default"])
def test_compiled_margins_of_held_out_rows_are_those_of_predictions(name):
    check(SETTINGS[name])
