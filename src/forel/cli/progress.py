"""The output of ``forel train``: progress while it runs, and a summary."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import IO

from forel.cli.errors import print_problems
from forel.cli.outputs import Saved
from forel.cli.printing import (
    jsonable,
    mixture_summary,
    print_json,
    print_statements,
    say,
    say_where_terms_are,
)
from forel.data.features.kinds import amounts_in
from forel.markup import counted, number_text
from forel.training.model import Model
from forel.training.progress import Progress
from forel.training.progress_bar import ProgressBar, TerminalDisplay
from forel.training.scores import mixture_sentence, scores, time_sentence

__all__ = ["ProgressLines", "print_summary", "reporter"]

HEADER = ("average", "since", "rows", "features", "rows/s", "MB/s")


@contextmanager
def reporter(source: list[str], passes: int, quiet: bool) -> Iterator[Callable[[Progress], None] | None]:
    """Yield what shows progress on stderr: a bar on a terminal, otherwise lines; None for nothing."""
    if quiet:
        yield None
        return
    from forel.cli.tables import open_console  # imports rich

    console = open_console(stderr=True)
    if not console.is_terminal:
        yield ProgressLines(console.file)
        return
    with closing(TerminalDisplay(console)) as display:
        yield ProgressBar(display, source, passes)


class ProgressLines:
    """A table with a row after every doubling of rows.

    Parameters
    ----------
    file : where it is printed
    """

    reads_model = False

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._started = self._last = time.perf_counter()
        self._pass, self._next, self._before = 0, 1, (0, 0)

    def __call__(self, update: Progress) -> None:
        """Print a row, if it is due."""
        now = time.perf_counter()
        if update.pass_number != self._pass:
            # A resumed run has not read the rows before its checkpoint; a later pass starts when the last ended.
            first = self._pass == 0
            self._before = (update.rows - len(update.block), update.bytes - update.block.size) if first else (0, 0)
            self._pass, self._next, self._started = update.pass_number, 1, self._started if first else self._last
        self._last = now
        if update.rows < self._next:
            return
        if self._next == 1:
            print(" ".join(f"{word:>10}" for word in HEADER), file=self._file)
        while self._next <= update.rows:
            self._next *= 2
        total, recent = update.progressive.running.total, update.progressive.running.recent()
        seconds = max(now - self._started, 1e-9)
        cells = (
            number_text(total.mean, decimals=6), number_text(recent.mean, decimals=6), update.rows,
            f"{update.entries / max(update.rows, 1):.1f}", f"{(update.rows - self._before[0]) / seconds:.0f}",
            f"{(update.bytes - self._before[1]) / seconds / 1e6:.1f}",
        )  # fmt: skip
        print(" ".join(f"{cell:>10}" for cell in cells), file=self._file, flush=True)


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
            **({} if run.statements is None else run.statements.to_json()),
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
    if amounts := amounts_in(trained.read_options.kinds):
        say(f"Read as numbers: {amounts}; --categories keeps words.", stderr)
    print_statements(run.statements, stderr)
    if certificate is not None:
        say(f"Certificate: {certificate}.", stderr)
    print_problems(run.problems)
    if saved.choice is not None and saved.choice.setting is not None:
        say(f"Serving: {saved.choice}.", stderr)
    if saved.path is not None:
        say(f"Model: {saved.path}", stderr)
    say_where_terms_are(stderr)
