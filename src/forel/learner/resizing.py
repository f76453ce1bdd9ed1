"""Resizing of lanes: more features, more classes, and states split into parts of equal width and joined."""

from collections.abc import Sequence

from forel.learner.lanes import Labels, Lanes

__all__ = ["add_part", "clear_lanes", "join_parts", "place_classes", "resize", "split_binary", "split_parts"]

PER_LANE = ("state", "mark")  # tables with a column for each lane
CLOCK = 3  # the sum that depends only on the number of rounds


def resize(old: Lanes, features: int, lanes: int, labels: Labels) -> Lanes:
    """Return a copy with more features or lanes; new ones are in the initial state."""
    new, count, width = old.like(features, lanes, labels), old.features, old.lanes
    for name, table in new.tables.items():
        wide, before = (table[..., :width] if name in PER_LANE else table), old.tables[name]
        wide[:count], wide[-1] = before[:-1], before[-1]  # the bias is last
    new.all_sums[:, :width] = old.all_sums
    new.rounds, new.weight = old.rounds, old.weight
    return new


def add_part(old: Lanes) -> Lanes:
    """Return the same number of new lanes, with the feature scales, rounds and weight of the old ones."""
    new = old.like()
    for name, table in new.tables.items():
        if name not in PER_LANE:
            table[:] = old.tables[name]
    new.rounds, new.weight = old.rounds, old.weight
    return new


def join_parts(parts: Sequence[Lanes]) -> Lanes:
    """Return all lanes in one state; a single part is returned itself."""
    first, width = parts[0], parts[0].lanes
    if len(parts) == 1:
        return first
    joined = resize(first, first.features, width * len(parts), first.labels)
    for k, part in enumerate(parts):
        lanes = slice(k * width, (k + 1) * width)
        for name in PER_LANE:
            if name in part.tables:
                joined.tables[name][..., lanes] = part.tables[name]
        joined.all_sums[:, lanes] = part.all_sums
    return joined


def split_parts(lanes: Lanes, width: int) -> tuple[Lanes, ...]:
    """Return parts of at most ``width`` lanes, the inverse of :func:`join_parts`."""
    if lanes.lanes <= width:
        return (lanes,)
    parts = []
    for start in range(0, lanes.lanes, width):
        part = lanes.like(lanes=width)
        part.take(lanes, slice(start, start + width))
        parts.append(part)
    return tuple(parts)


def place_classes(old: Lanes, count: int, places: Sequence[int], labels: Labels) -> Lanes:
    """Return the lanes of ``count`` classes: the old ones at their places, the others in the initial state."""
    settings = old.settings.lanes
    new = old.like(lanes=count * settings, labels=labels)
    for name, table in new.tables.items():
        if name not in PER_LANE:
            table[:] = old.tables[name]
    for k, place in enumerate(places):
        source, target = (slice(c * settings, (c + 1) * settings) for c in (k, place))
        for name in PER_LANE:
            if name in old.tables:
                new.tables[name][..., target] = old.tables[name][..., source]
        new.all_sums[:, target] = old.all_sums[:, source]
    new.rounds, new.weight = old.rounds, old.weight
    return new


def split_binary(lanes: Lanes, settings: int = 1) -> None:
    """Make the first two classes of some settings from the model of the second class, in the lanes of the first.

    For even losses, f(m, y) = f(−m, −y), the model of the first class is the same with the sign of all parts of a
    record but n changed.
    """
    first, second, state = slice(0, settings), slice(settings, 2 * settings), lanes.state
    state[:, :, second] = state[:, :, first]
    state[:, 0, first] = 0 - state[:, 0, first]
    state[:, 2:, first] = 0 - state[:, 2:, first]
    lanes.all_sums[:, second] = lanes.all_sums[:, first]
    if "mark" in lanes.tables:
        lanes.tables["mark"][:, second] = lanes.tables["mark"][:, first]


def clear_lanes(lanes: Lanes, some: slice) -> None:
    """Reset some lanes to the initial state; the penalty clock, which depends only on rounds, continues."""
    lanes.state[:, :, some] = 0
    lanes.all_sums[[row for row in range(len(lanes.all_sums)) if row != CLOCK], some] = 0
