"""``forel train --report``: record the history of training, and write the report."""

import shlex
import sys
from dataclasses import replace

import typer

import forel
from forel.cli.errors import all_options, name_options
from forel.data.options import BLOCK_BYTES
from forel.training.history import History, certificate_values, mixture_weights
from forel.training.progress_bar import size_of
from forel.training.trained import Trained

__all__ = ["Page"]

MIN_BLOCKS = 64  # of a small file, so that plots have enough points
MIN_BLOCK_BYTES = 1 << 12


class Page:
    """The report of a run.

    Parameters
    ----------
    path : the file to write
    source : the files that are read
    certified : whether to record the certificate
    """

    def __init__(self, path: str, source: list[str], certified: bool) -> None:
        self.path, self.source = path, source
        self.history = (
            History(proof=certificate_values, shares=mixture_weights) if certified else History(shares=mixture_weights)
        )

    @property
    def block_bytes(self) -> int | None:
        """The size of blocks, smaller for small files; results do not depend on it."""
        size = size_of(self.source)
        return None if size is None else min(max(size // MIN_BLOCKS, MIN_BLOCK_BYTES), BLOCK_BYTES)

    def write(self, trained: Trained, stderr: bool) -> None:
        """Write the report and print its path, on stderr if ``stderr``."""
        from forel.report import write_report

        self.history.close()
        command = shlex.join(["forel", *sys.argv[1:]])
        options = all_options() if trained.problems.count else ()
        messages = [name_options(message, options) for message in trained.problems.messages]
        shown = replace(trained, problems=replace(trained.problems, messages=messages))
        write_report(self.path, shown, self.history, source=self.source, command=command, version=forel.__version__)
        typer.echo(f"Report: {self.path}", err=stderr)
