"""Serving models: the nonzero weights of a mixture or of its best setting, for predictions only, and which to choose.

Predicting with one needs neither numba nor a compiler.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from forel.data.features.curves import Curves
from forel.learner.keyed import ONE_KEY
from forel.learner.learner import Learner
from forel.learner.locking import reading
from forel.learner.mixture import Mixture
from forel.learner.rows import Rows, rows_of
from forel.learner.settings import Settings
from forel.losses.links import BY_NAME, Largest, Link, Normalized, SoftmaxLink
from forel.losses.margin import Mixing
from forel.losses.sigmoid import log_sigmoid
from forel.markup import number_text
from forel.store.files import ModelFile
from forel.store.header import built_in_loss, damaged, settings_to_json
from forel.store.learners import slot_dtype, slots_in_order, unpack_curves
from forel.validation import all_finite, refuse

__all__ = [
    "TOLERANCE",
    "ClippedMean",
    "LogisticMixture",
    "ServingChoice",
    "ServingModel",
    "choose_serving",
    "class_link",
    "number_of_classes",
    "pack_serving",
    "serving_model",
    "unpack_serving",
]  # fmt: skip

Array = NDArray[np.float64]

TOLERANCE = 0.01  # of the mixture's loss: the largest excess of a setting that is served alone
NEGLIGIBLE = 1e-4  # total weight of experts that are left out, by which probabilities may differ
LIMIT = 1e30  # of margins, as in the kernels
MAX_DENSE = 1 << 24  # number of weights up to which a dense table is used, which is faster than a binary search


@dataclass(frozen=True, eq=False)
class LogisticMixture:
    r"""The margin of the probability $\sum_k w_k \sigma(m_k)$ of the second of two classes.

    Mixers are experts whose margins are $v \cdot m$, with each margin of m clipped.

    Parameters
    ----------
    weights : of lanes, then of mixers; they sum to 1
    mixers : for each, the weights of lanes, and a constant
    clip, limit : the limits of margins, as inputs of mixers and of mixers themselves

    >>> mixture = LogisticMixture(np.array([0.25, 0.75]), np.zeros((0, 3)))
    >>> mixture.margins(np.array([[0.0, 0.0]]))
    array([[0.]])
    """

    weights: Array
    mixers: Array
    clip: float = math.inf
    limit: float = math.inf
    classes: ClassVar[int] = 1

    def margins(self, lanes: NDArray[Any]) -> Array:
        """Return the margin of the mixture from those of the lanes, one column."""
        given = lanes.astype(np.float64)
        mixed = np.clip(given, -self.clip, self.clip) @ self.mixers[:, :-1].T + self.mixers[:, -1]
        experts = np.hstack([given, np.clip(mixed, -self.limit, self.limit)])
        with np.errstate(divide="ignore"):
            logs = np.log(self.weights)
        positive, negative = (np.logaddexp.reduce(log_sigmoid(m) + logs, axis=1) for m in (experts, -experts))
        return np.asarray(positive - negative)[:, None]


@dataclass(frozen=True, eq=False)
class ClippedMean:
    """A mean of margins that are clipped to the range of labels, with ridge mixers of them among the experts.

    Parameters
    ----------
    weights : of the settings, then of mixers; they sum to 1
    mixers : for each, the weights of settings, and a constant, of predictions relative to the range
    low, high : the range
    classes : the number of outputs; lanes are by class, then by setting

    >>> mean = ClippedMean(np.array([0.25, 0.75]), np.zeros((0, 3)), 0.0, 10.0)
    >>> mean.margins(np.array([[4.0, 8.0], [4.0, 80.0]]))[:, 0]
    array([7. , 8.5])
    """

    weights: Array
    mixers: Array
    low: float = -math.inf
    high: float = math.inf
    classes: int = 1

    def margins(self, lanes: NDArray[Any]) -> Array:
        """Return the margins of the mixture, a column for each class."""
        each = np.clip(lanes.astype(np.float64).reshape(len(lanes), self.classes, -1), self.low, self.high)
        if len(self.mixers):
            middle, span = self.low + (self.high - self.low) / 2, self.high - self.low
            scaled = (each - self.low - span / 2) / span if span > 0 else np.zeros_like(each)
            mixed = scaled @ self.mixers[:, :-1].T + self.mixers[:, -1]
            each = np.concatenate((each, middle + np.clip(mixed, -0.5, 0.5) * span), axis=2)
        return np.asarray(each @ self.weights)


LaneMixture = LogisticMixture | ClippedMean


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
    mixture : how the margins of lanes, of which the first is the best, are mixed or clipped; None if they are not
    scales : for ``rate="scale_free"``, the largest |value| of each of the ``slots``, to which values are clipped as by
        the learner; None if they are not
    curves : adds features of curves and pairs to rows, whose slots follow the others; None for none

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
    mixture: LaneMixture | None = None
    scales: NDArray[np.float32] | None = None
    curves: Curves | None = None

    @property
    def n_outputs(self) -> int:
        """The number of margins of a row."""
        return int(self.bias.size) if self.mixture is None else self.mixture.classes

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
        share = np.divide(clipped, sizes, out=np.ones(sizes.size), where=sizes > 0, dtype=np.float64)
        weights: NDArray[np.float64] = self.weights_at(coordinates) * share[:, None].astype(np.float64)
        return weights

    def row_margins(self, slots: list[int], values: list[float]) -> NDArray[Any]:
        """Return the margins of one row, given by slots and values."""
        if self.curves is not None:
            row = Rows(np.array([0, len(slots)]), np.array(slots, np.int64), np.array(values, np.float32))
            return np.asarray(self.margins(row)[0])
        places = self._rows(np.array(slots, np.int64))
        with np.errstate(over="ignore", invalid="ignore"):
            margins = limited(self._clipped(np.array(values, np.float32), places) @ self._table[places] + self.bias)
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

        rows = self.all_features(X)
        places = self._rows(rows.indices)
        parts = self._clipped(rows.values, places), places, rows.indptr
        matrix = sparse.csr_array(parts, shape=(rows.number, len(self._table)))
        margins = limited(matrix @ self._table + self.bias)
        return margins if self.mixture is None else self.mixture.margins(margins).astype(margins.dtype)

    def all_features(self, X: Any) -> Rows:
        """Return rows with their features of curves, as those of a learner do."""
        rows = rows_of(X, self.features, np.float32)
        return rows if self.curves is None else Rows(*self.curves.joined(rows, self.features + 1))

    @property
    def _slots(self) -> int:
        """The number of slots, that of the bias among them, and of features of curves."""
        return self.features + 1 + (0 if self.curves is None else self.curves.features)

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
        return self._slots * self.bias.size <= MAX_DENSE

    @cached_property
    def _table(self) -> NDArray[np.float32]:
        """The weights of all features, or the nonzero weights and a row of zeros for all other features."""
        if not self._dense:
            return np.vstack([self.weights, np.zeros((1, self.bias.size))]).astype(np.float32)
        table = np.zeros((self._slots, self.bias.size), np.float32)
        table[self.slots] = self.weights
        return table

    @cached_property
    def _limits(self) -> NDArray[np.float32] | None:
        """The scale of each row of the table; None if values are not clipped."""
        if self.scales is None:
            return None
        if not self._dense:
            return np.append(self.scales, np.float32(0))
        limits = np.zeros(self._slots, np.float32)
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


def limited(margins: NDArray[Any]) -> NDArray[Any]:
    """Return margins within the limit of a learner; 0 for NaN, the sum of infinite terms."""
    return np.asarray(np.clip(np.nan_to_num(margins), -LIMIT, LIMIT))


def serving_model(model: Any, dtype: DTypeLike = np.float32, mixed: bool = False) -> ServingModel:
    """Return the nonzero weights of a learner, for predictions only.

    Parameters
    ----------
    model : a learner or a fitted estimator; of a mixture, its best setting is used, with predictions clipped as in the
        mixture
    dtype : type of the weights, float32 or float16, which takes half the space and has three digits
    mixed : keep the mixture, without experts of a total weight of 1e-4 where predictions have a range; for one margin
    """
    with reading(model):
        learner = _one_learner(model)
        if dtype not in (np.float32, np.float16, "float32", "float16"):
            raise refuse("dtype", dtype, "float32 or float16")
        settings, best, outputs = learner.settings, learner.best_model, learner.classes or 1
        lanes, mixture = np.arange(outputs), None
        if learner.mixture is not None and mixed:
            if outputs > 1:
                raise refuse("mixed", True, "False for several classes")
            lanes, mixture = lane_mixture(learner, NEGLIGIBLE)
        elif learner.mixture is not None:
            lanes, mixture = best + settings.n_settings * lanes, clipped(learner)
            settings = learner.settings_of(best)
        return _serving_model(learner, lanes, mixture, settings, dtype)


def _one_learner(model: Any) -> Learner:
    """Return the learner of a model, which predicts one label."""
    found = model.__model__().learner if hasattr(model, "__model__") else model
    if isinstance(found, ServingModel):
        expected = "one that can learn, from which it was converted; it is for predictions already"
        raise refuse("model", f"a serving model of {found.weights.dtype}", expected)
    if not isinstance(found, Learner):
        if (by := getattr(found, "by", None)) is not None:
            raise refuse("model", f"models by {by}", ONE_KEY)
        raise refuse("model", type(found).__name__, "one complete model: a forel.Learner or a fitted estimator")
    if found.mixture is None and found.settings.n_settings > 1:
        raise refuse("model", "several models that are not mixed", "one of them: model.select_setting(k)")
    return found


def _serving_model(
    learner: Learner, lanes: NDArray[np.intp], mixture: LaneMixture | None, settings: Settings, dtype: DTypeLike
) -> ServingModel:
    """Return the nonzero weights of some lanes of a learner."""
    slots, link = learner.state.nonzero_rows(), learner.settings.loss_function.link
    slots, curves = slots[slots < learner.features], None if learner.classes is not None else learner.curves
    if curves is not None:
        slots = np.concatenate((slots, learner.features + 1 + np.arange(curves.features)))
    exact = learner.model_weights_at(slots)[:, lanes]
    with np.errstate(over="ignore"):
        weights = exact.astype(dtype)
        bias: NDArray[Any] = learner.model_weights_at(np.array([learner.features]))[0, lanes].astype(np.float32)
    if not (all_finite(weights) and all_finite(bias)):
        largest = float(np.abs(exact).max(initial=0.0))
        raise refuse("dtype", np.dtype(dtype).name, f"a type that can represent the weight {largest:g}")
    nonzero = weights.any(axis=1)
    free = learner.settings.rate == "scale_free"
    return ServingModel(
        features=learner.features,
        slots=slots[nonzero].astype(slot_dtype(learner.features + 1)),
        weights=np.ascontiguousarray(weights[nonzero]),
        bias=bias,
        link=(link if learner.classes is None else link.one_vs_rest).name,
        settings=settings_to_json(settings),
        rounds=learner.rounds,
        mixture=mixture,
        scales=learner.scales_at(slots[nonzero]).astype(np.float32) if free else None,
        curves=curves,
    )


def lane_mixture(model: Learner, negligible: float) -> tuple[NDArray[np.intp], LaneMixture]:
    """Return the lanes that a mixture of one margin needs, the best one first, and how they are mixed.

    Experts of the smallest weights are left out, up to a total of ``negligible`` where predictions have a range. A
    mixer needs all lanes.
    """
    from forel.learner.kernels import geometric, ridge

    mixture = model.mixture
    assert mixture is not None
    count, logistic = mixture.ledger.inputs, mixture.rule is Mixing.BAYES
    limits = (geometric.CLIP, geometric.MARGIN_LIMIT) if logistic else _label_range(mixture)
    weights = mixture.flat_weights()
    states = np.zeros((0, 1, count + 1)) if mixture.mixers is None else mixture.mixers.states
    mixers = states[:, 0] * np.append(np.ones(count), geometric.CONSTANT if logistic else ridge.CONSTANT)
    order = np.argsort(weights, kind="stable")
    kept = np.ones(weights.size, bool)
    kept[order[np.cumsum(weights[order]) <= (negligible if logistic or np.isfinite(limits).all() else 0.0)]] = False
    best, used = model.best, kept[:count] | kept[count:].any()
    lanes = np.array([best, *(lane for lane in np.flatnonzero(used) if lane != best)], np.intp)
    chosen = np.append(np.where(kept[lanes], weights[lanes], 0.0), weights[count:][kept[count:]])
    kind = LogisticMixture if logistic else ClippedMean
    return lanes, kind(chosen / chosen.sum(), mixers[kept[count:]][:, [*lanes, count]], *limits)


def clipped(model: Learner) -> ClippedMean | None:
    """Return the margins of one setting of a mixture that clips them to the range of labels; None if it does not."""
    mixture = model.mixture
    if mixture is None or not mixture.clips:
        return None
    return ClippedMean(np.ones(1), np.zeros((0, 2)), *_label_range(mixture), model.classes or 1)


def _label_range(mixture: Mixture) -> tuple[float, float]:
    """Return the margins to which predictions are clipped, which are those of the labels seen."""
    below, above = mixture.settings.loss_function.link.clipping
    low, high = mixture.ledger.label_range if below else (-math.inf, mixture.ledger.highest)
    return low, high if above else math.inf


@dataclass(frozen=True)
class ServingChoice:
    """A model to serve, and what the alternatives cost.

    Parameters
    ----------
    model : the serving model
    mixed : whether it is the mixture
    setting : the name of the best setting; None if there is one setting only
    loss, mixture_loss : mean loss of this setting and of the mixture on the rows learned from, before each was learned,
        with predictions clipped to the labels seen until then where the mixture clips
    bytes, mixture_bytes : size of the weights of one setting, and of the mixture; None if it cannot be served
    """

    model: ServingModel
    mixed: bool = False
    setting: str | None = None
    loss: float = 0.0
    mixture_loss: float = 0.0
    bytes: int = 0
    mixture_bytes: int | None = None

    def __str__(self) -> str:
        if self.setting is None:
            return f"the model ({self.bytes:,} bytes of weights)"
        alone = f"{self.setting} alone ({self.bytes:,} bytes of weights)"
        own, whole = (number_text(loss, decimals=6) for loss in (self.loss, self.mixture_loss))
        losses = f"its progressive loss was {own}, that of the mixture {whole}"
        if self.mixture_bytes is None:
            return f"{alone}; {losses}, and mixtures of several classes are not served"
        mixture, limit = f"the mixture ({self.mixture_bytes:,} bytes of weights)", f"{TOLERANCE:.0%}"
        if not self.mixed:
            return f"{alone} instead of {mixture}; {losses}, and at most {limit} more is allowed"
        return f"{mixture} instead of {alone}; {losses}, more than {limit} less"


def choose_serving(model: Any, dtype: DTypeLike = np.float32) -> ServingChoice:
    """Return the best setting of a mixture, if its loss is at most 1 % larger, and otherwise the mixture.

    Parameters
    ----------
    model : as in :func:`forel.store.serving_model`
    dtype : type of the weights

    >>> from forel.learner.settings import Settings
    >>> model = Learner(1, Settings(alpha=(0.01, 1.0), bias=False))
    >>> _ = model.learn(np.ones((50, 1)), [1] * 50)
    >>> print(choose_serving(model))
    alpha=1 alone (12 bytes of weights) instead of the mixture (... bytes of weights); its progressive loss was 0.13...,
    that of the mixture 0.14..., and at most 1% more is allowed
    """
    alone, learner = serving_model(model, dtype), _one_learner(model)
    if learner.mixture is None:
        return ServingChoice(alone, bytes=_size(alone))
    loss = float(learner.averages[learner.best_model])
    whole = learner.loss / (learner.mixture.ledger.total_importance or 1.0)
    known = learner.names[learner.best_model], loss, whole, _size(alone)
    if learner.classes is not None:
        return ServingChoice(alone, False, *known)
    mixture, choice = serving_model(model, dtype, mixed=True), loss > whole + TOLERANCE * abs(whole)
    return ServingChoice(mixture if choice else alone, choice, *known, _size(mixture))


def _size(model: ServingModel) -> int:
    return sum(array.nbytes for array in pack_serving(model)[1].values())


def number_of_classes(model: Any) -> int | None:
    """Return the number of classes of a learner or serving model; None for one margin.

    >>> from forel.learner.learner import Learner
    >>> from forel.learner.settings import Settings
    >>> number_of_classes(Learner(4, Settings("softmax"), classes=3))
    3
    """
    if isinstance(model, ServingModel):
        return model.n_outputs if model.n_outputs > 1 else None
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


def pack_serving(small: ServingModel) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and the arrays of a serving model."""
    mixture, mixed = small.mixture, None
    arrays = {"slots": small.slots, "weights": small.weights, "bias": small.bias}
    if small.scales is not None:  # most are 1, those of categories
        wide = np.flatnonzero(small.scales != 1)
        arrays |= {"wide": wide.astype(small.slots.dtype), "scales": small.scales[wide]}
    if small.curves is not None:
        arrays["curves"] = small.curves.pack()
    if mixture is not None:
        arrays |= {"experts": mixture.weights, "mixers": mixture.mixers}
        if isinstance(mixture, LogisticMixture):
            mixed = ["logistic", str(mixture.clip), str(mixture.limit)]  # JSON has no infinity
        else:
            mixed = ["mean", str(mixture.low), str(mixture.high)]
    header = {
        "kind": "serving",
        "features": small.features,
        "dtype": small.weights.dtype.name,
        "lanes": int(small.bias.size),
        "link": small.link,
        "settings": dict(small.settings),
        "rounds": small.rounds,
        "mixed": mixed,
    }
    return header, arrays


def unpack_serving(file: ModelFile) -> ServingModel:
    """Return the serving model of a file."""
    header = file.header
    features, lanes, mixed = header["features"], header["lanes"], header["mixed"]
    if header["dtype"] not in ("float32", "float16") or header["link"] not in BY_NAME:
        raise damaged("the header has invalid values")
    count = file.shape("slots")[0]
    curves = unpack_curves(file)
    end = features if curves is None else features + 1 + curves.features
    slots = slots_in_order(file, count, features + 1, end)
    weights, bias = file.array("weights", header["dtype"], (count, lanes)), file.array("bias", np.float32, (lanes,))
    mixture = None if mixed is None else _unpack_mixture(file, lanes, mixed)
    scales = _unpack_scales(file, slots) if file.has("scales") else None
    content = header["link"], header["settings"], header["rounds"], mixture, scales, curves
    model = ServingModel(features, slots, weights, bias, *content)
    _ = model.link_function  # raises for an invalid loss
    return model


def _unpack_scales(file: ModelFile, slots: NDArray[Any]) -> NDArray[np.float32]:
    """Return the scales of slots, of which a file holds those other than 1."""
    count, scales = file.shape("wide")[0], np.ones(slots.size, np.float32)
    wide, given = file.array("wide", slots.dtype, (count,)), file.array("scales", np.float32, (count,))
    if (given < 0).any() or (wide < 0).any():
        raise damaged("there are negative scales")
    scales[wide] = given
    return scales


def _unpack_mixture(file: ModelFile, lanes: int, mixed: list[str]) -> LaneMixture:
    count, columns = file.shape("mixers")
    mixers = file.array("mixers", np.float64, (count, columns))
    weights = file.array("experts", np.float64, (columns - 1 + count,))
    rule, low, high = mixed[0], float(mixed[1]), float(mixed[2])
    if (weights < 0).any() or abs(weights.sum() - 1) > 1e-9:
        raise damaged("the weights of the mixture are not numbers from 0 that sum to 1")
    if rule == "logistic" and columns == lanes + 1 and low > 0 and high > 0:
        return LogisticMixture(weights, mixers, low, high)
    if rule == "mean" and columns > 1 and lanes % (columns - 1) == 0 and low <= high:
        return ClippedMean(weights, mixers, low, high, lanes // (columns - 1))
    raise damaged("the header has invalid values")
