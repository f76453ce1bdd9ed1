"""Many models, one for each key: files with the arrays of all models one after the other, and margins of blocks."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from forel.data import Block, Malformed
from forel.learner.keyed import ALL, NO_MODEL, CompactLearner, KeyedLearner, KeyedModels, LearnerOptions, key_text
from forel.learner.learner import Learner
from forel.learner.rows import CoalescedRows
from forel.store.files import ModelFile
from forel.store.header import damaged
from forel.store.learners import pack_dense, unpack_learner

__all__ = ["block_margins", "pack_keyed", "unpack_keyed"]

DTYPES = {"F32": np.float32, "F64": np.float64, "I64": np.int64}  # by their names in files
SLOTS, ROUNDS, WEIGHTS, SIZES = "keyed.slots", "keyed.rounds", "keyed.weights", "keyed.sizes"


def pack_keyed(models: KeyedModels) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and the arrays of the models of all keys, and of that of all rows."""
    learners = models.learner.models
    codes = [*range(len(models)), *([ALL] if ALL in learners else [])]
    compact = [learners[code].sorted() for code in codes]
    packed = [pack_dense(one.learner) for one in compact]
    names = list(packed[0][1])
    arrays = {name: np.concatenate([own[name] for _, own in packed]) for name in names}
    slots = [one.slots for one in compact]
    sizes = [[one.size, *(len(own[name]) for name in names)] for one, (_, own) in zip(slots, packed, strict=True)]
    header = {
        **packed[0][0],
        "kind": models.kind,
        "features": models.features,
        "learner": compact[0].learner.kind,
        "by": models.by,
        "keys": models.keys,
        "parts": names,
        "fallback": ALL in learners,
        "share": models.share,
        "rounds": models.rounds,
        "weight": float(sum(one.learner.total_importance for one in compact[: len(models)])),
    }
    return header, {
        **arrays,
        SLOTS: np.concatenate(slots).astype(np.int32),
        ROUNDS: np.array([one.learner.rounds for one in compact], np.int64),
        WEIGHTS: np.array([one.learner.total_importance for one in compact], np.float64),
        SIZES: np.array(sizes, np.int64),
    }


def unpack_keyed(file: ModelFile, loss: Any = None) -> KeyedModels:
    """Return the models of a file."""
    header = file.header
    keys, names, by = header["keys"], header["parts"], header["by"]
    lists = isinstance(keys, list) and isinstance(names, list) and keys
    if not lists or not isinstance(by, str) or not all(isinstance(key, str) for key in (*keys, *names)):
        raise damaged("the header has invalid values")
    if len(set(keys)) < len(keys) or type(header["fallback"]) is not bool or len(set(names)) < len(names):
        raise damaged("the header has invalid values")
    count = len(keys) + header["fallback"]
    sizes = file.array(SIZES, np.int64, (count, 1 + len(names)))
    if (sizes < 0).any() or any(file.shape(name)[0] != sizes[:, k].sum() for k, name in enumerate([SLOTS, *names])):
        raise damaged("the sizes of arrays do not match the header")
    slots = file.array(SLOTS, np.int32, file.shape(SLOTS))
    rounds, weights = file.array(ROUNDS, np.int64, (count,)), file.array(WEIGHTS, np.float64, (count,))
    arrays = {name: _read(file, name) for name in names}
    ends = np.cumsum(sizes, axis=0)
    models: dict[int, CompactLearner] = {}
    for k, code in enumerate([*range(len(keys)), *([ALL] if header["fallback"] else [])]):
        first, last = (ends[k] - sizes[k]).tolist(), ends[k].tolist()
        own = slots[first[0] : last[0]]
        if own.size and (own[0] < 0 or own[-1] >= header["features"] or not (own[1:] > own[:-1]).all()):
            raise damaged("the slots are not increasing, or exceed the number of features")
        parts = {name: arrays[name][first[j] : last[j]] for j, name in enumerate(names, start=1)}
        changed = {"kind": header["learner"], "features": max(own.size, 1), "rounds": int(rounds[k])}
        part = _Part({**header, **changed, "weight": float(weights[k])}, parts)
        learner = unpack_learner(part, loss)  # type: ignore[arg-type]
        if part.used != set(names):
            raise damaged("there are unexpected arrays")
        models[code] = CompactLearner(learner, own)
    return KeyedModels(by, keys, KeyedLearner(_options(header["features"], models[0].learner), models))


def _options(features: Any, learner: Learner) -> LearnerOptions:
    if type(features) is not int:
        raise damaged("the header has invalid values")
    known = learner.classes, learner.dtype, learner.certified, learner.share
    return LearnerOptions(features, learner.settings, *known)


def _read(file: ModelFile, name: str) -> NDArray[Any]:
    """Return an array of any type; each model checks its part."""
    shape, kind = file.shape(name), file.handle.get_slice(name).get_dtype()  # also of an empty array
    if kind not in DTYPES:
        raise damaged(f"{name!r} has another type than the header")
    return file.array(name, DTYPES[kind], shape)


@dataclass(frozen=True)
class _Part:
    """The arrays of one model, with the interface of an open file."""

    header: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    used: set[str] = field(default_factory=set)

    def has(self, name: str) -> bool:
        return name in self.arrays

    def shape(self, name: str) -> tuple[int, ...]:
        if name not in self.arrays:
            raise damaged(f"there is no array {name!r}")
        self.used.add(name)
        return self.arrays[name].shape

    def array(self, name: str, dtype: DTypeLike, shape: tuple[int, ...]) -> NDArray[Any]:
        return np.concatenate([chunk for _, chunk in self.chunks(name, dtype, shape)])

    def chunks(self, name: str, dtype: DTypeLike, shape: tuple[int, ...]) -> Iterator[tuple[int, NDArray[Any]]]:
        if self.shape(name) != shape or self.arrays[name].dtype != dtype:
            raise damaged(f"{name!r} has another type or shape than the header")
        yield 0, self.arrays[name]


def block_margins(model: Any, block: Block) -> NDArray[Any]:
    """Return the margins of the rows of a block, by the model, or by that of the key of each row."""
    if not isinstance(model, KeyedModels):
        margins: NDArray[Any] = model.margins(CoalescedRows(*block.rows))
        return margins
    assert block.slices is not None
    unseen = np.flatnonzero(model.codes(block.slices[0]) == NO_MODEL)
    if unseen.size:
        row = int(unseen[0])
        line = block.line + row if block.lines is None else int(block.lines[row])
        expected = f"one of the {len(model)} keys that there are models of; --fallback trains one of all rows"
        raise Malformed(block.file, line, model.by, repr(key_text(block.slices[0][row])), expected)
    return model.margins(block.slices[0], CoalescedRows(*block.rows))
