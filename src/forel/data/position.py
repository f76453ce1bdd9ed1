"""Positions in a source, where another pass or a resumed run starts to read."""

from typing import NamedTuple

__all__ = ["BEGINNING", "Position"]


class Position(NamedTuple):
    """A position between two blocks; positions are ordered.

    Parameters
    ----------
    file : number of files before it
    blocks : number of blocks of the next file before it; 0 in line formats, where ``bytes`` locates it
    bytes, line : uncompressed bytes of a line format before it, and the number of the next line

    >>> Position(0, 0, 90, 3) < Position(1)
    True
    """

    file: int = 0
    blocks: int = 0
    bytes: int = 0
    line: int = 1


BEGINNING = Position()
