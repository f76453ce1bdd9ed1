"""Flags of reading: declared once, with the commands that take them.

A command with a parameter ``reading`` of the type :class:`ReadingFlags` gets a flag for each field that names the
command; ``commands.expand_flags`` writes them into its signature.
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
CONVERT = {"commands": ("train", "cache", "convert")}
LABELLED = {"commands": ("train", "cache", "convert", "evaluate")}
SCORE = {"commands": ("predict", "evaluate")}
READ = {"commands": ("train", "cache", "convert", "predict", "evaluate", "explain")}
ALL = {"commands": (*READ["commands"], "peek")}


def _option(*names: str, help: str, default: bool = False) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=PANEL, show_default=default)


@dataclass(frozen=True)
class ReadingFlags:
    """The flags of reading, by the names of :class:`forel.data.ReadOptions`; None if they are not given.

    >>> ReadingFlags(ignore=["id,day", '"a, b"'], separator="tab").options()
    {'ignore': ['id', 'day', 'a, b'], 'separator': '\\t'}
    """

    bits: Annotated[int | None, _option("--bits", "-b", help="Hash names to 2**bits slots; 22 by default.")] = field(
        default=None, metadata=CONVERT
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
    label: Annotated[str | None, _option(help="The column of labels.")] = field(default=None, metadata=ALL)
    positive: Annotated[
        str | None,
        _option(help="The label of the positive class, such as yes; every other label is negative."),
    ] = field(default=None, metadata=LABELLED)
    classes: Annotated[
        str | None,
        _option(
            help="Labels are classes: their number, all names separated by commas, or auto to count those of the first "
            "10,000 rows. More than two words always are."
        ),
    ] = field(default=None, metadata=TRAIN)
    importance: Annotated[str | None, _option(help="The column of example weights.")] = field(
        default=None, metadata=CONVERT
    )
    keep: Annotated[list[str] | None, _option(help="Columns to use; others are left out; repeatable.")] = field(
        default=None, metadata=CONVERT
    )
    ignore: Annotated[list[str] | None, _option(help="Columns to leave out, separated by commas; repeatable.")] = field(
        default=None, metadata=CONVERT
    )
    categories: Annotated[list[str] | None, _option(help="Columns whose numbers are categories; repeatable.")] = field(
        default=None, metadata=CONVERT
    )
    log: Annotated[list[str] | None, _option(help="Columns to replace by their logarithms; repeatable.")] = field(
        default=None, metadata=PARSE
    )
    bucket: Annotated[
        list[str] | None,
        _option(
            help="Columns to group into categories, one per doubling of their numbers; price:4 for four; repeatable."
        ),
    ] = field(default=None, metadata=PARSE)
    text: Annotated[list[str] | None, _option(help="Columns of text, whose words are features; repeatable.")] = field(
        default=None, metadata=PARSE
    )
    ngram: Annotated[int | None, _option(help="Of text: sequences of up to n words.")] = field(
        default=None, metadata=PARSE
    )
    skips: Annotated[int | None, _option(help="Of text: words that a sequence may leave out, with --ngram.")] = field(
        default=None, metadata=PARSE
    )
    char_ngram: Annotated[str | None, _option(help="Of text: sequences of characters within words, such as 3-5.")] = (
        field(default=None, metadata=PARSE)
    )
    date: Annotated[
        list[str] | None,
        _option(help="Columns of dates and times: hour, weekday, month, and the date itself; repeatable."),
    ] = field(default=None, metadata=PARSE)
    interactions: Annotated[
        list[str] | None,
        _option(
            "--interactions",
            "-q",
            help="Crossed features: ab, abc or :: by first letters of namespaces, city*device by name; repeatable.",
        ),
    ] = field(default=None, metadata=PARSE)
    separator: Annotated[
        str | None,
        _option(help="What separates cells: comma, semicolon, tab, pipe or any character; recognised by default."),
    ] = field(default=None, metadata=ALL)
    header: Annotated[
        bool | None,
        _option("--header/--no-header", help="Whether the first row names the columns; if not, they are c1, c2, ..."),
    ] = field(default=None, metadata=ALL)
    missing: Annotated[
        list[str] | None,
        _option(
            help="Marks of missing values in all columns, such as unknown,-999; repeatable. "
            "NA, NaN, null, ? and the like are missing in numeric columns."
        ),
    ] = field(default=None, metadata=ALL)
    decimal: Annotated[str | None, _option(help="The decimal mark of numbers: . or ,")] = field(
        default=None, metadata=ALL
    )
    strict: Annotated[
        bool,
        _option(
            "--strict",
            help="Refuse rows unlike those of training: missing or new columns, words in place of numbers, numbers out "
            "of range. By default, there is a warning.",
        ),
    ] = field(default=False, metadata=SCORE)
    on_error: Annotated[
        str, _option(help="Malformed rows: raise, or skip to leave out and count them.", default=True)
    ] = field(default="raise", metadata=READ)
    line_limit: Annotated[
        int | None, _option("--line-limit", help="Longest line in bytes; 64 MB by default, 4 MB for JSON.")
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
