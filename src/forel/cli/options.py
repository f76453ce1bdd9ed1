"""Options that several commands share, apart from the flags of reading."""

import shlex
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from forel.cli.printing import say

if TYPE_CHECKING:
    from forel.training.model import Model

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
    """Return the files given as arguments or with -d, or standard input, which a terminal has to be asked for."""
    found = [*(files or ()), *(data or ())]
    if sys.stdin is not None and sys.stdin.isatty():
        if not found:
            raise typer.BadParameter("none; name files, or - for standard input", param_hint="files")
        if "-" in found:
            say("forel: reading rows from this terminal until Ctrl-D")
    return found or ["-"]


def load_one(path: str, key: str | None) -> "Model":
    """Return the model of a file, or that of one key; raise if there is one for each key and none is given."""
    from forel.learner.keyed import KeyedModels
    from forel.training.model import load
    from forel.validation import refuse

    stored = load(path)
    if key is not None:
        return stored.of_key(key)
    if isinstance(stored.learner, KeyedModels):
        expected = f"the model of one key, such as --key {shlex.quote(stored.learner.keys[0])}"
        raise refuse("model", f"models by {stored.learner.by}", expected)
    return stored
