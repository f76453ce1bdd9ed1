"""Text that is written to a file all or not at all, and paths that are looked at before the work begins."""

import os
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress

from forel.store.files import Path, beside, failure, permissions, sweep
from forel.store.locks import lock
from forel.validation import refuse

__all__ = ["check_outputs", "replacing"]


def check_outputs(
    outputs: Mapping[str, Path | None], streams: Iterable[str] = (), sources: Iterable[Path] = ()
) -> None:
    """Refuse paths that could not be written to, before anything is done for them.

    Parameters
    ----------
    outputs : paths by the names of their options; None for those that were not given
    streams : the names of those that may also be pipes or devices
    sources : files that are read, and must not be replaced

    >>> check_outputs({"--model": "/no/such/folder/m.forel"})
    Traceback (most recent call last):
    ValueError: --model: got '/no/such/folder/m.forel', expected a file in a folder that is there; make the folder first
    """
    taken = {os.path.realpath(path): "a file that is not read from" for path in sources}
    for name, path in outputs.items():
        if path is None:
            continue
        target = pathlib.Path(os.path.realpath(path))
        if target.exists() and not target.is_file():
            if name in streams and not target.is_dir():
                continue
            raise refuse(name, os.fspath(path), "the name of a file, and not of a folder or a device")
        if not target.parent.is_dir():
            raise refuse(name, os.fspath(path), "a file in a folder that is there; make the folder first")
        if not os.access(target.parent, os.W_OK | os.X_OK):
            raise refuse(name, os.fspath(path), "a file in a folder that you may write to")
        if str(target) in taken:
            raise refuse(name, os.fspath(path), taken[str(target)])
        taken[str(target)] = f"another file than that of {name}"


@contextmanager
def replacing(path: Path) -> Iterator[Callable[[str], object]]:
    """Yield a function that writes text to a file beside ``path``, which replaces it when the block ends.

    If the block ends in an error, an older file stays as it is. Pipes and devices are written to as they are. What
    cannot be written is an ``OSError`` that names the path.

    >>> import tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "p.txt"
    >>> with replacing(path) as write:
    ...     _ = write("0.5")
    ...     path.exists()
    False
    >>> path.read_text()
    '0.5'
    """
    target = pathlib.Path(os.path.realpath(path))
    whole = target.is_file() or not target.exists()
    name = beside(target) if whole else str(target)
    if whole:
        sweep(target)
    with _named(path):
        file = open(name, "x" if whole else "w", encoding="utf-8")  # noqa: SIM115
    lock(file.fileno())

    def write(text: str) -> None:
        with _named(path):
            file.write(text)

    try:
        yield write
        with _named(path):
            file.flush()
            if whole:
                os.chmod(name, permissions(target, file.fileno()))
                os.fsync(file.fileno())
            file.close()
            if whole:
                os.replace(name, target)
    finally:
        with suppress(OSError):
            file.close()  # what is left in its buffer may not be written either
        if whole:
            with suppress(OSError):
                os.unlink(name)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise failure(path, error) from error
