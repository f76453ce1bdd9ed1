"""``forel convert``: convert data to another format, or a model to a small one for predictions."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from forel.cli.counts import counted
from forel.cli.errors import errors_as_messages
from forel.cli.options import Data, Files, Key, load_one, source_of
from forel.cli.reading_flags import NO_FLAGS, ReadingFlags

if TYPE_CHECKING:
    from forel.store import Stored

MODELS = "Models"


def convert(
    files: Files = None,
    output: Annotated[str, typer.Option("--output", "-o", help="The file to write.")] = ...,  # type: ignore[assignment]
    to: Annotated[
        str, typer.Option(help="vw, svmlight, jsonl, parquet, arrow; auto detects it from the name.")
    ] = "auto",
    serving: Annotated[
        bool, typer.Option("--serving", help="Convert a model to one for predictions only.", rich_help_panel=MODELS)
    ] = False,
    float16: Annotated[
        bool,
        typer.Option("--float16", help="Weights in half precision, for predictions.", rich_help_panel=MODELS),
    ] = False,
    key: Key = None,
    measure: Annotated[
        str | None,
        typer.Option(help="A file on which to compare the two models.", rich_help_panel=MODELS),
    ] = None,
    reading: ReadingFlags = NO_FLAGS,
    data: Data = None,
) -> None:
    """Convert data to another format, or a model to a smaller one.

    \b
    Examples:
      forel convert clicks.csv --label click --output clicks.vw
      forel convert clicks.csv --output clicks.parquet
      forel convert clicks.vw --bits 18 --output clicks.svm
      forel convert m.forel --serving --float16 --measure test.vw -o small.forel
      forel convert countries.forel --key NO -o norway.forel

    Data that the format cannot represent is reported. No conversion is needed
    for scikit-learn: forel.sklearn.estimator_of(forel.load("m.forel")).
    """
    source = source_of(files, data)
    with errors_as_messages():
        if serving or float16 or key is not None:
            from forel.store import save

            stored = _model(source, key)
            if serving or float16:
                dtype = "float16" if float16 else "float32"
                _convert_model(stored, source[0], output, dtype, measure, reading.options())
            else:
                save(output, stored.model, stored.extra, stored.names)
                typer.echo(f"Model of {key}: {output}")
            return
        from forel.cli.console import open_console
        from forel.cli.show import print_problems
        from forel.data.convert import convert

        done = convert(source, output, to, **reading.options())
        typer.echo(f"{counted(done.rows, 'example')} written to {output}", err=True)
        for what, times in done.lost.items():
            typer.echo(f"not kept: {what} ({counted(times, 'time')})", err=True)
        print_problems(done.problems, open_console(stderr=True))


def _model(source: list[str], key: str | None) -> "Stored":
    """Return the model of a file, or that of one key."""
    from forel.validation import refuse

    if len(source) != 1 or source == ["-"]:
        raise refuse("files", source, "one model file")
    return load_one(source[0], key)


def _convert_model(
    stored: "Stored", file: str, output: str, dtype: str, measure: str | None, reading: dict[str, Any]
) -> None:
    import os
    from dataclasses import replace

    from forel.store import Stored, choose_serving, save
    from forel.training.scoring import evaluate

    choice = choose_serving(stored.model, dtype, stored.calibration is not None)
    small = choice.model
    if choice.setting is not None:
        typer.echo(f"Serving: {choice}.")
    if measure is not None:
        models = {"learner": stored, "serving": Stored(small, stored.extra)}
        losses = {name: evaluate(one, measure, **reading).report.loss for name, one in models.items()}
        small = replace(small, measured=losses)
        change = losses["serving"] - losses["learner"]
        typer.echo(f"loss on {measure}: {losses['learner']:.6f} before, {losses['serving']:.6f} after ({change:+.2g})")
    save(output, small, stored.extra, stored.names)
    sizes = (os.path.getsize(path) for path in (file, output))
    typer.echo("{:,} bytes became {:,}: {}".format(*sizes, output))
