"""Keys that options name and that no row has, in JSON lines and dicts; tables have a header to compare with."""

import warnings
from difflib import get_close_matches

from forel.data.parsers.columns import Columns

__all__ = ["check_keys"]

SHOWN = 5  # keys in a message


def check_keys(columns: Columns) -> None:
    """Raise if no row had the key of importances, and warn of other keys that options name and no row had.

    >>> from forel.data import ReadOptions, read
    >>> list(read([{"x": 1.0, "weight": 2.0}], importance="wieght"))
    Traceback (most recent call last):
    ValueError: importance: got 'wieght', which no row has, expected a key of the rows, such as weight
    """
    seen, features = columns.seen, sorted(name for name in columns.known if columns.uses(name))
    absent = {} if seen.keys is None else {k: what for k, what in columns.named.items() if k not in seen.keys}
    for name, what in absent.items():
        shown = get_close_matches(name, features, 1) or features[:SHOWN]
        hint = f", such as {', '.join(shown)}" if shown else ""
        message = f"{what}: got {name!r}, which no row has, expected a key of the rows{hint}"
        if what == "importance":
            raise ValueError(message)
        warnings.warn(message, UserWarning, stacklevel=2)
