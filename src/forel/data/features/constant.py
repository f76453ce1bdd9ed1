"""The feature ``Constant``: named, hashed and penalized like any other."""

from dataclasses import replace

import numpy as np

from forel.data.block import Block
from forel.data.features.hashing import hash_name
from forel.data.features.names import Names

__all__ = ["CONSTANT", "add_constant", "record_constant"]

CONSTANT = b"Constant"


def record_constant(names: Names) -> None:
    """Record the name of the constant, before all others."""
    hashed = hash_name(CONSTANT)
    slot = hashed & ((1 << names.bits) - 1)
    names.add(np.array([slot]), np.array([hashed], np.uint64), lambda k: CONSTANT)


def add_constant(block: Block, bits: int) -> Block:
    """Return a block with the feature ``Constant`` of value 1 at the end of each row.

    A learner's bias is not penalized; this feature is, like the constant of Vowpal Wabbit.

    >>> block = Block(np.array([0, 2, 3]), np.int32([4, 1, 4]), np.float32([1, 2, 3]), np.float32([1, 0]))
    >>> add_constant(block, 3).values
    array([1., 2., 1., 3., 1.], dtype=float32)
    """
    slot = hash_name(CONSTANT) & ((1 << bits) - 1)
    collisions = np.flatnonzero(block.indices == slot)
    values = block.values
    missing = np.ones(len(block), bool)
    if collisions.size:  # another name has the same slot, and rows have each slot once
        values = values.copy()
        values[collisions] += 1
        missing[np.searchsorted(block.indptr, collisions, side="right") - 1] = False
    ends = block.indptr[1:][missing]
    indptr = block.indptr + np.append(0, np.cumsum(missing))
    indices = np.insert(block.indices, ends, slot)
    values = np.insert(values, ends, np.float32(1))
    columns = None if block.columns is None else np.insert(block.columns, ends, np.int32(-1))
    return replace(block, indptr=indptr, indices=indices, values=values, columns=columns)
