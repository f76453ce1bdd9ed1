"""What watches a run: callbacks, a bar in a notebook or on a terminal, and the memory that it takes."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data import Block
from forel.data.sources.files import expand_paths, file_state, is_file
from forel.learner.learner import Learner
from forel.markup import counted, html, tag
from forel.training.metrics import StreamMetrics
from forel.training.run import Observer, Place, Step
from forel.validation import refuse, total_memory

__all__ = [
    "Callback",
    "MemoryLimit",
    "Progress",
    "ProgressBar",
    "TerminalDisplay",
    "reads_model",
    "size_of",
    "sizes",
    "watching",
]

FIRST_SECONDS, UPDATE_SECONDS = 0.5, 0.2  # before a bar is shown, and between updates
COMPRESSED = (".gz", ".zst", ".zstd")
MOST = 0.95  # of the machine's memory and swap


@dataclass(frozen=True)
class Progress:
    """Progress of a training run, passed to the ``progress`` callback after each block.

    Parameters
    ----------
    pass_number : the current pass, from 1
    rows, entries, bytes : rows, features and bytes of text read in this pass
    progressive, holdout : metrics of the rows learned from, and of the rows held out, in this pass
    block, margins : the last block, and the margins of its rows before they were learned from
    model : the model after the block; callbacks that do not read it may say so, see :func:`reads_model`
    classes : names of several classes; empty for one margin
    """

    pass_number: int
    rows: int
    entries: int
    bytes: int
    progressive: StreamMetrics
    holdout: StreamMetrics
    block: Block = field(repr=False)
    margins: NDArray[Any] = field(repr=False)
    model: Learner = field(repr=False)
    classes: Sequence[str] = ()

    def predicted(self, link: Callable[[NDArray[Any]], NDArray[Any]]) -> NDArray[Any]:
        """Return the predictions for the rows of the block, or the names of classes."""
        if self.classes:
            return np.asarray(np.array(self.classes)[self.margins.argmax(axis=1)])
        return link(self.margins)


def reads_model(callback: Callable[[Progress], None] | None) -> bool:
    """Return whether a callback may read the model, so that it has to be called before the next block is learned.

    True unless its attribute ``reads_model`` is False; metrics are those after the block either way.

    >>> reads_model(print), reads_model(None)
    (True, False)
    """
    return callback is not None and bool(getattr(callback, "reads_model", True))


@dataclass(eq=False)
class Callback(Observer):
    """Calls a function after each block.

    Parameters
    ----------
    function : the function
    progress : returns what it receives, from a step
    """

    function: Callable[[Progress], None]
    progress: Callable[[Step], Progress]
    beside = False

    def reads_model(self, place: Place) -> bool:
        """Return whether the function may read the model."""
        return reads_model(self.function)

    def after_block(self, step: Step) -> None:
        """Call the function."""
        self.function(self.progress(step))


class MemoryLimit(Observer):
    """Raises an error when this process takes nearly all memory of the machine."""

    def __init__(self) -> None:
        self._most = MOST * total_memory()

    def after_block(self, step: Step) -> None:
        """Compare the memory that the process takes."""
        if (taken := resident_memory()) > self._most:
            rows = f"memory: got {taken / 1e9:,.1f} GB after {counted(step.place.rows, 'row')}"
            most = f"expected at most {self._most / 1e9:,.1f} GB"
            raise MemoryError(f"{rows}, {most}; use fewer bits, or fewer lanes")


def resident_memory() -> float:
    """Return the memory that this process takes, in bytes; 0 if unknown."""
    with suppress(OSError, ValueError, IndexError), open("/proc/self/statm", encoding="ascii") as file:
        return float(int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
    return 0.0


class NotebookDisplay:
    """An HTML bar below the cell of a notebook; no widgets are needed."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, fraction: float | None, text: str) -> None:
        """Show a fraction, None if it is unknown, and a text in place of those before."""
        from IPython.display import HTML, display

        value = {} if fraction is None else {"value": f"{fraction:.4f}", "max": "1"}
        content = HTML(html(tag("div", tag("progress", "", **value), f" {text}")))
        if self._handle is None:
            self._handle = display(content, display_id=True)
        else:
            self._handle.update(content)

    def close(self) -> None:
        """Remove the bar."""
        from IPython.display import HTML

        if self._handle is not None:
            self._handle.update(HTML(""))


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

    def __init__(self, display: NotebookDisplay | TerminalDisplay, source: Any, passes: int) -> None:
        self._display, self._passes = display, passes
        self._bytes, self._rows = sizes(source)
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
            fraction, f"{before}{counted(update.rows, 'row')}{rate}, loss {update.progressive.total.mean:.4f}"
        )


@contextmanager
def watching(progress: Any, source: Any, passes: int) -> Iterator[Callable[[Progress], None] | None]:
    """Yield the function to call after each block; None for none.

    Parameters
    ----------
    progress : a function, which is called as it is; None for a bar in notebooks; True for one on terminals as well;
        False for none
    source, passes : of the run

    >>> with watching(None, [], 1) as called:  # a docstring is not a notebook
    ...     print(called)
    None
    """
    if progress is not None and not isinstance(progress, bool):
        if not callable(progress):
            raise refuse("progress", progress, "a function, or True, False or None")
        yield progress
    elif progress is False or (display := _display(terminals=progress is True)) is None:
        yield None
    else:
        with closing(display):
            yield ProgressBar(display, source, passes)


def _display(terminals: bool) -> NotebookDisplay | TerminalDisplay | None:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if hasattr(shell, "kernel"):  # a notebook, and not a shell on a terminal
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


def sizes(source: Any) -> tuple[int | None, int | None]:
    """Return the size of files in bytes, or the number of rows of other sources; None if unknown."""
    paths = [source] if isinstance(source, str | os.PathLike) else source
    with suppress(TypeError, ValueError):  # there is no length, or reading says what is wrong
        if isinstance(paths, list | tuple) and paths and all(isinstance(one, str | os.PathLike) for one in paths):
            return size_of([os.fspath(one) for one in paths]), None
        first = source[0] if isinstance(source, tuple) and source else source
        shape = getattr(first, "shape", None)
        return None, shape[0] if shape else len(first)
    return None, None
