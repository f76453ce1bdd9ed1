"""The output of ``forel train``: progress while it runs, and a summary."""

import time
from contextlib import ExitStack
from typing import Any

from forel.cli.errors import print_problems
from forel.cli.outputs import Saved
from forel.cli.printing import jsonable, mixture_summary, print_json, say
from forel.markup import counted, number_text
from forel.training.model import Model
from forel.training.progress import Progress
from forel.training.progress_bar import size_of
from forel.training.scores import mixture_sentence, scores, time_sentence

__all__ = ["Reporter", "print_summary"]

HEADER = ("average", "since", "rows", "features", "rows/s", "MB/s")
UPDATE_SECONDS = 0.1  # seconds between updates of the progress bar


class Reporter:
    """Progress on stderr: a bar on a terminal, otherwise a table with a row after every doubling.

    Parameters
    ----------
    source : the files, whose sizes are the total of the bar
    passes : number of passes
    quiet : whether to show nothing
    """

    reads_model = False

    def __init__(self, source: list[str], passes: int, quiet: bool) -> None:
        self._quiet, self._passes = quiet, passes
        self._bytes = size_of(source)
        self._started = self._updated = time.perf_counter()
        self._pass, self._next = 0, 1
        self._last, self._before = self._started, (0, 0)
        self._stack = ExitStack()
        self._bar: Any = None

    def __enter__(self) -> "Reporter":
        if self._quiet:
            return self
        from forel.cli.tables import open_console  # imports rich

        self._console = open_console(stderr=True)
        if self._console.is_terminal:
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
            self._bar = self._stack.enter_context(Progress(*columns, console=self._console, transient=True))
            self._task = self._bar.add_task("training", total=self._bytes and self._bytes * self._passes)
        return self

    def __exit__(self, *wrong: Any) -> None:
        self._stack.close()

    def __call__(self, update: Progress) -> None:
        """Show progress, if an update is due."""
        if self._quiet:
            return
        now = time.perf_counter()
        if update.pass_number != self._pass:
            # A resumed run has not read the rows before its checkpoint; a later pass starts when the last ended.
            first = self._pass == 0
            self._before = (update.rows - len(update.block), update.bytes - update.block.size) if first else (0, 0)
            self._pass, self._next, self._started = update.pass_number, 1, self._started if first else self._last
        self._last = now
        if self._bar is not None:
            if now - self._updated >= UPDATE_SECONDS:
                self._updated = now
                self._bar.update(
                    self._task, completed=self._completed(update), description=self._description(update, now)
                )
        elif update.rows >= self._next:
            if self._next == 1:
                print(" ".join(f"{word:>10}" for word in HEADER), file=self._console.file)
            while self._next <= update.rows:
                self._next *= 2
            print(self._row(update, now), file=self._console.file, flush=True)

    def _completed(self, update: Progress) -> float:
        return update.bytes + (update.pass_number - 1) * (self._bytes or 0)

    def _speed(self, update: Progress, now: float) -> tuple[float, float]:
        seconds = max(now - self._started, 1e-9)
        return (update.rows - self._before[0]) / seconds, (update.bytes - self._before[1]) / seconds / 1e6

    def _description(self, update: Progress, now: float) -> str:
        rows, megabytes = self._speed(update, now)
        prefix = f"pass {update.pass_number}, " if self._passes > 1 else ""
        speed = f"{rows:,.0f} rows/s" + (f", {megabytes:.0f} MB/s" if megabytes else "")
        return f"{prefix}{counted(update.rows, 'row')}, {speed}, loss {update.progressive.running.total.mean:.4f}"

    def _row(self, update: Progress, now: float) -> str:
        rows, megabytes = self._speed(update, now)
        total, recent = update.progressive.running.total, update.progressive.running.recent()
        features = update.entries / max(update.rows, 1)
        cells = (
            number_text(total.mean, decimals=6),
            number_text(recent.mean, decimals=6),
            update.rows,
            f"{features:.1f}",
            f"{rows:.0f}",
        )
        return " ".join(f"{cell:>10}" for cell in (*cells, f"{megabytes:.1f}"))


def print_summary(trained: Model, saved: Saved, certified: bool, as_json: bool, stderr: bool) -> None:
    """Print a summary; on stderr if ``stderr``, because predictions go to standard output."""
    model, run = trained.learner, trained.training
    certificate = run.certificate if certified else None
    facts = {
        "rows": run.rows,
        "features in all": run.entries,
        "non-zero weights": model.nonzeros,
        "seconds": round(run.seconds, 3),
        "seconds of compiling": round(run.compiling, 3),
    }
    mixed = mixture_summary(model)
    if as_json:
        content = {
            **{name.replace(" ", "_").replace("-", "_"): value for name, value in facts.items()},
            "report": jsonable(trained.report),
            "holdout": jsonable(run.holdout),
            "final": jsonable(run.final),
            "passes": [report.loss for report in run.passes],
            "certificate": certificate,
            **({"floor": run.floor} if certified and run.floor is not None else {}),
            **({"columns": [one._asdict() for one in run.columns]} if run.columns else {}),
            **({} if run.leak is None else {"leak": run.leak}),
            **({} if mixed is None else mixed),
            **({} if trained.label_words is None else {"positive": trained.label_words.positive}),
            **({"slices": [table.to_json() for table in run.slices]} if run.slices else {}),
            "malformed": run.problems.count,
            **({} if saved.choice is None or saved.choice.setting is None else {"serving": str(saved.choice)}),
            "model": saved.path,
        }
        print_json(content, stderr)
        return
    from forel.cli.tables import mixture_table, open_console, report_table, slice_table

    console = open_console(stderr=stderr)
    measured = scores(trained)
    console.print(report_table({one.name: one.report for one in measured}, model.settings.title))
    for one in measured:
        say(f"{one}.", stderr)
    counts = [counted(run.rows, "row"), counted(run.entries, "feature", " in all")]
    counts.append(counted(model.nonzeros, "non-zero weight"))
    counts.append(time_sentence(run.seconds, run.compiling, len(run.passes) * run.rows))
    say(", ".join(counts), stderr)
    for table in run.slices:
        console.print(slice_table(table, model.settings.title))
    if mixed is not None:
        console.print(mixture_table(mixed))
        say(f"Mixture: {mixture_sentence(trained)}.", stderr)
    if trained.label_words is not None:
        say(f"Labels: {trained.label_words.summary()}.", stderr)
    if certificate is not None:
        say(f"Certificate: {certificate}.", stderr)
    print_problems(run.problems)
    if saved.choice is not None and saved.choice.setting is not None:
        say(f"Serving: {saved.choice}.", stderr)
    if saved.path is not None:
        say(f"Model: {saved.path}", stderr)
