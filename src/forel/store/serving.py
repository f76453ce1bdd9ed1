"""Serving models: the nonzero weights of a model, for predictions only, in a file and in memory.

Predicting with one needs neither numba nor a compiler.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from forel.learner.keyed import ONE_KEY
from forel.learner.learner import Learner
from forel.learner.locking import reading
from forel.learner.rows import rows_of
from forel.losses.links import BY_NAME, Largest, Link, Normalized, SoftmaxLink
from forel.store.files import ModelFile
from forel.store.header import built_in_loss, damaged, header_int, settings_to_json, validated_settings
from forel.store.learners import slot_dtype, slots_in_order
from forel.store.serving_mixture import ServingMixture, is_servable, serving_mixture
from forel.validation import all_finite, refuse, whole

__all__ = [
    "ServingModel", "class_link", "number_of_classes", "pack_serving", "serving_model", "unpack_serving",
]  # fmt: skip

MAX_DENSE = 1 << 24  # number of weights up to which a dense table is used, which is faster than a binary search


@dataclass(frozen=True, eq=False)
class ServingModel:
    """The nonzero weights of one model, or of several lanes.

    Parameters
    ----------
    features : number of features
    slots, weights : features with a nonzero weight, in order, and their weights, a column for each lane
    bias : weight of the constant feature in each lane
    link : function from margins to predictions: "identity", "probability", "exponential", "sign", and for classes
        "softmax", "rest" (one against the rest, normalized to sum to 1) or "largest" (the class of the largest margin)
    settings : settings of the learner, as JSON
    rounds : number of rows that the learner has learned from
    measured : mean loss of the learner and of this model on the rows given to :func:`serving_model`
    mixture : how the margins of lanes, of which the first is the best, are mixed; None if they are not
    scales : for ``rate="scale_free"``, the largest |value| of each of the ``slots``, to which values are clipped as by
        the learner; None if they are not

    >>> from forel.learner.settings import Settings
    >>> model = Learner(3, Settings(alpha=1.0, bias=False))
    >>> _ = model.learn([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [1, 0])
    >>> small = serving_model(model, dtype=np.float16)
    >>> small.slots, small.predict([[1.0, 0.0, 0.0]]).round(2)
    (array([0, 1], dtype=uint32), array([[0.58]], dtype=float32))
    """

    features: int
    slots: NDArray[Any]
    weights: NDArray[Any]
    bias: NDArray[np.float32]
    link: str
    settings: Mapping[str, Any]
    rounds: int = 0
    measured: Mapping[str, float] | None = None
    mixture: ServingMixture | None = None
    scales: NDArray[np.float32] | None = None

    @property
    def lanes(self) -> int:
        """The number of margins of a row."""
        return 1 if self.mixture is not None else int(self.bias.size)

    def weight_at(self, slot: int) -> float:
        """Return the weight of a feature in the first lane."""
        k = int(np.searchsorted(self.slots, slot))
        return float(self.weights[k, 0]) if k < self.slots.size and self.slots[k] == slot else 0.0

    def weights_at(self, coordinates: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the weights of some features, a column for each lane."""
        weights: NDArray[np.float32] = self._table[self._rows(coordinates)]
        return weights

    def scales_at(self, coordinates: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the scales to which values of some features are clipped; infinity where they are not."""
        if self._limits is None:
            return np.full(coordinates.shape, np.inf, np.float32)
        limits: NDArray[np.float32] = self._limits[self._rows(coordinates)]
        return limits

    def row_weights(self, coordinates: NDArray[np.int64], values: NDArray[Any]) -> NDArray[np.float64]:
        """Return the weights of features with some values; they are smaller where the value is clipped."""
        sizes, clipped = np.abs(values), np.abs(self._clipped(values, self._rows(coordinates)))
        share = np.divide(clipped, sizes, out=np.ones(sizes.size), where=sizes > 0)
        weights: NDArray[np.float64] = self.weights_at(coordinates) * share[:, None].astype(np.float64)
        return weights

    def row_margins(self, slots: list[int], values: list[float]) -> NDArray[Any]:
        """Return the margins of one row, given by slots and values."""
        places = self._rows(np.array(slots, np.int64))
        margins: NDArray[Any] = self._clipped(np.array(values, np.float32), places) @ self._table[places] + self.bias
        return margins if self.mixture is None else self.mixture.margins(margins[None])[0]

    def _clipped(self, values: NDArray[Any], places: NDArray[Any]) -> NDArray[Any]:
        """Return values, clipped to the scales of rows of the table."""
        if self._limits is None:
            return values
        limits = self._limits[places]
        return np.asarray(np.clip(values, -limits, limits))

    def margins(self, X: Any) -> NDArray[Any]:
        """Return the margin of every row and lane."""
        from scipy import sparse

        rows = rows_of(X, self.features, np.float32)
        places = self._rows(rows.indices)
        parts = self._clipped(rows.values, places), places, rows.indptr
        margins: NDArray[Any] = sparse.csr_array(parts, shape=(rows.number, len(self._table))) @ self._table + self.bias
        return margins if self.mixture is None else self.mixture.margins(margins).astype(margins.dtype)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the prediction of every row: ``link`` of its margins."""
        margins = self.margins(X)
        return self.link_function(margins, margins.dtype)

    @cached_property
    def link_function(self) -> Link:
        """The link, with the parameters of the loss in the settings, such as the cap of Poisson loss."""
        loss = built_in_loss(self.settings)
        links = () if loss is None else (loss.link, loss.link.one_vs_rest)
        return next((link for link in links if link.name == self.link), BY_NAME[self.link])

    @property
    def _dense(self) -> bool:
        return self.features * self.bias.size <= MAX_DENSE

    @cached_property
    def _table(self) -> NDArray[np.float32]:
        """The weights of all features, or the nonzero weights and a row of zeros for all other features."""
        if not self._dense:
            return np.vstack([self.weights, np.zeros((1, self.bias.size))]).astype(np.float32)
        table = np.zeros((self.features, self.bias.size), np.float32)
        table[self.slots] = self.weights
        return table

    @cached_property
    def _limits(self) -> NDArray[np.float32] | None:
        """The scale of each row of the table; None if values are not clipped."""
        if self.scales is None:
            return None
        if not self._dense:
            return np.append(self.scales, np.float32(0))
        limits = np.zeros(self.features, np.float32)
        limits[self.slots] = self.scales
        return limits

    def _rows(self, indices: NDArray[Any]) -> NDArray[Any]:
        """Return the row of the table for each feature."""
        if self._dense:
            return indices
        positions = np.searchsorted(self.slots, indices.astype(self.slots.dtype, copy=False))
        inside = np.minimum(positions, max(self.slots.size - 1, 0))
        present = self.slots[inside] == indices if self.slots.size else np.zeros(indices.shape, bool)
        return np.where(present, inside, self.slots.size)


def serving_model(
    model: Any, lane: int | None = None, dtype: DTypeLike = np.float32, X: Any = None, y: ArrayLike | None = None,
    mixed: bool = False,
) -> ServingModel:  # fmt: skip
    """Return the nonzero weights of a learner, for predictions only.

    Parameters
    ----------
    model : a :class:`forel.learner.learner.Learner`, a fitted estimator, or a mixture, whose best setting is used
    lane : the lane to use; None for all
    dtype : type of the weights, float32 or float16, which takes half the space and has three digits
    X, y : rows and labels, as the learner accepts them, on which to measure the loss of both models
    mixed : keep the mixture of log-loss of two classes, without experts of a total weight of 1e-4
    """
    with reading(model):
        return _serving_model(model, lane, dtype, X, y, mixed)


def number_of_classes(model: Any) -> int | None:
    """Return the number of classes of a learner or serving model; None for one margin.

    >>> from forel.learner.learner import Learner
    >>> from forel.learner.settings import Settings
    >>> number_of_classes(Learner(4, Settings("softmax"), classes=3))
    3
    """
    if isinstance(model, ServingModel):
        return model.lanes if model.lanes > 1 else None
    classes: int | None = model.classes
    return classes


def class_link(model: Any) -> Link | None:
    """Return the link from margins to probabilities of classes, or to classes; None for one margin.

    >>> from forel.learner.learner import Learner
    >>> from forel.learner.settings import Settings
    >>> class_link(Learner(4, Settings("logistic"), classes=3))
    Normalized()
    """
    if number_of_classes(model) is None:
        return None
    if isinstance(model, ServingModel):
        return model.link_function
    if not model.settings.loss_function.link.probabilities:
        return Largest()
    return SoftmaxLink() if model.softmax_margins else Normalized()


def _serving_model(
    model: Any, lane: int | None, dtype: DTypeLike, X: Any, y: ArrayLike | None, mixed: bool
) -> ServingModel:
    model = model.__model__().learner if hasattr(model, "__model__") else model
    if mixed:
        return _serving_mixture(model, dtype)
    if dtype not in (np.float32, np.float16, "float32", "float16"):
        raise refuse("dtype", dtype, "float32 or float16")
    if isinstance(model, Learner) and model.mixture is not None:
        best = model.best_model
        if lane is None and X is None and best < model.settings.n_settings:
            return _serving_setting(model.unmixed, best, dtype)
        model = model.select_setting(best)
    if not isinstance(model, Learner):
        by = getattr(model, "by", None)
        if by is not None:
            raise refuse("model", f"models by {by}", ONE_KEY)
        if isinstance(model, ServingModel):
            expected = "one that can learn, from which it was converted; it is for predictions already"
            raise refuse("model", f"a serving model of {model.weights.dtype}", expected)
        expected = "one complete model: a forel.Learner or a fitted estimator"
        raise refuse("model", type(model).__name__, expected)
    if lane is not None and (model.joint or not 0 <= whole("lane", lane) < model.n_outputs):
        raise refuse("lane", lane, "None: its classes are one model" if model.joint else f"0 to {model.n_outputs - 1}")
    columns = slice(None) if lane is None else slice(lane, lane + 1)
    small = _with_columns(model, model.weights_at, columns, dtype, _link(model, lane))
    if X is None:
        return small
    margins = {"learner": model.margins(X)[:, columns], "serving": small.margins(X)}
    losses = {name: _mean_loss(model, part, np.asarray(y), lane) for name, part in margins.items()}
    return replace(small, measured=losses)


def _serving_setting(linear: Learner, setting: int, dtype: DTypeLike) -> ServingModel:
    """Return the model of one setting, from the kernel of all of them, which is usually compiled already."""
    settings = linear.settings
    columns = slice(setting, None, settings.n_settings)
    small = _with_columns(linear, linear.weights_at, columns, dtype, _link(linear, None))
    return replace(small, settings=settings_to_json(settings.only(setting)))


def _serving_mixture(model: Any, dtype: DTypeLike) -> ServingModel:
    if not is_servable(model):
        raise refuse("mixed", True, "False, but for a mixture of log-loss of two classes")
    lanes, mixture = serving_mixture(model)
    link = model.settings.loss_function.link.name
    return replace(_with_columns(model.unmixed, model.model_weights_at, lanes, dtype, link), mixture=mixture)


def _with_columns(
    model: Learner,
    weights_at: Callable[[NDArray[np.int64]], NDArray[Any]],
    columns: Any,
    dtype: DTypeLike,
    link: str,
) -> ServingModel:
    """Return the nonzero weights of some lanes, which ``weights_at`` returns for coordinates of the model."""
    slots = model.state.nonzero_rows()
    slots = slots[slots < model.features]
    exact = weights_at(slots)[:, columns]
    with np.errstate(over="ignore"):
        weights = exact.astype(dtype)
        bias: NDArray[Any] = weights_at(np.array([model.features]))[0, columns].astype(np.float32)
    if not (all_finite(weights) and all_finite(bias)):
        largest = float(np.abs(exact).max(initial=0.0))
        raise refuse("dtype", np.dtype(dtype).name, f"a type that can represent the weight {largest:g}")
    nonzero = weights.any(axis=1)
    free = model.settings.rate == "scale_free"
    return ServingModel(
        features=model.features,
        slots=slots[nonzero].astype(slot_dtype(model.features + 1)),
        weights=np.ascontiguousarray(weights[nonzero]),
        bias=bias,
        link=link,
        settings=settings_to_json(model.settings),
        rounds=model.rounds,
        scales=model.state.scales[slots[nonzero]].astype(np.float32) if free else None,
    )


def _link(model: Learner, lane: int | None) -> str:
    link = model.settings.loss_function.link
    return link.one_vs_rest.name if model.classes is not None and lane is None else link.name


def _mean_loss(model: Learner, margins: NDArray[Any], y: NDArray[Any], lane: int | None) -> float:
    """Return the mean loss over rows, and over lanes unless these are one model."""
    if y.shape != (len(margins),):
        raise ValueError(f"y: got shape {y.shape}, expected one label for each of {len(margins)} rows")
    if model.joint:
        return float(np.mean(model.settings.loss_function(margins, y)))
    labels = y[:, None]
    if model.classes is not None:
        hit = labels == (np.arange(model.classes) if lane is None else lane)
        labels = np.where(hit, 1.0, -1.0 if model.settings.signed else 0.0)
    return float(np.mean(model.settings.loss_function(margins, labels)))


def pack_serving(small: ServingModel) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and the arrays of a serving model."""
    header = {
        "kind": "serving",
        "features": small.features,
        "dtype": small.weights.dtype.name,
        "lanes": int(small.bias.size),
        "link": small.link,
        "settings": dict(small.settings),
        "rounds": small.rounds,
        "measured": None if small.measured is None else dict(small.measured),
        "mixed": None if small.mixture is None else [small.mixture.clip, small.mixture.limit],
    }
    arrays = {"slots": small.slots, "weights": small.weights, "bias": small.bias}
    if small.scales is not None:  # most are 1, those of categories
        wide = np.flatnonzero(small.scales != 1)
        arrays |= {"wide": wide.astype(small.slots.dtype), "scales": small.scales[wide]}
    if small.mixture is None:
        return header, arrays
    return header, {**arrays, "experts": small.mixture.weights, "mixers": small.mixture.mixers}


def unpack_serving(file: ModelFile) -> ServingModel:
    """Return the serving model of a file."""
    header = file.header
    features, lanes = header_int("features", header["features"], low=1), header_int("lanes", header["lanes"], low=1)
    if header["dtype"] not in ("float32", "float16") or header["link"] not in BY_NAME:
        raise damaged("the header has invalid values")
    bias = file.array("bias", np.float32, (lanes,))
    count = file.shape("slots")[0]
    slots = slots_in_order(file, count, features + 1, features)
    weights = file.array("weights", header["dtype"], (count, lanes))
    if not (all_finite(weights) and all_finite(bias)):
        raise damaged("there are weights that are NaN or infinite")
    rounds, measured = header_int("rounds", header["rounds"]), header["measured"]
    settings = validated_settings(header["settings"], header)
    mixture = None if header["mixed"] is None else _unpack_mixture(file, lanes, header["mixed"])
    scales = _unpack_scales(file, slots) if file.has("scales") else None
    model = ServingModel(features, slots, weights, bias, header["link"], settings, rounds, measured, mixture, scales)
    _ = model.link_function  # raises for an invalid loss
    return model


def _unpack_scales(file: ModelFile, slots: NDArray[Any]) -> NDArray[np.float32]:
    """Return the scales of slots, of which a file holds those other than 1."""
    count, scales = file.shape("wide")[0], np.ones(slots.size, np.float32)
    wide, given = file.array("wide", slots.dtype, (count,)), file.array("scales", np.float32, (count,))
    if count and (int(wide.max()) >= slots.size or int(wide.min()) < 0):
        raise damaged("the places of scales exceed the number of slots")
    if not all_finite(given) or (given < 0).any():
        raise damaged("there are scales that are not numbers from 0")
    scales[wide] = given
    return scales


def _unpack_mixture(file: ModelFile, lanes: int, limits: Any) -> ServingMixture:
    count = file.shape("mixers")[0]
    weights, mixers = (
        file.array("experts", np.float64, (lanes + count,)),
        file.array("mixers", np.float64, (count, lanes + 1)),
    )
    if not (all_finite(weights) and all_finite(mixers) and (weights >= 0).all() and abs(weights.sum() - 1) < 1e-9):
        raise damaged("the weights of the mixture are not numbers from 0 that sum to 1")
    if not isinstance(limits, list) or [type(one) for one in limits] != [float, float] or not min(limits) > 0:
        raise damaged("the header has invalid values")
    return ServingMixture(weights, mixers, *limits)
