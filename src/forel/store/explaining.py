"""Contributions of features to the margins of rows, by name."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from forel.data import Names, ReadOptions, read

__all__ = ["Contribution", "Explanation", "explain"]


@dataclass(frozen=True)
class Contribution:
    """The part of a margin that is due to one feature: weight times value.

    ``shared`` tells that other names have the same slot, and so the same weight.
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
    prediction : probability or mean; the margin for hinge losses
    margin : ``bias`` plus all contributions
    bias : weight of the constant feature
    contributions : one for each feature of the row
    """

    prediction: float
    margin: float
    bias: float
    contributions: tuple[Contribution, ...]


def explain(model: Any, link: Callable[[Any], Any], options: ReadOptions, source: Any) -> Iterator[Explanation]:
    """Yield an explanation of each row of a source; of a mixture, that of its best setting.

    Parameters
    ----------
    model : a learner or a serving model of one output
    link : function from margins to predictions
    options : how the source is read
    source : as in :func:`forel.data.read`
    """
    names = Names(options.bits)
    bias = float(np.ravel(model.bias)[0])
    for block in read(source, options=options.updated({"names": True}), names=names):
        weights = model.weights_at(np.asarray(block.indices, np.int64))[:, 0].tolist()
        entries = list(zip(block.indices.tolist(), block.values.tolist(), weights, strict=True))
        for start, stop in zip(block.indptr[:-1].tolist(), block.indptr[1:].tolist(), strict=True):
            parts = [
                Contribution(names[k] if k in names else str(k), value, weight, weight * value, names.is_shared(k))
                for k, value, weight in entries[start:stop]
            ]
            parts.sort(key=lambda part: -abs(part.contribution))
            margin = bias + sum(part.contribution for part in parts)
            yield Explanation(float(link(np.float64(margin))), margin, bias, tuple(parts))
