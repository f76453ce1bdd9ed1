"""Options that several commands share, apart from the flags of reading."""

from typing import Annotated

import typer

VW = "For Vowpal Wabbit users"

Files = Annotated[
    list[str] | None, typer.Argument(help="Files, patterns, or - for standard input.", show_default=False)
]
Data = Annotated[
    list[str] | None,
    typer.Option("-d", "--data", help="A file, as an argument without -d; repeatable.", rich_help_panel=VW),
]
Threads = Annotated[
    int | None,
    typer.Option(
        help="Number of parser threads; results do not depend on it.", rich_help_panel="Reading", show_default=False
    ),
]
Key = Annotated[str | None, typer.Option(help="The key of one of the models that --by trained.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def source_of(files: list[str] | None, data: list[str] | None) -> list[str]:
    """Return the files given as arguments or with -d, or standard input."""
    return [*(files or ()), *(data or ())] or ["-"]
