"""Kinds of columns, numbers or categories: found while a source is read, and stored with a model."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from forel.data.labels import CLASSES, LabelWords
from forel.data.values import SIGNS
from forel.validation import refuse

__all__ = [
    "DATE", "Kinds", "OrderedKinds", "SeenColumns", "add_kind", "amount_kind", "amounts_in", "sign_of",
    "validate_kinds",
]  # fmt: skip

DATE = "date"
AMOUNTS = {f"number {sign}": sign for sign in SIGNS} | {"number ,": ""}  # the last of thousands separators only
KINDS = ("number", "category", "either", DATE, CLASSES, *AMOUNTS)
MOST = 1 << 16  # keys whose kind is recorded; with more, keys are features rather than columns


def validate_kinds(kinds: Mapping[str, str] | None) -> dict[str, str]:
    """Return kinds by column, or raise for unknown ones."""
    if not isinstance(kinds, Mapping | None):
        raise refuse("kinds", kinds, "number, category or either by the names of columns")
    valid = dict(kinds or {})
    wrong = next((name for name, kind in valid.items() if kind not in KINDS and not LabelWords.of_kind(kind)), None)
    if wrong is not None:
        raise ValueError(f"kinds: got {valid[wrong]!r} for {wrong!r}, expected number, category or either")
    return valid


def amount_kind(sign: str) -> str:
    """Return the kind of numbers that are written with a sign of currency or percent, or with separators only.

    >>> amount_kind("$"), sign_of("number $"), sign_of("number"), sign_of("category")
    ('number $', '$', '', None)
    """
    return f"number {sign or ','}"


def sign_of(kind: str | None) -> str | None:
    """Return the sign of a kind of numbers, "" without one; None for other kinds."""
    return "" if kind == "number" else AMOUNTS.get(kind or "")


def amounts_in(kinds: Mapping[str, str]) -> str:
    """Return the columns of numbers that are written with signs, for messages.

    >>> amounts_in({"price": "number $", "age": "number", "sales": "number ,"})
    'price ($), sales (,)'
    """
    return ", ".join(f"{name} ({kind.removeprefix('number ')})" for name, kind in kinds.items() if kind in AMOUNTS)


@dataclass
class SeenColumns:
    """The columns or keys that occurred in a source, and whether it has a header, so that they are all.

    Parameters
    ----------
    names : columns or keys that are features
    header : whether the source has a header
    keys : keys that options name, among those of rows without a header; None before the first such row
    """

    names: set[str] = field(default_factory=set)
    header: bool = False
    keys: set[str] | None = None

    def add_keys(self, found: Collection[str]) -> None:
        """Add keys that options name, and that some rows without a header have."""
        if self.keys is None:
            self.keys = set()
        self.keys.update(found)


class Kinds:
    """Kinds of columns, by the file of a source in which they were found.

    Text has no types, so the first value of a column decides its kind, also for later files and later inputs of a
    model. Values of tables and dicts have types; a key with values of both kinds is "either", and each value keeps its
    kind.

    Parameters
    ----------
    given : kinds that are known before the first file

    >>> kinds = Kinds({"age": "number"})
    >>> kinds.of_file(0)["city"] = "category"
    >>> kinds.before(0), kinds.known
    ({'age': 'number'}, {'age': 'number', 'city': 'category'})
    """

    def __init__(self, given: Mapping[str, str] | None = None) -> None:
        self._by_file: dict[int, dict[str, str]] = {-1: validate_kinds(given)}
        self.seen = SeenColumns()

    def of_file(self, file: int) -> dict[str, str]:
        """Return the kinds found in a file, which its parser adds to."""
        return self._by_file.setdefault(file, {})

    def before(self, file: int) -> dict[str, str]:
        """Return the kinds known at the start of a file, however far other threads have read ahead."""
        return self._merged([k for k in sorted(self._by_file) if k < file])

    @property
    def numeric(self) -> list[str]:
        """The columns that have numbers."""
        return [name for name, kind in self.known.items() if kind == "either" or sign_of(kind) is not None]

    @property
    def count(self) -> int:
        """The number of kinds found in all files, which grows while a source is read."""
        return sum(map(len, self._by_file.values()))

    @property
    def known(self) -> dict[str, str]:
        """All kinds, sorted by name."""
        return dict(sorted(self._merged(sorted(self._by_file)).items()))

    def _merged(self, files: Iterable[int]) -> dict[str, str]:
        # Copies, because another thread may add to the originals.
        return {name: kind for file in files for name, kind in dict(self._by_file[file]).items()}

    def copied(self) -> "Kinds":
        """Return a copy, for a reader elsewhere."""
        return Kinds.unpack(self.pack())

    def pack(self) -> list[Any]:
        """Return all kinds as JSON values."""
        return [[file, dict(kinds)] for file, kinds in list(self._by_file.items())]

    @classmethod
    def unpack(cls, packed: Iterable[Any]) -> "Kinds":
        """Return the kinds that :meth:`pack` was called on."""
        kinds = cls()
        kinds._by_file = {int(file): validate_kinds(found) for file, found in packed}
        if -1 not in kinds._by_file:
            raise refuse("kinds", sorted(kinds._by_file), "also those known before the first file")
        return kinds


def add_kind(found: dict[str, str], known: Mapping[str, str], name: str, kind: str) -> None:
    """Add the kind of a value to those found, unless there are too many names.

    >>> found = {"age": "number"}
    >>> add_kind(found, {}, "age", "category")
    >>> found
    {'age': 'either'}
    """
    before = found.get(name) or known.get(name)
    if (
        before == kind
        or before == "either"
        or (kind == "number" and before in AMOUNTS)
        or (before is None and len(found) >= MOST)
    ):
        return
    found[name] = kind if before is None else "either"


class OrderedKinds:
    """Kinds that tasks find on any thread, added to those of a file in the order of the tasks.

    Parameters
    ----------
    found, known : as :func:`add_kind` takes them
    seen : receives all names

    >>> found = {}
    >>> kinds = OrderedKinds(found, {})
    >>> kinds.add(1, [("city", "category")])
    >>> kinds.add(0, [("age", "number")])
    >>> found
    {'age': 'number', 'city': 'category'}
    """

    def __init__(self, found: dict[str, str], known: Mapping[str, str], seen: SeenColumns | None = None) -> None:
        self._seen = SeenColumns() if seen is None else seen
        self._found, self._known, self._lock = found, known, Lock()
        self._next, self._waiting = 0, dict[int, list[tuple[str, str]]]()

    def add(self, task: int, kinds: list[tuple[str, str]]) -> None:
        """Add the kinds of the values of one task, once those of all earlier tasks were added."""
        with self._lock:
            self._waiting[task] = kinds
            while self._next in self._waiting:
                for name, kind in self._waiting.pop(self._next):
                    if len(self._seen.names) < MOST:
                        self._seen.names.add(name)
                    add_kind(self._found, self._known, name, kind)
                self._next += 1
