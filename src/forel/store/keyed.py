"""Files of models by key: the arrays of all models, one after the other, and how many rows of each are a model's."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.learner.keyed import CompactLearner, KeyedModels
from forel.learner.learner import Learner
from forel.store.files import ModelFile
from forel.store.header import damaged
from forel.store.learners import pack_dense, unpack_learner

__all__ = ["pack_keyed", "unpack_keyed"]

DTYPES = {"F32": np.float32, "F64": np.float64, "I32": np.int32, "I64": np.int64}  # by their names in files
PREFIX, SLOTS, SIZES = "keyed.", "slots_of_features", "sizes"


def pack_keyed(models: KeyedModels) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and the arrays of the models of all keys, and of that of all rows."""
    compact = [*(models.models[key] for key in models), *([models.models[None]] if None in models.models else [])]
    packed = [(pack_dense(one.trimmed()), one.slots) for one in compact]
    each = [{**arrays, SLOTS: slots} for (_, arrays), slots in packed]
    headers = [header for (header, _), _ in packed]
    header = {
        **headers[0],
        "kind": models.kind,
        "features": models.features,
        "learner": headers[0]["kind"],
        "by": models.by,
        "keys": models.keys,
        "fallback": None in models.models,
        "share": models.untrained.share,
        "counts": [[one["rounds"], one["weight"]] for one in headers],
        "rounds": models.rounds,
    }
    names = sorted(each[0])
    arrays = {PREFIX + name: np.concatenate([own[name] for own in each]) for name in names}
    return header, {**arrays, SIZES: np.array([[len(own[name]) for name in names] for own in each], np.int64)}


def unpack_keyed(file: ModelFile, loss: Any = None) -> KeyedModels:
    """Return the models of a file."""
    header, names = file.header, [name for name in file.checks if name.startswith(PREFIX)]
    keys = [*header["keys"], *([None] if header["fallback"] else [])]
    if len(set(keys)) < len(keys) or not all(isinstance(key, str) for key in header["keys"]):
        raise damaged("the header has invalid keys")
    features = header["features"]
    sizes = file.array(SIZES, np.int64, (len(keys), len(names)))
    if (sizes < 0).any() or [file.shape(name)[0] for name in names] != sizes.sum(axis=0).tolist():
        raise damaged("the sizes of arrays do not match the header")
    arrays = [np.split(_read(file, name), np.cumsum(own)[:-1]) for name, own in zip(names, sizes.T, strict=True)]
    models: dict[str | None, CompactLearner] = {}
    for key, (rounds, weight), *parts in zip(keys, header["counts"], *arrays, strict=True):
        own = {name.removeprefix(PREFIX): part for name, part in zip(names, parts, strict=True)}
        slots = own.pop(SLOTS)
        if slots.size and (slots.min() < 0 or slots.max() >= features or np.unique(slots).size < slots.size):
            raise damaged("the slots of features are not different ones, or exceed the number of features")
        changed = {"kind": header["learner"], "features": slots.size + 1, "rounds": rounds, "weight": weight}
        models[key] = CompactLearner(unpack_learner(_OneModel({**header, **changed}, own, {}), loss), slots)
    one = models[keys[0]].learner
    untrained = Learner(1, one.settings, one.classes, one.dtype, one.certified, one.share)
    return KeyedModels(header["by"], features, untrained, models=models)


def _read(file: ModelFile, name: str) -> NDArray[Any]:
    """Return an array of any type; each model checks its part."""
    kind = file.handle.get_slice(name).get_dtype()  # also of an empty array
    return file.array(name, DTYPES[kind], file.shape(name))


class _OneModel(ModelFile):
    """The arrays of one model, with the interface of an open file."""

    def has(self, name: str) -> bool:
        return name in self.handle

    def shape(self, name: str) -> tuple[int, ...]:
        shape: tuple[int, ...] = self.handle[name].shape
        return shape

    def chunks(self, name: str, dtype: Any, shape: tuple[int, ...]) -> Any:
        if self.shape(name) != shape or self.handle[name].dtype != dtype:
            raise damaged(f"{name!r} has another type or shape than the header")
        yield 0, self.handle[name]
