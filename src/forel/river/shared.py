"""What both river models have in common: arguments, validated, and access to the learner behind a model."""

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from forel.learner.grid import default_grid
from forel.learner.locking import SeqLock
from forel.learner.settings import LANE_PARAMETERS, Settings
from forel.river.dict_learner import DictLearner
from forel.river.frames import Columns, columns_of
from forel.river.packing import pack
from forel.training.model import Model
from forel.validation import refuse

if TYPE_CHECKING:
    from forel.experts import Guarantee

__all__ = ["RiverModel"]


class RiverModel:
    """A model of river, whose parameters are its attributes."""

    loss: Any
    dtype: str
    bits: int | None
    certified: bool
    _learner: DictLearner
    _y_name: str | None

    def _store(self, given: dict[str, Any], losses: tuple[str, ...]) -> None:
        """Keep the arguments of the constructor, as ``locals()`` has them, and start to learn."""
        for name, value in given.items():
            if name not in ("self", "__class__"):
                setattr(self, name, value)
        self._learner = DictLearner(settings_of(self, losses), self.dtype, self.bits, self.certified)
        self._y_name = None

    def _columns(self, X: Any) -> Columns:
        return columns_of(X, self._learner.hashing, self._learner.lanes.dtype)

    @property
    def _lock(self) -> SeqLock:
        return self._learner.guard

    def __model__(self) -> Model:
        return pack(self)

    def guarantee(self) -> "Guarantee | None":
        """Return the regret of the mixture to its best expert, and the bound on it; None for one setting."""
        return self._learner.guarantee()


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
