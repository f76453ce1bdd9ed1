"""Contributions of features to the margins of rows, by name."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data import Names, ReadOptions, read
from forel.learner.mixture import Mixture
from forel.store.calibration import Calibration
from forel.store.serving_mixture import ServingMixture, is_servable, serving_mixture

__all__ = ["Contribution", "Explanation", "explain"]

Array = NDArray[np.float64]


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
    of : the part of a mixture that is explained, if it is not the whole
    """

    prediction: float
    margin: float
    bias: float
    contributions: tuple[Contribution, ...]
    label: str | None = None
    of: str | None = None


def explain(
    model: Any,
    link: Callable[[Any], Any],
    options: ReadOptions,
    source: Any,
    classes: Sequence[str] | None = None,
    calibration: Calibration | None = None,
) -> Iterator[Explanation]:
    """Yield an explanation of each row of a source; for several classes, of the largest margin.

    Of a mixture of log-loss of two classes, a weight is that of the mixture, averaged over the path from the bias alone
    to the row, as in :meth:`forel.store.serving_mixture.ServingMixture.path_weights`. Of other mixtures, the best
    setting is explained, without the calibration of the mixture.

    Parameters
    ----------
    model : a learner or a serving model
    link : function from margins to predictions
    options : read options of the source
    source : as in :func:`forel.data.read`
    classes : names of several classes; None for one margin
    calibration : of the margins, which scales weights and bias
    """
    names, (weights_at, biases, mixture, of) = Names(options.bits), _lanes(model)
    calibration = calibration if of is None else None
    scale = 1.0 if calibration is None else calibration.slope
    for block in read(source, options=options.updated({"names": True}), names=names):
        weights = weights_at(np.asarray(block.indices, np.int64)).astype(np.float64)
        for start, stop in zip(block.indptr[:-1].tolist(), block.indptr[1:].tolist(), strict=True):
            row = slice(start, stop)
            margins = biases + block.values[row].astype(np.float64) @ weights[row]
            own = weights[row]
            if mixture is not None:
                own, margins = own @ mixture.path_weights(biases, margins)[:, None], mixture.margins(margins[None])[0]
            margins, own = (margins if calibration is None else calibration.margins(margins)), scale * own
            lane = 0 if classes is None else int(np.argmax(margins))
            entries = zip(block.indices[row].tolist(), block.values[row].tolist(), own[:, lane].tolist(), strict=True)
            parts = [
                Contribution(names[k] if k in names else str(k), value, weight, weight * value, names.is_shared(k))
                for k, value, weight in entries
            ]
            parts.sort(key=lambda part: -abs(part.contribution))
            margin = float(margins[lane])
            bias = margin - sum(part.contribution for part in parts)
            if classes is None:
                yield Explanation(float(link(np.float64(margin))), margin, bias, tuple(parts), of=of)
                continue
            found = np.ravel(link(margins[None]))
            prediction = float(found[lane] if found.size > 1 else found[0])
            yield Explanation(prediction, margin, bias, tuple(parts), classes[lane], of)


def _lanes(model: Any) -> tuple[Callable[[Any], Any], Array, ServingMixture | None, str | None]:
    """Return the weights and the biases of the lanes to explain, how they are mixed, and which part of the model it is.

    The last is None for the whole model.
    """
    if is_servable(model):
        lanes, mixture = serving_mixture(model, negligible=0.0)

        def weights_at(coordinates: Any) -> Any:
            return model.model_weights_at(coordinates)[:, lanes]

        return weights_at, weights_at(np.array([model.features]))[0].astype(np.float64), mixture, None
    of = f"the best setting, {model.names[model.best]}" if isinstance(model, Mixture) else None
    return model.weights_at, np.ravel(model.bias).astype(np.float64), getattr(model, "mixture", None), of
