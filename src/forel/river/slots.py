"""Slots of names: one for each name in a state that grows, or a fixed number, selected by a hash."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from forel.data.features.hashing import slot
from forel.data.parsers.cell_values import category_of, parse_number

__all__ = ["add_name", "hashed_features", "remove_names_after"]

NUMBERS = (int, float, np.number, np.bool_)


def add_name(names: dict[Hashable, int], name: Hashable) -> int:
    """Return the slot of a name, the next free one for a new name; slot 0 is for unknown names.

    >>> names = {}
    >>> add_name(names, "b"), add_name(names, "a"), add_name(names, "b"), names
    (1, 2, 1, {'b': 1, 'a': 2})
    """
    return names.setdefault(name, len(names) + 1)


def remove_names_after(names: dict[Hashable, int], count: int) -> None:
    """Remove all names but the first ``count``."""
    while len(names) > count:
        names.popitem()


def hashed_features(
    items: Iterable[tuple[Hashable, Any]], bits: int, kinds: Mapping[str, str]
) -> Iterator[tuple[Hashable, int, Any]]:
    """Yield the name, the slot and the value of each feature of a dict, as :func:`forel.read` reads it.

    A string is a category: the feature of that name in the namespace of its key; an empty string is a missing value.
    ``kinds`` overrides this for columns that are a "category" or a "number".

    >>> list(hashed_features({"age": 7, "city": "Rome", "street": ""}.items(), 10, {}))
    [('age', 600, 7), ('city', 12, 1.0)]
    """
    for name, value in items:
        key = _bytes(name if isinstance(name, str) else str(name))
        kind = kinds.get(name) if isinstance(name, str) else None
        if kind == "category" and isinstance(value, NUMBERS):
            value = category_of(value)
        elif kind == "number" and isinstance(value, str):
            with suppress(ValueError):  # text that is not a number stays a category
                value = parse_number(_bytes(value))
            if value is None:
                continue
        if not isinstance(value, str):
            yield name, slot(key, bits=bits), value
        elif value:
            yield name, slot(_bytes(value), key, bits), 1.0


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
