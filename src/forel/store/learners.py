"""The complete state of a learner, so that a loaded learner continues with the same bits.

Only coordinates with a nonzero record are stored if that is smaller: most slots of a model with hashed features are
never used. A record is nonzero if any of its bits is set, so that −0 is stored, too.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data.features.curves import Curves
from forel.learner.learner import Learner
from forel.learner.state import State
from forel.store.files import ModelFile, Rows
from forel.store.header import damaged, settings_from_json, settings_to_json

__all__ = ["LEARNERS", "pack_dense", "pack_learner", "slot_dtype", "slots_in_order", "unpack_curves", "unpack_learner"]

LEARNERS = "linear", "mixture"


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
