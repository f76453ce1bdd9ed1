"""Creation of the learner for some settings: one model, or a mixture."""

import numpy as np
from numpy.typing import DTypeLike

from forel.learner.grid import without_filters
from forel.learner.linear import Linear
from forel.learner.mixture import Mixture
from forel.learner.protocol import Learner
from forel.learner.settings import Settings
from forel.validation import refuse

__all__ = ["make_learner"]


def make_learner(
    features: int,
    settings: Settings,
    classes: int | None = None,
    dtype: DTypeLike = np.float32,
    certified: bool = False,
    share: float | None = None,
) -> Learner:
    """Return a mixture for several settings, and one model otherwise; parameters as in :class:`Mixture`.

    For several classes, settings with filters are replaced: see :func:`forel.learner.grid.without_filters`.

    >>> make_learner(4, Settings()).kind, make_learner(4, Settings(alpha=(0.1, 1.0))).kind
    ('trainer', 'mixture')
    """
    settings = settings if classes is None else without_filters(settings)
    if settings.lanes > 1:
        return Mixture(features, settings, classes, dtype, certified, share)
    if share is not None:
        raise refuse("share", share, "None for one model")
    return Linear(features, settings, classes, dtype, certified)
