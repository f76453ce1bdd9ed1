"""``forel compare``: which of two models is better on some rows."""

import os
from typing import Annotated, Any

import typer

from forel.cli.errors import errors_as_messages
from forel.cli.options import NO_FLAGS, AsJson, ReadingFlags, Threads, source_of
from forel.cli.printing import print_json, say, signed

FLAGS_OF = "evaluate"


def compare(
    a: Annotated[str, typer.Argument(help="A model, predictions, or settings such as alpha=0.3 or default.")],
    b: Annotated[str, typer.Argument(help="Another one.")],
    files: Annotated[list[str] | None, typer.Argument(help="Rows with labels.", show_default=False)] = None,
    level: Annotated[float, typer.Option(help="Probability of a wrong statement.")] = 0.05,
    loss: Annotated[
        str | None,
        typer.Option(
            help="Of predictions: logistic, squared or absolute. Of settings: their loss.", show_default=False
        ),
    ] = None,
    report: Annotated[str | None, typer.Option(help="Write a page with a plot, in HTML.", show_default=False)] = None,
    reading: ReadingFlags = NO_FLAGS,
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Say which of two models is better on some rows.

    Neither may have learned from these rows. The statement holds at whatever
    row one looks, for rows in any order: it needs neither independence nor a
    number of rows chosen before. A and B are model files, files of predictions as forel predict writes them, or
    settings, which are trained side by side. With --slice, differences are
    also shown by the values of a column.

    \b
    Examples:
      forel compare old.forel new.forel today.csv
      forel compare old.txt new.txt labels.txt
      forel compare default alpha=0.3 clicks.vw
    """
    with errors_as_messages():
        from rich.markup import escape
        from rich.table import Table

        from forel.cli.predict import check_files
        from forel.cli.tables import align_numbers, open_console
        from forel.markup import number_text
        from forel.training.compare import compare

        source = source_of(files, None)
        check_files({"--report": report}, [*source, a, b])
        sides = [_settings(one, loss) for one in (a, b)]
        first, second = (os.path.basename(one) or one for one in (a, b))
        names = (first, second) if first != second else ("A", "B")
        given = None if all(side is not one for side, one in zip(sides, (a, b), strict=True)) else loss
        found = compare(
            sides[0], sides[1], source, level=level, loss=given, names=names, threads=threads, **reading.options()
        )
        if report is not None:
            from forel.report import write_comparison

            write_comparison(report, found)
        if as_json:
            print_json(found.to_json())
            return
        say(f"{found}.", err=False)
        each = (f"{name} {number_text(mean, decimals=4)}" for name, mean in zip(names, found.losses, strict=True))
        say(f"Average loss: {', '.join(each)}.", err=False)
        console = open_console()
        for column, values in found.slices.items():
            table = Table(escape(column), "rows", "from", "to", title=f"by how much {escape(names[0])} is better")
            align_numbers(table)
            for value in values:
                table.add_row(escape(value.value), f"{value.rows:,}", signed(value.low), signed(value.high))
            console.print(table)
        columns: tuple[Any, ...] = ("row", "label", *map(escape, names))
        moved = Table(*columns, title="predictions that differ most")
        align_numbers(moved, 0)
        differing = [row for row in found.rows if row.a != row.b]
        for row in differing:
            moved.add_row(f"{row.row + 1:,}", *(number_text(value) for value in (row.label, row.a, row.b)))
        if differing:
            console.print(moved)
        if found.features:
            table = Table("feature", *map(escape, names), title="features whose contribution differs most")
            align_numbers(table)
            for one in found.features:
                table.add_row(escape(one.name), f"{one.a:+.4f}", f"{one.b:+.4f}")
            console.print(table)


def _settings(given: str, loss: str | None) -> Any:
    """Return the settings that a word stands for; the word itself if it is that of a file."""
    from dataclasses import fields

    from forel.learner.grid import default_grid
    from forel.learner.settings import Settings
    from forel.validation import refuse

    if given != "default" and ("=" not in given or os.path.exists(given)):
        return given
    known = {field.name for field in fields(Settings)}
    values: dict[str, Any] = {"loss": loss or "logistic"}
    for part in given.split(",") if given != "default" else ():
        name, _, value = part.partition("=")
        if name.strip() not in known:
            raise refuse(given, name, "the name of a setting, or a file")
        try:
            values[name.strip()] = float(value)
        except ValueError:
            values[name.strip()] = value.strip()
    return default_grid(**values) if values.get("alpha") is None else Settings(**values)
