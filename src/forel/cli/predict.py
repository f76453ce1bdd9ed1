"""``forel predict``: one line for each example, with its prediction and its tag."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from typing import Annotated, Any

import typer

from forel.cli.errors import errors_as_messages, print_problems
from forel.cli.options import NO_FLAGS, VW, Data, Files, ReadingFlags, Threads, source_of

LINKS = ("auto", "identity", "logistic", "glf1")


def predict(
    files: Files = None,
    model: Annotated[str, typer.Option("--model", "-i", help="A model file.")] = ...,  # type: ignore[assignment]
    output: Annotated[str, typer.Option("--output", "-p", help="Output file; - for standard output.")] = "-",
    link: Annotated[
        str,
        typer.Option(help="auto: probabilities if the loss has them; identity: margins; logistic; glf1: −1 to 1."),
    ] = "auto",
    probabilities: Annotated[
        bool,
        typer.Option("--probabilities", help="Of several classes, write name:probability of each, separated by tabs."),
    ] = False,
    interval: Annotated[
        float | None,
        typer.Option(help="Write the ends of an interval too, of the level of training.", show_default=False),
    ] = None,
    threshold: Annotated[
        str | None,
        typer.Option(
            help="Write 1 where the prediction is at least this number, or cost:5 if a miss costs 5 false alarms."
        ),
    ] = None,
    data: Data = None,
    test: Annotated[bool, typer.Option("-t", help="No effect; predict never learns.", rich_help_panel=VW)] = False,
    reading: ReadingFlags = NO_FLAGS,
    threads: Threads = None,
) -> None:
    """Write a prediction for each example.

    The tag of the example follows, if it has one. With several classes, the
    prediction is the name of the class. With --interval, its lower and upper
    end follow the prediction.

    Example: forel predict new.vw --model m.forel --output predictions.txt
    """
    with errors_as_messages():
        import numpy as np

        from forel.data import Problems
        from forel.data.sources.streams import arriving, standard_input
        from forel.training.model import load
        from forel.training.scoring import predict_blocks, prediction_link
        from forel.validation import refuse

        source = source_of(files, data)
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
        columns = names if probabilities else None
        with prediction_writer(output) as write:
            problems = Problems()
            # Standard input may be a pipe from a program that waits for each answer.
            rows = arriving(standard_input()) if source == ["-"] else source
            given = {"threads": threads, "problems": problems, "tags": True, **reading.options()}
            for block, margins in predict_blocks(stored, rows, **given):
                values = apply_link(margins)
                if interval is not None:
                    values = np.column_stack([values, stored.intervals(values, interval)])
                write(block, values, columns)
        if problems.count:
            print_problems(problems)


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


def check_files(outputs: dict[str, str | None], source: list[str]) -> None:
    """Check that outputs can be written, before anything is read; predictions may also go to a pipe."""
    from forel.data.sources.files import single_sources
    from forel.store.atomic import check_outputs

    written = {name: path for name, path in outputs.items() if path != "-"}
    read: list[str] = []
    with suppress(OSError, ValueError):  # a missing source is an error when it is opened
        read = [one for one in single_sources(source) if one != "-"]
    check_outputs(written, streams=("--predictions", "--output"), sources=read)


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


def _write_block(write: Callable[[str], object], block: Any, values: Any, names: Sequence[str] | None = None) -> None:
    """Write numbers, with the ends of intervals or without, names of classes, or a probability for each of these."""
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
    write(text)
