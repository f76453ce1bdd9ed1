"""Models by key on a Ray cluster: keys are divided into groups, whose models learn at the same time.

The models of a group are an object of Ray, which a task takes and returns with the rows learned. Ray repeats the task
of a worker that dies from the same object, so that no rows are lost or learned twice.
"""

import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from forel.data.block import Block
from forel.learner.keyed import CompactLearner, KeyedModels, in_order, rows_by_key
from forel.ray.ray_workers import import_ray, ray_errors

__all__ = ["RayKeys"]


class RayKeys:
    """Models by key that learn on a Ray cluster.

    Parameters
    ----------
    models : the models, which do not change before :meth:`collect`
    number : groups of keys; it does not change the result. The model of all rows is a further group
    """

    def __init__(self, models: KeyedModels, number: int) -> None:
        self._models, self._number, self._order = models, number, dict.fromkeys(models.models)
        # Learning shares the CPUs with tasks that read.
        task = import_ray().remote(num_cpus=0, num_returns=2, scheduling_strategy="SPREAD")(_learn)
        self._task = task.options(name="forel.learn_keys")
        self._states: dict[int, Any] = {group: self._packed(group) for group in range(number + 1)}

    def _group(self, key: str | None) -> int:
        return self._number if key is None else crc32(key.encode()) % self._number

    def _packed(self, group: int) -> bytes:
        known = self._models
        own = {key: model for key, model in known.models.items() if self._group(key) == group}
        return pickle.dumps(KeyedModels(known.by, known.features, known.untrained, models=own), protocol=5)

    def begin(self, block: Block, again: bool = False) -> Callable[[], NDArray[Any]]:
        """Start to learn a block; return a function that waits for the margins from before."""
        rows = rows_by_key(block)
        self._order |= dict.fromkeys(rows)
        groups: dict[int, dict[str | None, NDArray[np.int64]]] = {}
        for key, which in rows.items():
            groups.setdefault(self._group(key), {})[key] = which
        waiting = []
        with ray_errors():
            shared = import_ray().put(replace(block, slices=None))
            for group, own in groups.items():
                self._states[group], margins = self._task.remote(self._states[group], shared, own, again)
                waiting.append(margins)
            if None in self._order:
                everything = {None: np.arange(len(block))}
                self._states[self._number], _ = self._task.remote(self._states[self._number], shared, everything, again)

        def wait() -> NDArray[Any]:
            with ray_errors():
                margins = np.concatenate(import_ray().get(waiting))
            return in_order({key: which for own in groups.values() for key, which in own.items()}, margins)

        return wait

    def collect(self) -> KeyedModels:
        """Return the models, after the rows that were learned so far."""
        found = dict[str | None, CompactLearner]()
        with ray_errors():
            for state in self._states.values():
                found |= pickle.loads(state if isinstance(state, bytes) else import_ray().get(state)).models
        self._models.models = {key: found[key] for key in self._order}
        return self._models


def _learn(state: bytes, block: Block, rows: Any, again: bool) -> tuple[bytes, NDArray[Any]]:
    """Learn the rows of some keys, on a worker; return the models after and the margins before them."""
    models: KeyedModels = pickle.loads(state)
    margins = models.learn_some(block, rows, again)
    return pickle.dumps(models, protocol=5), margins
