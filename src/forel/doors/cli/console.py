"""Consoles that print names of features and columns unchanged."""

from rich.console import Console

__all__ = ["open_console"]


def open_console(stderr: bool = False) -> Console:
    """Return a console for standard output or stderr; it replaces no codes of emoji, such as :heart: in a name."""
    return Console(stderr=stderr, emoji=False)
