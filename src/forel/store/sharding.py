"""Fields and arrays of a model file whose features are divided among shards."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.learner.lanes import Lanes
from forel.learner.sharded_lanes import ShardedLanes
from forel.learner.sharding import ShardHolders, Sharding
from forel.store.files import ModelFile
from forel.store.header import header_int
from forel.store.versions import damaged
from forel.validation import all_finite

__all__ = ["lanes_of_sums", "restore_shards", "sharding_from_json", "sharding_to_json", "stored_sums"]

FIELDS = {"shards": 1, "batch": 1, "rounds": 0, "seen_rows": 0}  # and the least value of each


def sharding_to_json(lanes: Lanes | ShardedLanes) -> dict[str, Any]:
    """Return the field of a header for features that are divided; empty for one state."""
    if not isinstance(lanes, ShardedLanes):
        return {}
    _, rounds = lanes.shard_sums()
    given = lanes.sharding
    return {"sharding": {"shards": given.shards, "batch": given.batch, "rounds": rounds, "seen_rows": lanes.seen_rows}}


def sharding_from_json(content: Any, holders: Callable[[], ShardHolders]) -> Sharding | None:
    """Return how features are divided, None for one state; ``holders`` hold the shards."""
    if content is None:
        return None
    if not isinstance(content, dict) or set(content) != set(FIELDS):
        raise damaged("the header has invalid values")
    values = {name: header_int(name, content[name], low) for name, low in FIELDS.items()}
    return Sharding(values["shards"], values["batch"], holders)


def lanes_of_sums(lanes: Lanes | ShardedLanes) -> Lanes:
    """Return the lanes that have the sums of rows."""
    return lanes.row_lanes if isinstance(lanes, ShardedLanes) else lanes


def stored_sums(lanes: Lanes | ShardedLanes) -> dict[str, NDArray[Any]]:
    """Return the sums in a model file: of rows, and of shards."""
    rows = lanes_of_sums(lanes)
    sums: dict[str, NDArray[Any]] = {"totals": rows.sums.ravel()}
    if rows.certified:
        sums["dual"] = rows.dual_sums.ravel()
    if isinstance(lanes, ShardedLanes):
        sums["shard_sums"] = lanes.shard_sums()[0]
    return sums


def restore_shards(file: ModelFile, lanes: Any) -> None:
    """Set the sums and the rounds of shards to those of a file, whose records are read already."""
    content, current = file.header["sharding"], lanes.shard_sums()[0]
    sums = file.array("shard_sums", np.float64, current.shape)
    if not all_finite(sums):
        raise damaged("'shard_sums' holds invalid values")
    lanes.restore(sums, content["rounds"], content["seen_rows"])
