"""What the columns of a source hold: numbers or categories; found while it is read, and kept with a model."""

from collections.abc import Iterable, Mapping
from typing import Any

from forel.validation import refuse

__all__ = ["Kinds", "checked", "join"]

KINDS = ("number", "category", "either")
MOST = 1 << 16  # keys of dicts whose kind is kept; where there are more, keys are features rather than columns


def checked(kinds: Mapping[str, str] | None) -> dict[str, str]:
    """Return kinds by the names of columns, or refuse what is none."""
    if not isinstance(kinds, Mapping | None):
        raise refuse("kinds", kinds, "number, category or either by the names of columns")
    held = dict(kinds or {})
    wrong = next((name for name, kind in held.items() if kind not in KINDS), None)
    if wrong is not None:
        raise ValueError(f"kinds: got {held[wrong]!r} for {wrong!r}, expected number, category or either")
    return held


class Kinds:
    """The kinds of columns, by the file of a source that they were found in.

    Text says nothing about types, so the first value of a column decides what it is, also for later files and for
    whatever a model is given later. Values of tables and dicts have types; a key whose values are of both kinds is
    "either", and each value is what it is.

    Parameters
    ----------
    given : kinds that are known before the first file

    >>> kinds = Kinds({"age": "number"})
    >>> kinds.found(0)["city"] = "category"
    >>> kinds.before(0), kinds.known
    ({'age': 'number'}, {'age': 'number', 'city': 'category'})
    """

    def __init__(self, given: Mapping[str, str] | None = None) -> None:
        self._found: dict[int, dict[str, str]] = {-1: checked(given)}

    def found(self, file: int) -> dict[str, str]:
        """Return what was found in a file, to be added to while it is read."""
        return self._found.setdefault(file, {})

    def before(self, file: int) -> dict[str, str]:
        """Return what is known when a file begins, which does not depend on how far others were read ahead."""
        return self._merged([k for k in sorted(self._found) if k < file])

    @property
    def known(self) -> dict[str, str]:
        """All that is known, in order of names."""
        return dict(sorted(self._merged(sorted(self._found)).items()))

    def _merged(self, files: Iterable[int]) -> dict[str, str]:
        # Copies, because another thread may be reading on.
        return {name: kind for file in files for name, kind in dict(self._found[file]).items()}

    def packed(self) -> list[Any]:
        """Return all of it, as JSON holds it."""
        return [[file, dict(held)] for file, held in list(self._found.items())]

    @classmethod
    def unpacked(cls, packed: Iterable[Any]) -> "Kinds":
        """Return what was packed."""
        kinds = cls()
        kinds._found = {int(file): checked(held) for file, held in packed}
        if -1 not in kinds._found:
            raise refuse("kinds", sorted(kinds._found), "those that were known before the first file, too")
        return kinds


def join(found: dict[str, str], known: Mapping[str, str], name: str, kind: str) -> None:
    """Add a value's kind to those found, unless there are too many names already.

    >>> found = {"age": "number"}
    >>> join(found, {}, "age", "category")
    >>> found
    {'age': 'either'}
    """
    before = found.get(name) or known.get(name)
    if before == kind or before == "either" or (before is None and len(found) >= MOST):
        return
    found[name] = kind if before is None else "either"
