"""What the representation of a stored model shows."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from forel.learner.keyed import KeyedModels
from forel.store.serving import ServingModel

if TYPE_CHECKING:
    from forel.store.saving import Stored

__all__ = ["METRICS", "summary"]

METRICS = ("auc", "auc_se", "calibration", "accuracy", "rmse", "mae", "r2", "deviance")
SHOWN = 6  # columns or classes


def summary(stored: "Stored") -> list[tuple[str, object]]:
    """Return the title and value of what is shown of a stored model; None for a value that is not defined.

    >>> from forel.learner.learner import Learner
    >>> from forel.learner.settings import Settings
    >>> from forel.store.saving import Stored
    >>> Stored(Learner(16, Settings(alpha=0.5)))
    Stored model
      kind: linear
      settings: loss=logistic, algorithm=proximal, rate=adagrad, alpha=0.5, beta=1.0, l1=0.0, l2=0.0
      rows: 0
      slots: 16
    """
    extra, model, settings = stored.extra, stored.model, stored.settings
    report, reading = (_mapping(extra.get(name)) for name in ("report", "reading"))
    return [
        ("path", None if stored.path is None else str(stored.path)),
        ("kind", _kind(model)),
        ("settings", settings.summary),
        ("rows", model.rounds),
        (settings.title, report.get("loss")),
        ("held-out loss", _mapping(extra.get("holdout")).get("loss")),
        *((name, report.get(name)) for name in METRICS),
        ("label", reading.get("label")),
        ("classes", _first(stored.classes or ())),
        ("columns", _first(_mapping(extra.get("schema")))),
        ("slots", model.features),
    ]


def _kind(model: Any) -> str:
    if isinstance(model, KeyedModels):
        return f"{len(model):,} models by {model.by}"
    if isinstance(model, ServingModel):
        return "serving model, for predictions only"
    return type(model).__name__.lower()


def _mapping(value: Any) -> Mapping[str, Any]:
    """Return a value of a file if it is an object; an empty one otherwise."""
    return value if isinstance(value, Mapping) else {}


def _first(names: Any) -> str | None:
    """Return the first of some names as text, and how many there are; None if there are none."""
    shown = ", ".join(list(map(str, names))[:SHOWN])
    return (f"{shown}, ... ({len(names):,} in all)" if len(names) > SHOWN else shown) or None
