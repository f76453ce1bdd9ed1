"""Which columns or keys are what: label, importance, features."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from forel.validation import refuse

__all__ = ["Columns", "repeated"]


@dataclass(frozen=True)
class Columns:
    """What the names of a table or a dict mean.

    Parameters
    ----------
    label, importance : the names that hold them, if any
    keep : the names to use as features; None for all others
    ignore : the names not to use
    categories : the names whose numbers are categories too
    log : the names whose numbers are taken on a logarithmic scale
    bucket : the names whose numbers become categories by size, each with its buckets to a doubling
    unlabelled : whether the label's and the importance's columns may be missing
    unweighted : whether the importance's may be
    known : the kinds of columns as a model knows them: "number", "category" or "either"
    strict : whether a word in a column of numbers is malformed; if not, it is a category of that column

    >>> Columns(label="y", ignore=("id",)).features(["id", "x", "y"])
    ['x']
    """

    label: str | None = None
    importance: str | None = None
    keep: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    log: tuple[str, ...] = ()
    bucket: tuple[tuple[str, int], ...] = ()
    unlabelled: bool = False
    unweighted: bool = False
    known: Mapping[str, str] = field(default_factory=dict, compare=False)
    strict: bool = field(default=True, compare=False)

    def __post_init__(self) -> None:
        said = (*self.categories, *self.log, *self.buckets)
        twice = repeated(said)
        if twice is not None:
            raise refuse("categories, log, bucket", twice, "one of these for a column")

    @cached_property
    def buckets(self) -> dict[str, int]:
        """The names whose numbers become categories by size, and their buckets to a doubling."""
        return dict(self.bucket)

    @cached_property
    def kinds(self) -> dict[str, str]:
        """What was said of columns."""
        return dict.fromkeys(self.categories, "category") | dict.fromkeys((*self.log, *self.buckets), "number")

    def uses(self, name: str) -> bool:
        """Tell whether a name is a feature's."""
        left_out, kept = self._chosen
        return name not in left_out and (kept is None or name in kept)

    @cached_property
    def _chosen(self) -> tuple[frozenset[str | None], frozenset[str] | None]:
        """What is no feature, and what alone is, if that was said."""
        kept = None if self.keep is None else frozenset(self.keep)
        return frozenset((self.label, self.importance, *self.ignore)), kept

    @property
    def chosen(self) -> "Columns":
        """The same for a table that has only the columns which are used.

        >>> Columns(label="y", ignore=("id",), log=("id", "x")).chosen == Columns(label="y", log=("x",))
        True
        """
        categories, log = (tuple(name for name in names if self.uses(name)) for names in (self.categories, self.log))
        bucket = tuple(one for one in self.bucket if self.uses(one[0]))
        return replace(self, keep=None, ignore=(), categories=categories, log=log, bucket=bucket)

    def features(self, names: Iterable[str]) -> list[str]:
        """Return the features among all names of a table, or refuse names that it does not have."""
        there = list(names)
        names = frozenset(there)
        optional = ("label", "importance") if self.unlabelled else ("importance",) if self.unweighted else ()
        for what in ("label", "importance", "keep", "ignore", "categories", "log", "buckets"):
            given = () if what in optional else getattr(self, what)
            for name in (given,) if isinstance(given, str) else given or ():
                if name not in names:
                    raise refuse(
                        what.removesuffix("s") if what == "buckets" else what,
                        name,
                        f"one of the columns {', '.join(there)}",
                    )
        twice = repeated(there)
        if twice is not None:
            raise refuse("columns", f"{twice} twice", "a name for each column of its own")
        return [name for name in there if self.uses(name)]


def repeated(names: Iterable[str]) -> str | None:
    """Return the first name that was there before, if any.

    >>> repeated(["a", "b", "a"])
    'a'
    """
    met: set[str] = set()
    for name in names:
        if name in met:
            return name
        met.add(name)
    return None
