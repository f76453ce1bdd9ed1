"""Predictions and weights have one kernel for all losses: their code is the same as that of the scoring spec."""

import itertools
from types import ModuleType

import pytest

from forel.jit.sharing import _identity, _used
from forel.learner.kernels.kernel import compiled_kernel, kernel, scoring_spec
from forel.learner.kernels.spec import KernelSpec
from forel.learner.layout import Layout

RATES = ("adagrad", "scale_free", "constant", "root")
LAYOUTS = [
    Layout(rule, rate, penalties, lanes, double, certified, histogram=True, concavity=True)
    for place, (rule, rate, lanes) in enumerate(itertools.product(("proximal", "centered", "mirror"), RATES, (1, 3, 8)))
    for penalties, double, certified in [(("once", "every")[place % 2], place % 3 == 0, place % 4 < 2)]
]
LAYOUTS += [Layout("implicit", "adagrad", "once", 2), Layout("proximal", "scale_free", "once", 8, filters=4)]


def identity(function):
    """What numba compiles a function from: its code, and what it finds under the names that it uses."""
    names = function.py_func.__globals__
    used = sorted(_used(function.py_func.__code__).intersection(names))
    return function.py_func.__code__, [(name, _identity(names[name])) for name in used]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_code_of_predictions_does_not_depend_on_losses_and_labels(layout):
    lanes = layout.lanes
    specs = [KernelSpec("squared", layout), KernelSpec("logistic", layout, bias=True, units=True)]
    if lanes > 1:
        specs += [
            KernelSpec("hinge", layout, labels="signs", settings=lanes),
            KernelSpec("softmax", layout, joint=True),
        ]
    for spec in specs:
        own, shared = compiled_kernel(spec), compiled_kernel(scoring_spec(spec))
        assert identity(own.score) == identity(shared.score)
        assert identity(own.learn) != identity(shared.learn) or scoring_spec(spec) == spec


def test_models_of_all_losses_predict_with_one_function():
    layout = Layout("proximal", "adagrad", "once")
    first, second, own = (
        kernel(KernelSpec(loss, layout)) for loss in ("hinge", "squared", lambda margin, label: (0, 0))
    )
    assert first.score is second.score is own.score
    assert first.learn is not second.learn


def test_functions_of_one_row_are_in_a_module():
    """Tools that measure the memory of a model do not descend into modules, and names in them are found at once."""
    layout = Layout("proximal", "adagrad", "once")
    first, second = (kernel(KernelSpec(loss, layout)).module for loss in ("hinge", "squared"))
    assert isinstance(first, ModuleType)
    assert first.predict_one is second.predict_one
    assert first.learn_one is not second.learn_one
