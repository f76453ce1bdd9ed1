"""``forel peek``: what the first rows of a file show, and the command to train on it."""

import shlex
from collections.abc import Iterator
from typing import Any

from forel.cli.errors import errors_as_messages
from forel.cli.options import NO_FLAGS, ReadingFlags
from forel.cli.printing import print_json, print_table, say
from forel.markup import counted

MAX_COLUMNS = 18  # of a table, so that a screen shows the command as well

COLUMN = ("column", "kind", "distinct", "missing", "examples")
MOST_CLASSES = 20  # of whole numbers as labels
SEPARATOR_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "pipe", " ": "space"}


def peek(file: str, *, rows: int = 1000, reading: ReadingFlags = NO_FLAGS, as_json: bool = False) -> None:
    """Show the columns of a file, and the command to train on it.

    Format, separator, header, kinds of columns, missing values and the label
    are recognized from the first rows; options override this.

    Example: forel peek bank.csv

    Arguments
    ---------
    file : A file, or - for standard input.

    Options
    -------
    rows : Number of rows to read.
    as_json (--json) : Print JSON instead of text.
    """
    with errors_as_messages():
        from forel.data.peek import peek

        found = peek(file, rows, **reading.options())
        command = " ".join(map(_quoted, ["forel", "train", *found.arguments()])) if found.trainable else None
        if as_json:
            print_json(_as_dict(found, command))
        else:
            _print(found, command)


def _as_dict(found: Any, command: str | None) -> dict[str, Any]:
    facts, of_column = ("file", "format", "separator", "rows", "label", "classes", "malformed"), COLUMN[1:]
    return {
        **{name: getattr(found, name) for name in facts},
        **{name: getattr(found.options, name) for name in ("header", "decimal")},
        "columns": [{name: getattr(column, name) for name in ("name", *of_column)} for column in found.columns],
        "formatted_numbers": found.formatted,
        "positive": found.positive if found.words is None else found.words.positive,
        "command": command,
    }


def _print(found: Any, command: str | None) -> None:
    facts = [found.format]
    if found.format in ("csv", "tsv"):
        facts.append(f"separator {SEPARATOR_NAMES.get(found.separator, found.separator)}")
        facts.append("header" if found.options.header else "no header")
        facts += ["decimal comma"] if found.options.decimal == "," else []
    say(f"{found.file}: {', '.join(facts)}; first {counted(found.rows, 'row')}", err=False)
    if found.columns:
        listed = found.columns if len(found.columns) <= MAX_COLUMNS else found.columns[: MAX_COLUMNS - 1]
        others = found.columns[len(listed) :]
        rows = (
            [c.name, "label" if c.name == found.label else c.kind, f"{c.distinct:,}", f"{c.missing:,}",
             ", ".join(c.examples)] for c in (*listed, *(one for one in others if one.name == found.label))
        )  # fmt: skip
        print_table(COLUMN, rows, left=5, fold=False)
        if others:
            say(f"{counted(len(others), 'further column')}; --json lists all.", err=False)
        for note in _notes(found):
            say(note, err=False)
    if found.malformed:
        skipped = f"{counted(found.malformed, 'row')}, which --on-error skip leaves out; {found.problem}"
        say(f"Malformed: {skipped}", err=False)
    if command is not None:
        say(f"Train: {command}", err=False)


def _notes(found: Any) -> Iterator[str]:
    """Yield sentences about labels, formatted numbers and dates."""
    from forel.data.features.dates import AMBIGUOUS

    if found.words is not None:
        yield f"Labels: {found.words.summary()}."
    elif found.positive is not None:
        yield f"Labels: {found.positive} is positive; without --positive, use --loss squared."
    elif found.regression and (few := _whole_labels(found)):
        hint = f"{few} whole numbers, whose size counts"
        yield f"Labels: {hint}; for classes, replace --loss squared by --classes auto."
    elif found.classes is not None:
        yield f"Labels: {found.classes} classes."
    elif found.label is None:
        example = f"{_quoted(found.arguments()[0])} --label {_quoted(found.columns[-1].name)}"
        yield f"No column looks like a label; name it, such as: forel peek {example}"
    if found.formatted:
        yield f"Read as numbers: {', '.join(found.formatted)}, without signs and thousands separators."
    for column in found.columns:
        if column.order == AMBIGUOUS and column.name not in found.given.dates:
            first, second = (f"--date {shlex.quote(f'{column.name}:{order}')}" for order in ("dmy", "mdy"))
            yield f"Dates: {column.name}; add {first} if the day is first, {second} if the month is."


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
