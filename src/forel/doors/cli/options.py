"""Options that several commands share, said once."""

from typing import Annotated, Any

import typer

VW = "For Vowpal Wabbit users"
READING = "Reading"
Files = Annotated[
    list[str] | None, typer.Argument(help="Files, patterns, or - for standard input.", show_default=False)
]
Data = Annotated[
    list[str] | None, typer.Option("-d", "--data", help="A file, as without a flag; repeatable.", rich_help_panel=VW)
]
Form = Annotated[
    str,
    typer.Option(
        "--format",
        help="vw, svmlight, csv, tsv, jsonl, parquet, arrow; auto looks at names and first bytes.",
        rich_help_panel=READING,
    ),
]
Label = Annotated[
    str | None, typer.Option(help="The column of labels, where there are columns.", rich_help_panel=READING)
]
Importance = Annotated[
    str | None, typer.Option(help="The column that says how much a row counts.", rich_help_panel=READING)
]
Ignore = Annotated[list[str] | None, typer.Option(help="A column not to use; repeatable.", rich_help_panel=READING)]
Categories = Annotated[
    list[str] | None, typer.Option(help="A column whose numbers are codes; repeatable.", rich_help_panel=READING)
]
Keep = Annotated[
    list[str] | None, typer.Option(help="A column to use, and no others; repeatable.", rich_help_panel=READING)
]
Log = Annotated[
    list[str] | None, typer.Option(help="A column to take the logarithm of; repeatable.", rich_help_panel=READING)
]
Bucket = Annotated[
    list[str] | None,
    typer.Option(
        help="A column whose numbers become categories that double in width, :4 for four to a doubling; repeatable.",
        rich_help_panel=READING,
    ),
]
Interactions = Annotated[
    list[str] | None,
    typer.Option(
        "--interactions",
        "-q",
        "--quadratic",
        "--cubic",
        help="Crosses: ab, abc or :: of namespaces by first letter, city*device by name; repeatable.",
        rich_help_panel=READING,
    ),
]
OnError = Annotated[
    str, typer.Option(help="raise, or skip to leave out and count what is malformed.", rich_help_panel=READING)
]
LineLimit = Annotated[
    int | None,
    typer.Option(
        "--line-limit",
        help="Bytes of the longest line or header, beyond which text is refused; 64 MB, of JSON 4 MB, if not said.",
        rich_help_panel=READING,
        show_default=False,
    ),
]
Threads = Annotated[
    int | None, typer.Option(help="Threads that parse; results are the same for any number.", rich_help_panel=READING)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def source_of(files: list[str] | None, data: list[str] | None) -> list[str]:
    """Return the files that were named either way, or standard input."""
    return [*(files or ()), *(data or ())] or ["-"]


def reading_options(**given: Any) -> dict[str, Any]:
    """Return the options of reading that were given, by the names of ``forel.data.ReadOptions``."""
    return {name: value for name, value in given.items() if value is not None and value != []}
