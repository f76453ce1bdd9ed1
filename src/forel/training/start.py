"""What a run or a prediction starts from: the read options, settings and model that are given or stored."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from forel.data import ReadOptions
from forel.data.features.curves import Curves
from forel.data.labels import validated_classes
from forel.learner.grid import default_grid, without_filters
from forel.learner.keyed import ONE_KEY, KeyedModels
from forel.learner.learner import Learner
from forel.learner.settings import Settings
from forel.losses import MarginLoss
from forel.losses.custom import Function
from forel.store import ServingModel
from forel.validation import refuse

if TYPE_CHECKING:
    from forel.training.model import Model

__all__ = [
    "initial_model",
    "initial_settings",
    "model_options",
    "options_for",
    "settings_with_loss",
    "updated_options",
]


def settings_with_loss(
    settings: Settings | None, loss: str | MarginLoss | Function | None, start: "Model | None" = None
) -> Settings | None:
    """Return the default settings for a loss, or ``settings`` if it is None.

    >>> settings_with_loss(None, "squared").loss
    'squared'
    >>> settings_with_loss(Settings(), "squared")
    Traceback (most recent call last):
    ValueError: loss: got 'squared', expected None with settings: Settings(loss='squared', ...)
    """
    if not isinstance(settings, Settings | None):
        column = f"; label={settings!r} names a column of labels" if isinstance(settings, str) else ""
        expected = f"Settings(...) or None; labels come with their rows, as (X, y){column}"
        raise refuse("settings", type(settings).__name__, expected)
    if loss is None:
        return settings
    if settings is not None:
        raise refuse("loss", loss, f"None with settings: Settings(loss={loss!r}, ...)")
    if start is not None:
        raise refuse("loss", loss, "None: training continues with the model's settings")
    return default_grid(loss=loss)


def initial_settings(
    settings: Settings | None, start: "Model | None", certified: bool = False, share: float | None = None
) -> Settings:
    """Return the settings of a run: ``settings``, the default grid, or those of the stored model to continue.

    Raises if the other arguments do not match the stored model.

    >>> initial_settings(None, None).n_settings
    8
    """
    if start is None:
        return default_grid() if settings is None else settings
    model: Any = start.learner
    if isinstance(model, ServingModel):
        raise refuse("model", "a serving model", "a complete learner")
    if isinstance(model, KeyedModels):
        raise refuse("model", f"models by {model.by}", ONE_KEY)
    stored: Settings = model.settings
    if settings is not None and settings != stored:
        name = next(f.name for f in fields(stored) if getattr(settings, f.name) != getattr(stored, f.name))
        expected = f"{stored.describe(name)}: training continues with the model's settings"
        raise refuse(name, getattr(settings, name), expected)
    if share is not None and share != model.share:
        raise refuse("fixed_share", share, f"{model.share}: training continues with the model's share")
    if certified and not model.certified:
        raise refuse("certificate", certified, "False: the model was not certified from its first row on")
    return stored


def initial_model(
    features: int,
    settings: Settings,
    start: "Model | None" = None,
    copy: bool = True,
    certified: bool = False,
    share: float | None = None,
    classes: int | None = None,
    curves: Curves | None = None,
) -> Learner:
    """Return a new model, which is a mixture if there are several settings, or the stored model to continue.

    >>> initial_model(8, Settings(alpha=(0.1, 1.0))).kind
    'mixture'
    """
    if start is not None:
        model: Learner = start.learner
        # Settings are shared: kernels identify a user-defined loss by identity.
        return deepcopy(model, {id(settings): settings}) if copy else model
    settings = settings if classes is None else without_filters(settings)
    return Learner(features, settings, classes, certified=certified, share=share, curves=curves)


def options_for(start: "Model | None", options: ReadOptions | None, keywords: Mapping[str, Any]) -> ReadOptions:
    """Return the options to train with: those given, or of the model to continue, updated."""
    if options is not None and start is not None:
        raise refuse("options", "read options", "none with a model, which has its own; give those that differ by name")
    if start is None:
        return (options or ReadOptions()).updated(keywords)
    found = updated_options(model_options(start), keywords)
    return found if start.names is None else found.updated({"names": True})


def model_options(stored: "Model") -> ReadOptions:
    """Return the options to read data for a model with, including the names of its classes, if it has several."""
    names = stored.classes
    return stored.read_options if names is None else stored.read_options.updated({"classes": names})


def updated_options(options: ReadOptions, keywords: Mapping[str, Any]) -> ReadOptions:
    """Return a model's options with some changed; the number of bits and the classes are fixed.

    >>> updated_options(ReadOptions(bits=18), {"bits": 20})
    Traceback (most recent call last):
    ValueError: bits: got 20, expected 18, as the model was trained with
    """
    if keywords.get("bits") not in (None, options.bits):
        raise ValueError(f"bits: got {keywords['bits']}, expected {options.bits}, as the model was trained with")
    given = validated_classes(keywords.get("classes"))
    names = options.classes
    if isinstance(names, tuple) and given not in (None, "auto", len(names), names):
        raise ValueError(f"classes: got {given}, expected {names}, as the model was trained with")
    return options.updated({**keywords, "classes": names or given})
