"""Contributions of features to the margins of rows, by name."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.store.mixtures import LaneMixture, lane_mixture, path_weights
from forel.store.serving import ServingModel

__all__ = ["Contribution", "Explanation", "explain"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Contribution:
    """The contribution of one feature to a margin: weight times value, and what its curve adds.

    ``shared`` is true if other names have the same slot, and therefore the same weight.
    """

    name: str
    value: float
    weight: float
    contribution: float
    shared: bool = False


@dataclass(frozen=True)
class Explanation:
    """A prediction as a sum: the link of bias plus contributions, the largest first.

    Parameters
    ----------
    prediction : probability or mean; the margin for hinge losses; the probability of the predicted class, or its number
    margin : ``bias`` plus all contributions; the log-probability for several classes of a mixture
    bias : weight of the constant feature; for a mixture, its margin of a row without features
    contributions : one for each feature of the row
    label : the predicted class of several, whose margin is explained; None for one margin
    """

    prediction: float
    margin: float
    bias: float
    contributions: tuple[Contribution, ...]
    label: str | None = None


def explain(
    model: Any,
    link: Callable[[Any], Any],
    blocks: Iterable[Any],
    name: Callable[[int], tuple[str, bool]],
    classes: Sequence[str] | None = None,
) -> Iterator[Explanation]:
    """Yield an explanation of each row of blocks; for several classes, of the largest margin.

    Weights of a mixture are those of its experts, averaged over the path from the bias alone to the row, as in
    :func:`forel.store.mixtures.path_weights`.

    Parameters
    ----------
    model : a learner or a serving model
    link : function from margins to predictions
    blocks : rows, as arrays ``indptr``, ``indices`` and ``values``
    name : function from features to their names, and whether other names have the same slot
    classes : names of several classes; None for one margin
    """
    weights_at, biases, mixture = _lanes(model)
    for block in blocks:
        curves = getattr(model, "curves", None)
        block = block if curves is None else model.all_features(block)
        weights = weights_at(np.asarray(block.indices, np.int64), block.values)
        for start, stop in zip(block.indptr[:-1].tolist(), block.indptr[1:].tolist(), strict=True):
            row = slice(start, stop)
            lanes = biases + block.values[row].astype(np.float64) @ weights[row]
            margins = lanes if mixture is None else mixture.margins(lanes[None])[0]
            lane = 0 if classes is None else int(np.argmax(margins))
            own = weights[row, lane] if mixture is None else weights[row] @ path_weights(mixture, biases, lanes, lane)
            entries = zip(block.indices[row].tolist(), block.values[row].tolist(), own.tolist(), strict=True)
            pairs: dict[tuple[int, ...], float] = {}
            found_parts = []
            for k, value, weight in entries:
                if curves is None or k <= model.features:
                    found_parts.append((k, *name(k), value, weight))
                else:
                    owner = curves.owner(k - model.features - 1)
                    pairs[owner] = pairs.get(owner, 0.0) + weight * value
            parts = [
                Contribution(word, value, weight, weight * value + pairs.pop((k,), 0.0), shared)
                for k, word, shared, value, weight in found_parts
            ]
            parts += [
                Contribution("*".join(name(k)[0] for k in owner), 0.0 if len(owner) == 1 else 1.0, added, added)
                for owner, added in pairs.items()
                if owner
            ]
            parts.sort(key=lambda part: -abs(part.contribution))
            margin = float(margins[lane])
            bias = margin - sum(part.contribution for part in parts)
            if classes is None:
                yield Explanation(float(link(np.float64(margin))), margin, bias, tuple(parts))
                continue
            found = np.ravel(link(margins[None]))
            prediction = float(found[lane] if found.size > 1 else found[0])
            yield Explanation(prediction, margin, bias, tuple(parts), classes[lane])


def _lanes(model: Any) -> tuple[Callable[[Any, Any], Array], Array, LaneMixture | None]:
    """Return the weights of features by value, the biases of lanes, and how these are mixed; None if they are not."""
    if isinstance(model, ServingModel):
        return model.row_weights, np.ravel(model.bias).astype(np.float64), model.mixture
    lanes, mixture = (slice(None), None) if model.mixture is None else lane_mixture(model)

    def weights_at(coordinates: Any, values: Any) -> Array:
        weights: Array = model.row_weights(coordinates, values)[:, lanes]
        return weights

    return weights_at, weights_at(np.array([model.features]), np.ones(1))[0], mixture
