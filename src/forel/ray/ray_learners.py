"""Learners on a Ray cluster: actors that hold the model, and learn shards from it.

Shards leave an actor's model as it was, so any actor can learn any shard, and the merged changes keep all models equal.
An actor that Ray restarted has no model: it returns None, and receives the current one.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.learner.factory import make_learner
from forel.learner.merge_states import StateSlice, learn_shard, restore, slice_of
from forel.learner.protocol import Learner
from forel.learner.rows import CoalescedRows
from forel.ray.ray_workers import import_ray, ray_errors
from forel.ray.views import writable_view
from forel.training.shards import Shard
from forel.validation import refuse, whole

__all__ = ["RayLearners"]

NO_MODEL = -1  # version of an actor without a model


class RayLearners:
    """Actors that learn shards, as ``Merging(learners=...)`` takes them; a context manager, within Ray's.

    Parameters
    ----------
    number : of actors, each with a copy of the model; it does not change the result
    """

    def __init__(self, number: int) -> None:
        self.number = whole("workers", number, low=1)
        self._actors: list[Any] = []
        self._version = 0

    def __enter__(self) -> "RayLearners":
        ray = import_ray()
        # Learners share the CPUs with tasks that read: a cluster of as many CPUs as learners could read nothing else.
        actor: Any = ray.remote(_Replica).options(
            num_cpus=0, max_restarts=-1, max_task_retries=-1, scheduling_strategy="SPREAD"
        )
        self._actors = [actor.remote() for _ in range(self.number)]
        return self

    def __exit__(self, *error: Any) -> None:
        for actor in self._actors:
            import_ray().kill(actor)
        self._actors = []

    def learn(self, model: Learner, shards: Sequence[Shard]) -> list[tuple[NDArray[Any], StateSlice]]:
        """Return the margins and the state of each shard."""
        if not self._actors:
            raise refuse(
                "learners", "actors that are not started", "with RayLearners(...) as learners: around training"
            )
        with ray_errors():
            return self._learn(model, shards)

    def _learn(self, model: Learner, shards: Sequence[Shard]) -> list[tuple[NDArray[Any], StateSlice]]:
        ray, number = import_ray(), min(self.number, len(shards))
        groups = [[shards[k] for k in part] for part in np.array_split(np.arange(len(shards)), number)]
        actors = self._actors[:number]
        results = ray.get([a.learn.remote(self._version, group) for a, group in zip(actors, groups, strict=True)])
        while None in results:
            current = ray.put((_description(model), slice_of(model, model.seen)))
            for k, (actor, group) in enumerate(zip(actors, groups, strict=True)):
                if results[k] is None:
                    actor.reset.remote(self._version, current)
                    results[k] = actor.learn.remote(self._version, group)
            results = [ray.get(found) if isinstance(found, ray.ObjectRef) else found for found in results]
        return [found for group in results for found in group]

    def update(self, model: Learner, merged: StateSlice) -> None:
        """Send the merged changes to all actors."""
        self._version += 1
        changes = import_ray().put(merged)
        for actor in self._actors:
            actor.update.remote(self._version, changes)


class _Replica:
    """An actor: the model of a version, and learning from it."""

    def __init__(self) -> None:
        self._version = NO_MODEL
        self._model: Learner | None = None

    def reset(self, version: int, current: tuple[dict[str, Any], StateSlice]) -> None:
        """Replace the model."""
        description, state = current
        self._model = make_learner(**description)
        restore(self._model, state)
        self._version = version

    def update(self, version: int, merged: StateSlice) -> None:
        """Apply merged changes, unless changes before them are missing."""
        if self._model is None or self._version != version - 1:
            self._version = NO_MODEL
            return
        restore(self._model, merged)
        self._version = version

    def learn(self, version: int, shards: list[Shard]) -> list[tuple[NDArray[Any], StateSlice]] | None:
        """Learn shards; return None without a model of this version."""
        if self._model is None or self._version != version:
            return None
        return [learn_shard(self._model, *_with_views(shard), verify=False) for shard in shards]


def _with_views(shard: Shard) -> Shard:
    """Return a shard with arrays that kernels accept."""
    return shard._replace(
        rows=CoalescedRows(*map(writable_view, shard.rows)),
        labels=writable_view(shard.labels),
        importance=writable_view(shard.importance),
    )


def _description(model: Learner) -> dict[str, Any]:
    """Return the arguments for an untrained learner with the same settings."""
    return {
        "features": model.features,
        "settings": model.settings,
        "classes": model.classes,
        "dtype": model.dtype,
        "certified": model.certified,
        "share": model.share,
    }
