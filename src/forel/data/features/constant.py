"""A constant as a feature like any other: named, hashed and penalised as others are."""

from dataclasses import replace

import numpy as np

from forel.data.block import Block
from forel.data.features.hashing import hash_name
from forel.data.features.names import Names

__all__ = ["CONSTANT", "name_constant", "with_constant"]

CONSTANT = b"Constant"


def name_constant(names: Names) -> None:
    """Keep the constant's name, before any other is."""
    hashed = hash_name(CONSTANT)
    slot = hashed & ((1 << names.bits) - 1)
    names.meet(np.array([slot]), np.array([hashed], np.uint64), lambda k: CONSTANT)


def with_constant(block: Block, bits: int) -> Block:
    """Return a block whose rows have the feature ``Constant`` of value 1 too, at their end.

    A learner's own bias is never penalised; this feature is, as Vowpal Wabbit's constant.

    >>> block = Block(np.array([0, 2, 3]), np.int32([4, 1, 4]), np.float32([1, 2, 3]), np.float32([1, 0]))
    >>> with_constant(block, 3).values
    array([1., 2., 1., 3., 1.], dtype=float32)
    """
    slot = hash_name(CONSTANT) & ((1 << bits) - 1)
    places = np.flatnonzero(block.indices == slot)
    values = block.values
    fresh = np.ones(len(block), bool)
    if places.size:  # another name in the same slot: rows have each slot once
        values = values.copy()
        values[places] += 1
        fresh[np.searchsorted(block.indptr, places, side="right") - 1] = False
    ends = block.indptr[1:][fresh]
    indptr = block.indptr + np.append(0, np.cumsum(fresh))
    indices = np.insert(block.indices, ends, slot)
    return replace(block, indptr=indptr, indices=indices, values=np.insert(values, ends, np.float32(1)))
