"""Arguments of both models, validated: settings, importances and numbers."""

from collections.abc import Hashable
from dataclasses import fields, replace
from typing import Any

import numpy as np

from forel.learner.grid import default_grid
from forel.learner.settings import LANE_PARAMETERS, Settings
from forel.validation import number, refuse

__all__ = ["WORDS", "importance", "number_of", "settings_of"]

WORDS = "with bits=22, words are categories, or put river's preprocessing.OneHotEncoder before the model"


def settings_of(model: Any, losses: tuple[str, ...]) -> Settings:
    """Return a model's parameters as settings: of one lane with ``alpha``, else those of a mixture."""
    given = {f.name: getattr(model, f.name) for f in fields(Settings) if hasattr(model, f.name)}
    if any(np.ndim(given[name]) for name in LANE_PARAMETERS):
        raise ValueError(
            f"{', '.join(LANE_PARAMETERS)}: got a sequence, expected one number each; forel.Learner learns "
            "several models side by side"
        )
    settings = replace(default_grid(**given), full_filters=())  # rows arrive one at a time, with new names
    if settings.loss_function.kernel not in losses:
        raise refuse("loss", model.loss, f"one of {', '.join(losses)}")
    return settings


def importance(w: Any) -> float:
    """Return the weight of a row's loss."""
    if isinstance(w, str | bytes | bytearray):
        raise refuse("w", w, "a number of at least 0")
    return number("w", w, "a number of at least 0", low=0.0, high=float(np.finfo(np.float32).max))


def number_of(name: Hashable, value: Any, dtype: Any) -> float:
    """Return a value as a float, or raise an error that names it."""
    if isinstance(value, str | bytes | bytearray):
        raise refuse(f"x[{name!r}]", value, f"a number; {WORDS}")
    try:
        found = float(value)
        fine = abs(found) <= float(np.finfo(dtype).max)
    except (TypeError, ValueError, OverflowError):
        fine = False
    if not fine:
        raise refuse(f"x[{name!r}]", value, f"a finite number within the range of {dtype}")
    return found
