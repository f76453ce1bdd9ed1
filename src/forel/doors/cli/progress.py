"""The output of ``forel train``: progress while it runs, and a summary."""

import json
import os
import time
from contextlib import ExitStack
from typing import Any

from forel.data.sources.streams import expand_paths
from forel.doors.cli.console import open_console
from forel.doors.cli.show import jsonable, mixture_of, mixture_table, print_problems, report_table
from forel.training.state import Progress
from forel.training.trained import Trained

__all__ = ["Reporter", "finish", "size_of"]

HEAD = ("average", "since", "rows", "features", "rows/s", "MB/s")
UPDATE_SECONDS = 0.1  # seconds between updates of the progress bar


class Reporter:
    """Progress on stderr: a bar on a terminal, otherwise a table with a row after every doubling.

    Parameters
    ----------
    source : the files, whose sizes are the total of the bar
    passes : number of passes
    quiet : whether to show nothing
    """

    def __init__(self, source: list[str], passes: int, quiet: bool) -> None:
        self._console = open_console(stderr=True)
        self._quiet, self._passes = quiet, passes
        self._bytes = size_of(source)
        self._begun = self._updated = time.perf_counter()
        self._turn, self._next = 0, 1
        self._last, self._before = self._begun, (0, 0)
        self._stack = ExitStack()
        self._bar: Any = None

    def __enter__(self) -> "Reporter":
        if not self._quiet and self._console.is_terminal:
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
            self._bar = self._stack.enter_context(Progress(*columns, console=self._console, transient=True))
            self._task = self._bar.add_task("training", total=self._bytes and self._bytes * self._passes)
        return self

    def __exit__(self, *wrong: Any) -> None:
        self._stack.close()

    def __call__(self, moment: Progress) -> None:
        """Show progress, if an update is due."""
        if self._quiet:
            return
        now = time.perf_counter()
        if moment.pass_number != self._turn:
            # A resumed run has not read the rows before its checkpoint; a later pass starts when the last ended.
            first = self._turn == 0
            self._before = (moment.rows - len(moment.block), moment.bytes - moment.block.size) if first else (0, 0)
            self._turn, self._next, self._begun = moment.pass_number, 1, self._begun if first else self._last
        self._last = now
        if self._bar is not None:
            if now - self._updated >= UPDATE_SECONDS:
                self._updated = now
                self._bar.update(
                    self._task, completed=self._completed(moment), description=self._description(moment, now)
                )
        elif moment.rows >= self._next:
            if self._next == 1:
                print(" ".join(f"{word:>10}" for word in HEAD), file=self._console.file)
            while self._next <= moment.rows:
                self._next *= 2
            print(self._row(moment, now), file=self._console.file, flush=True)

    def _completed(self, moment: Progress) -> float:
        return moment.bytes + (moment.pass_number - 1) * (self._bytes or 0)

    def _speed(self, moment: Progress, now: float) -> tuple[float, float]:
        seconds = max(now - self._begun, 1e-9)
        return (moment.rows - self._before[0]) / seconds, (moment.bytes - self._before[1]) / seconds / 1e6

    def _description(self, moment: Progress, now: float) -> str:
        rows, megabytes = self._speed(moment, now)
        turn = f"pass {moment.pass_number}, " if self._passes > 1 else ""
        speed = f"{rows:,.0f} rows/s" + (f", {megabytes:.0f} MB/s" if megabytes else "")
        return f"{turn}{moment.rows:,} rows, {speed}, loss {moment.progressive.report().loss:.4f}"

    def _row(self, moment: Progress, now: float) -> str:
        rows, megabytes = self._speed(moment, now)
        total, recent = moment.progressive.report(), moment.progressive.report(recent=True)
        features = moment.entries / max(moment.rows, 1)
        cells = f"{total.loss:.6f}", f"{recent.loss:.6f}", moment.rows, f"{features:.1f}", f"{rows:.0f}"
        return " ".join(f"{cell:>10}" for cell in (*cells, f"{megabytes:.1f}"))


def size_of(source: list[str]) -> int | None:
    """Return the total size of files, None if one of them is a stream or compressed."""
    files = [path for one in source if one != "-" for path in expand_paths(one)]
    if "-" in source or any(not os.path.isfile(p) or p.endswith((".gz", ".zst", ".zstd")) for p in files):
        return None
    return sum(os.path.getsize(path) for path in files)


def finish(trained: Trained, path: str | None, certified: bool, as_json: bool, elsewhere: bool) -> None:
    """Print a summary; on stderr if ``elsewhere``, because predictions go to standard output."""
    model = trained.model
    said = trained.certificate if certified else None
    facts = {
        "rows": trained.rows,
        "features in all": trained.entries,
        "non-zero weights": model.nonzeros,
        "seconds": round(trained.seconds, 3),
    }
    mixed = mixture_of(model)
    console = open_console(stderr=elsewhere)
    if as_json:
        content = {
            **{name.replace(" ", "_").replace("-", "_"): value for name, value in facts.items()},
            "report": jsonable(trained.report),
            "holdout": jsonable(trained.holdout),
            "passes": [report.loss for report in trained.passes],
            "certificate": said,
            **({} if mixed is None else mixed),
            **({} if trained.label_words is None else {"positive": trained.label_words.positive}),
            "malformed": trained.problems.count,
            "model": path,
        }
        print(json.dumps(content), file=console.file)
        return
    columns = {"progressive": trained.report}
    if len(trained.passes) > 1:
        columns[f"pass {len(trained.passes)}, seen before"] = trained.passes[-1]
    if trained.holdout is not None:
        columns["held out"] = trained.holdout
    console.print(report_table(columns, model.settings.title))
    console.print(", ".join(f"{value:,} {name}" for name, value in facts.items()), highlight=False, soft_wrap=True)
    if mixed is not None:
        console.print(mixture_table(mixed))
        console.print(f"Mixture: {mixed['guarantee']}.", markup=False, highlight=False, soft_wrap=True)
    if trained.label_words is not None:
        console.print(f"Labels: {trained.label_words.summary()}.", markup=False, highlight=False, soft_wrap=True)
    if said is not None:
        console.print(f"Certificate: {said}.", markup=False, highlight=False, soft_wrap=True)
    print_problems(trained.problems, open_console(stderr=True))
    if path is not None:
        console.print(f"Model: {path}", markup=False, highlight=False, soft_wrap=True)
