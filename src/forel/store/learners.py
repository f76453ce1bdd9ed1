"""The complete state of a learner, so that a loaded learner continues bit for bit.

Only coordinates with a nonzero record are stored if that is smaller: most slots of a model with hashed features are
never touched. Bits count, not values: −0 is stored.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.learner.layout import CONCAVITY, SUMS
from forel.learner.linear import Linear
from forel.learner.mixture import Mixture
from forel.learner.protocol import Learner
from forel.store.files import ModelFile
from forel.store.header import header_int, settings_from_json, settings_to_json
from forel.store.versions import ModelFileError, damaged
from forel.validation import all_finite

__all__ = ["LEARNERS", "pack_learner", "slot_dtype", "slots_in_order", "unpack_learner"]

LEARNERS: dict[str, type[Linear | Mixture]] = {one.kind: one for one in (Linear, Mixture)}
BLOCK = 1 << 22  # bytes of records that are scanned at a time
MOST_REPLAYED = 10**9  # rounds; compiled code replays some 40 million in a second
MOST_EMPTY = 1 << 20  # rows without features at the end of a stream, for a model without a bias


def slot_dtype(slots: int) -> Any:
    """Return the smallest integer type of a file that holds every slot."""
    return np.uint32 if slots <= 1 << 32 else np.int64


def pack_learner(learner: Learner) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and the arrays of a learner."""
    lanes, slots = learner.linear._lanes, learner.features + 1
    tables, touched = lanes.tables, lanes.touched()
    row_bytes = sum(table.nbytes // slots for table in tables.values())
    sparse = touched.size * (row_bytes + np.dtype(slot_dtype(slots)).itemsize) < slots * row_bytes
    arrays: dict[str, NDArray[Any]] = {"totals": lanes.sums.ravel(), **learner.pack()}
    if lanes.certified:
        arrays["dual"] = lanes.dual_sums.ravel()
    arrays |= {name: table.take(touched, axis=0) if sparse else table for name, table in tables.items()}
    if sparse:
        arrays["slots"] = touched.astype(slot_dtype(slots))
    for name, array in arrays.items():
        if not all(all_finite(array[a : a + BLOCK]) for a in range(0, len(array), BLOCK)):
            raise ValueError(f"model: got {name} that is not finite, expected numbers; nothing was written")
    header = {
        "kind": learner.kind,
        "settings": settings_to_json(learner.settings),
        "features": learner.features,
        "dtype": learner.dtype.name,
        "classes": learner.classes,
        "certified": bool(learner.certified),
        "rounds": learner.rounds,
        "weight": learner.weight,
        **{name: getattr(learner, name) for name in learner.options},
    }
    return header, arrays


def unpack_learner(file: ModelFile, loss: Any = None) -> Learner:
    """Return the learner of a file; slots that were never touched use no memory."""
    header = file.header
    settings, classes = settings_from_json(header["settings"], loss, header), header["classes"]
    features, rounds = header_int("features", header["features"], low=1), header_int("rounds", header["rounds"])
    weight = header["weight"]
    count, slots = settings.lanes * (1 if classes is None else header_int("classes", classes, low=2)), features + 1
    valid = isinstance(weight, int | float) and np.isfinite(weight) and weight >= 0 and rounds < 1 << 62
    if type(header["certified"]) is not bool or not isinstance(header["dtype"], str) or not valid:
        raise damaged("the header has invalid values")
    # Sizes are verified before memory is allocated.
    totals = file.array("totals", np.float64, (SUMS * count,))
    stored = file.shape("slots")[0] if file.has("slots") else slots
    if file.shape("state")[0] != stored:
        raise damaged("there are not as many records as the header says")
    make: Any = LEARNERS[header["kind"]]
    options = {name: header[name] for name in make.options}
    shapes = make.stored_arrays(settings, **options)
    more = {name: file.array(name, np.float64, shape) for name, shape in shapes.items()}
    learner: Learner = make(features, settings, classes, header["dtype"], header["certified"], **options)
    lanes = learner.linear._lanes
    dual = None
    if file.has("dual"):  # files of earlier versions do not have it, or not its last sums
        fewer = lanes.dual_sums.size - CONCAVITY * count * lanes.layout.concavity
        size = fewer if file.shape("dual") == (fewer,) else lanes.dual_sums.size
        dual = file.array("dual", np.float64, (size,))
    chosen: Any = slots_in_order(file, stored, slots, slots) if file.has("slots") else None
    updated: list[NDArray[Any]] = []
    for name, table in lanes.tables.items():
        for start, piece in file.pieces(name, table.dtype, (stored, *table.shape[1:])):
            _check_values(name, piece, rounds)
            if name == "last" and lanes.layout.catch_up == "replay":
                updated.append(piece[piece > 0])
            stop = start + len(piece)
            table[slice(start, stop) if chosen is None else chosen[start:stop]] = piece
    _check_replay(updated, rounds, settings.bias)
    for name, array in {"totals": totals, "dual": np.zeros(0) if dual is None else dual, **more}.items():
        _check_values(name, array, rounds)
    lanes.sums[:], lanes.rounds, lanes.weight = totals.reshape(lanes.sums.shape), rounds, float(weight)
    lanes.restore_dual_sums(dual)
    learner.unpack(more)
    return learner


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
        raise damaged("the slots do not rise, or reach beyond the features")
    return chosen


def _check_values(name: str, piece: NDArray[Any], rounds: int) -> None:
    """Raise for values that no learner has: kernels do not check them."""
    valid = (piece.min() >= 0 and piece.max() <= rounds) if name == "last" else all_finite(piece)
    if not valid:
        raise damaged(f"{name!r} holds numbers that no learner has")


def _check_replay(updated: list[NDArray[Any]], rounds: int, bias: bool) -> None:
    """Raise if catching up with missed rounds one by one would not end, because the number of rounds is wrong.

    Parameters
    ----------
    updated : rounds in which coordinates were last updated, in pieces
    rounds : number of rounds of the model
    bias : whether the model has a bias, which every round updates
    """
    pieces = [piece for piece in updated if piece.size]
    if not pieces:
        return
    first, last = min(int(piece.min()) for piece in pieces), max(int(piece.max()) for piece in pieces)
    if rounds - last > (0 if bias else MOST_EMPTY):
        raise damaged(f"the header counts {rounds:,} rounds, but no coordinate was updated after round {last:,}")
    if rounds - first > MOST_REPLAYED:
        raise ModelFileError(
            f"rate='root' with a penalty every round: replaying up to {rounds - first:,} rounds would take too long; "
            "train with penalty_weight='once', or with rate='adagrad'"
        )
