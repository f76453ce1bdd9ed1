"""The state of a linear model before its first row."""

from numpy.typing import DTypeLike

from forel.learner.lanes import Labels, Lanes
from forel.learner.settings import Settings
from forel.losses import Classes
from forel.validation import refuse, whole

__all__ = ["initial_state", "number_of_classes"]


def number_of_classes(settings: Settings, classes: int | None) -> int | None:
    """Return the number of classes, that of the loss if it has one; None for one margin.

    >>> number_of_classes(Settings("softmax"), 3)
    3
    """
    loss = settings.loss_function
    loss_classes = loss.labels.count if isinstance(loss.labels, Classes) else None
    classes = loss_classes if classes is None else classes
    if classes is None and loss.joint:
        raise refuse("classes", classes, f"the number of classes, for the loss {loss.name!r}")
    if loss_classes not in (None, classes):
        raise refuse("classes", classes, f"{loss_classes}, as the loss has")
    if classes is not None and settings.filters:
        raise refuse("classes", classes, "None with filters, which are for one margin")
    return None if classes is None else whole("classes", classes, low=2)


def initial_state(
    features: int,
    settings: Settings,
    classes: int | None,
    dtype: DTypeLike,
    certified: bool,
) -> Lanes:
    """Return the initial state of a model; parameters as in :class:`forel.learner.linear.Linear`.

    >>> initial_state(4, Settings(alpha=(0.1, 1.0)), 3, "float32", False).lanes
    6
    """
    if certified and settings.algorithm == "filter":
        raise refuse("certified", True, "False where algorithm='filter', whose steps have no certificate")
    labels: Labels = "shared"
    if classes is not None and not settings.loss_function.joint:
        labels = "signs" if settings.signed else "classes"
    lanes = (classes or 1) * settings.lanes
    return Lanes(features, settings, lanes, dtype, certified, labels)
