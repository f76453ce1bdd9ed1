"""What both river models have in common: arguments, validated, and access to the learner behind a model."""

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from forel.evidence import Coverage
from forel.learner.grid import default_grid
from forel.learner.locking import SeqLock
from forel.learner.settings import LANE_PARAMETERS, Settings
from forel.losses import MarginLoss
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

    _losses: ClassVar[tuple[str, ...]]  # the first one is the default
    _intervals: ClassVar[bool] = False

    def __init__(
        self,
        alpha: float | None = None,
        beta: float | None = None,
        l1: float | None = None,
        l2: float = 0.0,
        algorithm: str = "proximal",
        rate: str | None = None,
        loss: str | MarginLoss | None = None,
        penalty_weight: str = "once",
        radius: float | None = None,
        bias: bool = True,
        bits: int | None = None,
        dtype: str = "float64",
        certified: bool = False,
        seed: int = 0,
        memory: float = 1.0,
        interval: float | None = None,
    ) -> None:
        if interval is not None and not self._intervals:
            raise refuse("interval", interval, "None: intervals are those of predicted numbers")
        self.alpha = alpha
        self.beta = beta
        self.l1 = l1
        self.l2 = l2
        self.algorithm = algorithm
        self.rate = rate
        self.penalty_weight = penalty_weight
        self.radius = radius
        self.bias = bias
        self.bits = bits
        self.dtype = dtype
        self.certified = certified
        self.seed = seed
        self.memory = memory
        self.interval = interval
        self.loss = self._losses[0] if loss is None else loss
        self._learner = DictLearner(settings_of(self, self._losses), dtype, bits, certified)
        self._largest = float(np.finfo(self._learner.lanes.dtype).max)
        self._coverage = None if interval is None else Coverage(interval)
        self._y_name: str | None = None

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
