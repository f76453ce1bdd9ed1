"""What ``forel train`` writes: the model, in another folder if necessary, predictions, checkpoints and the report."""

import os
import pathlib
import secrets
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import Any, NamedTuple

import forel
from forel.cli.errors import all_options, name_options
from forel.cli.predict import prediction_writer
from forel.cli.printing import say
from forel.data.options import BLOCK_BYTES
from forel.store import ServingChoice, choose_serving
from forel.training.history import History, certificate_values, mixture_weights
from forel.training.model import Model, save
from forel.training.progress import Progress, reads_model
from forel.training.progress_bar import size_of
from forel.validation import refuse

__all__ = [
    "Observers",
    "Page",
    "Predictions",
    "SaveOptions",
    "Saved",
    "checkpoint_of",
    "interrupts_name",
    "rescue_folders",
    "save_model",
    "unfinished_run",
    "write_all",
]

MIN_BLOCKS = 64  # of a small file, so that plots have enough points
MIN_BLOCK_BYTES = 1 << 12


class SaveOptions(NamedTuple):
    """What to write of a model: weights for predictions only, the best setting only, or everything."""

    serving: bool = False
    best: bool = False


class Observers:
    """Several callbacks as one.

    Parameters
    ----------
    callbacks : called in this order

    >>> Observers([print]).reads_model
    True
    """

    def __init__(self, callbacks: Sequence[Callable[[Progress], None]]) -> None:
        self._callbacks = callbacks

    @property
    def reads_model(self) -> bool:
        """Whether one of them may read the model."""
        return any(map(reads_model, self._callbacks))

    def __call__(self, moment: Progress) -> None:
        """Call all of them."""
        for callback in self._callbacks:
            callback(moment)


class Predictions:
    """Progressive predictions; if they cannot be written, training continues without them.

    Parameters
    ----------
    path : the file, replaced when predictions are complete; "-" for standard output
    link : the function from margins to predictions
    """

    reads_model = False

    def __init__(self, path: str, link: Callable[[Any], Any]) -> None:
        self._path, self._link = path, link
        self._problem: OSError | None = None
        self._open = ExitStack()
        self._write = self._open.enter_context(prediction_writer(path))

    def __call__(self, moment: Progress) -> None:
        """Write the predictions of a block."""
        if self._problem is not None:
            return
        try:
            self._write(moment.block, moment.predicted(self._link))
        except BrokenPipeError:
            raise
        except OSError as error:
            self._problem = error
            self.__exit__(type(error), error, error.__traceback__)  # frees the disk space
            say(f"forel: {error.strerror}; training continues without predictions")

    def __enter__(self) -> "Predictions":
        return self

    def __exit__(self, *errors: Any) -> None:
        self._open.__exit__(*errors)

    def close(self) -> None:
        """Replace the file, or raise the error of an earlier write."""
        if self._problem is not None:
            raise OSError(self._problem.errno, f"{self._path}: predictions were not written")
        self._open.close()


class Saved(NamedTuple):
    """Where a model was written, the error if it is not the given path, and the choice of a model to serve."""

    path: str | None
    problem: Exception | None = None
    choice: ServingChoice | None = None

    def check(self) -> None:
        """Raise the error, if there is one."""
        if self.problem is not None:
            raise self.problem


@contextmanager
def interrupts_name(model: str | None, before: tuple[int, int] | None = None) -> Iterator[None]:
    """Add the path of the model to a Ctrl-C inside the block, if its file is not the one from ``before``."""
    try:
        yield
    except KeyboardInterrupt as stop:
        if stop.args or _identity(model) == before:
            raise
        raise KeyboardInterrupt(f"the model was written to {model}") from None


def _identity(path: str | None) -> tuple[int, int] | None:
    """Return what changes when a file is replaced; None if it does not exist."""
    try:
        status = os.stat(path or "")
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def save_model(trained: Model, path: str | None, options: SaveOptions) -> Saved:
    """Write a model; if that fails, write it to another folder, which the error names."""
    if path is None:
        return Saved(None)
    try:
        with interrupts_name(path, _identity(path)):
            choice = _save(trained, path, options)
    except ValueError as error:
        return Saved(None, error)
    except OSError as error:
        reason = error.strerror or str(error)
        for folder in rescue_folders():
            other = os.path.join(folder, f"rescued-{secrets.token_hex(4)}-{os.path.basename(path)}")
            with suppress(OSError):
                choice = _save(trained, other, options)
                where = f"the model was written to {other} instead; move it to its place"
                return Saved(other, OSError(error.errno, f"{reason}; {where}"), choice)
        return Saved(None, OSError(error.errno, f"{reason}; no other folder could be written to either"))
    return Saved(path, choice=choice)


def rescue_folders() -> list[pathlib.Path]:
    """Return the folders to try if a model cannot be written: the working directory, and those of temporary files."""
    return [pathlib.Path(one) for one in dict.fromkeys((os.getcwd(), "/var/tmp", tempfile.gettempdir()))]


def write_all(*steps: Callable[[], object]) -> None:
    """Run every step, even after an error, and then raise the first error."""
    errors: list[Exception] = []
    for step in steps:
        try:
            step()
        except (OSError, ValueError) as error:
            errors.append(error)
    for other in errors[1:]:
        say(f"forel: {getattr(other, 'strerror', None) or other}")
    if errors:
        raise errors[0]


def _save(trained: Model, path: str, options: SaveOptions) -> ServingChoice | None:
    if not options.serving:
        (trained.best() if options.best else trained).save(path)
        return None
    choice = choose_serving(trained.learner)
    save(path, choice.model, trained.extra, trained.names)
    return choice


def checkpoint_of(model: str | None, every: int | None, resume: bool, predictions: str | None) -> dict[str, Any]:
    """Return the arguments of ``train`` for checkpoints, and print where training starts."""
    if every is None and not resume:
        return {}
    if model is None:
        raise refuse("--model", None, "a file, next to which the checkpoint is written")
    if resume and predictions is not None:
        raise refuse("--predictions", predictions, "none with --resume: predictions of earlier rows would be missing")
    from forel.store.atomic import remove_leftovers

    path = _checkpoint_path(model)
    remove_leftovers(path)  # of a run that was killed while it wrote its first checkpoint
    if resume:
        remove_leftovers(model)
        found = os.path.exists(path)
        where = f"continues from {path}" if found else f"there is no {path}; starts from the beginning"
        say(f"forel: {where}")
    return {"checkpoint": path, "resume": resume, **({} if every is None else {"checkpoint_every": every})}


def unfinished_run(model: str | None, every: int | None, resume: bool) -> str:
    """Return what is left of a run that was interrupted: nothing, or a checkpoint.

    >>> unfinished_run("m.forel", every=None, resume=False)
    'no model was written'
    """
    checkpoints = model is not None and (every is not None or resume) and os.path.exists(_checkpoint_path(model))
    return f"no model was written{f'; --resume continues from {_checkpoint_path(model)}' if checkpoints else ''}"


def _checkpoint_path(model: str | None) -> str:
    return f"{model}.checkpoint"


class Page:
    """The report of a run.

    Parameters
    ----------
    path : the file to write
    source : the files that are read
    certified : whether to record the certificate
    """

    def __init__(self, path: str, source: list[str], certified: bool) -> None:
        self.path, self.source = path, source
        self.history = (
            History(proof=certificate_values, shares=mixture_weights) if certified else History(shares=mixture_weights)
        )

    @property
    def block_bytes(self) -> int | None:
        """The size of blocks, smaller for small files; results do not depend on it."""
        size = size_of(self.source)
        return None if size is None else min(max(size // MIN_BLOCKS, MIN_BLOCK_BYTES), BLOCK_BYTES)

    def write(self, trained: Model, stderr: bool) -> None:
        """Write the report and print its path, on stderr if ``stderr``."""
        from forel.report import write_report

        self.history.close()
        command = shlex.join(["forel", *sys.argv[1:]])
        options = all_options() if trained.training.problems.count else ()
        messages = [name_options(message, options) for message in trained.training.problems.messages]
        training = replace(trained.training, problems=replace(trained.training.problems, messages=messages))
        shown = replace(trained, training=training)
        write_report(self.path, shown, self.history, source=self.source, command=command, version=forel.__version__)
        say(f"Report: {self.path}", stderr)
