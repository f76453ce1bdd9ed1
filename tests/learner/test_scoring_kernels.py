"""Predictions and weights have one kernel for all losses."""

from types import ModuleType

from forel.learner.kernels.kernel import kernel
from forel.learner.kernels.spec import KernelSpec
from forel.learner.layout import Layout


def test_models_of_all_losses_predict_with_one_function():
    layout = Layout("proximal", "adagrad", "once")
    first, second, own = (
        kernel(KernelSpec(loss, layout)) for loss in ("hinge", "squared", lambda margin, label: (0, 0))
    )
    assert first.module.score is second.module.score is own.module.score
    assert first.learn is not second.learn


def test_functions_of_one_row_are_in_a_module():
    """Tools that measure the memory of a model do not descend into modules, and names in them are found at once."""
    layout = Layout("proximal", "adagrad", "once")
    first, second = (kernel(KernelSpec(loss, layout)).module for loss in ("hinge", "squared"))
    assert isinstance(first, ModuleType)
    assert first.predict_one is second.predict_one
    assert first.learn_one is not second.learn_one
