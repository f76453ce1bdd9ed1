"""The model that a training run starts from: a new one, or a stored one."""

from copy import deepcopy
from dataclasses import fields
from typing import Any

from forel.learner.factory import make_learner
from forel.learner.grid import default_grid
from forel.learner.protocol import Learner
from forel.learner.settings import Settings
from forel.store import ServingModel, Stored
from forel.validation import refuse

__all__ = ["initial_model", "initial_settings"]


def initial_settings(
    settings: Settings | None, start: Stored | None, certified: bool = False, share: float | None = None
) -> Settings:
    """Return the settings of a run: the given ones, the default grid, or those of the stored model to continue.

    Raises if training cannot continue from the stored model with the given options.

    >>> initial_settings(None, None).lanes
    16
    """
    if start is None:
        return default_grid() if settings is None else settings
    model: Any = start.model
    if isinstance(model, ServingModel):
        raise refuse("start", "a model for predicting only", "one that was saved whole")
    own: Settings = model.settings
    if settings is not None and settings != own:
        name = next(f.name for f in fields(own) if getattr(settings, f.name) != getattr(own, f.name))
        expected = f"nothing said, or {own.describe(name)}: settings are those that the model was begun with"
        raise refuse(name, getattr(settings, name), expected)
    if share is not None and share != model.share:
        raise refuse("share", share, "none, or that which the model was begun with")
    if certified and not model.certified:
        raise refuse("certified", certified, "False: the model was begun without, and the first rows are gone")
    return own


def initial_model(
    features: int,
    settings: Settings,
    start: Stored | None = None,
    copy: bool = True,
    certified: bool = False,
    share: float | None = None,
    classes: int | None = None,
) -> Learner:
    """Return a new model, which is a mixture if there are several settings, or the stored model to continue.

    >>> type(initial_model(8, Settings(alpha=(0.1, 1.0)))).__name__
    'Mixture'
    """
    if start is not None:
        model: Learner = start.model
        # Settings are shared: kernels identify a user-defined loss by identity.
        return deepcopy(model, {id(settings): settings}) if copy else model
    return make_learner(features, settings, classes, certified=certified, share=share)
