"""Roles of columns or keys: label, importance, features; and checks that those named by options exist."""

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from typing import Any

from forel.data.features.crosses import Crosses
from forel.data.features.kinds import DATE, SeenColumns
from forel.data.options import ReadOptions
from forel.validation import refuse, repeated

__all__ = ["Columns", "check_crosses", "check_keys"]

NAMING = ("keep", "ignore", "categories", "log", "text", "date")  # options that name columns of features
SUGGESTED = 5  # keys in a message
SHOWN = 20  # columns in a message


@dataclass(frozen=True)
class Columns:
    """The roles of the columns of a table, or of the keys of dicts.

    Parameters
    ----------
    options : which name columns
    known : kinds of columns that are known before the table is read: "number", "category" or "either"
    seen : receives the names of columns that are features
    checked : whether options are known to name columns of the table, of which only those in use are left

    >>> Columns(ReadOptions(label="y", ignore=["id"])).features(["id", "x", "y"])
    ['x']
    """

    options: ReadOptions = field(default_factory=ReadOptions)
    known: Mapping[str, str] = field(default_factory=dict)
    seen: SeenColumns = field(default_factory=SeenColumns, compare=False, repr=False)
    checked: bool = False

    @property
    def label(self) -> str | None:
        """The column of labels, if any."""
        return self.options.label

    @property
    def importance(self) -> str | None:
        """The column of example weights, if any."""
        return self.options.importance

    @property
    def log(self) -> tuple[str, ...]:
        """The columns whose numbers are taken on a logarithmic scale."""
        return self.options.log

    @property
    def strict(self) -> bool:
        """Whether text in a numeric column is malformed."""
        return self.options.strict

    @cached_property
    def kinds(self) -> dict[str, str]:
        """The kinds that options imply: those of categories, and of columns with a transformation of numbers."""
        kinds = dict.fromkeys(self.options.categories, "category") | dict.fromkeys(self.log, "number")
        return kinds | dict.fromkeys(self.options.dates, DATE)

    @cached_property
    def dates(self) -> dict[str, str]:
        """The columns that are known to be dates, with the order of day, month and year, or ""."""
        known = (name for name, kind in self.known.items() if kind == DATE and name not in self.kinds)
        return {**self.options.dates, **dict.fromkeys(known, "")}

    @property
    def derived(self) -> frozenset[str]:
        """The columns whose values are several features: text and dates."""
        return frozenset((*self.dates, *self.options.text))

    @cached_property
    def named(self) -> dict[str, str]:
        """The keys that rows without a header should have, with the options that name them.

        >>> Columns(ReadOptions(label="y", importance="w", ignore=["id"])).named
        {'w': 'importance', 'id': 'ignore'}
        """
        options, names = self.options, dict[str, str]()
        if options.importance is not None and not (options.unlabelled or options.unweighted):
            names[options.importance] = "importance"
        if options.strict:  # rows for a stored model are compared with its schema
            for what in NAMING:
                names |= {name: what for name in self._given(what) if name not in names}
        return names

    def _given(self, what: str) -> tuple[str, ...]:
        """Return the columns that an option names."""
        value: Any = getattr(self.options, "dates" if what == "date" else what)
        return (value,) if isinstance(value, str) else tuple(value or ())

    def uses(self, name: str) -> bool:
        """Return whether a column is a feature."""
        excluded, kept = self._selected
        return name not in excluded and (kept is None or name in kept)

    @cached_property
    def _selected(self) -> tuple[frozenset[str | None], frozenset[str] | None]:
        """The columns that are not features, and the only ones that are, if these were given."""
        kept = None if self.options.keep is None else frozenset(self.options.keep)
        return frozenset((self.label, self.importance, *self.options.ignore)), kept

    def saw(self, names: Iterable[str]) -> None:
        """Record the features of a table with a header."""
        self.seen.names.update(names)
        self.seen.header = True

    def features(self, names: Iterable[str]) -> list[str]:
        """Return the features among the columns of a table, or refuse options with columns that it does not have."""
        columns = list(names)
        existing, options = frozenset(columns), self.options
        optional = ["label", "importance"] if options.unlabelled else ["importance"] if options.unweighted else []
        optional += ["ignore"] if options.unlabelled or options.unweighted else []
        if not options.strict:  # rows for a stored model, which are compared with its schema
            optional += NAMING
        for what in () if self.checked else ("label", "importance", "slices", *NAMING):
            for name in () if what in optional else self._given(what):
                if name not in existing:
                    raise refuse(what, name, f"one of the columns {_shown(name, columns)}")
        twice = repeated(columns)
        if twice is not None:
            raise refuse("columns", f"{twice} twice", "distinct names of columns")
        return [name for name in columns if self.uses(name)]


def _shown(name: str, columns: Sequence[str]) -> str:
    """Return the columns of a table that does not have a name, and what may be the reason."""
    shown = ", ".join(columns[:SHOWN]) + (f", ... ({len(columns)} columns)" if len(columns) > SHOWN else "")
    similar = [one for one in columns if one.casefold() == name.casefold()] or get_close_matches(name, columns, 1)
    if similar:
        return f"{shown}; did you mean {similar[0]!r}?"
    if any(map(_is_number, columns)):
        return f"{shown}; header=False (--no-header) is for files without names, whose columns are c1, c2, ..."
    if len(columns) == 1 and not columns[0].isidentifier():
        return f"{shown}; for one column, remove lines above the header, or give the separator (--separator)"
    return shown


def _is_number(text: str) -> bool:
    try:
        return bool(float(text))
    except ValueError:
        return False


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
    shown = get_close_matches(name, features, 1) or features[:SUGGESTED]
    return f", such as {', '.join(shown)}" if shown else ""
