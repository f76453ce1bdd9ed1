"""``forel predict``: one line for each example, with its prediction and its tag."""

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

from forel.cli.errors import errors_as_messages, print_problems
from forel.cli.options import NO_FLAGS, ReadingFlags, check_files, source_of

LINKS = ("auto", "identity", "logistic", "glf1")


def predict(
    files: list[str] | None = None,
    *,
    model: str,
    output: str = "-",
    link: str = "auto",
    probabilities: bool = False,
    interval: float | None = None,
    threshold: str | None = None,
    reading: ReadingFlags = NO_FLAGS,
) -> None:
    """Write a prediction for each example.

    The tag of the example follows, if it has one. With several classes, the
    prediction is the name of the class. With --interval, its lower and upper
    end follow the prediction. With --on-error skip, an empty line answers a
    malformed line of standard input.

    Example: forel predict new.vw --model m.forel --output predictions.txt

    Arguments
    ---------
    files : Files, patterns, or - for standard input.

    Options
    -------
    model (-i) : A model file.
    output (-p) : Output file; - for standard output.
    link : auto, identity, logistic or glf1; auto: probabilities, identity: margins, glf1: −1 to 1.
    probabilities : Write name:probability of each class; tabs separate them.
    interval : Write intervals too; of this level, that of training.
    threshold : Write 1 from this prediction on, and 0 below; or cost:5 if a miss costs 5 false alarms.
    """
    with errors_as_messages():
        import numpy as np

        from forel.data import Problems
        from forel.data.sources.arriving import arriving
        from forel.data.sources.files import standard_input
        from forel.training.model import load
        from forel.training.scoring import predict_blocks, prediction_link
        from forel.validation import refuse

        source = source_of(files, reading)
        check_files({"--output": output}, [*source, model])
        stored = load(model)
        names = stored.classes
        if names is not None and link != "auto":
            raise refuse("--link", link, "auto for several classes; --probabilities writes their probabilities")
        if interval is not None:
            stored.intervals(np.zeros(0), interval)  # raises for a model without them
        several = names is not None or probabilities
        apply_link = prediction_link(stored, probabilities) if several else link_named(link, stored.settings)
        if threshold is not None:
            apply_link = _decide(apply_link, threshold, several)
        columns, options = names if probabilities else None, reading.options()
        threads = options.pop("threads", None)
        found, skipped = Problems(options.get("on_error", "raise")), Problems("skip")

        def skipped_lines() -> set[int]:
            """Return the malformed lines of standard input that were not returned before."""
            lines = {one.line for one in found.waiting}
            for one in found.waiting:
                skipped.record(one)
            found.waiting.clear()
            return lines

        with prediction_writer(output) as write:
            rows: Any = source
            if source == ["-"]:  # it may be a pipe from a program that waits for an answer to each line
                rows = arriving(_Input(standard_input(), lambda: write(None, None, skipped=skipped_lines())))
                if found.on_error == "skip":
                    found.on_error, threads = "later", 0  # nothing is read before lines are answered
            for block, margins in predict_blocks(stored, rows, threads, found, tags=True, **options):
                values = apply_link(margins)
                if interval is not None:
                    values = np.column_stack([values, stored.intervals(values, interval)])
                write(block, values, columns, skipped_lines())
            write(None, None, skipped=skipped_lines())
        skipped.absorb(found)
        print_problems(skipped)


@dataclass(frozen=True)
class _Input:
    """A buffered stream, before each read of which a function is called."""

    stream: Any
    before: Callable[[], object]

    def peek(self, size: int = 0) -> bytes:
        """Return bytes without advancing."""
        self.before()
        return bytes(self.stream.peek(size))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def _decide(link: Any, rule: str, several: bool) -> Any:
    """Return the function from margins to decisions, 1 or 0."""
    import numpy as np

    from forel.training.thresholds import decision_threshold
    from forel.validation import refuse

    if several:
        raise refuse("--threshold", rule, "none for several classes, or with --probabilities")
    value = decision_threshold(rule)
    return lambda margins: (link(margins) >= value).astype(np.float32)


def link_named(name: str, settings: Any) -> Any:
    """Return the function from margins to predictions, by its name in --link."""
    import numpy as np

    from forel.losses.sigmoid import sigmoid
    from forel.validation import refuse

    if name not in LINKS:
        raise refuse("--link", name, f"one of {', '.join(LINKS)}")
    if name == "auto":
        return settings.link
    return {"identity": np.asarray, "logistic": sigmoid, "glf1": lambda m: 2 * sigmoid(m) - 1}[name]


@contextmanager
def prediction_writer(path: str) -> Iterator[Any]:
    """Yield a function that writes the predictions of a block; an existing file is replaced at the end."""
    from forel.store.atomic import atomic_writer

    with nullcontext(_write_and_flush) if path == "-" else atomic_writer(path) as write:
        yield partial(_write_block, write)


def _write_and_flush(text: str) -> None:
    """Write the bytes that a file would have, in whatever encoding the terminal has."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8"))
    sys.stdout.buffer.flush()


def _write_block(
    write: Callable[[str], object],
    block: Any,
    values: Any,
    names: Sequence[str] | None = None,
    skipped: Collection[int] = (),
) -> None:
    """Write numbers, with the ends of intervals or without, names of classes, or a probability for each of these.

    An empty line stands for each line that is skipped. There may be no block.
    """
    if block is None:
        write("\n" * len(skipped))
        return
    if values.ndim == 2 and names is None:
        text = "".join("{:.9g} {:.9g} {:.9g}\n".format(*row) for row in values.tolist())
    elif names is not None:
        pairs = ("\t".join(f"{n}:{p:.9g}" for n, p in zip(names, row, strict=True)) for row in values.tolist())
        text = "".join(f"{line}\n" for line in pairs)
    else:
        text = ("%.9g\n" if values.dtype.kind == "f" else "%s\n") * values.size % tuple(values.tolist())
    if block.tags is not None and any(block.tags):
        tags = (tag.decode("utf-8", "backslashreplace") for tag in block.tags)
        words = zip(text.split("\n"), tags, strict=False)
        text = "".join(f"{word} {tag}\n" if tag else f"{word}\n" for word, tag in words)
    if skipped:
        lines = range(block.line, block.line + len(block)) if block.lines is None else block.lines.tolist()
        answers = [*zip(lines, text.splitlines(keepends=True), strict=True), *((line, "\n") for line in skipped)]
        text = "".join(answer for _, answer in sorted(answers))
    write(text)
