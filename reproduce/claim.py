"""A reproduced claim: its statement and source, the measurement, and whether it holds."""

import os
import pathlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["DATA", "Claim", "MissingData", "data_files"]

ROOT = pathlib.Path(__file__).parents[1]
DATA = pathlib.Path(os.environ.get("FOREL_DATA", ROOT.parent / "shared" / "data"))


class MissingData(Exception):
    """A data file that a claim needs is missing."""


@dataclass(frozen=True, eq=False)
class Claim:
    """A claim from the literature and its reproduction.

    Parameters
    ----------
    key : a short name, that of the figure's file
    title, statement, source : a heading, one sentence, and the reference
    measured : the measurement, in a sentence or two
    holds : whether the measurement supports the claim
    table : the numbers, with a header row
    draw : returns the figure
    alt_text : a description of the figure
    """

    key: str
    title: str
    statement: str
    source: str
    measured: str
    holds: bool
    table: Sequence[Sequence[str]]
    draw: Callable[[], Any]
    alt_text: str


def data_files(*names: str) -> list[pathlib.Path]:
    """Return the paths of data files; raise MissingData, with their names, if some are missing."""
    paths = [DATA / name for name in names]
    if missing := [path.name for path in paths if not path.is_file()]:
        raise MissingData(f"needs {', '.join(missing)} in {DATA}, or in FOREL_DATA")
    return paths
