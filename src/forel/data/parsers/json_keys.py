"""The table of keys of JSON objects with a special role, for compiled code."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forel.data.compiled import json_layout as layout
from forel.data.compiled.layout import PAD
from forel.data.features.hashing import hash_name
from forel.data.parsers.columns import Columns

__all__ = ["SpecialKeys", "special_keys"]

KEYS = 1 << 10  # minimum number of rows of the table


@dataclass(frozen=True, eq=False)
class SpecialKeys:
    """The keys that are named by options or known kinds.

    Parameters
    ----------
    keys : in order of their IDs, the first of which is 1
    table : as ``forel.data.compiled.json_keys`` uses it; it refers to ``text``
    text : bytes of the keys
    default : role of all other keys
    transformed : whether the numbers of any key are transformed
    """

    keys: tuple[str, ...]
    table: NDArray[np.uint64]
    text: NDArray[np.uint8]
    default: np.uint64
    transformed: bool


def special_keys(columns: Columns) -> SpecialKeys:
    """Return the keys with a special role.

    >>> from forel.data.options import ReadOptions
    >>> special_keys(Columns(ReadOptions(label="y", ignore=["id"]))).keys
    ('y', 'id')
    """
    options = columns.options
    roles = (columns.label, columns.importance, *(options.keep or ()), *options.ignore)
    given = (*roles, *columns.kinds, *columns.known, *columns.named)
    keys = tuple(dict.fromkeys(key for key in given if key is not None))
    names = [key.encode("utf-8", "surrogatepass") for key in keys]
    text = np.frombuffer(b"".join(names) + bytes(PAD), np.uint8)
    table = np.zeros((1 << (max(KEYS, 4 * len(keys)) - 1).bit_length(), layout.KEY_COLUMNS), np.uint64)
    at = text.ctypes.data
    for number, (key, name) in enumerate(zip(keys, names, strict=True), 1):
        hashed = hash_name(name)
        place = hashed % len(table)
        while table[place, layout.START]:
            place = (place + 1) % len(table)
        table[place, : layout.ID + 1] = np.array([hashed, at, len(name), _role(columns, key), 0, 0, number], np.uint64)
        at += len(name)
    default = layout.USED | layout.RECORDED if options.keep is None else np.uint64(0)
    return SpecialKeys(keys, table, text, default, bool(columns.log or columns.buckets))


def _role(columns: Columns, key: str) -> np.uint64:
    kind = columns.kinds.get(key) or columns.known.get(key)
    used = columns.uses(key)
    flags = {
        layout.USED: used,
        layout.LABEL: key == columns.label,
        layout.IMPORTANCE: key == columns.importance,
        layout.CODED: used and kind == "category",
        layout.NUMERIC: used and kind == "number",
        layout.LOGARITHM: used and key in columns.log,
        layout.BUCKETS: used and key in columns.buckets,
        layout.RECORDED: used and key not in columns.kinds,
    }
    return np.uint64(sum(int(flag) for flag, holds in flags.items() if holds))
