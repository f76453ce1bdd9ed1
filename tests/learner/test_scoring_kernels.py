"""Predictions and weights have one kernel for all losses."""

from types import ModuleType

from forel.learner.kernels.kernel import kernel
from forel.learner.kernels.reference import KernelSpec
from forel.learner.layout import Layout


def test_models_of_all_losses_predict_with_one_function():
    layout = Layout("proximal", "adagrad", "once")
    first, second, own = (kernel(KernelSpec(loss, layout)) for loss in ("hinge", "squared", lambda m, y: (0, 0)))
    assert first.score is second.score is own.score
    assert first.learn is not second.learn


def test_functions_are_in_a_module():
    """Tools that measure the memory of a model do not descend into modules, and names in them are found at once."""
    layout = Layout("proximal", "adagrad", "once")
    first, second = (kernel(KernelSpec(loss, layout)) for loss in ("hinge", "squared"))
    assert isinstance(first, ModuleType)
    assert first.predict_one is second.predict_one
    assert first.learn_one is not second.learn_one
