"""Which model to serve: the best setting alone where it is nearly as good as the mixture, else the mixture."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from forel.store.serving import ServingModel, pack_serving, serving_model
from forel.store.serving_mixture import is_servable

__all__ = ["TOLERANCE", "ServingChoice", "choose_serving"]

TOLERANCE = 0.01  # of the mixture's loss: the largest excess of a setting that is served alone


@dataclass(frozen=True)
class ServingChoice:
    """A model to serve, and what the alternatives cost.

    Parameters
    ----------
    model : the serving model
    setting : the name of the best setting; None if there is one setting only
    loss, mixture_loss : mean loss of this setting and of the mixture on the rows learned from, before each was learned
    bytes, mixture_bytes : size of the weights of one setting, and of the mixture; None if it cannot be served
    """

    model: ServingModel
    setting: str | None = None
    loss: float = 0.0
    mixture_loss: float = 0.0
    bytes: int = 0
    mixture_bytes: int | None = None

    @property
    def mixed(self) -> bool:
        """Whether the mixture is served."""
        return self.model.mixture is not None

    def __str__(self) -> str:
        if self.setting is None:
            return f"the model ({self.bytes:,} bytes of weights)"
        alone = f"{self.setting} alone ({self.bytes:,} bytes of weights)"
        losses = f"its progressive loss was {self.loss:.6f}, that of the mixture {self.mixture_loss:.6f}"
        if self.mixture_bytes is None:
            return f"{alone}; {losses}, and mixtures are served for log-loss of two classes only"
        mixture, limit = f"the mixture ({self.mixture_bytes:,} bytes of weights)", f"{TOLERANCE:.0%}"
        if not self.mixed:
            return f"{alone} instead of {mixture}; {losses}, and at most {limit} more is allowed"
        reason = f"more than {limit} less" if self.excess > TOLERANCE else "and calibrated"
        return f"{mixture} instead of {alone}; {losses}, {reason}"

    @property
    def excess(self) -> float:
        """The excess of the setting's loss over that of the mixture, relative to the latter."""
        return (self.loss - self.mixture_loss) / (abs(self.mixture_loss) or 1.0)


def choose_serving(model: Any, dtype: DTypeLike = np.float32, mixed: bool = False) -> ServingChoice:
    """Return the best setting of a mixture, if its loss is at most 1 % larger, and otherwise the mixture.

    Parameters
    ----------
    model : as in :func:`forel.store.serving_model`
    dtype : type of the weights
    mixed : serve the mixture in any case, because its predictions are calibrated

    >>> from forel.learner.learner import Learner
    >>> from forel.learner.settings import Settings
    >>> model = Learner(1, Settings(alpha=(0.01, 1.0), bias=False))
    >>> _ = model.learn(np.ones((50, 1)), [1] * 50)
    >>> print(choose_serving(model))
    alpha=1 alone (12 bytes of weights) instead of the mixture (... bytes of weights); its progressive loss was 0.13...,
    that of the mixture 0.14..., and at most 1% more is allowed
    """
    alone = serving_model(model, dtype=dtype)
    guarantee = model.guarantee() if hasattr(model, "guarantee") else None
    if guarantee is None:
        return ServingChoice(alone, bytes=_size(alone))
    loss, whole = float(model.averages[model.best_model]), model.loss / (model.mixture.ledger.total_importance or 1.0)
    known = model.names[model.best_model], loss, whole, _size(alone)
    if not is_servable(model):
        return ServingChoice(alone, *known)
    mixture = serving_model(model, dtype=dtype, mixed=True)
    chosen = mixture if mixed or loss > whole + TOLERANCE * abs(whole) else alone
    return ServingChoice(chosen, *known, _size(mixture))


def _size(model: ServingModel) -> int:
    return sum(array.nbytes for array in pack_serving(model)[1].values())
