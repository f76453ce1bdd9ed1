"""``forel dev sample``: a small real table, from the data that scikit-learn contains."""

import csv
from pathlib import Path
from typing import Annotated, Literal

import typer

from forel.cli.errors import errors_as_messages
from forel.cli.printing import say

EVERY = 5  # rows, of which one is for testing


def sample(
    name: Annotated[Literal["tumours"], typer.Argument(help="tumours: 30 measurements of each, and its diagnosis.")],
    folder: Annotated[str, typer.Option(help="The folder to write to.")] = ".",
) -> None:
    """Write a small real table as two CSV files.

    The rows are 569 tumours from Wisconsin, a part of scikit-learn. Every
    fifth one is in the second file.

    Example: forel dev sample tumours
    """
    with errors_as_messages():
        from sklearn.datasets import load_breast_cancer

        data = load_breast_cancer()
        columns = [*(str(one).replace(" ", "_") for one in data.feature_names), "diagnosis"]
        words = (str(data.target_names[label]) for label in data.target)
        rows = [[*values, word] for values, word in zip(data.data.tolist(), words, strict=True)]
        test = rows[EVERY - 1 :: EVERY]
        train = [row for k, row in enumerate(rows, 1) if k % EVERY]
        for file, part in ((f"{name}.csv", train), (f"{name}_test.csv", test)):
            path = Path(folder, file)
            with path.open("w", encoding="utf-8", newline="") as out:
                csv.writer(out, lineterminator="\n").writerows([columns, *part])
            say(f"{path}: {len(part)} rows, {len(columns)} columns", err=False)
