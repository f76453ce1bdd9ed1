"""The state of a river model: parts of several lanes, which grow with names and classes."""

from copy import copy
from typing import Literal

from forel.learner.lanes import Lanes

__all__ = ["add_part", "join_parts", "resize", "split_parts"]


def resize(old: Lanes, features: int, lanes: int, labels: Literal["shared", "classes", "signs"]) -> Lanes:
    """Return a copy of a state with room for more features or lanes."""
    new = copy(old)
    new.features, new.lanes, new.labels = features, lanes, labels
    if lanes != old.lanes:
        new.parameters = new.settings.parameters(lanes, new.dtype).ravel()
    new.reset()
    n, k = old.features, old.lanes
    new.state[:n, :, :k], new.state[-1, :, :k] = old.state[:-1], old.state[-1]
    # Arrays that an algorithm does not use have one element, and there are never fewer than two coordinates.
    for before, after in ((old.reach, new.reach), (old.last, new.last)):
        if before.size > 1:
            after[:n], after[-1] = before[:-1], before[-1]
    if old.mark.size > 1:
        before, after = old.mark.reshape(-1, k), new.mark.reshape(-1, lanes)
        after[:n, :k], after[-1, :k] = before[:-1], before[-1]
    new.sums[:, :k] = old.sums
    new.rounds, new.weight = old.rounds, old.weight
    return new


def add_part(old: Lanes) -> Lanes:
    """Return as many new lanes, with the scales of features, the rounds and the weight of the old ones."""
    new = copy(old)
    new.reset()
    if old.reach.size > 1:
        new.reach[:] = old.reach
    new.last[:], new.rounds, new.weight = old.last, old.rounds, old.weight
    return new


def join_parts(parts: tuple[Lanes, ...]) -> Lanes:
    """Return all lanes in one state; the only part itself if there is one."""
    if len(parts) == 1:
        return parts[0]
    first, width = parts[0], parts[0].lanes
    joined = resize(first, first.features, width * len(parts), first.labels)
    for k, part in enumerate(parts):
        lanes = slice(k * width, (k + 1) * width)
        joined.state[:, :, lanes] = part.state
        joined.sums[:, lanes] = part.sums
        if part.mark.size > 1:
            joined.mark.reshape(-1, joined.lanes)[:, lanes] = part.mark.reshape(-1, width)
    return joined


def split_parts(lanes: Lanes, width: int) -> tuple[Lanes, ...]:
    """Return parts of at most ``width`` lanes, the inverse of :func:`join_parts`."""
    if lanes.lanes <= width:
        return (lanes,)
    parts = []
    for start in range(0, lanes.lanes, width):
        part = copy(lanes)
        part.lanes, part.parameters = width, lanes.settings.parameters(width, lanes.dtype).ravel()
        part.reset()
        part.take(lanes, slice(start, start + width))
        parts.append(part)
    return tuple(parts)
