"""The whole state of a learner, so that learning goes on as if it had never stopped.

Of the records of all coordinates only those that differ from zero are kept where that is smaller: a model of many
hashed features has mostly never seen a slot. Bits count, not values: −0 is kept.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.learner.lanes import SUMS, Lanes
from forel.learner.linear import Linear
from forel.learner.mixture import Mixture
from forel.learner.protocol import Learner
from forel.store.files import File, Unreadable
from forel.store.header import count_of, pack_settings, unpack_settings
from forel.validation import all_finite

__all__ = ["LEARNERS", "pack", "slot_type", "touched", "unpack"]

LEARNERS: dict[str, type[Linear | Mixture]] = {one.kind: one for one in (Linear, Mixture)}
BLOCK = 1 << 22  # bytes of records that are looked at at a time
BESIDE = ("reach", "last", "mark")


def slot_type(slots: int) -> Any:
    """Return the smallest type of number that every slot has room in."""
    return np.uint32 if slots <= 1 << 32 else np.int64


def touched(lanes: Lanes) -> NDArray[np.int64]:
    """Return the coordinates with anything in their record, or beside it."""
    slots = lanes.features + 1
    tables = [_bits(array.reshape(slots, -1)) for array in (lanes.flat, *_beside(lanes, slots).values())]
    step = max(1, BLOCK // sum(table.itemsize * table.shape[1] for table in tables))
    found = []
    for start in range(0, slots, step):
        parts = [table[start : start + step] for table in tables]
        if not any(part.any() for part in parts):
            continue
        used = np.zeros(len(parts[0]), bool)
        for part in parts:
            for column in part.T:  # a few, one after the other: many times as fast as any(axis=1)
                used |= column != 0
        found.append(np.flatnonzero(used) + start)
    return np.concatenate(found) if found else np.empty(0, np.int64)


def _bits(table: NDArray[Any]) -> NDArray[Any]:
    """Return numbers as the widest whole numbers that fit into a row, which are zero only where every bit is."""
    return table.view(np.uint64 if table.itemsize * table.shape[1] % 8 == 0 else np.uint32)


def _beside(lanes: Lanes, slots: int) -> dict[str, NDArray[Any]]:
    """Return what some rules keep for every coordinate beside its record; others keep one number that says nothing."""
    return {name: getattr(lanes, name) for name in BESIDE if getattr(lanes, name).size >= slots > 1}


def pack(learner: Learner) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and the arrays of a learner."""
    model = learner.linear
    lanes, slots = model._lanes, model.features + 1
    state, beside = lanes.state, _beside(lanes, slots)
    chosen = touched(lanes)
    row = state[0].nbytes + sum(array.nbytes // slots for array in beside.values())
    sparse = chosen.size * (row + np.dtype(slot_type(slots)).itemsize) < slots * row
    arrays: dict[str, NDArray[Any]] = {"totals": lanes.totals, **learner.pack()}
    for name, table in {"state": state, **beside}.items():
        rows = table.reshape(slots, *(table.shape[1:] or (table.size // slots,)))
        arrays[name] = rows.take(chosen, axis=0) if sparse else rows
    if sparse:
        arrays["slots"] = chosen.astype(slot_type(slots))
    for name, array in arrays.items():
        if not all(all_finite(array[a : a + BLOCK]) for a in range(0, len(array), BLOCK)):
            raise ValueError(f"model: got {name} that is not finite, expected numbers; nothing was written")
    header = {
        "kind": learner.kind,
        "settings": pack_settings(model.settings),
        "features": model.features,
        "dtype": model.dtype.name,
        "classes": model.classes,
        "certified": bool(model.certified),
        "rounds": model.rounds,
        "weight": model.weight,
        **{name: getattr(learner, name) for name in learner.options},
    }
    return header, arrays


def unpack(file: File, loss: Any = None) -> Learner:
    """Return the learner of a file; memory of coordinates that were never seen is not used."""
    header = file.header
    settings, classes = unpack_settings(header["settings"], loss, header), header["classes"]
    features, rounds = count_of("features", header["features"], low=1), count_of("rounds", header["rounds"])
    weight = header["weight"]
    count, slots = settings.lanes * (1 if classes is None else count_of("classes", classes, low=2)), features + 1
    sensible = isinstance(weight, int | float) and np.isfinite(weight) and weight >= 0 and rounds < 1 << 62
    if type(header["certified"]) is not bool or not isinstance(header["dtype"], str) or not sensible:
        raise Unreadable("the header says what no learner says; take another copy, or train again")
    # What the file really holds is looked at before memory is asked for.
    totals = file.array("totals", np.float64, (SUMS * count,))
    held = file.shape("slots")[0] if file.has("slots") else slots
    if file.shape("state")[0] != held:
        raise Unreadable("there are not as many records as the header says; take another copy, or train again")
    make: Any = LEARNERS[header["kind"]]
    options = {name: header[name] for name in make.options}
    shapes = make.stored_arrays(settings, **options)
    more = {name: file.array(name, np.float64, shape) for name, shape in shapes.items()}
    learner: Learner = make(features, settings, classes, header["dtype"], header["certified"], **options)
    lanes = learner.linear._lanes
    chosen: Any = _slots(file, held, slots) if file.has("slots") else None
    state, beside = lanes.state, _beside(lanes, slots)
    for name, table in {"state": state, **beside}.items():
        rows = table.reshape(slots, *(table.shape[1:] or (table.size // slots,)))
        for start, piece in file.pieces(name, table.dtype, (held, *rows.shape[1:])):
            _sensible(name, piece, rounds)
            stop = start + len(piece)
            rows[slice(start, stop) if chosen is None else chosen[start:stop]] = piece
    for name, array in {"totals": totals, **more}.items():
        _sensible(name, array, rounds)
    lanes.totals[:], lanes.rounds, lanes.weight = totals, rounds, float(weight)
    learner.unpack(more)
    return learner


def _slots(file: File, held: int, slots: int) -> NDArray[Any]:
    chosen = file.array("slots", slot_type(slots), (held,))
    if held and (int(chosen[-1]) >= slots or int(chosen[0]) < 0 or not (chosen[1:] > chosen[:-1]).all()):
        raise Unreadable("the slots do not rise, or reach beyond the features; take another copy, or train again")
    return chosen


def _sensible(name: str, piece: NDArray[Any], rounds: int) -> None:
    """Refuse numbers that no learner has, because kernels look at nothing again."""
    good = (piece.min() >= 0 and piece.max() <= rounds) if name == "last" else all_finite(piece)
    if not good:
        raise Unreadable(f"{name!r} holds numbers that no learner has; take another copy, or train again")
