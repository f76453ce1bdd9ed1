"""Contributions of features to the margins of rows, by name."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from forel.data import Names, ReadOptions, read
from forel.store.calibration import Calibration

__all__ = ["Contribution", "Explanation", "explain"]


@dataclass(frozen=True)
class Contribution:
    """The contribution of one feature to a margin: weight times value.

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
    margin : ``bias`` plus all contributions
    bias : weight of the constant feature
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
    options: ReadOptions,
    source: Any,
    classes: Sequence[str] | None = None,
    calibration: Calibration | None = None,
) -> Iterator[Explanation]:
    """Yield an explanation of each row of a source; for a mixture, by its best setting.

    For several classes, the largest margin is explained.

    Parameters
    ----------
    model : a learner or a serving model
    link : function from margins to predictions
    options : read options of the source
    source : as in :func:`forel.data.read`
    classes : names of several classes; None for one margin
    calibration : of the margins, which scales weights and bias
    """
    names, biases = Names(options.bits), np.ravel(model.bias).astype(np.float64)
    scale = 1.0 if calibration is None else calibration.slope
    biases = biases if calibration is None else calibration.margins(biases)
    for block in read(source, options=options.updated({"names": True}), names=names):
        weights = scale * model.weights_at(np.asarray(block.indices, np.int64)).astype(np.float64)
        for start, stop in zip(block.indptr[:-1].tolist(), block.indptr[1:].tolist(), strict=True):
            row = slice(start, stop)
            margins = biases + block.values[row].astype(np.float64) @ weights[row]
            lane = 0 if classes is None else int(np.argmax(margins))
            entries = zip(
                block.indices[row].tolist(), block.values[row].tolist(), weights[row, lane].tolist(), strict=True
            )
            parts = [
                Contribution(names[k] if k in names else str(k), value, weight, weight * value, names.is_shared(k))
                for k, value, weight in entries
            ]
            parts.sort(key=lambda part: -abs(part.contribution))
            margin = float(biases[lane]) + sum(part.contribution for part in parts)
            if classes is None:
                yield Explanation(float(link(np.float64(margin))), margin, float(biases[0]), tuple(parts))
                continue
            found = np.ravel(link(margins[None]))
            prediction = float(found[lane] if found.size > 1 else found[0])
            yield Explanation(prediction, margin, float(biases[lane]), tuple(parts), classes[lane])
