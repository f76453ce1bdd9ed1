"""Which columns or keys are what: label, importance, features."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from forel.checks import refuse

__all__ = ["Columns"]


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

    def __post_init__(self) -> None:
        said = (*self.categories, *self.log, *self.buckets)
        twice = next((name for k, name in enumerate(said) if name in said[:k]), None)
        if twice is not None:
            raise refuse("categories, log, bucket", twice, "one of these for a column")

    @cached_property
    def buckets(self) -> dict[str, int]:
        """The names whose numbers become categories by size, and their buckets to a doubling."""
        return dict(self.bucket)

    @cached_property
    def kinds(self) -> dict[str, str]:
        """What is known of columns before their first value."""
        return dict.fromkeys(self.categories, "category") | dict.fromkeys((*self.log, *self.buckets), "number")

    def uses(self, name: str) -> bool:
        """Tell whether a name is a feature's."""
        return (
            name not in (self.label, self.importance)
            and name not in self.ignore
            and (self.keep is None or name in self.keep)
        )

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
        optional = ("label", "importance") if self.unlabelled else ()
        for what in ("label", "importance", "keep", "ignore", "categories", "log", "buckets"):
            given = () if what in optional else getattr(self, what)
            for name in (given,) if isinstance(given, str) else given or ():
                if name not in there:
                    raise refuse(
                        what.removesuffix("s") if what == "buckets" else what,
                        name,
                        f"one of the columns {', '.join(there)}",
                    )
        twice = next((name for k, name in enumerate(there) if name in there[:k]), None)
        if twice is not None:
            raise refuse("columns", f"{twice} twice", "a name for each column of its own")
        return [name for name in there if self.uses(name)]
