"""The complete state of a learner, or of those of all keys, so that a loaded learner continues with the same bits.

Only coordinates with a nonzero record are stored if that is smaller: most slots of a model with hashed features are
never used. A record is nonzero if any of its bits is set, so that −0 is stored, too.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data.features.curves import Curves
from forel.learner.keyed import CompactLearner, KeyedModels
from forel.learner.learner import Learner
from forel.learner.state import State
from forel.store.files import ModelFile, Rows
from forel.store.header import damaged, settings_from_json, settings_to_json

__all__ = [
    "LEARNERS", "pack_keyed", "pack_learner", "slot_dtype", "slots_in_order", "unpack_curves", "unpack_keyed",
    "unpack_learner",
]  # fmt: skip

LEARNERS = "linear", "mixture"
DTYPES = {"F32": np.float32, "F64": np.float64, "I32": np.int32, "I64": np.int64}  # by their names in files
PREFIX, SLOTS, SIZES = "keyed.", "slots_of_features", "sizes"


def slot_dtype(slots: int) -> Any:
    """Return the integer type of slots in files, by the number of slots."""
    return np.uint32 if slots <= 1 << 32 else np.int64


def pack_learner(learner: Learner) -> tuple[dict[str, Any], dict[str, NDArray[Any] | Rows]]:
    """Return the header and the arrays of a learner, with the records of used coordinates if these are smaller."""
    (header, arrays), slots = pack_dense(learner), learner.features + 1
    tables, touched = learner.state.tables, learner.state.nonzero_rows()
    row_bytes = sum(table.nbytes // slots for table in tables.values())
    if touched.size * (row_bytes + np.dtype(slot_dtype(slots)).itemsize) >= slots * row_bytes:
        return header, {**arrays, **{name: Rows(table) for name, table in tables.items()}}
    rows = {name: Rows(table, touched) for name, table in tables.items()}
    return header, {**arrays, **rows, "slots": touched.astype(slot_dtype(slots))}


def pack_dense(learner: Learner) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and the arrays of a learner, with the records of all coordinates."""
    state, mixture = learner.state, learner.mixture
    header = {
        "kind": learner.kind,
        "settings": settings_to_json(learner.settings),
        "features": learner.features,
        "dtype": learner.dtype.name,
        "classes": learner.classes,
        "certified": bool(learner.certified),
        "rounds": learner.rounds,
        "weight": learner.total_importance,
        "gradient_lanes": list(state.layout.gradient_lanes),
        **({} if mixture is None else {"share": learner.share}),
    }
    return header, {"totals": state.totals, **({} if mixture is None else mixture.pack()), **state.tables}


def unpack_learner(file: ModelFile, loss: Any = None) -> Learner:
    """Return the learner of a file; slots that were never touched use no memory."""
    header = file.header
    settings, classes, features = settings_from_json(header["settings"], loss), header["classes"], header["features"]
    if not header["weight"] >= 0:
        raise damaged("the header has a negative weight")
    stored, lanes = file.shape("slots")[0] if file.has("slots") else features + 1, settings.n_settings * (classes or 1)
    if file.shape("state")[::2] != (stored, lanes):  # before memory is allocated
        raise damaged("the numbers of records and models do not match the header")
    share, mixed = header.get("share"), header["kind"] == "mixture"
    learner = Learner(
        features, settings, classes, header["dtype"], header["certified"], share, mixed, unpack_curves(file)
    )
    state, mixture = learner.state, learner.mixture
    if header["gradient_lanes"] != list(state.layout.gradient_lanes):
        raise damaged(f"gradients of the lanes {header['gradient_lanes']} are not those of the settings")
    state.rounds, state.total_importance = header["rounds"], float(header["weight"])
    state.totals[:] = file.array("totals", np.float64, state.totals.shape)
    _read_tables(file, state, stored)
    if mixture is not None:
        mixture.unpack({name: file.array(name, np.float64, file.shape(name)) for name in mixture.pack()})
    return learner


def unpack_curves(file: ModelFile) -> Curves | None:
    """Return the curves of a file; None if it has none."""
    return Curves.unpack(file.array("curves", np.float64, file.shape("curves"))) if file.has("curves") else None


def _read_tables(file: ModelFile, state: State, stored: int) -> None:
    """Read the records of all coordinates, or of those that are stored, into the tables of a new learner."""
    count = state.features + 1
    chosen = slots_in_order(file, stored, count, count) if file.has("slots") else None
    for name, table in state.tables.items():
        for start, chunk in file.chunks(name, table.dtype, (stored, *table.shape[1:])):
            if name == "last" and not (chunk.min() >= 0 and chunk.max() <= state.rounds):
                raise damaged("'last' holds invalid values")
            rows = slice(start, start + len(chunk))
            table[rows if chosen is None else chosen[rows]] = chunk


def slots_in_order(file: ModelFile, count: int, slots: int, end: int) -> NDArray[Any]:
    """Return the slots of a file, which must be increasing and below ``end``.

    Parameters
    ----------
    file : the open file
    count : number of slots in it
    slots : number of slots of the model, which determines the integer type
    end : upper bound of the slots
    """
    chosen = file.array("slots", slot_dtype(slots), (count,))
    if count and (int(chosen[-1]) >= end or int(chosen[0]) < 0 or not (chosen[1:] > chosen[:-1]).all()):
        raise damaged("the slots are not increasing, or exceed the number of features")
    return chosen


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
