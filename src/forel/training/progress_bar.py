"""A progress bar of training: HTML that a notebook updates in place, or a line on a terminal; nothing elsewhere."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from forel.data.sources.files import expand_paths, file_state, is_file
from forel.markup import counted, html, tag
from forel.training.progress import Progress
from forel.validation import refuse

__all__ = ["ProgressBar", "TerminalDisplay", "observer", "size_of"]

FIRST_SECONDS, UPDATE_SECONDS = 0.5, 0.2  # before a bar is shown, and between updates
COMPRESSED = (".gz", ".zst", ".zstd")


class Display(Protocol):
    """Something that shows a fraction, None if it is unknown, and a text."""

    def show(self, fraction: float | None, text: str) -> None:
        """Show a fraction and a text in place of those before."""
        ...

    def close(self) -> None:
        """Remove what is shown."""
        ...


class NotebookDisplay:
    """An HTML bar below the cell of a notebook; no widgets are needed."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, fraction: float | None, text: str) -> None:
        """Show a fraction and a text in place of those before."""
        value = {} if fraction is None else {"value": f"{fraction:.4f}", "max": "1"}
        self._update(html(tag("div", tag("progress", "", **value), f" {text}")))

    def close(self) -> None:
        """Remove the bar."""
        if self._handle is not None:
            self._update("")

    def _update(self, content: str) -> None:
        from IPython.display import HTML, display

        if self._handle is None:
            self._handle = display(HTML(content), display_id=True)
        else:
            self._handle.update(HTML(content))


class TerminalDisplay:
    """A bar on standard error, which disappears at the end."""

    def __init__(self, console: Any) -> None:
        from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
        self._bar = Bar(*columns, console=console, transient=True)
        self._task: Any = None

    def show(self, fraction: float | None, text: str) -> None:
        """Show a fraction and a text in place of those before."""
        if self._task is None:
            self._bar.start()
            self._task = self._bar.add_task(text, total=None if fraction is None else 1.0)
        self._bar.update(self._task, completed=fraction or 0.0, description=text)

    def close(self) -> None:
        """Remove the bar."""
        if self._task is not None:
            self._bar.stop()


class ProgressBar:
    """Shows the progress of a run, first after half a second.

    Parameters
    ----------
    display : where it is shown
    source : of the run, whose size is the length of the bar
    passes : number of passes
    """

    reads_model = False

    def __init__(self, display: Display, source: Any, passes: int) -> None:
        self._display, self._passes = display, passes
        self._bytes, self._rows = _sizes(source)
        self._started = time.perf_counter()
        self._next = self._started + FIRST_SECONDS
        self._before: int | None = None  # rows before a checkpoint, which this run has not read

    def __call__(self, update: Progress) -> None:
        """Show progress, if an update is due."""
        now = time.perf_counter()
        if self._before is None:
            self._before = update.rows - len(update.block)
        if now < self._next:
            return
        self._next = now + UPDATE_SECONDS
        done = update.bytes / self._bytes if self._bytes else update.rows / self._rows if self._rows else None
        fraction = None if done is None else min(1.0, (update.pass_number - 1 + min(done, 1.0)) / self._passes)
        before = f"pass {update.pass_number} of {self._passes}, " if self._passes > 1 else ""
        speed = (update.rows - self._before) / max(now - self._started, 1e-9) if update.pass_number == 1 else None
        rate = "" if speed is None else f", {speed:,.0f} rows/s"
        self._display.show(
            fraction, f"{before}{counted(update.rows, 'row')}{rate}, loss {update.progressive.running.total.mean:.4f}"
        )


@contextmanager
def observer(progress: Any, source: Any, passes: int) -> Iterator[Callable[[Progress], None] | None]:
    """Yield the function to call after each block; None for none.

    Parameters
    ----------
    progress : a function, which is called as it is; None for a bar in notebooks; True for one on terminals as well;
        False for none
    source, passes : of the run

    >>> with observer(None, [], 1) as called:  # a docstring is not a notebook
    ...     print(called)
    None
    """
    if progress is not None and not isinstance(progress, bool):
        if not callable(progress):
            raise refuse("progress", progress, "a function, or True, False or None")
        yield progress
        return
    display = None if progress is False else _display(terminals=progress is True)
    if display is None:
        yield None
        return
    try:
        yield ProgressBar(display, source, passes)
    finally:
        display.close()


def _display(terminals: bool) -> Display | None:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is not None and hasattr(shell, "kernel"):  # a notebook, and not a shell on a terminal
        return NotebookDisplay()
    if not terminals:
        return None
    from rich.console import Console

    console = Console(stderr=True)
    return TerminalDisplay(console) if console.is_terminal else None


def size_of(source: list[str]) -> int | None:
    """Return the total size of files, None if one of them is a stream or compressed."""
    files = [path for one in source if one != "-" for path in expand_paths(one)]
    if "-" in source or any(not is_file(p) or p.endswith(COMPRESSED) for p in files):
        return None
    return sum(file_state(path)[0] for path in files)


def _sizes(source: Any) -> tuple[int | None, int | None]:
    """Return the size of files in bytes, or the number of rows of other sources; None if unknown."""
    if isinstance(source, str | os.PathLike):
        source = [os.fspath(source)]
    if isinstance(source, list | tuple) and source and all(isinstance(one, str | os.PathLike) for one in source):
        try:
            return size_of([os.fspath(one) for one in source]), None
        except ValueError:  # reading says what is wrong
            return None, None
    first = source[0] if isinstance(source, tuple) and source else source
    shape = getattr(first, "shape", None)
    try:
        return None, shape[0] if shape else len(first)
    except TypeError:
        return None, None
