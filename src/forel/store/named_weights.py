"""The weights that matter most: by how much what features add to a margin varies, which does not depend on units."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data import Names
from forel.data.features.hashing import slot
from forel.store.serving import ServingModel

__all__ = ["MOMENTS", "NamedWeight", "column_of", "largest_values", "largest_weights"]

MOMENTS = "moments"  # the name of the array of moments in a model file


@dataclass(frozen=True)
class NamedWeight:
    """A weight with its name and size.

    Parameters
    ----------
    slot : of the feature
    name : if it is known: names were stored, or it is that of a column of numbers; ``shared`` is whether other names
        have the same slot
    weight : of the class ``label`` if there are several
    spread : standard deviation of the feature's values over a sample of the training rows, 0 if it is in none of them;
        without a sample the largest absolute value, if the model keeps it, else 1
    """

    slot: int
    name: str | None
    shared: bool
    weight: float
    spread: float
    label: str | None = None

    @property
    def contribution(self) -> float:
        """The weight times the spread: the standard deviation of what the feature adds to the margin, with a sample."""
        return self.weight * self.spread


def column_of(
    names: Names | None, schema: Mapping[str, Mapping[str, Any]], bits: int | None
) -> Callable[[int], str | None]:
    """Return the function from slots to columns: those of named features, or of numbers; None for other slots.

    >>> column_of(None, {"age": {"kind": "number", "low": 1.0}}, 10)(slot("age", bits=10))
    'age'
    """
    numbers = _slots(schema, bits)
    return lambda k: names[k].partition("^")[0] if names is not None and k in names else numbers.get(k)


def largest_weights(
    model: Any,
    names: Names | None,
    schema: Mapping[str, Mapping[str, Any]],
    bits: int | None,
    classes: Sequence[str] | None = None,
    top: int = 20,
    columns: Mapping[int, str] = MappingProxyType({}),
    moments: NDArray[np.float64] | None = None,
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
    moments : slots of sampled rows, and the means of their values and of the squares of these; None without a sample

    >>> from forel.learner.learner import Learner
    >>> from forel.learner.settings import Settings
    >>> model = Learner(4, Settings(alpha=1.0, rate="scale_free", bias=False))
    >>> _ = model.learn([[1.0, 1000.0, 0.0, 0.0]], [1])
    >>> [(w.slot, round(w.weight, 5), w.spread, round(w.contribution, 2)) for w in largest_weights(model, None, {}, 2)]
    [(0, 0.33333, 1.0, 0.33), (1, 0.00033, 1000.0, 0.33)]
    """
    trainable = not isinstance(model, ServingModel)
    slots = model.active_coordinates if trainable else model.slots.astype(np.int64)
    slots = slots[slots < model.features]
    weights = (model.weights_at(slots) if trainable else model.weights[: slots.size, : model.n_outputs]).astype(
        np.float64
    )
    sizes = _spreads(model, slots, moments)
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


def _spreads(model: Any, slots: NDArray[np.int64], moments: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """Return the standard deviation of the values of each slot."""
    if moments is not None:
        known, means, squares = moments
        at = np.minimum(np.searchsorted(known, slots), max(known.size - 1, 0))
        found = known[at] == slots if known.size else np.zeros(slots.size, bool)
        deviations = np.sqrt(np.maximum(squares - means**2, 0.0))
        return np.where(found, deviations[at] if known.size else 0.0, 0.0)
    largest = largest_values(model)
    return np.ones(slots.size) if largest is None else largest(slots).astype(np.float64)


def largest_values(model: Any) -> Callable[[NDArray[np.int64]], NDArray[Any]] | None:
    """Return the function from slots to the largest |value| of each; None for a model that does not keep it."""
    if isinstance(model, ServingModel):
        return None if model.scales is None else model.scales_at
    return model.state.scales.__getitem__ if model.settings.rate == "scale_free" else None


def _slots(schema: Mapping[str, Mapping[str, Any]], bits: int | None) -> dict[int, str]:
    """Return the names of columns of numbers by slot."""
    return {slot(name, bits=bits): name for name, one in schema.items() if "low" in one} if bits else {}
