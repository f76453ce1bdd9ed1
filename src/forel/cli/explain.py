"""``forel explain``: the contribution of each feature to predictions."""

from itertools import islice
from typing import Annotated, Any

import typer

from forel.cli.errors import errors_as_messages
from forel.cli.options import NO_FLAGS, AsJson, Data, Files, Key, ReadingFlags, load_one, source_of
from forel.cli.printing import print_json, signed
from forel.markup import counted, number_text


def explain(
    files: Files = None,
    model: Annotated[str, typer.Option("--model", "-i", help="A model file.")] = ...,  # type: ignore[assignment]
    rows: Annotated[int, typer.Option(help="Number of rows to explain, from the first on.", min=1)] = 1,
    top: Annotated[int, typer.Option(help="Number of largest contributions to show.", min=0)] = 20,
    key: Key = None,
    data: Data = None,
    reading: ReadingFlags = NO_FLAGS,
    as_json: AsJson = False,
) -> None:
    """Show the contribution of each feature to a prediction.

    A contribution is weight times value; with the bias they add up to the
    margin. Weights of a mixture are averaged on the path from no feature to
    the row. The margin of one of several classes of a mixture is the logarithm
    of its probability.

    Example: forel explain new.csv --model m.forel --rows 3
    """
    with errors_as_messages():
        from forel.training.model import NOT_HASHED

        stored = load_one(model, key)
        if stored.named_rows is not None:
            raise ValueError(f"model: {NOT_HASHED}")
        found = stored.explain(source_of(files, data), **reading.options())
        for row, explanation in enumerate(islice(found, rows), 1):
            if as_json:
                print_json(_as_dict(explanation, top))
            else:
                _print(explanation, row, top)


def _as_dict(explanation: Any, top: int) -> dict[str, Any]:
    from dataclasses import asdict

    return {**asdict(explanation), "contributions": [asdict(one) for one in explanation.contributions[:top]]}


def _print(explanation: Any, row: int, top: int) -> None:
    from rich.markup import escape
    from rich.table import Table

    from forel.cli.tables import align_numbers, open_console

    label = "" if explanation.label is None else f" of {escape(repr(explanation.label))}"
    title = f"row {row}: prediction{label} {number_text(explanation.prediction)}, margin {signed(explanation.margin)}"
    table = Table("feature", "value", "weight", "contribution", title=title)
    align_numbers(table)
    table.add_row("bias", "", "", signed(explanation.bias))
    for part in explanation.contributions[:top]:
        name = part.name + (" and others" if part.shared else "")
        table.add_row(escape(name), number_text(part.value), signed(part.weight), signed(part.contribution))
    rest = explanation.contributions[top:]
    if rest:
        table.add_row(counted(len(rest), "other"), "", "", signed(sum(part.contribution for part in rest)))
    open_console().print(table)
