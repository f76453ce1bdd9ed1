"""Shards of features on a Ray cluster: an actor holds each shard.

Calls that change shards are numbered and kept until the next snapshot. An actor that Ray restarted has no shard: it
receives its last snapshot, and the calls since then again. Snapshots are in Ray's object store, which writes them to
disk where memory is short; they do not pass through the process that trains.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from forel.learner.feature_shard import FeatureShard
from forel.learner.sharding import Function
from forel.ray.ray_workers import import_ray, ray_errors
from forel.ray.views import writable_view
from forel.validation import refuse

__all__ = ["RayShards"]

REPLAYED_BYTES = 1 << 28  # of calls that are kept to be repeated, at least
STATES = 4  # or this multiple of the size of all shards, if that is more
PUT_BYTES = 1 << 16  # of arguments that are put into the object store once
LOST = -1  # size of the snapshot of an actor without a shard


class RayShards:
    """Actors that hold shards of features, as ``Sharding(holders=...)`` takes them; a context manager, within Ray's.

    A model has to be saved before the context ends, and its shards with it.
    """

    def __init__(self) -> None:
        self._holders: list[_Holders] | None = None

    def __enter__(self) -> "RayShards":
        self._holders = []
        return self

    def __exit__(self, *error: Any) -> None:
        for holders in self._holders or ():
            holders.stop()
        self._holders = None

    def __call__(self) -> "_Holders":
        """Return holders of the shards of one model."""
        if self._holders is None:
            raise refuse("holders", "actors that are not started", "with RayShards() as shards: around training")
        self._holders.append(_Holders())
        return self._holders[-1]


class _Holders:
    """The actors of one model, and the calls since their last snapshots."""

    def __init__(self) -> None:
        self._actors: list[Any] = []
        self._makers: list[Callable[[], FeatureShard]] = []
        self._snapshots: list[Any] = []
        self._calls: list[tuple[Function, list[Any]]] = []
        self._before, self._bytes, self._limit = 0, 0, REPLAYED_BYTES  # calls before the snapshot; bytes since then

    def start(self, shards: Sequence[Callable[[], FeatureShard]]) -> None:
        """Make all shards, each in an actor."""
        # Shards share the CPUs with tasks that read.
        actor: Any = (
            import_ray()
            .remote(_ShardActor)
            .options(num_cpus=0, max_restarts=-1, max_task_retries=-1, scheduling_strategy="SPREAD")
        )
        self._makers, self._snapshots = list(shards), [None for _ in shards]
        self._actors = [actor.remote() for _ in shards]
        for k in range(len(shards)):
            self._reset(k)

    def stop(self) -> None:
        """End all actors."""
        for actor in self._actors:
            import_ray().kill(actor)
        self._actors, self._calls, self._snapshots = [], [], []

    def change(self, function: Function, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a function that changes shards; the arguments are those of each shard."""
        with ray_errors():
            if self._bytes > self._limit:
                self._take_snapshots()
            put, sizes = import_ray().put, [_nbytes(own) for own in arguments]
            kept = [put(own) if size > PUT_BYTES else own for own, size in zip(arguments, sizes, strict=True)]
            self._calls.append((function, kept))
            self._bytes += sum(sizes)
            number = self._before + len(self._calls)
            found = [actor.change.remote(number, function, own) for actor, own in self._each(kept)]
            return [self._result(k, reference, self._repeat) for k, reference in enumerate(found)]

    def read(self, function: Function, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a function that changes nothing."""
        with ray_errors():
            found = [actor.read.remote(function, own) for actor, own in self._each(arguments)]

            def again(k: int) -> Any:
                self._repeat(k)
                return self._actors[k].read.remote(function, arguments[k])

            return [self._result(k, reference, again) for k, reference in enumerate(found)]

    def _each(self, arguments: Sequence[Any]) -> Any:
        if not self._actors:
            raise refuse("model", "shards on a cluster that has ended", "a model that is saved before, and loaded")
        return zip(self._actors, arguments, strict=True)

    def _result(self, k: int, reference: Any, again: Callable[[int], Any]) -> Any:
        """Return the result of an actor; without a shard, it gets the shard and repeats the call."""
        done, result = import_ray().get(reference)
        while not done:
            done, result = import_ray().get(again(k))
        return result

    def _reset(self, k: int) -> None:
        source = self._makers[k] if self._snapshots[k] is None else self._snapshots[k]
        self._actors[k].reset.remote(source, self._before)

    def _repeat(self, k: int) -> Any:
        """Let an actor continue from its snapshot, and repeat all calls since; return the result of the last."""
        self._reset(k)
        last: Any = None
        for number, (function, arguments) in enumerate(self._calls, self._before + 1):
            last = self._actors[k].change.remote(number, function, arguments[k])
        return last

    def _take_snapshots(self) -> None:
        ray, number = import_ray(), self._before + len(self._calls)
        taken = [actor.snapshot.options(num_returns=2).remote(number) for actor in self._actors]
        sizes = []
        for k, (size, snapshot) in enumerate(taken):
            while (found := ray.get(size)) == LOST:
                self._repeat(k)
                size, snapshot = self._actors[k].snapshot.options(num_returns=2).remote(number)
            sizes.append(found)
            taken[k] = size, snapshot
        self._snapshots = [snapshot for _, snapshot in taken]
        self._before, self._calls, self._bytes = number, [], 0
        self._limit = max(REPLAYED_BYTES, STATES * sum(sizes))


class _ShardActor:
    """An actor: a shard, after a number of calls that changed it."""

    def __init__(self) -> None:
        self._shard: FeatureShard | None = None
        self._number = -1

    def reset(self, source: FeatureShard | Callable[[], FeatureShard], number: int) -> None:
        """Continue from a snapshot, or from a new shard."""
        self._shard = source if isinstance(source, FeatureShard) else source()
        self._number = number

    def change(self, number: int, function: Function, arguments: tuple[Any, ...]) -> tuple[bool, Any]:
        """Call a function if this is the next call; return whether it is, and the result."""
        if self._shard is None or number != self._number + 1:
            return False, None
        self._number = number
        return True, function(self._shard, *_writable(arguments))

    def read(self, function: Function, arguments: tuple[Any, ...]) -> tuple[bool, Any]:
        """Call a function that changes nothing; return whether there is a shard, and the result."""
        return (False, None) if self._shard is None else (True, function(self._shard, *_writable(arguments)))

    def snapshot(self, number: int) -> tuple[int, FeatureShard | None]:
        """Return the size of the shard after a number of calls, and the shard; LOST without it."""
        if self._shard is None or self._number != number:
            return LOST, None
        return self._shard.nbytes, self._shard


def _writable(value: Any) -> Any:
    """Return arguments with arrays that kernels accept."""
    if isinstance(value, tuple):
        parts = map(_writable, value)
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return writable_view(value)


def _nbytes(value: Any) -> int:
    """Return the bytes of all arrays in arguments."""
    if isinstance(value, tuple):
        return sum(map(_nbytes, value))
    return int(value.nbytes) if isinstance(value, np.ndarray) else 0
