"""Metrics of one of many models, each of which has a key."""

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["KeySummary"]


@dataclass(frozen=True)
class KeySummary:
    """The metrics of the model of one key.

    Parameters
    ----------
    key : the key
    rows, weight, loss : the number of its rows, the sum of their importances, and the mean progressive loss
    floor : a lower bound on the loss of fixed models of at most the learned norm; None without one
    certificate : the sentence on it; None for models without certificates
    holdout_rows, holdout_loss : of rows held out; None without them
    """

    key: str
    rows: int
    weight: float
    loss: float | None
    floor: float | None = None
    certificate: str | None = None
    holdout_rows: int | None = None
    holdout_loss: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the metrics that are defined."""
        return {name: value for name, value in asdict(self).items() if value is not None}
