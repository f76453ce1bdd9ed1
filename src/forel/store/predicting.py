"""A model for predicting only: the weights that are not zero, in a file and in memory of their size.

Neither numba nor a compiler is needed to predict from one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from forel.learner.guard import unchanged
from forel.learner.linear import Linear
from forel.learner.rows import rows_of
from forel.losses.links import BY_NAME, link_by_name
from forel.store.files import File, Unreadable
from forel.store.header import checked_settings, count_of, pack_settings
from forel.store.trainer import slot_type, touched
from forel.validation import all_finite, refuse, whole

__all__ = ["Serving", "pack_serving", "serving", "unpack_serving"]

DENSE = 1 << 24  # weights up to which a table of all features is faster than looking places up, and small enough


@dataclass(frozen=True, eq=False)
class Serving:
    """The weights of one model, or of several side by side, that are not zero.

    Parameters
    ----------
    features : how many features rows have
    slots, weights : which weights are not zero, in order, and these, a column a lane
    bias : the weight of the constant feature in each lane
    link : what margins are turned into: "identity", "probability", "exponential", "sign", and for classes "softmax",
        "rest" (one against the rest, made to sum to 1) or "largest" (the class with the largest margin)
    settings : how it was learned, as a header says it
    rounds : from how many rows
    measured : the mean loss of the learner and of these weights on rows that were given to :func:`serving`

    Weights are fixed: a learner with ``rate="scale_free"`` trusts a value larger than all before less, this does not.

    >>> from forel.learner.linear import Settings
    >>> model = Linear(3, Settings(alpha=1.0, bias=False))
    >>> _ = model.learn([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [1, 0])
    >>> small = serving(model, dtype=np.float16)
    >>> small.slots, small.predict([[1.0, 0.0, 0.0]]).round(2)
    (array([0, 1], dtype=uint32), array([[0.58]], dtype=float32))
    """

    features: int
    slots: NDArray[Any]
    weights: NDArray[Any]
    bias: NDArray[np.float32]
    link: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    rounds: int = 0
    measured: Mapping[str, float] | None = None

    @property
    def lanes(self) -> int:
        """How many models there are side by side."""
        return int(self.bias.size)

    def margins(self, X: Any) -> NDArray[Any]:
        """Return the margin of every row and lane."""
        from scipy import sparse

        rows = rows_of(X, self.features, np.float32)
        places = rows.indices if self._dense else self._places(rows.indices)
        parts = rows.values, places, rows.indptr
        margins: NDArray[Any] = sparse.csr_array(parts, shape=(rows.number, len(self._table))) @ self._table + self.bias
        return margins

    def predict(self, X: Any) -> NDArray[Any]:
        """Return what the margins of every row stand for, as ``link`` says."""
        margins = self.margins(X)
        return link_by_name(self.link)(margins, margins.dtype)

    @property
    def _dense(self) -> bool:
        return self.features * self.lanes <= DENSE

    @cached_property
    def _table(self) -> NDArray[np.float32]:
        """The weights of all features, or those that are not zero and a row of zeros for all others."""
        if not self._dense:
            return np.vstack([self.weights, np.zeros((1, self.lanes))]).astype(np.float32)
        table = np.zeros((self.features, self.lanes), np.float32)
        table[self.slots] = self.weights
        return table

    def _places(self, indices: NDArray[Any]) -> NDArray[np.int64]:
        found = np.searchsorted(self.slots, indices.astype(self.slots.dtype, copy=False))
        inside = np.minimum(found, max(self.slots.size - 1, 0))
        hit = self.slots[inside] == indices if self.slots.size else np.zeros(indices.shape, bool)
        return np.where(hit, inside, self.slots.size)


def serving(
    model: Any, lane: int | None = None, dtype: DTypeLike = np.float32, X: Any = None, y: ArrayLike | None = None
) -> Serving:
    """Return the weights of a learner that are not zero, for predicting only.

    Parameters
    ----------
    model : a :class:`forel.learner.linear.Linear`, a fitted estimator, or a mixture, of which the best setting is kept
    lane : the one lane to keep; None for all
    dtype : of the weights in a file, float32 or float16, which halves them and keeps three digits
    X, y : rows and labels, as the learner takes them, on which to measure what that costs; kept as ``measured``
    """
    with unchanged(model):
        return _serving(model, lane, dtype, X, y)


def _serving(model: Any, lane: int | None, dtype: DTypeLike, X: Any, y: ArrayLike | None) -> Serving:
    model = model.__stored__().model if hasattr(model, "__stored__") else model
    model = model.only() if hasattr(model, "only") else model
    if not isinstance(model, Linear):
        raise refuse("model", model, "a forel.learner.linear.Linear or a fitted estimator")
    if dtype not in (np.float32, np.float16, "float32", "float16"):
        raise refuse("dtype", dtype, "float32 or float16")
    if lane is not None and (model.joint or not 0 <= whole("lane", lane) < model.lanes):
        raise refuse("lane", lane, "None: its classes are one model" if model.joint else f"0 to {model.lanes - 1}")
    kept = slice(None) if lane is None else slice(lane, lane + 1)
    slots = touched(model._lanes)
    slots = slots[slots < model.features]
    exact = model._lanes.gather(slots)[:, kept]
    with np.errstate(over="ignore"):
        weights = exact.astype(dtype)
        bias: NDArray[Any] = model.bias[kept].astype(np.float32)
    if not (all_finite(weights) and all_finite(bias)):
        largest = float(np.abs(exact).max(initial=0.0))
        raise refuse("dtype", np.dtype(dtype).name, f"a type with room for the weight {largest:g}")
    some = weights.any(axis=1)
    small = Serving(
        features=model.features,
        slots=slots[some].astype(slot_type(model.features + 1)),
        weights=np.ascontiguousarray(weights[some]),
        bias=bias,
        link=_link(model, lane),
        settings=pack_settings(model.settings),
        rounds=model.rounds,
    )
    if X is None:
        return small
    columns = {"learner": model.margins(X)[:, kept], "serving": small.margins(X)}
    losses = {name: _mean_loss(model, margins, np.asarray(y), lane) for name, margins in columns.items()}
    return replace(small, measured=losses)


def _link(model: Linear, lane: int | None) -> str:
    link = model.settings.loss_function.link
    return link.one_vs_rest.name if model.classes is not None and lane is None else link.name


def _mean_loss(model: Linear, margins: NDArray[Any], y: NDArray[Any], lane: int | None) -> float:
    """Return the mean loss over rows, and over lanes that are not one model."""
    if y.shape != (len(margins),):
        raise ValueError(f"y: got shape {y.shape}, expected one label for each of {len(margins)} rows")
    if model.joint:
        return float(np.mean(model.settings.loss_function(margins, y)))
    labels = y[:, None]
    if model.classes is not None:
        hit = labels == (np.arange(model.classes) if lane is None else lane)
        labels = np.where(hit, 1.0, -1.0 if model.settings.signed else 0.0)
    return float(np.mean(model.settings.loss_function(margins, labels)))


def pack_serving(small: Serving) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and the arrays of weights for predicting."""
    header = {
        "kind": "serving",
        "features": small.features,
        "dtype": small.weights.dtype.name,
        "lanes": small.lanes,
        "link": small.link,
        "settings": dict(small.settings),
        "rounds": small.rounds,
        "measured": None if small.measured is None else dict(small.measured),
    }
    return header, {"slots": small.slots, "weights": small.weights, "bias": small.bias}


def unpack_serving(file: File) -> Serving:
    """Return the weights for predicting of a file."""
    header = file.header
    features, lanes = count_of("features", header["features"], low=1), count_of("lanes", header["lanes"], low=1)
    if header["dtype"] not in ("float32", "float16") or header["link"] not in BY_NAME:
        raise Unreadable("the header says what no model says; take another copy, or train again")
    bias = file.array("bias", np.float32, (lanes,))
    held = file.shape("slots")[0]
    slots = file.array("slots", slot_type(features + 1), (held,))
    weights = file.array("weights", header["dtype"], (held, lanes))
    if held and (int(slots[-1]) >= features or int(slots[0]) < 0 or not (slots[1:] > slots[:-1]).all()):
        raise Unreadable("the slots do not rise, or reach beyond the features; take another copy, or train again")
    if not (all_finite(weights) and all_finite(bias)):
        raise Unreadable("there are weights that are not finite; take another copy, or train again")
    rounds, measured = count_of("rounds", header["rounds"]), header["measured"]
    settings = checked_settings(header["settings"], header)
    return Serving(features, slots, weights, bias, header["link"], settings, rounds, measured)
