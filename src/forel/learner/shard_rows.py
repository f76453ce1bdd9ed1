"""Rows of a shard: those before its own, which it learns first, and digests that show whose they are."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.learner.rows import CoalescedRows
from forel.validation import refuse

__all__ = ["check_warm_up", "row_digests", "split_rows"]

MULTIPLIERS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], np.uint64)  # odd
HALF = np.uint64(32)


def split_rows(rows: CoalescedRows, count: int) -> tuple[CoalescedRows, CoalescedRows]:
    """Return the first rows, and the others."""
    indptr, indices, values = rows
    first = indptr[count]
    return (
        CoalescedRows(indptr[: count + 1], indices[:first], values[:first]),
        CoalescedRows(indptr[count:] - first, indices[first:], values[first:]),
    )


def row_digests(rows: CoalescedRows, labels: Any, importance: Any, held_out: Any = None) -> NDArray[np.uint64]:
    """Return a number for each row, equal for equal rows, whatever the order of entries.

    >>> rows = CoalescedRows(np.array([0, 2, 4, 5]), np.int32([3, 1, 1, 3, 3]), np.float32([0.5, 2, 2, 0.5, 0.5]))
    >>> first, second, third = row_digests(rows, [1, 1, 1], np.ones(3))
    >>> bool(first == second), bool(first == third)
    (True, False)
    """
    entries = _mixed(rows.indices[: rows.indptr[-1]].astype(np.uint64), rows.values[: rows.indptr[-1]])
    sums = np.append(np.uint64(0), np.cumsum(entries, dtype=np.uint64))
    found = sums[rows.indptr[1:]] - sums[rows.indptr[:-1]]  # modulo 2⁶⁴
    for numbers in (labels, importance, np.zeros(rows.number) if held_out is None else held_out):
        found = _mixed(found, numbers)
    return found


def _mixed(digests: NDArray[np.uint64], numbers: Any) -> NDArray[np.uint64]:
    bits = np.add(numbers, 0.0, dtype=np.float64).view(np.uint64)  # -0 becomes 0
    mixed = (digests + MULTIPLIERS[0]) * MULTIPLIERS[1] ^ bits * MULTIPLIERS[2]
    mixed = (mixed ^ mixed >> HALF) * MULTIPLIERS[0]
    return np.asarray(mixed ^ mixed >> HALF)


def check_warm_up(shards: Sequence[tuple[NDArray[np.uint64] | None, NDArray[np.uint64] | None]]) -> None:
    """Raise if a shard learned warm-up rows that no other shard counts.

    Their gradients would be in the merged state and in no sum, so that certificates would be false.

    Parameters
    ----------
    shards : for each shard, digests of its warm-up rows (None if there are none to check) and of its own rows
    """
    for k, (before, _) in enumerate(shards):
        if before is None:
            continue
        others = [own for j, (_, own) in enumerate(shards) if j != k and own is not None]
        if not np.isin(before, np.concatenate([np.empty(0, np.uint64), *others])).all():
            expected = "the last rows of the shards before it in the same round, which these count"
            raise refuse("warm_up", f"rows of shard {k + 1} that no other shard has", expected)
