"""Flags of reading: declared once, with the commands that take them.

``commands.expand_flags`` replaces a command's parameter ``reading``, of the type :class:`ReadingFlags`, by a flag for
each field whose metadata contain the command.
"""

import csv
from dataclasses import dataclass, field, fields
from typing import Annotated, Any

import typer

__all__ = ["NO_FLAGS", "ReadingFlags"]

PANEL = "Reading"
SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "pipe": "|", "space": " "}
# The commands that take a flag.
TRAIN = {"commands": ("train",)}
PARSE = {"commands": ("train", "cache")}
LABELLED = {"commands": ("train", "cache", "convert", "evaluate")}
MEASURE = {"commands": ("train", "evaluate")}
SCORE = {"commands": ("predict", "evaluate")}
READ = {"commands": ("train", "cache", "convert", "predict", "evaluate", "explain")}
ALL = {"commands": (*READ["commands"], "peek")}


def _option(*names: str, help: str, default: bool = False, **others: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=PANEL, show_default=default, **others)


@dataclass(frozen=True)
class ReadingFlags:
    """The flags of reading, by the names of :class:`forel.data.ReadOptions`; None if they are not given.

    >>> ReadingFlags(ignore=["id,day", '"a, b"'], separator="tab").options()
    {'ignore': ['id', 'day', 'a, b'], 'separator': '\\t'}
    """

    bits: Annotated[int | None, _option("--bits", "-b", help="Hash names to 2**bits slots; 22 by default.")] = field(
        default=None, metadata=PARSE
    )
    names: Annotated[bool, _option("--names", help="Keep the names of features; reading is slower.")] = field(
        default=False, metadata=TRAIN
    )
    format: Annotated[
        str,
        _option(
            "--format",
            help="vw, svmlight, csv, tsv, jsonl, parquet, arrow; auto detects it from names and first bytes.",
            default=True,
        ),
    ] = field(default="auto", metadata=ALL)
    encoding: Annotated[
        str | None, _option(help="Encoding of text, such as latin-1; UTF-8, or by a byte order mark, by default.")
    ] = field(default=None, metadata=ALL)
    label: Annotated[str | None, _option(help="Column of labels.")] = field(default=None, metadata=ALL)
    positive: Annotated[
        str | None,
        _option(help="Label of the positive class, such as yes; all other labels are negative."),
    ] = field(default=None, metadata=LABELLED)
    classes: Annotated[
        str | None,
        _option(
            help="Multiclass labels: the number of classes, their names separated by commas, or auto to detect them in "
            "the first 10,000 rows. More than two words as labels are always classes."
        ),
    ] = field(default=None, metadata=TRAIN)
    importance: Annotated[str | None, _option(help="Column of importance weights.")] = field(
        default=None, metadata=PARSE
    )
    keep: Annotated[
        list[str] | None, _option(help="Use only these columns, or VW namespaces by first letter; repeatable.")
    ] = field(default=None, metadata=PARSE)
    ignore: Annotated[
        list[str] | None, _option(help="Columns, or VW namespaces by first letter, to ignore; repeatable.")
    ] = field(default=None, metadata=PARSE)
    categories: Annotated[list[str] | None, _option(help="Columns whose numbers are categories; repeatable.")] = field(
        default=None, metadata=PARSE
    )
    log: Annotated[list[str] | None, _option(help="Columns to replace by their logarithms; repeatable.")] = field(
        default=None, metadata=PARSE
    )
    bucket: Annotated[
        list[str] | None,
        _option(help="Columns to bin into categories, one bin per doubling, four with price:4; repeatable."),
    ] = field(default=None, metadata=PARSE)
    text: Annotated[list[str] | None, _option(help="Text columns, whose words are features; repeatable.")] = field(
        default=None, metadata=PARSE
    )
    ngram: Annotated[int | None, _option(help="Text columns: n-grams of up to n words.")] = field(
        default=None, metadata=PARSE
    )
    skips: Annotated[int | None, _option(help="Text columns: words that an n-gram may skip.")] = field(
        default=None, metadata=PARSE
    )
    char_ngram: Annotated[str | None, _option(help="Text columns: lengths of character n-grams, such as 3-5.")] = field(
        default=None, metadata=PARSE
    )
    date: Annotated[
        list[str] | None,
        _option(
            help="Date columns: features for hour, weekday, month and the date itself; when:dmy or when:mdy for "
            "31/01/2024 or 01/31/2024; repeatable."
        ),
    ] = field(default=None, metadata=PARSE)
    interactions: Annotated[
        list[str] | None,
        _option(
            "--interactions",
            "-q",
            help="Crossed features: ab, abc or :: by first letters of namespaces, city*device by name; repeatable.",
        ),
    ] = field(default=None, metadata=PARSE)
    slices: Annotated[
        list[str] | None,
        _option(
            "--slice",
            help="Show metrics by the values of these columns, or of namespaces or tag in VW text; repeatable.",
        ),
    ] = field(default=None, metadata=MEASURE)
    separator: Annotated[
        str | None,
        _option(help="Separator: comma, semicolon, tab, pipe or any character; detected by default."),
    ] = field(default=None, metadata=ALL)
    header: Annotated[
        bool | None,
        _option("--header/--no-header", help="Whether the first row has column names; otherwise they are c1, c2, ..."),
    ] = field(default=None, metadata=ALL)
    missing: Annotated[
        list[str] | None,
        _option(
            help="Missing-value markers in all columns, such as unknown,-999; repeatable. "
            "NA, NaN, null, ? and similar words are missing in numeric columns."
        ),
    ] = field(default=None, metadata=ALL)
    decimal: Annotated[str | None, _option(help="Decimal mark: . or ,")] = field(default=None, metadata=ALL)
    strict: Annotated[
        bool,
        _option(
            "--strict",
            help="Reject rows that differ from the training data: missing or new columns, words in place of numbers, "
            "numbers out of range. By default, they cause a warning.",
        ),
    ] = field(default=False, metadata=SCORE)
    on_error: Annotated[
        str, _option(help="Malformed rows: raise (an error), or skip (and count them).", default=True)
    ] = field(default="raise", metadata=READ)
    line_limit: Annotated[
        int | None, _option("--line-limit", help="Maximum length of a line in bytes; 64 MB by default, 4 MB for JSON.")
    ] = field(default=None, metadata=READ)

    def options(self) -> dict[str, Any]:
        """Return the flags that differ from their defaults, as keywords of :func:`forel.data.read`."""
        chosen: dict[str, Any] = {}
        for flag in fields(self):
            value = getattr(self, flag.name)
            if value not in (flag.default, []):
                chosen[flag.name] = _split_all(value) if isinstance(value, list) else value
        if "classes" in chosen:
            chosen["classes"] = parse_classes(chosen["classes"])
        if "separator" in chosen:
            chosen["separator"] = SEPARATORS.get(chosen["separator"], chosen["separator"])
        return chosen

    def taken_by(self, command: str) -> "ReadingFlags":
        """Return the flags that a command takes, and the defaults of the others."""
        names = [flag.name for flag in fields(self) if command in flag.metadata["commands"]]
        return ReadingFlags(**{name: getattr(self, name) for name in names})


NO_FLAGS = ReadingFlags()


def parse_classes(value: str) -> int | str | list[str]:
    """Return a number of classes, names separated by commas, or "auto".

    >>> parse_classes("3"), parse_classes("red,green"), parse_classes("auto")
    (3, ['red', 'green'], 'auto')
    """
    return int(value) if value.isdecimal() else value if value == "auto" else split_list(value)


def split_list(value: str) -> list[str]:
    """Split a list at its commas; an item with a comma is quoted.

    >>> split_list('id,"city, country"')
    ['id', 'city, country']
    """
    return [one for one in next(csv.reader([value], skipinitialspace=True), []) if one]


def _split_all(values: list[str]) -> list[str]:
    return [item for value in values for item in split_list(value)]
