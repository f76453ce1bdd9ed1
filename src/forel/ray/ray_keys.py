"""Models by key on a Ray cluster: keys are divided into groups, whose models learn at the same time.

The models of a group are an object of Ray, which a task takes and returns with the rows learned. Ray repeats the task
of a worker that dies from the same object, so that no rows are lost or learned twice.
"""

import pickle
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.learner.keyed import ALL, CompactLearner, KeyedLearner, KeyedRows, LearnerOptions
from forel.learner.rows import CoalescedRows
from forel.ray.ray_workers import import_ray, ray_errors, writable_view
from forel.validation import whole

__all__ = ["RayKeys"]


class RayKeys:
    """Learns models by key on a Ray cluster, as ``forel.train(..., by=..., learners=...)`` takes it, within Ray's.

    Parameters
    ----------
    number : groups of keys; it does not change the result. The model of all rows is a further group

    >>> RayKeys(0)
    Traceback (most recent call last):
    ValueError: workers: got 0, expected a whole number of at least 1
    """

    def __init__(self, number: int) -> None:
        self.number = whole("workers", number, low=1)
        self._states: dict[int, Any] = {}
        self._empty = b""
        self._task: Any = None

    def start(self, options: LearnerOptions, models: Mapping[int, CompactLearner]) -> None:
        """Begin with models of some keys, by their codes; others are untrained."""
        # Learning shares the CPUs with tasks that read.
        task = import_ray().remote(num_cpus=0, num_returns=2, scheduling_strategy="SPREAD")(_learn)
        self._task, self._empty = task.options(name="forel.learn_keys"), pickle.dumps(KeyedLearner(options), protocol=5)
        codes = np.array(list(models), np.int64)
        self._states = {
            group: pickle.dumps(
                KeyedLearner(options, {code: models[code] for code in codes[self._groups(codes) == group].tolist()}),
                protocol=5,
            )
            for group in np.unique(self._groups(codes)).tolist()
        }

    def _groups(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.where(codes == ALL, self.number, codes % self.number)

    def learn(self, given: KeyedRows) -> Callable[[], NDArray[Any]]:
        """Start to learn rows; return a function that waits for their margins."""
        groups = self._groups(given.codes)
        waiting = []
        with ray_errors():
            for group in np.unique(groups).tolist():
                which = np.flatnonzero(groups == group)
                state = self._states.get(group, self._empty)
                self._states[group], margins = self._task.remote(state, given.take(which))
                waiting.append((which, margins))

        def wait() -> NDArray[Any]:
            with ray_errors():
                found = import_ray().get([margins for _, margins in waiting])
            margins = np.empty((given.codes.size, found[0].shape[1]), found[0].dtype)
            for (which, _), some in zip(waiting, found, strict=True):
                margins[which] = some
            return margins

        return wait

    def collect(self) -> KeyedLearner:
        """Return the models of all groups."""
        learner: KeyedLearner = pickle.loads(self._empty)
        with ray_errors():
            for state in self._states.values():
                found = state if isinstance(state, bytes) else import_ray().get(state)
                learner.models |= pickle.loads(found).models
        return learner


def _learn(state: bytes, given: KeyedRows) -> tuple[bytes, NDArray[Any]]:
    """Learn rows, on a worker; return the models after and the margins before them."""
    learner: KeyedLearner = pickle.loads(state)
    arrays = {name: writable_view(getattr(given, name)) for name in ("codes", "labels", "importance", "held_out")}
    margins = learner.learn(replace(given, rows=CoalescedRows(*map(writable_view, given.rows)), **arrays))
    return pickle.dumps(learner, protocol=5), margins
