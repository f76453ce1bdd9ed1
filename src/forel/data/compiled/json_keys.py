"""Keys of JSON objects: a hash table for keys of the outermost objects, and a set per line for nested keys."""

import numpy as np

from forel.data.compiled.cache import fast, inner
from forel.data.compiled.json_layout import HASH, ID, KINDS, LENGTH, ROLE, STAMP, START
from forel.data.compiled.json_tokens import same_bytes

__all__ = ["find_key", "first_in_line", "rebuild"]

ZERO, ONE = np.uint64(0), np.uint64(1)


@inner
def find_key(keys, hashed, key, length, role):
    """Return the row of a key in the table, which must not be full, and whether it is new."""
    last = np.uint64(keys.shape[0] - 1)
    place = hashed & last
    while keys[place, START] != ZERO:
        if (
            keys[place, HASH] == hashed
            and keys[place, LENGTH] == length
            and same_bytes(key, keys[place, START], length)
        ):
            return place, False
        place = (place + ONE) & last
    keys[place, HASH], keys[place, START], keys[place, LENGTH], keys[place, ROLE] = hashed, key, length, role
    keys[place, STAMP] = keys[place, KINDS] = keys[place, ID] = ZERO
    return place, True


@inner
def first_in_line(names, hashed, stamp):
    """Add a hash to the set of a line, which must not be full; return False if it is in the set already."""
    last = np.uint64(names.shape[0] - 1)
    place = hashed & last
    while names[place, 1] == stamp:
        if names[place, 0] == hashed:
            return False
        place = (place + ONE) & last
    names[place, 0], names[place, 1] = hashed, stamp
    return True


@fast
def rebuild(old, new):
    """Copy the keys of a table to a larger, empty one."""
    last = np.uint64(new.shape[0] - 1)
    for k in range(np.uint64(old.shape[0])):
        if old[k, START] != ZERO:
            place = old[k, HASH] & last
            while new[place, START] != ZERO:
                place = (place + ONE) & last
            for column in range(old.shape[1]):
                new[place, column] = old[k, column]
