"""Workers of a Ray cluster that read, decompress and parse files.

Ray schedules tasks, repeats them and transports blocks: a piece is a generator task, whose results are groups of blocks
in shared memory. Ray repeats the task of a worker that dies, with the same groups.
"""

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Any

import numpy as np

from forel.data.block import Block
from forel.data.pieces import AHEAD, Parsed, Piece, read_piece
from forel.learner.keyed import KeyedModels
from forel.learner.rows import as_writeable
from forel.validation import positive, refuse, whole

if TYPE_CHECKING:
    from forel.ray.ray_keys import RayKeys

__all__ = ["RayWorkers", "import_ray", "ray_errors"]

GROUP_BYTES = 1 << 24  # bytes of a group of blocks: an object costs Ray milliseconds, whatever its size
WAITING_SHARE = 0.25  # of the object store, for groups that wait
MAX_WAITING, MIN_WAITING = 32, 4  # groups of a piece that wait


class RayWorkers:
    """Workers on a Ray cluster, as ``forel.train(..., cluster=...)`` takes them; a context manager.

    Parameters
    ----------
    address : "local" to start Ray on this machine, or the address of a cluster as :func:`ray.init` takes it: "auto",
        "HOST:PORT" or "ray://HOST:PORT"; a connection that this process has already is used and left open
    number : pieces of files that are read at the same time, each on one CPU; None for all CPUs but one
    timeout : seconds to wait until a cluster answers

    >>> RayWorkers("local", number=0)
    Traceback (most recent call last):
    ValueError: workers: got 0, expected a whole number of at least 1
    """

    def __init__(self, address: str = "local", number: int | None = None, timeout: float = 60.0) -> None:
        self.address, self.timeout = address, positive("timeout", timeout)
        self._number = None if number is None else whole("workers", number, low=1)
        self._owned = False
        self._task: Any = None
        self._group_bytes = GROUP_BYTES

    def __enter__(self) -> "RayWorkers":
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        if self.address == "local":
            # Ray reads it when it is imported: false lets it listen on the loopback interface alone.
            os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        ray = import_ray()
        if not ray.is_initialized():
            self._start(ray)
        if self._number is None:
            self._number = max(1, int(ray.cluster_resources().get("CPU", 1)) - 1)
        self._group_bytes, waiting = group_size(ray.cluster_resources().get("object_store_memory", 0.0), self._number)
        self._task = ray.remote(num_cpus=1)(read_groups).options(
            _generator_backpressure_num_objects=waiting, name="forel.read_piece"
        )
        return self

    def __exit__(self, *error: Any) -> None:
        self._task = None
        if self._owned:
            import_ray().shutdown()
            self._owned = False

    def _start(self, ray: Any) -> None:
        options: dict[str, Any] = {"configure_logging": False, "log_to_driver": False}
        if self.address == "local":
            options |= {"num_cpus": self._number or os.cpu_count(), "include_dashboard": False}
        try:
            if self.address == "local":
                with _processes_ended_on_error():
                    ray.init(self.address, **options)
            else:
                with _without_signal_warning():
                    run_within(self.timeout, partial(ray.init, self.address, **options))
        except Exception as error:  # Ray raises a plain one if a machine is too slow for its limit of 30 seconds
            got = f"{self.address}, which does not answer ({str(error).splitlines()[0]})"
            expected = "local, or the address of a running cluster, as ray start --head prints it on its machine"
            raise refuse("ray", got, expected) from error
        self._owned = True

    @property
    def number(self) -> int:
        """The number of pieces that are read at the same time."""
        return self._number or 1

    def read(self, piece: Piece) -> "RayResults":
        """Start to read a piece on a worker."""
        if self._task is None:
            raise refuse("cluster", "workers that are not started", "with RayWorkers(...) as workers: around training")
        return RayResults(self._task.remote(piece, self._group_bytes))

    def learners(self, models: KeyedModels) -> "RayKeys":
        """Return models by key that learn on the cluster, in as many groups as pieces are read at the same time."""
        from forel.ray.ray_keys import RayKeys

        return RayKeys(models, self.number)


def run_within(seconds: float, action: Callable[[], object]) -> None:
    """Run a function that may never return; raise TimeoutError after some seconds, and leave it to its thread.

    Ray repeats without end what a server accepts and does not answer, and rewrites loopback addresses to others.

    >>> from threading import Event
    >>> answered = Event()
    >>> run_within(0.01, answered.wait)
    Traceback (most recent call last):
    TimeoutError: no answer for 0.01 seconds
    >>> answered.set()  # ends the thread
    """
    raised = list[BaseException]()

    def run() -> None:
        try:
            action()
        except BaseException as error:  # raised by the caller
            raised.append(error)

    thread = Thread(target=run, name="forel-ray", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise TimeoutError(f"no answer for {seconds:g} seconds")
    if raised:
        raise raised[0]


@contextmanager
def _processes_ended_on_error() -> Iterator[None]:
    """End the processes that were started inside the block if it raises: Ray leaves those of a failed start."""
    import psutil  # type: ignore[import-untyped]  # Ray has a copy

    this = psutil.Process()
    before = {child.pid for child in this.children()}
    try:
        yield
    except BaseException:
        started = [child for child in this.children() if child.pid not in before]
        ended = [*started, *(below for child in started for below in child.children(recursive=True))]
        for process in ended:
            with suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(ended, timeout=10)
        raise


@contextmanager
def _without_signal_warning() -> Iterator[None]:
    """Leave out Ray's warning that it handles no signals if another thread than the main one connects."""
    logger = logging.getLogger("ray._private.worker")

    def other(record: logging.LogRecord) -> bool:
        return "SIGTERM handler" not in record.getMessage()

    logger.addFilter(other)
    try:
        yield
    finally:
        logger.removeFilter(other)


def group_size(store: float, number: int) -> tuple[int, int]:
    """Return the bytes of a group of blocks and the number of groups of a piece that may wait, for a given store.

    >>> group_size(8e9, 2), group_size(80e6, 2)
    ((16777216, 29), (1250000, 4))
    """
    each = int(WAITING_SHARE * store / (AHEAD * number))  # for a piece
    size = min(GROUP_BYTES, each // MIN_WAITING)
    return size, min(max(each // max(size, 1), MIN_WAITING), MAX_WAITING)


def read_groups(piece: Piece, size: int) -> Iterator[list[Parsed]]:
    """Read a piece, on a worker, in groups of blocks of about ``size`` bytes.

    Learning starts with the first group, which is one block; the sizes of the next ones double.
    """
    group, held, limit = list[Parsed](), 0, 1
    for parsed in read_piece(piece):
        group.append(parsed)
        held += _nbytes(parsed)
        if held >= limit:
            yield group
            group, limit, held = [], min(size, 2 * max(held, limit)), 0
    if group:
        yield group


def _nbytes(parsed: Parsed) -> int:
    arrays = () if parsed.block is None else (getattr(parsed.block, one.name) for one in fields(Block))
    return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))


@dataclass(frozen=True, eq=False)
class RayResults:
    """The blocks of a piece, in the order in which a worker yields them."""

    references: Any

    def __iter__(self) -> Iterator[Parsed]:
        with ray_errors():
            for reference in self.references:
                yield from map(_with_views, import_ray().get(reference))

    @property
    def done(self) -> bool:
        """Whether the worker has read the whole piece."""
        return bool(import_ray().wait([self.references.completed()], timeout=0, fetch_local=False)[0])

    def close(self) -> None:
        """Stop reading."""
        with suppress(Exception):  # a task that has ended already
            import_ray().cancel(self.references, force=False)


def _with_views(parsed: Parsed) -> Parsed:
    """Return parsed rows with arrays that kernels accept."""
    block = parsed.block
    if block is None:
        return parsed
    held = ((one.name, getattr(block, one.name)) for one in fields(Block))
    arrays: dict[str, Any] = {name: as_writeable(array) for name, array in held if isinstance(array, np.ndarray)}
    return replace(parsed, block=replace(block, **arrays))


@contextmanager
def ray_errors() -> Iterator[None]:
    """Raise errors of Ray, after its own retries, as errors of input and output."""
    from ray.exceptions import RayError

    try:
        yield
    except RayError as error:
        raise OSError(f"cluster: a worker failed ({str(error).strip().splitlines()[0]})") from error


def import_ray() -> Any:
    """Return the module of Ray, or raise an error with the command that installs it."""
    try:
        import ray

        ray.init  # noqa: B018  # a folder of that name can be imported, and has no functions
    except (ImportError, AttributeError) as error:
        raise refuse(
            "ray", "an environment without Ray", "an installation with it: pip install 'forel[ray]'"
        ) from error
    return ray
