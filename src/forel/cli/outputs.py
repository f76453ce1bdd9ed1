"""Outputs of ``forel train``: the model, in another folder if necessary, and predictions."""

import os
import pathlib
import secrets
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, NamedTuple

import typer

from forel.cli.predict import prediction_writer
from forel.store import ServingChoice, choose_serving, save
from forel.training.state import Progress, reads_model
from forel.training.trained import Trained

__all__ = [
    "Observers",
    "Predictions",
    "SaveOptions",
    "Saved",
    "interrupts_name",
    "rescue_folders",
    "save_model",
    "write_all",
]


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
            typer.echo(f"forel: {error.strerror}; training continues without predictions", err=True)

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


def save_model(trained: Trained, path: str | None, options: SaveOptions) -> Saved:
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
        typer.echo(f"forel: {getattr(other, 'strerror', None) or other}", err=True)
    if errors:
        raise errors[0]


def _save(trained: Trained, path: str, options: SaveOptions) -> ServingChoice | None:
    if not options.serving:
        (trained.best() if options.best else trained).save(path)
        return None
    # Calibrated predictions are those of the mixture.
    choice = choose_serving(trained.model, mixed=trained.calibrated is not None)
    save(path, choice.model, trained.extra, trained.names)
    return choice
