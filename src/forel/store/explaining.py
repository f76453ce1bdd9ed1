r"""Contributions of features to the margins of rows, by name.

The margin F of a mixture is not linear in the margins m of its models. On the path $m(s) = (1 - s) a + s b$ from the
margins of the bias alone to those of a row,

$$ F(b) - F(a) = \sum_k w_k (b_k - a_k), \qquad w_k = \int_0^1 \frac{\partial F}{\partial m_k}(m(s))\, ds. $$
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.learner.learner import Learner
from forel.store.serving import ServingModel, limited

__all__ = ["Contribution", "Explanation", "explain", "path_weights"]

NODES = 64  # of Gauss's quadrature
STEP = 1e-5  # of difference quotients, relative to the length of the path
MOST = 1 << 20  # numbers in the margins that are mixed at a time

Array = NDArray[np.float64]
Mix = Callable[[Array], NDArray[Any]]  # from margins of models to those of their mixture, a row each


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

    Weights of a mixture are those of its models, averaged over the path from the bias alone to the row.

    Parameters
    ----------
    model : a learner or a serving model
    link : function from margins to predictions
    blocks : rows, as arrays ``indptr``, ``indices`` and ``values``
    name : function from features to their names, and whether other names have the same slot
    classes : names of several classes; None for one margin
    """
    weights_at, biases = _models(model)
    for block in blocks:
        curves = getattr(model, "curves", None)
        block = block if curves is None else model.all_features(block)
        weights = weights_at(np.asarray(block.indices, np.int64), block.values)
        for start, stop in zip(block.indptr[:-1].tolist(), block.indptr[1:].tolist(), strict=True):
            row = slice(start, stop)
            lanes = limited(biases + block.values[row].astype(np.float64) @ weights[row])
            margins, path = _mixed(model, biases, lanes)
            lane = 0 if classes is None else int(np.argmax(margins))
            own = weights[row, lane] if path is None else weights[row] @ path(lane)
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


def _models(model: Any) -> tuple[Callable[[Any, Any], Array], Array]:
    """Return the weights of features by value in each model of a mixture, and their biases."""
    if isinstance(model, ServingModel):
        return model.row_weights, np.ravel(model.bias).astype(np.float64)
    return model.row_weights, model.row_weights(np.array([model.features]), np.ones(1))[0]


def _mixed(model: Any, start: Array, stop: Array) -> tuple[Array, Callable[[int], Array] | None]:
    """Return a mixture's margins at the end of a path, and the weights of its models for one; None if not mixed."""
    if model.mixture is None:
        return stop, None
    if isinstance(model, ServingModel):
        mix: Mix = model.mixture.margins
        return mix(stop[None])[0], lambda output: path_weights(mix, start, stop, output)
    mix, nested = model.mixture.mixed, model.of_classes
    ends = np.stack([start, stop])
    if not nested:
        return mix(ends)[1], lambda output: path_weights(mix, start, stop, output)
    # The last expert of each class is a mixture, whose models have the last weights.
    sizes = [one.mixture.ledger.inputs for one in nested if one.mixture is not None]
    first = start.size - sum(sizes)
    parts = np.split(ends[:, first:], np.cumsum(sizes)[:-1], axis=1)
    columns = [_mix_of(one)(part) for one, part in zip(nested, parts, strict=True)]
    joined = np.concatenate([ends[:, :first].reshape(2, len(nested), -1), np.stack(columns, axis=1)], axis=2)
    outer = joined.reshape(2, -1)

    def path(output: int) -> Array:
        weights = path_weights(mix, outer[0], outer[1], output).reshape(len(nested), -1)
        inner = [
            w * path_weights(_mix_of(one), *part) for w, one, part in zip(weights[:, -1], nested, parts, strict=True)
        ]
        return np.concatenate([weights[:, :-1].ravel(), *inner])

    return mix(outer)[1], path


def _mix_of(learner: Learner) -> Mix:
    assert learner.mixture is not None
    return learner.mixture.mixed


def path_weights(mix: Mix, start: Array, stop: Array, output: int = 0) -> Array:
    """Return the weight of each model on the path between two rows of margins, for an exact sum of contributions.

    Parameters
    ----------
    mix : the function from margins of models to those of the mixture
    start, stop : the margins of models at both ends, such as those of the bias alone and those of a row
    output : the output of the mixture, such as a class

    >>> def mix(m):
    ...     return np.log(np.exp(m) @ [[0.25], [0.75]])
    >>> a, b = np.array([0.0, 0.5]), np.array([2.0, -1.0])
    >>> bool(np.isclose(path_weights(mix, a, b) @ (b - a), (mix(b[None]) - mix(a[None]))[0, 0]))
    True
    """
    places, weights = _quadrature()
    step, points = stop - start, (1 - places) * start + places * stop
    found, shift = np.zeros(start.size), STEP * float(np.abs(step).max(initial=0.0))
    if shift == 0:
        return found
    count = max(1, MOST // points.size)
    for first in range(0, start.size, count):  # by difference quotients, for some models at a time
        shifts = shift * np.eye(start.size)[first : first + count, None]
        above, below = (mix((points + sign * shifts).reshape(-1, start.size))[:, output] for sign in (1, -1))
        found[first : first + count] = (above - below).reshape(-1, len(points)) @ weights / (2 * shift)
    # The error of quadrature, of which the smallest change of weights makes up for.
    missing = float(np.diff(mix(np.stack([start, stop])), axis=0)[0, output] - found @ step)
    return found + missing * step / float(step @ step)


@cache
def _quadrature() -> tuple[Array, Array]:
    """Return nodes in [0, 1], as a column, and weights."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    return (nodes[:, None] + 1) / 2, weights / 2
