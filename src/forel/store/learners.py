"""The complete state of a learner, so that a loaded learner continues with the same bits.

Only coordinates with a nonzero record are stored if that is smaller: most slots of a model with hashed features are
never used. A record is nonzero if any of its bits is set, so that −0 is stored, too.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.learner.layout import SUMS
from forel.learner.learner import Learner
from forel.learner.mixture import Mixture
from forel.learner.state import State
from forel.store.container import CHUNK_BYTES, ChunkedArray
from forel.store.files import ModelFile
from forel.store.header import damaged, header_int, settings_from_json, settings_to_json
from forel.validation import all_finite

__all__ = ["LEARNERS", "pack_dense", "pack_learner", "slot_dtype", "slots_in_order", "unpack_learner"]

LEARNERS = "linear", "mixture"
BLOCK = 1 << 22  # number of records that are checked at a time


def slot_dtype(slots: int) -> Any:
    """Return the integer type of slots in files, by the number of slots."""
    return np.uint32 if slots <= 1 << 32 else np.int64


def pack_learner(learner: Learner) -> tuple[dict[str, Any], dict[str, NDArray[Any] | ChunkedArray]]:
    """Return the header and the arrays of a learner, tables of records in chunks."""
    lanes, slots = learner.state, learner.features + 1
    tables, touched = lanes.tables, lanes.nonzero_rows()
    row_bytes = sum(table.nbytes // slots for table in tables.values())
    sparse = touched.size * (row_bytes + np.dtype(slot_dtype(slots)).itemsize) < slots * row_bytes
    header, arrays = _packed(learner)
    chosen = touched if sparse else None
    for name, table in tables.items():
        count = slots if chosen is None else chosen.size
        arrays[name] = ChunkedArray(table.dtype, (count, *table.shape[1:]), partial(_chunks, name, table, chosen))
    if chosen is not None:
        arrays["slots"] = chosen.astype(slot_dtype(slots))
    return header, arrays


def _chunks(name: str, table: NDArray[Any], chosen: NDArray[np.int64] | None) -> Iterator[NDArray[Any]]:
    """Yield the rows of a table, or the chosen ones; raise for numbers that are not finite."""
    step = max(1, CHUNK_BYTES * len(table) // max(table.nbytes, 1))
    for start in range(0, len(table) if chosen is None else chosen.size, step):
        if chosen is None:
            rows = table[start : start + step]
        elif isinstance(table, np.ndarray) and table.flags.c_contiguous:
            rows = table.take(chosen[start : start + step], axis=0)
        else:
            rows = table[chosen[start : start + step]]  # take would copy the whole table first
        _check_finite(name, rows)
        yield rows


def pack_dense(learner: Learner) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and the arrays of a learner, with the records of all features."""
    header, arrays = _packed(learner)
    tables = learner.state.tables
    for name, table in tables.items():
        for start in range(0, len(table), BLOCK):
            _check_finite(name, table[start : start + BLOCK])
    return header, {**arrays, **tables}


def _check_finite(name: str, array: NDArray[Any]) -> None:
    if not all_finite(array):
        raise ValueError(f"model: got {name} with NaN or infinity, expected finite numbers; nothing was written")


def _packed(learner: Learner) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the header and the arrays of a learner, without tables of records."""
    lanes = learner.state
    arrays: dict[str, NDArray[Any]] = {"totals": lanes.sums.ravel()}
    if lanes.certified:
        arrays["dual"] = lanes.dual_sums.ravel()
    arrays |= {} if learner.mixture is None else learner.mixture.pack()
    for name, array in arrays.items():
        _check_finite(name, array)
    header = {
        "kind": learner.kind,
        "settings": settings_to_json(learner.settings),
        "features": learner.features,
        "dtype": learner.dtype.name,
        "classes": learner.classes,
        "certified": bool(learner.certified),
        "rounds": learner.rounds,
        "weight": learner.total_importance,
        "gradient_lanes": list(lanes.layout.gradient_lanes),
        **({} if learner.mixture is None else {"share": learner.share}),
    }
    return header, arrays


def unpack_learner(file: ModelFile, loss: Any = None) -> Learner:
    """Return the learner of a file; slots that were never touched use no memory."""
    header = file.header
    settings, classes = settings_from_json(header["settings"], loss, header), header["classes"]
    features, rounds = header_int("features", header["features"], low=1), header_int("rounds", header["rounds"])
    weight = header["weight"]
    count, slots = settings.n_settings * (1 if classes is None else header_int("classes", classes, low=2)), features + 1
    valid = isinstance(weight, int | float) and np.isfinite(weight) and weight >= 0 and rounds < 1 << 62
    if type(header["certified"]) is not bool or not isinstance(header["dtype"], str) or not valid:
        raise damaged("the header has invalid values")
    # Sizes are checked before memory is allocated.
    totals = file.array("totals", np.float64, (SUMS * count,))
    stored = file.shape("slots")[0] if file.has("slots") else slots
    if file.shape("state")[0] != stored:
        raise damaged("the number of records does not match the header")
    mixed = header["kind"] == "mixture"
    names = Mixture.array_names(settings) if mixed else ()
    own_arrays = {name: file.array(name, np.float64, file.shape(name)) for name in names}
    share = header["share"] if mixed else None
    learner = Learner(features, settings, classes, header["dtype"], header["certified"], share, mixed)
    lanes = learner.state
    if header["gradient_lanes"] != list(lanes.layout.gradient_lanes):
        raise damaged(f"gradients of the lanes {header['gradient_lanes']} are not those of the settings")
    dual = file.array("dual", np.float64, (lanes.dual_sums.size,)) if lanes.certified else np.zeros(0)
    _read_tables(file, lanes, stored, rounds)
    for name, array in {"totals": totals, "dual": dual, **own_arrays}.items():
        _check_values(name, array, rounds)
    lanes.sums[:], lanes.rounds, lanes.total_importance = totals.reshape(lanes.sums.shape), rounds, float(weight)
    lanes.dual_sums[:] = dual.reshape(lanes.dual_sums.shape)
    try:
        if learner.mixture is not None:
            learner.mixture.unpack(own_arrays)
    except ValueError as error:
        raise damaged(str(error)) from error
    return learner


def _read_tables(file: ModelFile, lanes: State, stored: int, rounds: int) -> None:
    """Read the records of all slots, or of those that are stored, into the tables of a new learner."""
    slots = lanes.features + 1
    chosen: Any = slots_in_order(file, stored, slots, slots) if file.has("slots") else None
    for name, table in lanes.tables.items():
        for start, chunk in file.chunks(name, table.dtype, (stored, *table.shape[1:])):
            _check_values(name, chunk, rounds)
            stop = start + len(chunk)
            table[slice(start, stop) if chosen is None else chosen[start:stop]] = chunk


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


def _check_values(name: str, values: NDArray[Any], rounds: int) -> None:
    """Raise for invalid values: kernels do not check them."""
    valid = (values.min() >= 0 and values.max() <= rounds) if name == "last" else all_finite(values)
    if not valid:
        raise damaged(f"{name!r} holds invalid values")
