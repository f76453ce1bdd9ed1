"""Options that several commands share."""

import csv
from typing import Annotated, Any

import typer

VW = "For Vowpal Wabbit users"
READING = "Reading"
# Vowpal Wabbit's long names of options, as in context_settings of the application.
VW_NAMES = {
    "bit_precision": "bits",
    "cubic": "interactions",
    "final_regressor": "model",
    "holdout_after": "holdout-after",
    "holdout_period": "holdout",
    "initial_regressor": "start",
    "noconstant": "no-bias",
    "quadratic": "interactions",
}

LISTS = {"keep", "ignore", "categories", "log", "bucket", "text", "missing", "interactions"}
SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "pipe": "|", "space": " "}

Files = Annotated[
    list[str] | None, typer.Argument(help="Files, patterns, or - for standard input.", show_default=False)
]
Data = Annotated[
    list[str] | None,
    typer.Option("-d", "--data", help="A file, as an argument without -d; repeatable.", rich_help_panel=VW),
]
Form = Annotated[
    str,
    typer.Option(
        "--format",
        help="vw, svmlight, csv, tsv, jsonl, parquet, arrow; auto detects it from names and first bytes.",
        rich_help_panel=READING,
    ),
]
Label = Annotated[str | None, typer.Option(help="The column of labels.", rich_help_panel=READING, show_default=False)]
Positive = Annotated[
    str | None,
    typer.Option(
        help="The label of the positive class, such as yes; every other label is negative.",
        rich_help_panel=READING,
        show_default=False,
    ),
]
Classes = Annotated[
    str | None,
    typer.Option(
        help="Labels are classes: their number, all names separated by commas, or auto to count those of the first "
        "10,000 rows. More than two words always are.",
        rich_help_panel=READING,
        show_default=False,
    ),
]
Importance = Annotated[
    str | None,
    typer.Option(help="The column of example weights.", rich_help_panel=READING, show_default=False),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(help="Columns to leave out, separated by commas; repeatable.", rich_help_panel=READING),
]
Categories = Annotated[
    list[str] | None,
    typer.Option(help="Columns whose numbers are categories; repeatable.", rich_help_panel=READING),
]
Keep = Annotated[
    list[str] | None, typer.Option(help="Columns to use; others are left out; repeatable.", rich_help_panel=READING)
]
Log = Annotated[
    list[str] | None,
    typer.Option(help="Columns to replace by their logarithms; repeatable.", rich_help_panel=READING),
]
Bucket = Annotated[
    list[str] | None,
    typer.Option(
        help="Columns to group into categories, one per doubling of their numbers; price:4 for four; repeatable.",
        rich_help_panel=READING,
    ),
]
Text = Annotated[
    list[str] | None,
    typer.Option(help="Columns of text, whose words are features; repeatable.", rich_help_panel=READING),
]
Ngram = Annotated[
    int | None,
    typer.Option(help="Of text: sequences of up to n words.", rich_help_panel=READING, show_default=False),
]
Skips = Annotated[
    int | None,
    typer.Option(
        help="Of text: words that a sequence may leave out, with --ngram.", rich_help_panel=READING, show_default=False
    ),
]
CharNgram = Annotated[
    str | None,
    typer.Option(
        help="Of text: sequences of characters within words, such as 3-5.", rich_help_panel=READING, show_default=False
    ),
]
Separator = Annotated[
    str | None,
    typer.Option(
        help="What separates cells: comma, semicolon, tab, pipe or any character; recognised by default.",
        rich_help_panel=READING,
        show_default=False,
    ),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first row names the columns; if not, they are c1, c2, ...",
        rich_help_panel=READING,
        show_default=False,
    ),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        help="Marks of missing values in all columns, such as unknown,-999; repeatable. "
        "NA, NaN, null, ? and the like are missing in numeric columns.",
        rich_help_panel=READING,
    ),
]
Decimal = Annotated[
    str | None,
    typer.Option(help="The decimal mark of numbers: . or ,", rich_help_panel=READING, show_default=False),
]
Interactions = Annotated[
    list[str] | None,
    typer.Option(
        "--interactions",
        "-q",
        help="Crossed features: ab, abc or :: by first letters of namespaces, city*device by name; repeatable.",
        rich_help_panel=READING,
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Refuse rows unlike those of training: missing or new columns, words in place of numbers, numbers out of "
        "range. By default, there is a warning.",
        rich_help_panel=READING,
    ),
]
OnError = Annotated[
    str, typer.Option(help="Malformed rows: raise, or skip to leave out and count them.", rich_help_panel=READING)
]
LineLimit = Annotated[
    int | None,
    typer.Option(
        "--line-limit",
        help="Longest line in bytes; 64 MB by default, 4 MB for JSON.",
        rich_help_panel=READING,
        show_default=False,
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        help="Number of parser threads; results do not depend on it.", rich_help_panel=READING, show_default=False
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def source_of(files: list[str] | None, data: list[str] | None) -> list[str]:
    """Return the files given as arguments or with -d, or standard input."""
    return [*(files or ()), *(data or ())] or ["-"]


def reading_options(**given: Any) -> dict[str, Any]:
    """Return the options of reading that were given, by the names of ``forel.data.ReadOptions``.

    >>> reading_options(ignore=["id,day", '"a, b"'], separator="tab")
    {'ignore': ['id', 'day', 'a, b'], 'separator': '\\t'}
    """
    found = {name: value for name, value in given.items() if value is not None and value != []}
    for name in LISTS & found.keys():
        found[name] = [one for value in found[name] for one in split_list(value)]
    if "classes" in found:
        found["classes"] = parse_classes(found["classes"])
    if "separator" in found:
        found["separator"] = SEPARATORS.get(found["separator"], found["separator"])
    return found


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
