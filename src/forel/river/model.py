"""The state of a river model: lanes in parts of equal width, one for each class and setting, and their mixture."""

from typing import NamedTuple

from forel.learner.learner import Learner, without_filter_lanes
from forel.learner.state import (
    LabelCoding,
    State,
    add_part,
    clear_lanes,
    join_parts,
    resize,
    split_binary,
    split_parts,
)  # fmt: skip
from forel.river.experts import Experts

__all__ = ["WIDTHS", "Model", "model_from"]

# For more than two classes, lanes are allocated for one of these numbers of classes, so that few kernels are compiled.
# A model of more classes has several parts, each with at most the last number of lanes.
WIDTHS = (4, 16, 64)


class Model(NamedTuple):
    """State in parts, and the experts that mix them; None for one setting. Both are replaced together."""

    parts: tuple[State, ...]
    experts: Experts | None

    @property
    def settings(self) -> int:
        """The number of settings, each of which has a lane for every class."""
        return self.parts[0].settings.n_settings

    @property
    def width(self) -> int:
        """The number of classes of a part."""
        return self.parts[0].n_lanes // self.settings

    def copied(self) -> "Model":
        """Return a copy."""
        experts = None if self.experts is None else self.experts.copied()
        return Model(tuple(part.copied() for part in self.parts), experts)

    def with_features(self, features: int) -> "Model":
        """Return the model with more features."""
        parts = tuple(resize(part, features, part.n_lanes, part.labels) for part in self.parts)
        return self._replace(parts=parts)

    def with_class(self, known: int, labels: LabelCoding) -> "Model":
        """Return the model with empty lanes for one more class after the ``known`` ones, which are two or more."""
        experts = None if self.experts is None else self.experts.with_classes(known + 1)
        first, count = self.parts[0], self.settings
        if known == 2:
            first = without_filter_lanes(first)
            count = first.settings.n_settings
            wide = resize(first, first.features, WIDTHS[0] * count, labels)
            split_binary(wide, count)
            return Model((wide,), experts)
        widths = _widths(count)
        if known == self.width < widths[-1]:
            wide = resize(first, first.features, count * next(w for w in widths if w > known), labels)
            return Model((wide,), experts)
        if known == self.width * len(self.parts):
            return Model((*self.parts, add_part(first)), experts)
        # State without a class have learned from every row as one of the rest.
        part, place = divmod(known, self.width)
        clear_lanes(self.parts[part], slice(place * count, (place + 1) * count))
        return Model(self.parts, experts)

    def joined(self, classes: int) -> State:
        """Return the lanes of all classes in one state, without lanes that have no class yet."""
        lanes = join_parts(self.parts)
        if classes <= 2:
            return lanes
        narrow = lanes.empty_like(lanes=classes * self.settings)
        narrow.copy_lanes_from(lanes, slice(0, narrow.n_lanes))
        return narrow

    def linear(self, lanes: State) -> Learner:
        """Return some of the lanes as linear models, which share their state."""
        classes = None if lanes.labels == "shared" else lanes.n_lanes // self.settings
        return Learner.of(lanes, None, classes)


def model_from(lanes: State, experts: Experts | None) -> Model:
    """Return the model of joined lanes: the inverse of :meth:`Model.joined`."""
    count = lanes.settings.n_settings
    if lanes.labels == "shared":
        return Model((lanes,), experts)
    widths, classes = _widths(count), lanes.n_lanes // count
    width = next((w for w in widths if w >= classes), -(-classes // widths[-1]) * widths[-1])
    wide = resize(lanes, lanes.features, width * count, lanes.labels)
    return Model(split_parts(wide, widths[-1] * count), experts)


def _widths(settings: int) -> tuple[int, ...]:
    """Return the numbers of classes of a part with some settings."""
    return WIDTHS[:1] + tuple(w for w in WIDTHS[1:] if w * settings <= WIDTHS[-1])
