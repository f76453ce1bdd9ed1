"""The weights that matter most: by what features usually add to a margin, which does not depend on their units."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data import Names
from forel.data.features.hashing import slot
from forel.store.serving import ServingModel

__all__ = ["NamedWeight", "largest_weights"]


@dataclass(frozen=True)
class NamedWeight:
    """A weight with its name and size.

    Parameters
    ----------
    slot : of the feature
    name : if it is known: names were stored, or it is that of a column of numbers; ``shared`` is whether other names
        have the same slot
    weight : of the class ``label`` if there are several
    typical : mean absolute value of a numeric column in training; else the largest absolute value, if the model keeps
        it; else 1, the value of categories
    """

    slot: int
    name: str | None
    shared: bool
    weight: float
    typical: float
    label: str | None = None

    @property
    def contribution(self) -> float:
        """What the feature usually adds to the margin: weight times typical value."""
        return self.weight * self.typical


def largest_weights(
    model: Any,
    names: Names | None,
    schema: Mapping[str, Mapping[str, Any]],
    bits: int | None,
    classes: Sequence[str] | None = None,
    top: int = 20,
    columns: Mapping[int, str] = MappingProxyType({}),
) -> list[NamedWeight]:
    """Return the weights of largest contribution, of several classes that of the largest one.

    Parameters
    ----------
    model : a learner, of a mixture its best setting, or a serving model
    names : names of features by slot; None if unknown
    schema : columns of the training rows
    bits : of the slots of names; None if these are not hashed
    classes : names of several classes
    top : number of weights
    columns : names of features of an estimator or a river model

    >>> from forel.learner.learner import Learner
    >>> from forel.learner.settings import Settings
    >>> model = Learner(4, Settings(alpha=1.0, rate="scale_free", bias=False))
    >>> _ = model.learn([[1.0, 1000.0, 0.0, 0.0]], [1])
    >>> [(w.slot, round(w.weight, 5), w.typical, round(w.contribution, 2)) for w in largest_weights(model, None, {}, 2)]
    [(0, 0.33333, 1.0, 0.33), (1, 0.00033, 1000.0, 0.33)]
    """
    trainable = not isinstance(model, ServingModel)
    slots = model.active_coordinates if trainable else model.slots.astype(np.int64)
    slots = slots[slots < model.features]
    weights = (model.weights_at(slots) if trainable else model.weights).astype(np.float64)
    sizes = _typical_values(model, slots, schema, bits)
    contributions = np.abs(weights) * sizes[:, None]
    order = np.argsort(-contributions.max(axis=1, initial=0.0), kind="stable")[:top]
    of_columns = {**_slots(schema, bits), **columns}
    found = []
    for k in order.tolist():
        place, lane = int(slots[k]), int(np.argmax(contributions[k]))
        if weights[k, lane] == 0:
            break
        known = names is not None and place in names
        found.append(
            NamedWeight(
                place,
                names[place] if known and names is not None else of_columns.get(place),
                known and names is not None and names.is_shared(place),
                float(weights[k, lane]),
                float(sizes[k]),
                None if classes is None else classes[lane],
            )
        )
    return found


def _typical_values(
    model: Any, slots: NDArray[np.int64], schema: Mapping[str, Mapping[str, Any]], bits: int | None
) -> NDArray[np.float64]:
    """Return the typical absolute value of each slot."""
    sizes = np.ones(slots.size)
    if not isinstance(model, ServingModel) and model.settings.rate == "scale_free":
        sizes = model.state.scales[slots].astype(np.float64)
    known = _slots(schema, bits)
    for k in np.flatnonzero(np.isin(slots, list(known))).tolist():
        sizes[k] = schema[known[int(slots[k])]]["typical"]
    return sizes


def _slots(schema: Mapping[str, Mapping[str, Any]], bits: int | None) -> dict[int, str]:
    """Return the names of columns of numbers by slot."""
    return {slot(name, bits=bits): name for name, one in schema.items() if "typical" in one} if bits else {}
