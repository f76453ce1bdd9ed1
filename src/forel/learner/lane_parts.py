"""Lanes learned apart: a model's settings, or its classes, divided into parts that learn from the same rows.

The lanes of a kernel do not depend on one another, but for classes with a joint loss. A part of at least two lanes
therefore has the same bits as those lanes of the whole model; one lane alone has another kernel.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forel.learner.guard import changing
from forel.learner.lanes import Labels, Lanes
from forel.learner.protocol import Learner
from forel.learner.rows import Rows
from forel.learner.settings import PER_LANE, Settings
from forel.learner.targets import importances_of, labels_of, not_finite
from forel.losses import Classes
from forel.validation import refuse

__all__ = [
    "LaneLearners",
    "LanePart",
    "LaneRows",
    "LaneState",
    "join_lanes",
    "lane_rows",
    "margins_of",
    "set_state",
    "split_lanes",
    "state_of",
]

FEWEST = 2  # lanes of a part
BY_LANE = ("state", "mark")  # tables with a number for each lane


class LaneRows(NamedTuple):
    """Rows as all parts learn them; importances of rows that are held out are −1."""

    rows: Rows
    labels: NDArray[Any]
    importance: NDArray[Any]


class LaneState(NamedTuple):
    """The state of a part at the coordinates that occurred, and all of its sums."""

    coordinates: NDArray[np.int64]
    tables: dict[str, NDArray[Any]]
    sums: NDArray[np.float64]
    rounds: int
    weight: float


class LaneLearners(Protocol):
    """Learns the lanes of a model elsewhere."""

    def start(self, model: Learner) -> None:
        """Begin with the state of a model."""
        ...

    def learn(self, given: LaneRows) -> Callable[[], NDArray[Any]]:
        """Start to learn rows; return a function that waits for the margins of all lanes."""
        ...

    def collect(self) -> None:
        """Set the state of the model to what was learned."""
        ...


@dataclass(frozen=True, eq=False)
class LanePart:
    """Some lanes of a model.

    Parameters
    ----------
    settings : theirs
    lanes : their numbers in the model
    first_class : the number of their first class
    features, dtype, certified, labels : as in :class:`forel.learner.lanes.Lanes`
    """

    settings: Settings
    lanes: NDArray[np.int64]
    first_class: int
    features: int
    dtype: np.dtype[Any]
    certified: bool
    labels: Labels

    def new(self) -> Lanes:
        """Return the part in its initial state."""
        return Lanes(self.features, self.settings, self.lanes.size, self.dtype, self.certified, self.labels)

    def learn(self, state: Lanes, given: LaneRows) -> tuple[NDArray[Any], int]:
        """Learn rows; return their margins, and the number of rows before the first loss that is not finite."""
        out = np.empty((given.rows.number, state.lanes), state.dtype)
        labels = given.labels - self.dtype.type(self.first_class)
        return out, state.learn(given.rows, labels, given.importance, out)

    def state_of(self, whole: Lanes) -> LaneState:
        """Return the state of the part's lanes in a model."""
        return _state(whole, self.lanes)


def split_lanes(model: Learner, number: int) -> list[LanePart]:
    """Divide the lanes of a model into at most ``number`` parts: by settings, or by classes if there is one setting.

    >>> from forel.learner.linear import Linear
    >>> from forel.learner.mixture import Mixture
    >>> parts = split_lanes(Mixture(4, Settings(alpha=(0.1, 0.2, 0.5, 1.0, 2.0))), 2)
    >>> [part.settings.alpha for part in parts]
    [(0.1, 0.2, 0.5), (1.0, 2.0)]
    >>> [part.lanes.tolist() for part in split_lanes(Linear(4, Settings(), classes=5), 2)]
    [[0, 1, 2], [3, 4]]
    """
    linear, settings, classes = model.linear, model.settings, model.classes or 1
    if settings.filters:
        expected = "a grid of settings (lanes=64), or several classes: filters share one pass over each row with them"
        raise refuse("learners", "settings with filters", expected)
    by_class = settings.lanes == 1
    if by_class and (linear.joint or classes == 1):
        got = f"one setting of the joint loss {settings.loss!r}" if linear.joint else "one setting"
        raise refuse("learners", got, "several settings, or several classes that are learned one against the rest")
    divided, other = (classes, 1) if by_class else (settings.lanes, classes)
    most = divided if other >= FEWEST else divided // FEWEST
    numbers = np.arange(classes * settings.lanes).reshape(classes, settings.lanes)
    parts = []
    for some in np.array_split(np.arange(divided), max(1, min(number, most))):
        own = numbers[some] if by_class else numbers[:, some]
        chosen = settings if by_class else _with_settings(settings, some.tolist())
        first = int(some[0]) if by_class else 0
        state = linear._lanes
        parts.append(
            LanePart(chosen, own.ravel(), first, linear.features, linear.dtype, linear.certified, state.labels)
        )
    return parts


def _with_settings(settings: Settings, which: list[int]) -> Settings:
    several = {name: value for name in PER_LANE if isinstance(value := getattr(settings, name), tuple)}
    values: dict[str, Any] = {name: tuple(value[k] for k in which) for name, value in several.items()}
    return replace(settings, **values)


def lane_rows(
    model: Learner,
    rows: Rows,
    y: ArrayLike,
    importance: ArrayLike | None,
    held_out: NDArray[np.bool_] | None,
) -> LaneRows:
    """Return rows with labels and importances as kernels take them, or raise for those that are not valid."""
    domain = model.settings.labels if model.classes is None else Classes(model.classes)
    scale = importances_of(importance, rows.number, model.dtype)
    if held_out is not None:
        scale = np.where(held_out, model.dtype.type(-1), scale)
    return LaneRows(rows, labels_of(y, rows.number, domain, model.dtype), scale)


def margins_of(parts: list[LanePart], found: list[tuple[NDArray[Any], int]], labels: NDArray[Any]) -> NDArray[Any]:
    """Return the margins of all lanes from those of parts, or raise if a loss was not finite."""
    row = min(count for _, count in found)
    if row < len(labels):
        raise not_finite(row, labels[row])
    out = np.empty((len(labels), sum(part.lanes.size for part in parts)), parts[0].dtype)
    for part, (margins, _) in zip(parts, found, strict=True):
        out[:, part.lanes] = margins
    return out


def _state(lanes: Lanes, which: NDArray[np.int64] | None = None) -> LaneState:
    touched, some = lanes.touched(), slice(None) if which is None else which
    tables = {name: table[touched] for name, table in lanes.tables.items()}
    tables |= {name: tables[name][..., some] for name in BY_LANE if name in tables}
    return LaneState(touched, tables, lanes.all_sums[:, some].copy(), lanes.rounds, lanes.weight)


def join_lanes(model: Learner, parts: list[LanePart], states: list[LaneState]) -> None:
    """Set the state of a model to those of its parts."""
    whole = model.linear._lanes
    with changing(model._guard, model.linear._guard):
        for part, state in zip(parts, states, strict=True):
            _set_state(whole, state, part.lanes)


def set_state(lanes: Lanes, state: LaneState) -> None:
    """Set the state of a part."""
    _set_state(lanes, state, np.arange(lanes.lanes))


def state_of(lanes: Lanes) -> LaneState:
    """Return the state of a part."""
    return _state(lanes)


def _set_state(lanes: Lanes, state: LaneState, which: NDArray[np.int64]) -> None:
    for name, table in lanes.tables.items():
        at: tuple[Any, ...] = (state.coordinates,)
        if name in BY_LANE:
            at = (state.coordinates[:, None, None], np.arange(table.shape[1])[:, None], which)
            at = at if table.ndim == 3 else (state.coordinates[:, None], which)
        table[at] = state.tables[name]
    lanes.all_sums[:, which] = state.sums
    lanes.rounds, lanes.weight = state.rounds, state.weight
