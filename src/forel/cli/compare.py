"""``forel compare``: which of two models is better on some rows."""

import os
from typing import Any

from forel.cli.errors import errors_as_messages
from forel.cli.options import NO_FLAGS, ReadingFlags, check_files, parse_settings, source_of
from forel.cli.printing import print_json, print_table, say, signed
from forel.markup import number_text


def compare(
    a: str,
    b: str,
    files: list[str] | None = None,
    *,
    level: float = 0.05,
    loss: str | None = None,
    report: str | None = None,
    reading: ReadingFlags = NO_FLAGS,
    as_json: bool = False,
) -> None:
    """Say which of two models is better on some rows.

    Neither may have learned from these rows. The statement holds at whatever
    row one looks, for rows in any order: it needs neither independence nor a
    number of rows chosen before. A and B are model files, files of predictions
    as forel predict writes them, or settings, which are trained side by side.
    With --slice, differences are also shown by the values of a column.

    \b
    Examples:
      forel compare old.forel new.forel today.csv
      forel compare old.txt new.txt labels.txt
      forel compare default alpha=0.3 clicks.vw

    Arguments
    ---------
    a : A model, predictions, or settings; such as alpha=0.3 or default.
    b : Another one.
    files : Rows with labels.

    Options
    -------
    level : Probability of a wrong statement.
    loss : Of predictions: logistic, squared or absolute. Of settings: their loss.
    report : Write a page with a plot, in HTML.
    as_json (--json) : Print JSON instead of text.
    """
    with errors_as_messages():
        from forel.training.compare import compare

        source = source_of(files, reading)
        check_files({"--report": report}, [*source, a, b])
        sides = [_settings(one, loss) for one in (a, b)]
        first, second = (os.path.basename(one) or one for one in (a, b))
        names = (first, second) if first != second else ("A", "B")
        given = None if all(side is not one for side, one in zip(sides, (a, b), strict=True)) else loss
        found = compare(sides[0], sides[1], source, level=level, loss=given, names=names, **reading.options())
        if report is not None:
            from forel.report import write_comparison

            write_comparison(report, found)
        if as_json:
            print_json(found.to_json())
            return
        say(f"{found}.", err=False)
        each = (f"{name} {number_text(mean, decimals=4)}" for name, mean in zip(names, found.losses, strict=True))
        say(f"Average loss: {', '.join(each)}.", err=False)
        of = "" if found.comparison.kind == "log" else ", as a part of the sum of both losses"
        for column, values in found.slices.items():
            rows = ([one.value, f"{one.rows:,}", signed(one.low), signed(one.high)] for one in values)
            print_table([column, "rows", "from", "to"], rows, f"by how much {names[0]} is better{of}")
        if differing := [row for row in found.rows if row.a != row.b]:
            moved = ([f"{row.row + 1:,}", *map(number_text, (row.label, row.a, row.b))] for row in differing)
            print_table(["row", "label", *names], moved, "predictions that differ most", left=0)
        if found.features:
            largest = ([one.name, f"{one.a:+.4f}", f"{one.b:+.4f}"] for one in found.features)
            print_table(["feature", *names], largest, "features whose contribution differs most")


def _settings(given: str, loss: str | None) -> Any:
    """Return the settings that a word stands for; the word itself if it is that of a file."""
    from forel.learner.grid import default_grid

    if given != "default" and ("=" not in given or os.path.exists(given)):
        return given
    return default_grid(**{"loss": loss or "logistic", **parse_settings(given.split(","))})
