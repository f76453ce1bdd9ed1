"""What a reproduced claim is: who says what, what was measured, and whether it holds."""

import os
import pathlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["DATA", "Claim", "Missing", "wanted"]

ROOT = pathlib.Path(__file__).parents[1]
DATA = pathlib.Path(os.environ.get("FOREL_DATA", ROOT.parent / "shared" / "data"))


class Missing(Exception):
    """A claim needs a file that is not there."""


@dataclass(frozen=True, eq=False)
class Claim:
    """A claim, and what became of it.

    Parameters
    ----------
    key : short, the name of its figure's file
    title, says, source : in a few words; in a sentence; who says it, and where
    measured : what came out, in a sentence or two
    holds : whether that is what the claim says
    table : the numbers, the header first
    draw : returns the figure
    shows : what the figure shows, for those who cannot see it
    """

    key: str
    title: str
    says: str
    source: str
    measured: str
    holds: bool
    table: Sequence[Sequence[str]]
    draw: Callable[[], Any]
    shows: str


def wanted(*names: str) -> list[pathlib.Path]:
    """Return the paths of files of data, or raise what says which are missing."""
    paths = [DATA / name for name in names]
    if missing := [path.name for path in paths if not path.is_file()]:
        raise Missing(f"needs {', '.join(missing)} in {DATA}, or where FOREL_DATA says")
    return paths
