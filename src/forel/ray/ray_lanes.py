"""Lanes on a Ray cluster: actors that learn some settings or classes of a model each, from all rows in order.

Actors number the rows they learn. One that Ray restarted, or that was asked for rows a second time, returns None: it
receives the state that was collected last, and learns the rows since then again.
"""

from collections.abc import Callable
from threading import RLock
from typing import Any

from numpy.typing import NDArray

from forel.learner.lane_parts import (
    LanePart,
    LaneRows,
    LaneState,
    join_lanes,
    margins_of,
    set_state,
    split_lanes,
    state_of,
)
from forel.learner.lanes import Lanes
from forel.learner.protocol import Learner
from forel.ray.ray_workers import import_ray, ray_errors
from forel.ray.views import writable_view
from forel.validation import whole

__all__ = ["RayLanes"]

REPLAYED_BYTES = 1 << 28  # rows that are kept to be learned again, at least
STATES = 4  # and at most so many times the size of the model's state in use


class RayLanes:
    """Actors that learn lanes, as ``forel.train(..., lane_learners=...)`` takes them; a context manager, within Ray's.

    Parameters
    ----------
    number : of actors, at most; it does not change the result

    >>> RayLanes(0)
    Traceback (most recent call last):
    ValueError: learners: got 0, expected a whole number of at least 1
    """

    def __init__(self, number: int) -> None:
        self.number = whole("learners", number, low=1)
        self._actors: list[Any] = []
        self._parts: list[LanePart] = []
        self._model: Learner | None = None
        self._collected, self._blocks, self._bytes, self._limit = 0, list[Any](), 0, REPLAYED_BYTES
        self._pending: dict[int, list[Any]] = {}  # results of actors, by the number of the block
        self._lock = RLock()  # margins are waited for on another thread than that which starts to learn

    def __enter__(self) -> "RayLanes":
        return self

    def __exit__(self, *error: Any) -> None:
        for actor in self._actors:
            import_ray().kill(actor)
        self._actors, self._blocks, self._model = [], [], None

    def start(self, model: Learner) -> None:
        """Begin with the state of a model."""
        self._parts, self._model = split_lanes(model, self.number), model
        # Learners share the CPUs with tasks that read.
        actor: Any = (
            import_ray()
            .remote(_LaneActor)
            .options(num_cpus=0, max_restarts=-1, max_task_retries=-1, scheduling_strategy="SPREAD")
        )
        self._actors = [actor.remote() for _ in self._parts]
        for k in range(len(self._parts)):
            self._reset(k)

    def learn(self, given: LaneRows) -> Callable[[], NDArray[Any]]:
        """Start to learn rows; return a function that waits for the margins of all lanes."""
        with self._lock, ray_errors():
            if self._bytes > self._limit:
                self.collect()
            self._blocks.append(import_ray().put(given))
            self._bytes += sum(array.nbytes for array in (*given.rows, given.labels, given.importance))
            number = self._collected + len(self._blocks)
            self._pending[number] = [actor.learn.remote(number, self._blocks[-1]) for actor in self._actors]

        def wait() -> NDArray[Any]:
            with self._lock, ray_errors():
                self._finish(number)
                return margins_of(self._parts, self._pending.pop(number), given.labels)

        return wait

    def collect(self) -> None:
        """Set the state of the model to what was learned."""
        assert self._model is not None
        with self._lock, ray_errors():
            for number in self._pending:  # rows before the collected state cannot be learned again
                self._finish(number)
            number = self._collected + len(self._blocks)
            states = import_ray().get([actor.state.remote(number) for actor in self._actors])
            for k, state in enumerate(states):
                while state is None:
                    self._learn_again(k, number)
                    state = import_ray().get(self._actors[k].state.remote(number))
                states[k] = state
            join_lanes(self._model, self._parts, states)
            self._collected, self._blocks, self._bytes = number, [], 0
            used = sum(table.nbytes for state in states for table in state.tables.values())
            self._limit = max(REPLAYED_BYTES, STATES * used)

    def _finish(self, number: int) -> None:
        """Wait for the results of a block; replace those of actors that had no state."""
        ray, found = import_ray(), self._pending[number]
        for k, one in enumerate(found):
            result = ray.get(one) if isinstance(one, ray.ObjectRef) else one
            while result is None:
                result = ray.get(self._learn_again(k, number))
            found[k] = result

    def _reset(self, k: int) -> None:
        assert self._model is not None
        state = self._parts[k].state_of(self._model.linear._lanes)
        self._actors[k].reset.remote(self._parts[k], self._collected, state)

    def _learn_again(self, k: int, number: int) -> Any:
        """Let an actor learn all rows since the last collection, and return the result of the last ones."""
        self._reset(k)
        last: Any = None
        for block in range(self._collected + 1, number + 1):
            last = self._actors[k].learn.remote(block, self._blocks[block - self._collected - 1])
        return last


class _LaneActor:
    """An actor: some lanes, after a number of blocks of rows."""

    def __init__(self) -> None:
        self._part: LanePart | None = None
        self._lanes: Lanes | None = None
        self._number = -1

    def reset(self, part: LanePart, number: int, state: LaneState) -> None:
        """Continue from a state."""
        self._part, self._lanes, self._number = part, part.new(), number
        set_state(self._lanes, state)

    def learn(self, number: int, given: LaneRows) -> tuple[NDArray[Any], int] | None:
        """Learn the next block; return None without a state, or if it is not the next one."""
        if self._part is None or self._lanes is None or number != self._number + 1:
            return None
        rows = type(given.rows)(*map(writable_view, given.rows))
        found = self._part.learn(
            self._lanes, LaneRows(rows, writable_view(given.labels), writable_view(given.importance))
        )
        self._number = number
        return found

    def state(self, number: int) -> LaneState | None:
        """Return the state after so many blocks; None without it."""
        if self._lanes is None or self._number != number:
            return None
        return state_of(self._lanes)
