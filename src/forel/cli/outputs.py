"""What ``forel train`` writes and prints: model, checkpoints, predictions, report, progress and a summary."""

import os
import pathlib
import secrets
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import IO, Any, NamedTuple

import forel
from forel.cli.errors import all_options, name_options, print_problems
from forel.cli.printing import (
    jsonable,
    mixture_summary,
    print_json,
    print_mixture,
    print_reports,
    print_slices,
    print_statements,
    say,
    say_where_terms_are,
)
from forel.data.features.kinds import amounts_in
from forel.data.options import BLOCK_BYTES
from forel.markup import counted, number_text
from forel.store import ServingChoice, choose_serving
from forel.training.history import History, certificate_values, mixture_weights
from forel.training.metrics import Totals
from forel.training.model import Model, save
from forel.training.progress import Progress, size_of, watching
from forel.training.result import best_sentence, mixture_sentence, scores, time_sentence
from forel.validation import refuse

__all__ = [
    "Page",
    "Predictions",
    "ProgressLines",
    "Saved",
    "checkpoint_of",
    "file_identity",
    "print_summary",
    "reporter",
    "rescue_folders",
    "save_model",
    "unfinished_run",
    "write_all",
]

MIN_BLOCKS = 64  # of a small file, so that plots have enough points
MIN_BLOCK_BYTES = 1 << 12
HEADER = ("average", "since", "rows", "features")


class Saved(NamedTuple):
    """Where a model was written, the error if it is not the given path, and what was chosen to be written."""

    path: str | None
    problem: Exception | None = None
    choice: ServingChoice | None = None
    best: str | None = None

    def check(self) -> None:
        """Raise the error, if there is one."""
        if self.problem is not None:
            raise self.problem


def save_model(trained: Model, path: str | None, serving: bool = False, best: bool = False) -> Saved:
    """Write a model, or a small one; if that fails, write it to another folder, which the error names."""
    if path is None:
        return Saved(None)
    try:
        choice = _save(trained, path, serving, best)
        return Saved(path, None, choice, best_sentence(trained) if best and not serving else None)
    except ValueError as error:
        return Saved(None, error)
    except OSError as error:
        reason = error.strerror or str(error)
        for folder in rescue_folders():
            other = os.path.join(folder, f"rescued-{secrets.token_hex(4)}-{os.path.basename(path)}")
            with suppress(OSError):
                choice = _save(trained, other, serving, best)
                where = f"the model was written to {other} instead; move it to its place"
                return Saved(other, OSError(error.errno, f"{reason}; {where}"), choice)
        return Saved(None, OSError(error.errno, f"{reason}; no other folder could be written to either"))


def rescue_folders() -> list[pathlib.Path]:
    """Return the folders to try if a model cannot be written: the working directory, and those of temporary files."""
    return [pathlib.Path(one) for one in dict.fromkeys((os.getcwd(), "/var/tmp", tempfile.gettempdir()))]


def _save(trained: Model, path: str, serving: bool, best: bool) -> ServingChoice | None:
    if not serving:
        (trained.best() if best else trained).save(path)
        return None
    choice = choose_serving(trained.learner)
    save(path, choice.model, trained.extra, trained.names)
    return choice


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


def file_identity(path: str | None) -> tuple[int, int] | None:
    """Return what changes when a file is replaced; None if it does not exist."""
    try:
        status = os.stat(path or "")
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


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
        say(f"forel: {f'continues from {path}' if found else f'there is no {path}; starts from the beginning'}")
    return {"checkpoint": path, "resume": resume, **({} if every is None else {"checkpoint_every": every})}


def unfinished_run(model: str | None, before: tuple[int, int] | None, checkpoints: bool) -> str:
    """Return what an interrupted run leaves: its model, if the file is not the one from ``before``, or a checkpoint.

    >>> unfinished_run("nosuch.forel", None, checkpoints=False)
    'no model was written to nosuch.forel'
    """
    if model is None:
        return "no model was written"
    if file_identity(model) != before:
        return f"the model was written to {model}"
    path = _checkpoint_path(model)
    continued = f"; --resume continues from {path}" if checkpoints and os.path.exists(path) else ""
    return f"no model was written to {model}{continued}"


def _checkpoint_path(model: str) -> str:
    return f"{model}.checkpoint"


class Predictions:
    """Progressive predictions; if they cannot be written, training continues without them.

    Parameters
    ----------
    path : the file, replaced when predictions are complete; "-" for standard output
    link : the function from margins to predictions
    """

    reads_model = False

    def __init__(self, path: str, link: Callable[[Any], Any]) -> None:
        from forel.cli.predict import prediction_writer

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
        proof = {"proof": certificate_values} if certified else {}
        self.history = History(shares=mixture_weights, **proof)

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
        problems = trained.training.problems
        options = all_options() if problems.count else ()
        messages = [name_options(message, options) for message in problems.messages]
        shown = replace(trained, training=replace(trained.training, problems=replace(problems, messages=messages)))
        write_report(self.path, shown, self.history, source=self.source, command=command, version=forel.__version__)
        say(f"Report: {self.path}", stderr)


@contextmanager
def reporter(source: list[str], passes: int, quiet: bool) -> Iterator[Callable[[Progress], None] | None]:
    """Yield what shows progress on stderr: a bar on a terminal, otherwise lines; None for nothing."""
    if quiet or not sys.stderr.isatty():
        yield None if quiet else ProgressLines(sys.stderr)
        return
    with watching(True, source, passes) as bar:
        yield bar


class ProgressLines:
    """A table with a row after every doubling of rows, anew in each pass.

    Parameters
    ----------
    file : where it is printed
    """

    reads_model = False

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._pass, self._next, self._shown = 0, 1, Totals(0, 0.0, 0.0)

    def __call__(self, update: Progress) -> None:
        """Print a row, if it is due."""
        if update.pass_number != self._pass:
            self._pass, self._next, self._shown = update.pass_number, 1, Totals(0, 0.0, 0.0)
        if update.rows < self._next:
            return
        if self._next == 1:
            print(" ".join(f"{word:>10}" for word in HEADER), file=self._file)
        self._next = 1 << update.rows.bit_length()
        total = update.progressive.total
        recent, self._shown = total.since(self._shown), total
        losses = (number_text(measured.mean, decimals=6) for measured in (total, recent))
        cells = (*losses, update.rows, f"{update.entries / max(update.rows, 1):.1f}")
        print(" ".join(f"{cell:>10}" for cell in cells), file=self._file, flush=True)


def print_summary(trained: Model, saved: Saved, certified: bool, as_json: bool, stderr: bool) -> None:
    """Print a summary; on stderr if ``stderr``, because predictions go to standard output."""
    model, run = trained.learner, trained.training
    certificate = run.certificate if certified else None
    choice = saved.choice if saved.choice is not None and saved.choice.setting is not None else None
    mixed = mixture_summary(model)
    if as_json:
        optional = {
            "floor": run.floor if certified else None,
            "columns": [one._asdict() for one in run.columns] or None,
            "leak": run.leak,
            **(mixed or {}),
            "positive": None if trained.label_words is None else trained.label_words.positive,
            "slices": [table.to_json() for table in run.slices] or None,
        }
        content = {
            "rows": run.rows,
            "features_in_all": run.entries,
            "non_zero_weights": model.nonzeros,
            "seconds": round(run.seconds, 3),
            "seconds_of_compiling": round(run.compiling, 3),
            "report": jsonable(trained.report),
            "holdout": jsonable(run.holdout),
            "final": jsonable(run.final),
            "passes": [report.loss for report in run.passes],
            "certificate": certificate,
            **{name: value for name, value in optional.items() if value is not None},
            **({} if run.statements is None else run.statements.to_json()),
            "malformed": run.problems.count,
            **{name: str(said) for name, said in (("serving", choice), ("best", saved.best)) if said is not None},
            "model": saved.path,
        }
        print_json(content, stderr)
        return
    loss, measured = model.settings.title, scores(trained)
    print_reports({one.name: one.report for one in measured}, loss, stderr)
    for one in measured:
        say(f"{one}.", stderr)
    counts = [counted(run.rows, "row"), counted(run.entries, "feature", " in all")]
    counts.append(counted(model.nonzeros, "non-zero weight"))
    counts.append(time_sentence(run.seconds, run.compiling, len(run.passes) * run.rows))
    say(", ".join(counts), stderr)
    for table in run.slices:
        print_slices(table, loss, stderr=stderr)
    if mixed is not None:
        print_mixture(mixed, stderr)
        say(f"Mixture: {mixture_sentence(trained)}.", stderr)
    if trained.label_words is not None:
        say(f"Labels: {trained.label_words.summary()}.", stderr)
    if amounts := amounts_in(trained.read_options.kinds):
        say(f"Read as numbers: {amounts}; --categories keeps words.", stderr)
    print_statements(run.statements, stderr)
    if certificate is not None:
        say(f"Certificate: {certificate}.", stderr)
    print_problems(run.problems)
    for title, said in (("Serving", choice), ("Best setting", saved.best)):
        if said is not None:
            say(f"{title}: {said}.", stderr)
    if saved.path is not None:
        say(f"Model: {saved.path}", stderr)
    say_where_terms_are(stderr)
