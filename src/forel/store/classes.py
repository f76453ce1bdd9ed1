"""Several classes of a model: how many there are, and predictions of them."""

from typing import Any

from forel.losses.links import Largest, Link, Normalized, SoftmaxLink
from forel.store.serving import ServingModel

__all__ = ["class_link", "number_of_classes"]


def number_of_classes(model: Any) -> int | None:
    """Return the number of classes of a learner or serving model; None for one margin.

    >>> from forel.learner.learner import Learner
    >>> from forel.learner.settings import Settings
    >>> number_of_classes(Learner(4, Settings("softmax"), classes=3))
    3
    """
    if isinstance(model, ServingModel):
        return model.lanes if model.lanes > 1 else None
    classes: int | None = model.classes
    return classes


def class_link(model: Any) -> Link | None:
    """Return the link from margins to probabilities of classes, or to classes; None for one margin.

    >>> from forel.learner.learner import Learner
    >>> from forel.learner.settings import Settings
    >>> class_link(Learner(4, Settings("logistic"), classes=3))
    Normalized()
    """
    if number_of_classes(model) is None:
        return None
    if isinstance(model, ServingModel):
        return model.link_function
    if not model.settings.loss_function.link.probabilities:
        return Largest()
    return SoftmaxLink() if model.softmax_margins else Normalized()
