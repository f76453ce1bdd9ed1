"""Consoles and tables that print names and numbers unchanged."""

from rich.console import Console
from rich.table import Table

__all__ = ["align_numbers", "open_console"]


def open_console(stderr: bool = False) -> Console:
    """Return a console for standard output or stderr; it replaces no codes of emoji, such as :heart: in a name."""
    return Console(stderr=stderr, emoji=False)


def align_numbers(table: Table, first: int = 1) -> None:
    """Align the columns from ``first`` on to the right, and wrap cells that do not fit the terminal: none is cut."""
    for k, column in enumerate(table.columns):
        column.overflow = "fold"
        if k >= first:
            column.justify = "right"
