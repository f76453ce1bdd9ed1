"""``forel convert``: convert a model to a small one for predictions, or write the model of one key."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from forel.cli.errors import errors_as_messages
from forel.cli.options import NO_FLAGS, Key, ReadingFlags, load_one
from forel.cli.printing import say
from forel.markup import number_text

if TYPE_CHECKING:
    from forel.training.model import Model


def convert(
    model: Annotated[str, typer.Argument(help="A model file.")],
    output: Annotated[str, typer.Option("--output", "-o", help="The file to write.")] = ...,  # type: ignore[assignment]
    serving: Annotated[bool, typer.Option("--serving", help="Convert a model to one for predictions only.")] = False,
    float16: Annotated[
        bool,
        typer.Option("--float16", help="Weights in half precision, for predictions."),
    ] = False,
    key: Key = None,
    measure: Annotated[
        str | None,
        typer.Option(help="A file on which to compare the two models."),
    ] = None,
    reading: ReadingFlags = NO_FLAGS,
) -> None:
    """Convert a model to a smaller one, or write that of one key.

    \b
    Examples:
      forel convert m.forel --serving --output small.forel
      forel convert m.forel --serving --float16 --measure test.vw -o small.forel
      forel convert countries.forel --key NO -o norway.forel

    No conversion is needed for scikit-learn:
    forel.sklearn.estimator_of(forel.load("m.forel")).
    """
    with errors_as_messages():
        from forel.training.model import save
        from forel.validation import refuse

        stored = load_one(model, key)
        if serving or float16:
            _convert_model(stored, model, output, "float16" if float16 else "float32", measure, reading.options())
        elif key is not None:
            save(output, stored.learner, stored.extra, stored.names)
            say(f"Model of {key}: {output}", err=False)
        else:
            raise refuse("convert", "no conversion", "--serving, --float16 or --key")


def _convert_model(
    stored: "Model", file: str, output: str, dtype: str, measure: str | None, reading: dict[str, Any]
) -> None:
    import os

    from forel.store import choose_serving
    from forel.training.model import Model, evaluate, save

    choice = choose_serving(stored.learner, dtype)
    small = choice.model
    if choice.setting is not None:
        say(f"Serving: {choice}.", err=False)
    if measure is not None:
        models = {"learner": stored, "serving": Model(small, stored.extra)}
        losses = {name: evaluate(one, measure, **reading).report.loss for name, one in models.items()}
        before, after = (number_text(loss, decimals=6) for loss in losses.values())
        change = losses["serving"] - losses["learner"]
        shown = f"{before} before, {after} after ({change:+.2g})"
        say(f"loss on {measure}: {shown}", err=False)
    save(output, small, stored.extra, stored.names)
    sizes = (os.path.getsize(path) for path in (file, output))
    say("{:,} bytes became {:,}: {}".format(*sizes, output), err=False)
