"""``forel convert``: convert a model to a small one for predictions, or write the model of one key."""

import os

from forel.cli.errors import errors_as_messages
from forel.cli.options import load_one
from forel.cli.printing import say


def convert(
    model: str,
    *,
    output: str,
    serving: bool = False,
    float16: bool = False,
    key: str | None = None,
) -> None:
    """Convert a model to a smaller one, or write that of one key.

    \b
    Examples:
      forel convert m.forel --serving --output small.forel
      forel convert m.forel --serving --float16 -o small.forel
      forel convert countries.forel --key NO -o norway.forel

    No conversion is needed for scikit-learn:
    forel.sklearn.estimator_of(forel.load("m.forel")).

    Arguments
    ---------
    model : A model file.

    Options
    -------
    output (-o) : The file to write.
    serving : Convert a model to one for predictions only.
    float16 : Weights in half precision, for predictions.
    key : The key of one of the models that --by trained.
    """
    with errors_as_messages():
        from forel.store import choose_serving
        from forel.training.model import save
        from forel.validation import refuse

        stored = load_one(model, key)
        if not (serving or float16 or key is not None):
            raise refuse("convert", "no conversion", "--serving, --float16 or --key")
        learner = stored.learner
        if serving or float16:
            choice = choose_serving(learner, "float16" if float16 else "float32")
            learner = choice.model
            if choice.setting is not None:
                say(f"Serving: {choice}.", err=False)
        save(output, learner, stored.extra, stored.names)
        before, after = (os.path.getsize(path) for path in (model, output))
        say(f"{before:,} bytes became {after:,}: {output}", err=False)
