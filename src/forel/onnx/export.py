"""Linear models over named columns as graphs of the standard operators of ``ai.onnx`` and ``ai.onnx.ml``."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from forel.data.features.hashing import slot
from forel.learner.keyed import KeyedModels
from forel.onnx.graph import Graph
from forel.store import ServingModel, serving_model
from forel.store.serving import ClippedMean
from forel.training.model import Model, as_model
from forel.validation import refuse

if TYPE_CHECKING:
    import onnx

__all__ = ["to_onnx"]

UNSUPPORTED = ("text", "date", "log", "interactions", "constant")  # options of reading
MORE_BITS = "one name for each slot; train with more bits"
LINKS = ("identity", "sign", "probability", "exponential", "softmax", "rest")


def to_onnx(model: Any) -> "onnx.ModelProto":
    """Return a model as an ONNX graph.

    A model trained from named columns has an input for each, of shape (rows, 1): numbers, of which NaN is missing, or
    strings, of which "" is missing. An estimator has one input ``X``, or those of its frame if that has words. The
    output ``prediction`` is the probability of the second of two classes, a mean or a margin; with several classes
    there are ``probabilities`` and ``label``.

    The weights are fixed, and those of the best setting of a mixture, as in a file for serving. Values are clipped to
    the largest ones of training where the learner clips them, and predictions to the range of labels where the mixture
    clips them.

    Parameters
    ----------
    model : a path, a result of training, a stored model or an estimator; models with categories need ``names=True``

    >>> import forel
    >>> trained = forel.train([{"city": "Rome", "age": 31, "y": 1}] * 9, label="y", bits=10, names=True, loss="squared")
    >>> [(one.name, one.type.tensor_type.elem_type) for one in to_onnx(trained).graph.input]
    [('age', 1), ('city', 8)]
    """
    stored = as_model(model)
    if isinstance(stored.learner, KeyedModels):
        raise refuse("model", f"models by {stored.learner.by}", "that of one key: to_onnx(stored.of_key(...))")
    small = stored.learner if isinstance(stored.learner, ServingModel) else serving_model(stored.learner)
    if small.curves is not None:
        expected = "plain features: train with features='linear' (--features linear), or serve with forel"
        raise refuse("model", "curves and pairs of columns", expected)
    if small.bias.size > small.n_outputs:
        raise refuse("model", "a file with the mixture", "one model: convert the learner that it was made from")
    if small.link not in LINKS:
        raise refuse("model", f"predictions by {small.link!r}", f"one of {', '.join(LINKS)}")
    graph = Graph(small.n_outputs)
    if stored.estimator is not None and "reading" not in stored.extra:
        if "columns" in stored.estimator:
            _add_frame(graph, stored.estimator["columns"], small)
        else:
            every = np.arange(small.features)
            graph.add_matrix("X", small.weights_at(every), small.scales_at(every))
        names = (stored.estimator.get("classes") or {}).get("values")
    else:
        _add_columns(graph, stored, small)
        names = stored.classes
    if small.n_outputs == 1:
        names = None
    limits = (small.mixture.low, small.mixture.high) if isinstance(small.mixture, ClippedMean) else None
    classes = None if names is None else [str(name) for name in names]
    return graph.finish(small.bias, limits, small.link_function, classes)


def _add_frame(graph: Graph, columns: Mapping[str, Any], small: ServingModel) -> None:
    """Add the columns of an estimator that was fitted to a frame with words."""
    for name, kind in columns["kinds"]:
        features = [(k, word) for k, (column, word) in enumerate(columns["features"]) if column == name]
        places = np.array([k for k, _ in features], np.int64)
        weights = small.weights_at(places)
        if kind == "number":
            graph.add_number(name, weights, small.scales_at(places))
        else:
            graph.add_category(name, [word for _, word in features], weights)


def _add_columns(graph: Graph, stored: Model, small: ServingModel) -> None:
    reading = stored.extra.get("reading", {})
    schema: Mapping[str, Mapping[str, Any]] = stored.extra.get("schema") or {}
    for name in UNSUPPORTED:
        if reading.get(name):
            expected = (
                "columns of numbers and categories; train on columns that have these features, or serve with forel"
            )
            raise refuse("model", f"reading option {name}={reading[name]!r}", expected)
    if not schema:
        raise refuse("model", "rows without named columns", "a model trained from a table, CSV or dicts")
    bits = stored.read_options.bits
    _check_columns([column for column, one in schema.items() if one["kind"] == "number"], bits)
    for column, one in schema.items():
        if one["kind"] == "number":
            place = slot(column, bits=bits)
            _check_shared(column, stored, place)
            graph.add_number(column, small.weights_at(np.array([place])), small.scales_at(np.array([place])))
        elif one["kind"] == "category":
            graph.add_category(column, *_categories(column, stored, small, bits))
        else:
            raise refuse(f"column {column}", one["kind"], "a column of numbers or of categories")


def _categories(column: str, stored: Model, small: ServingModel, bits: int) -> tuple[list[str], NDArray[np.float32]]:
    """Return the categories of a column with weights that are not 0, and these weights."""
    if stored.names is None:
        raise refuse(f"column {column}", "categories without names", "a model trained with names (--names)")
    prefix = f"{column}^"
    named = {stored.names[k]: k for k in stored.names if stored.names[k].startswith(prefix)}
    for name, k in named.items():
        _check_shared(name, stored, k)
    known = sorted(name for name, k in named.items() if small.weights_at(np.array([k])).any())
    weights = small.weights_at(np.array([named[name] for name in known], np.int64))
    return [name.removeprefix(prefix) for name in known], weights


def _check_columns(columns: Sequence[str], bits: int) -> None:
    """Refuse columns of numbers that share a slot, whose sum the model clips."""
    owners: dict[int, str] = {}
    for column in columns:
        other = owners.setdefault(slot(column, bits=bits), column)
        if other != column:
            raise refuse("model", f"columns {other} and {column} that share the slot of a feature", MORE_BITS)


def _check_shared(name: str, stored: Model, place: int) -> None:
    """Refuse a slot of several names, of which only the first is known."""
    if stored.names is not None and stored.names.is_shared(place):
        raise refuse("model", f"names that share the slot of {name!r}", MORE_BITS)
