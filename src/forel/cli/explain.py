"""``forel explain``: the contribution of each feature to predictions."""

from itertools import islice
from typing import Any

from forel.cli.errors import errors_as_messages
from forel.cli.options import NO_FLAGS, ReadingFlags, load_one, source_of
from forel.cli.printing import print_json, print_table, signed
from forel.markup import counted, number_text


def explain(
    files: list[str] | None = None,
    *,
    model: str,
    rows: int = 1,
    top: int = 20,
    key: str | None = None,
    reading: ReadingFlags = NO_FLAGS,
    as_json: bool = False,
) -> None:
    """Show the contribution of each feature to a prediction.

    A contribution is weight times value; with the bias they add up to the
    margin. Weights of a mixture are averaged on the path from no feature to
    the row. The margin of one of several classes of a mixture is the logarithm
    of its probability.

    Example: forel explain new.csv --model m.forel --rows 3

    Arguments
    ---------
    files : Files, patterns, or - for standard input.

    Options
    -------
    model (-i) : A model file.
    rows : Number of rows to explain, from the first on.
    top : Number of largest contributions to show.
    key : The key of one of the models that --by trained.
    as_json (--json) : Print JSON instead of text.
    """
    with errors_as_messages():
        from forel.training.model import NOT_HASHED
        from forel.validation import whole

        whole("rows", rows, low=1)
        whole("top", top)
        stored = load_one(model, key)
        if stored.named_rows is not None:
            raise ValueError(f"model: {NOT_HASHED}")
        found = stored.explain(source_of(files, reading), **reading.options())
        for row, explanation in enumerate(islice(found, rows), 1):
            if as_json:
                print_json(_as_dict(explanation, top))
            else:
                _print(explanation, row, top)


def _as_dict(explanation: Any, top: int) -> dict[str, Any]:
    from dataclasses import asdict

    return {**asdict(explanation), "contributions": [asdict(one) for one in explanation.contributions[:top]]}


def _print(explanation: Any, row: int, top: int) -> None:
    label = "" if explanation.label is None else f" of {explanation.label!r}"
    title = f"row {row}: prediction{label} {number_text(explanation.prediction)}, margin {signed(explanation.margin)}"
    table = [["bias", "", "", signed(explanation.bias)]]
    for part in explanation.contributions[:top]:
        name = part.name + (" and others" if part.shared else "")
        table.append([name, number_text(part.value), signed(part.weight), signed(part.contribution)])
    if rest := explanation.contributions[top:]:
        table.append([counted(len(rest), "other"), "", "", signed(sum(part.contribution for part in rest))])
    print_table(["feature", "value", "weight", "contribution"], table, title)
