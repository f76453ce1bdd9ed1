"""``forel peek``: what the first rows of a file show, and the command to train on it."""

import shlex
from typing import Annotated, Any

import typer

from forel.cli.errors import errors_as_messages
from forel.cli.options import NO_FLAGS, AsJson, ReadingFlags
from forel.cli.printing import print_json, say
from forel.markup import counted

MAX_COLUMNS = 18  # of a table, so that a screen shows the command as well

MOST_CLASSES = 20  # of whole numbers as labels
SEPARATOR_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "pipe", " ": "space"}


def peek(
    file: Annotated[str, typer.Argument(help="A file, or - for standard input.")],
    rows: Annotated[int, typer.Option(help="Number of rows to read.")] = 1000,
    reading: ReadingFlags = NO_FLAGS,
    as_json: AsJson = False,
) -> None:
    """Show the columns of a file, and the command to train on it.

    Format, separator, header, kinds of columns, missing values and the label
    are recognized from the first rows; options override this.

    Example: forel peek bank.csv
    """
    with errors_as_messages():
        from forel.data.peek import peek

        found = peek(file, rows, **reading.options())
        command = " ".join(map(_quoted, ["forel", "train", *found.arguments()])) if found.trainable else None
        if as_json:
            print_json(_as_dict(found, command))
            return
        _print(found, command)


def _as_dict(found: Any, command: str | None) -> dict[str, Any]:
    return {
        "file": found.file,
        "format": found.format,
        "separator": found.separator,
        "header": found.options.header,
        "decimal": found.options.decimal,
        "rows": found.rows,
        "columns": [
            {name: getattr(column, name) for name in ("name", "kind", "distinct", "missing", "examples")}
            for column in found.columns
        ],
        "label": found.label,
        "classes": found.classes,
        "formatted_numbers": found.formatted,
        "malformed": found.malformed,
        "positive": found.positive if found.words is None else found.words.positive,
        "command": command,
    }


def _print(found: Any, command: str | None) -> None:
    from rich.markup import escape
    from rich.table import Table

    from forel.cli.tables import open_console
    from forel.data.features.dates import AMBIGUOUS

    console = open_console()
    facts = [found.format]
    if found.format in ("csv", "tsv"):
        facts.append(f"separator {SEPARATOR_NAMES.get(found.separator, found.separator)}")
        facts.append("header" if found.options.header else "no header")
        facts += ["decimal comma"] if found.options.decimal == "," else []
    console.print(
        f"{found.file}: {', '.join(facts)}; first {counted(found.rows, 'row')}", markup=False, highlight=False
    )
    if found.columns:
        table = Table("column", "kind", "distinct", "missing", "examples")
        listed = found.columns if len(found.columns) <= MAX_COLUMNS else found.columns[: MAX_COLUMNS - 1]
        others = found.columns[len(listed) :]
        for column in (*listed, *(one for one in others if one.name == found.label)):
            kind = "label" if column.name == found.label else column.kind
            counts = f"{column.distinct:,}", f"{column.missing:,}"
            table.add_row(escape(column.name), kind, *counts, escape(", ".join(column.examples)))
        console.print(table)
        if others:
            say(f"{counted(len(others), 'further column')}; --json lists all.", err=False)
        if found.words is not None:
            say(f"Labels: {found.words.summary()}.", err=False)
        elif found.positive is not None:
            say(f"Labels: {found.positive} is positive; without --positive, use --loss squared.", err=False)
        elif found.regression and (few := _whole_labels(found)):
            hint = f"{few} whole numbers, whose size counts"
            say(f"Labels: {hint}; for classes, replace --loss squared by --classes auto.", err=False)
        elif found.classes is not None:
            say(f"Labels: {found.classes} classes.", err=False)
        elif found.label is None:
            name = _quoted(found.columns[-1].name)
            file = _quoted(found.arguments()[0])
            say(f"No column looks like a label; name it, such as: forel peek {file} --label {name}", err=False)
        if found.formatted:
            hint = "without signs and thousands separators"
            say(f"Read as numbers: {', '.join(found.formatted)}, {hint}.", err=False)
        for column in found.columns:
            if column.order == AMBIGUOUS and column.name not in found.given.dates:
                first, second = (f"--date {shlex.quote(f'{column.name}:{order}')}" for order in ("dmy", "mdy"))
                hint = f"add {first} if the day is first, {second} if the month is"
                say(f"Dates: {column.name}; {hint}.", err=False)
    if found.malformed:
        say(
            f"Malformed: {counted(found.malformed, 'row')}, which --on-error skip leaves out; {found.problem}",
            err=False,
        )
    if command is not None:
        say(f"Train: {command}", err=False)


def _whole_labels(found: Any) -> int:
    """Return how many labels there are if they are few whole numbers, which may be classes; 0 if not."""
    (label,) = (column for column in found.columns if column.name == found.label)
    whole = all(example.isdecimal() for example in label.examples)
    return label.distinct if whole and 2 < label.distinct <= MOST_CLASSES else 0


def _quoted(argument: str) -> str:
    """Return an argument for a shell, in which control characters and marks of direction are escaped."""
    if argument.isprintable():
        return shlex.quote(argument)
    escaped = "".join(
        c if c.isprintable() and c not in "\\'" else "".join(f"\\x{byte:02x}" for byte in c.encode("utf-8", "replace"))
        for c in argument
    )
    return f"$'{escaped}'"
