"""Where a name's numbers are kept: in a slot of its own, in a state that grows as names and classes come."""

from collections.abc import Hashable, Iterable
from copy import copy
from typing import Literal
from zlib import crc32

from forel.learner.lanes import Lanes

__all__ = ["beside", "forget", "hashed", "resized", "slot_of"]


def slot_of(names: dict[Hashable, int], name: Hashable) -> int:
    """Return the slot of a name, a new one if need be: first come, first served; slot 0 stays for the unknown.

    >>> names = {}
    >>> slot_of(names, "b"), slot_of(names, "a"), slot_of(names, "b"), names
    (1, 2, 1, {'b': 1, 'a': 2})
    """
    return names.setdefault(name, len(names) + 1)


def forget(names: dict[Hashable, int], known: int) -> None:
    """Take back the names that came after the first ``known``."""
    while len(names) > known:
        names.popitem()


def hashed(items: Iterable[tuple[Hashable, float]], bits: int) -> dict[int, float]:
    """Return the values of a row by slots among 2^bits, the same in every process; values that meet are added.

    >>> hashed({"a": 1.0, "b": 2.0}.items(), 1)
    {1: 3.0}
    """
    mask = (1 << bits) - 1
    sums: dict[int, float] = {}
    for name, value in items:
        slot = crc32((name if type(name) is str else str(name)).encode()) & mask
        sums[slot] = sums[slot] + value if slot in sums else value
    return sums


def resized(old: Lanes, features: int, lanes: int, labels: Literal["shared", "classes", "signs"]) -> Lanes:
    """Return a state with room for more features or lanes, every number of the old one in its place."""
    new = copy(old)
    new.features, new.lanes, new.labels = features, lanes, labels
    if lanes != old.lanes:
        new.parameters = new.settings.parameters(lanes, new.dtype).ravel()
    new.reset()
    n, k = old.features, old.lanes
    new.state[:n, :, :k], new.state[-1, :, :k] = old.state[:-1], old.state[-1]
    # What a rule does not use is one number long, and there are never fewer than two coordinates.
    for before, after in ((old.reach, new.reach), (old.last, new.last)):
        if before.size > 1:
            after[:n], after[-1] = before[:-1], before[-1]
    if old.mark.size > 1:
        before, after = old.mark.reshape(-1, k), new.mark.reshape(-1, lanes)
        after[:n, :k], after[-1, :k] = before[:-1], before[-1]
    new.sums[:, :k] = old.sums
    new.rounds, new.weight = old.rounds, old.weight
    return new


def beside(old: Lanes) -> Lanes:
    """Return as many lanes again that have learned nothing yet, and know the scales of features and the time."""
    new = copy(old)
    new.reset()
    if old.reach.size > 1:
        new.reach[:] = old.reach
    new.last[:], new.rounds, new.weight = old.last, old.rounds, old.weight
    return new
