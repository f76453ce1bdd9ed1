"""The content of a river model's file: its state as a linear model, its names, classes and parameters."""

from collections.abc import Hashable
from typing import Any

import numpy as np

from forel.data import Names
from forel.data.features.hashing import hash_name
from forel.river.dict_learner import DictLearner
from forel.training.model import Model
from forel.training.statements import stored_coverage
from forel.validation import refuse

__all__ = ["UNSET", "pack"]

UNSET = ("alpha", "beta", "l1", "rate")  # parameters that may be None, and then differ from the settings
PLAIN = (str, bool, int, float, type(None))


def pack(model: Any) -> Model:
    """Return what :func:`forel.save` writes of a river model; the caller excludes changes."""
    learner: DictLearner = model._learner
    learner.make_room()
    lanes, experts = learner.model.joined(len(learner.codes)), learner.model.experts
    linear = learner.model.linear(lanes)
    saved = linear if experts is None else experts.learner(lanes)
    estimator: dict[str, Any] = {
        "class": type(model).__name__,
        "parameters": {name: getattr(model, name) for name in UNSET},
        "classes": [[pack_value("classes", label), code] for label, code in learner.codes.items()],
        "class_starts": [[rounds, weight] for rounds, weight in learner.class_starts],
        "y_name": model._y_name if isinstance(model._y_name, str) else None,
    }
    extra = stored_coverage(vars(model).get("_coverage"))
    if learner.hashing is not None:
        reading: dict[str, Any] = {"bits": learner.hashing.bits, "kinds": dict(learner.hashing.kinds)}
        names = [str(label) for label in learner.codes]
        if len(names) > 2 and len(set(names)) == len(names):  # what forel.predict writes
            reading["classes"] = names
        return Model(saved, {"reading": reading, **extra}, None, estimator)
    words, others = _pack_names(learner.names, lanes.features)
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
