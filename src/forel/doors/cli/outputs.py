"""What ``forel train`` writes: the model first, elsewhere if need be; and predictions, as long as there is room."""

import os
import pathlib
import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, NamedTuple

import typer

from forel.doors.cli.predict import writing
from forel.store import save, serving_model
from forel.training.state import Progress
from forel.training.trained import Trained

__all__ = ["Kept", "Predictions", "Saved", "interrupts_name", "rescue_folders", "save_model", "write_all"]


class Kept(NamedTuple):
    """What is written of a model: weights for predicting only, or the best setting alone, or all."""

    serving: bool = False
    best: bool = False


class Predictions:
    """Predictions of rows before they are learned from; where they cannot be written, training goes on without them.

    Parameters
    ----------
    path : of the file, which is replaced when all are there; "-" for standard output
    link : from margins to what is written
    """

    def __init__(self, path: str, link: Callable[[Any], Any]) -> None:
        self._path, self._link = path, link
        self._problem: OSError | None = None
        self._open = ExitStack()
        self._write = self._open.enter_context(writing(path))

    def __call__(self, moment: Progress) -> None:
        """Write those of a block."""
        if self._problem is not None:
            return
        try:
            self._write(moment.block, self._link(moment.margins))
        except BrokenPipeError:
            raise
        except OSError as error:
            self._problem = error
            self.__exit__(type(error), error, error.__traceback__)  # room on the disk is given back at once
            typer.echo(f"forel: {error.strerror}; training goes on without predictions", err=True)

    def __enter__(self) -> "Predictions":
        return self

    def __exit__(self, *wrong: Any) -> None:
        self._open.__exit__(*wrong)

    def close(self) -> None:
        """Replace the file, or raise what went wrong with it."""
        if self._problem is not None:
            raise OSError(self._problem.errno, f"{self._path}: predictions were not written")
        self._open.close()


class Saved(NamedTuple):
    """Where a model was written, and what went wrong on the way."""

    path: str | None
    problem: Exception | None = None

    def check(self) -> None:
        """Raise what went wrong."""
        if self.problem is not None:
            raise self.problem


@contextmanager
def interrupts_name(model: str | None, before: tuple[int, int] | None = None) -> Iterator[None]:
    """Make Ctrl-C inside the block say where the model is, if its file is not the one from ``before``."""
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


def save_model(trained: Trained, path: str | None, kept: Kept) -> Saved:
    """Write a model; one that cannot be written where it should is written elsewhere, and the problem says where."""
    if path is None:
        return Saved(None)
    try:
        with interrupts_name(path, _identity(path)):
            _save(trained, path, kept)
    except ValueError as error:
        return Saved(None, error)
    except OSError as error:
        said = error.strerror or str(error)
        for folder in rescue_folders():
            other = os.path.join(folder, f"rescued-{secrets.token_hex(4)}-{os.path.basename(path)}")
            with suppress(OSError):
                _save(trained, other, kept)
                where = f"the model was written to {other} instead; move it to where it belongs"
                return Saved(other, OSError(error.errno, f"{said}; {where}"))
        return Saved(None, OSError(error.errno, f"{said}; and nowhere else either"))
    return Saved(path)


def rescue_folders() -> list[pathlib.Path]:
    """Return where to write a model that cannot be written where it should: here, or where temporary files are."""
    return [pathlib.Path(one) for one in dict.fromkeys((os.getcwd(), "/var/tmp", tempfile.gettempdir()))]


def write_all(*steps: Callable[[], object]) -> None:
    """Take every step, whatever becomes of those before it; then raise what went wrong first."""
    wrong: list[Exception] = []
    for step in steps:
        try:
            step()
        except (OSError, ValueError) as error:
            wrong.append(error)
    for other in wrong[1:]:
        typer.echo(f"forel: {getattr(other, 'strerror', None) or other}", err=True)
    if wrong:
        raise wrong[0]


def _save(trained: Trained, path: str, kept: Kept) -> None:
    if kept.serving:
        save(path, serving_model(trained.model), trained.extra, trained.names)
    else:
        (trained.best() if kept.best else trained).save(path)
