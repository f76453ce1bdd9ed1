"""Keys and namespaces that options name and that no row has; tables have a header to compare columns with."""

import warnings
from collections.abc import Collection
from difflib import get_close_matches

from forel.data.features.crosses import Crosses
from forel.data.parsers.columns import Columns

__all__ = ["check_crosses", "check_keys"]

SHOWN = 5  # keys in a message


def check_keys(columns: Columns) -> None:
    """Raise if no row had the key of importances, and warn of other keys that options name and no row had.

    >>> from forel.data import ReadOptions, read
    >>> list(read([{"x": 1.0, "weight": 2.0}], importance="wieght"))
    Traceback (most recent call last):
    ValueError: importance: got 'wieght', which no row has, expected a key of the rows, such as weight
    """
    seen = columns.seen
    absent = {} if seen.keys is None else {k: what for k, what in columns.named.items() if k not in seen.keys}
    for name, what in absent.items():
        message = f"{what}: got {name!r}, which no row has, expected a key of the rows{_such_as(name, columns)}"
        if what == "importance":
            raise ValueError(message)
        warnings.warn(message, UserWarning, stacklevel=2)


def check_crosses(crosses: Crosses, columns: Columns, found: Collection[int]) -> None:
    """Warn of namespaces and columns that crosses name and that no row has.

    Parameters
    ----------
    crosses : all crosses
    columns : the columns or keys of the rows, if they have any
    found : kinds of the namespaces and columns of features

    >>> import io
    >>> from forel.data import read
    >>> with warnings.catch_warnings(record=True, action="always") as found:
    ...     _ = list(read(io.BytesIO(b"1 |a x |b y"), "vw", interactions=["a*c"]))
    >>> print(found[0].message)
    interactions: got 'c', of which no row has a feature, expected a namespace or column of the rows
    """
    for word, whole in crosses.absent(found):
        name = word.decode() or " "
        got = "of which no row has a feature" if whole else "with which no namespace or column of a feature begins"
        expected = "a namespace or column of the rows" if whole else "the first letter of one"
        hint = _such_as(name, columns)
        warnings.warn(f"interactions: got {name!r}, {got}, expected {expected}{hint}", UserWarning, stacklevel=2)


def _such_as(name: str, columns: Columns) -> str:
    """Return the key that resembles a name most, or some keys, as the end of a message."""
    features = sorted(known for known in columns.known if columns.uses(known))
    shown = get_close_matches(name, features, 1) or features[:SHOWN]
    return f", such as {', '.join(shown)}" if shown else ""
