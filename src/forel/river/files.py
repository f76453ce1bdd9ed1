"""River models in files: the content that is saved, and models from files, which can continue learning."""

from collections.abc import Hashable, Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from forel.data import Names, ReadOptions
from forel.data.features.hashing import hash_name
from forel.learner.learner import Learner
from forel.learner.settings import Settings
from forel.river.dict_learner import DictLearner, with_room_for_classes
from forel.river.models import CLASSIFICATION, REGRESSION, LinearClassifier, LinearRegressor
from forel.store.named_rows import slots_of_names, unpack_value
from forel.training.model import Model, as_model
from forel.training.statements import coverage_of, stored_coverage
from forel.validation import refuse

__all__ = ["model_of", "pack"]

MODELS: dict[str, Any] = {"LinearClassifier": LinearClassifier, "LinearRegressor": LinearRegressor}
UNSET = ("alpha", "beta", "l1", "rate")  # parameters that may be None, and then differ from the settings
PLAIN = (str, bool, int, float, type(None))


def pack(model: Any) -> Model:
    """Return what :func:`forel.save` writes of a river model; the caller excludes changes."""
    learner: DictLearner = model._learner
    saved = learner.narrow()
    estimator: dict[str, Any] = {
        "class": type(model).__name__,
        "parameters": {name: getattr(model, name) for name in UNSET},
        "classes": [[pack_value("classes", label), code] for label, code in learner.codes.items()],
        "class_starts": [[rounds, weight] for rounds, weight in learner.class_starts],
        "y_name": model._y_name if isinstance(model._y_name, str) else None,
    }
    extra = stored_coverage(vars(model).get("_coverage"))
    if learner.options is not None:
        reading, names = {**learner.options.stored}, [str(label) for label in learner.codes]
        if len(names) > 2 and len(set(names)) == len(names):  # what forel.predict writes
            reading["classes"] = names
        return Model(saved, {"reading": reading, **extra}, None, estimator)
    words, others = _pack_names(learner.names, saved.features)
    return Model(saved, {"reading": {"named": True}, **extra}, words, {**estimator, "other_names": others})


def _pack_names(names: dict[Hashable, int], features: int) -> tuple[Names, list[Any]]:
    """Return names that are text by slot, and a list of slots and names for all others."""
    words, others = {}, []
    for name, slot in names.items():
        try:
            words[slot] = name.encode() if type(name) is str else b""
        except UnicodeEncodeError:
            words[slot] = b""
        if words[slot] == b"":
            others.append([slot, pack_value("names", name)])
    table, slots = Names((features - 1).bit_length()), np.array(list(words), np.int64)
    if words:
        hashes = np.array([hash_name(word) for word in words.values()], np.uint64)
        table.add(slots, hashes, lambda k: words[int(slots[k])])
    return table, others


def pack_value(what: str, value: Any) -> Any:
    """Return a class or a name as JSON; raise for values that JSON would not restore.

    >>> pack_value("names", ("a", 1))
    {'tuple': ['a', 1]}
    """
    plain = value.item() if isinstance(value, np.generic) else value
    if type(plain) is tuple:
        return {"tuple": [pack_value(what, each) for each in plain]}
    if type(plain) not in PLAIN or (isinstance(plain, float) and not np.isfinite(plain)):
        raise refuse(what, value, "text, finite numbers, None or tuples of these, which a file can hold")
    return plain


def model_of(source: Any) -> LinearClassifier | LinearRegressor:
    """Return the river model that was saved, or a river model of one trained from files; both can continue learning.

    ``source`` is a path, or the result of :func:`forel.load` or :func:`forel.train`.

    A model trained from files reads dicts as it reads files: names are hashed to the same slots, and strings are
    categories. Its classes are False and True.

    >>> import pathlib, tempfile, forel
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.forel"
    >>> model = LinearClassifier(alpha=1.0)
    >>> model.learn_one({"offer": 1, "viagra": 1}, "spam")
    >>> forel.save(path, model)
    >>> model_of(path).weights == model.weights
    True
    """
    stored = as_model(source)
    learner, known = stored.learner, stored.estimator or {}
    one = isinstance(learner, Learner) and learner.mixture is None and learner.settings.n_settings == 1
    if not one and not (isinstance(learner, Learner) and learner.mixture is not None and learner.share is None):
        raise refuse("stored", learner, "one linear model, or a mixture without share; save one of others by only()")
    learner, reading = learner.without_full_filters(), stored.extra.get("reading", {})
    if "class" not in known:
        known = _from_files(learner, reading)
    if known["class"] not in MODELS:
        raise refuse("stored", known["class"], "a river model; forel.sklearn.estimator_of returns estimators")
    options = None if reading.get("named") else replace(stored.read_options, classes=None)
    settings = learner.settings
    parameters = {f.name: getattr(settings, f.name) for f in fields(Settings) if "filters" not in f.name}
    parameters.update(known.get("parameters") or ({} if one else dict.fromkeys(UNSET)))
    bits = None if options is None else options.bits
    model: LinearClassifier | LinearRegressor = MODELS[known["class"]](
        **parameters, bits=bits, dtype=learner.dtype.name, certified=learner.certified
    )
    if settings not in (made := model._learner.learner.settings, replace(made, filters=())):
        raise refuse("stored", settings.names, "one setting, or the default mixture")
    if isinstance(model, LinearRegressor) and (coverage := coverage_of(stored.extra)) is not None:
        vars(model).update(_coverage=coverage, interval=coverage.level)
    model._y_name = known.get("y_name")
    model._learner.__setstate__(
        {
            "options": options,
            "names": slots_of_names(stored.estimator or {}, stored.names) if options is None else {},
            "codes": {unpack_value(label): float(code) for label, code in known["classes"]},
            "class_starts": tuple((int(rounds), float(weight)) for rounds, weight in known["class_starts"]),
            "learner": with_room_for_classes(learner.copy()),
        }
    )
    return model


def _from_files(learner: Learner, reading: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a river model for a model trained from files."""
    settings, loss = learner.settings, learner.settings.loss_function.name
    if learner.classes is not None or loss not in (*CLASSIFICATION, *REGRESSION):
        raise refuse("stored", settings.loss, "one model of two classes or of numbers")
    if reading.get("bits") is None:
        raise ValueError("stored: got a learner by itself, expected a model trained from hashed names")
    if ReadOptions.from_json(reading).transform is not None:
        raise ValueError("stored: got a model trained with interactions, expected one without, whose rows are dicts")
    if loss in REGRESSION:
        return {"class": "LinearRegressor", "classes": [], "class_starts": []}
    low = -1.0 if settings.signed else 0.0
    return {"class": "LinearClassifier", "classes": [[False, low], [True, 1.0]], "class_starts": [[0, 0.0], [0, 0.0]]}
