"""The event log: predictions, their outcomes, and models that are a deterministic fold of them. No network here."""

from forel.log.champion import Contest, Fold
from forel.log.files import Log, LogDamaged, LogFailed
from forel.log.folder import Folder, Replay, replay
from forel.log.index import Index
from forel.log.records import Control, Examples, Left, Outcome, Prediction

__all__ = [
    "Contest", "Control", "Examples", "Fold", "Folder", "Index", "Left", "Log", "LogDamaged", "LogFailed", "Outcome",
    "Prediction", "Replay", "replay",
]  # fmt: skip
