r"""Curves and pairs: columns of numbers as hat functions of stored knots, and products of coarse ones and categories.

A column with the knots $k_1 < \dots < k_m$ has a line, the hat functions $h_j$ with $h_j(k_j) = 1$ that are linear
between knots and 0 at all others, and a feature for missing values. A model that is linear in them is a
piecewise-linear function of the column. Beyond the ends it continues by its line, for half the range of the knots, and
is constant from there on. A pair of columns has the products of coarser hat functions, of every n-th knot: functions
that are bilinear on a grid.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import combinations, product
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data.compiled import scanner
from forel.validation import refuse

__all__ = ["FIRST", "Curves"]

FIRST = 2000  # rows that knots and categories come from
FEWEST = 200  # rows below which there are none by default
MOST = 1024  # features of curves and pairs
KNOTS = (17, 9, 5, 3)  # of a column, the most for which all columns are within half of the features
GRIDS = 64, 32, 16, 8, 4, 2, 1  # functions of a pair, the most for which all pairs fit
CATEGORIES = 256
RARE = 5  # rows of a category with fewer features than that are hashed
HASHED = 16  # bits of other categories
CODES = 0.5  # distinct values of a column of codes, at most, by number of rows

Rows = tuple[NDArray[np.int64], NDArray[Any], NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Curves:
    """Features of rows: curves of columns, categories, and pairs of these.

    Parameters
    ----------
    columns : slots of columns of numbers
    categories : slots of categories with features of their own
    knots : of columns, one after the other
    sizes : the number of knots of each column
    codes : 1 for columns whose values are also categories, others 0
    pairs : numbers of the two columns or categories of each pair; categories are counted from the number of columns
    grids : the number of functions of each of the two
    zeros : whether a column without an entry in a row is 0, as in sparse rows; otherwise it is missing

    >>> rows = np.arange(6), np.full(5, 7), np.float32([0, 1, 2, 3, 4])
    >>> curves = Curves.of(rows, [7])
    >>> curves.knots, curves.expand(np.array([0, 1]), np.array([7]), np.float32([2.5]))[1:]
    (array([0., 1., 2., 3., 4.]), (array([0, 1, 4, 5], dtype=int32), array([1.   , 0.125, 0.5  , 0.5  ],
    dtype=float32)))
    """

    columns: NDArray[np.int64]
    categories: NDArray[np.int64]
    knots: NDArray[np.float64]
    sizes: NDArray[np.int64]
    codes: NDArray[np.int64]
    pairs: NDArray[np.int64]
    grids: NDArray[np.int64]
    zeros: bool = False

    @classmethod
    def of(cls, rows: Rows, columns: Sequence[int], pairs: bool = True, zeros: bool = False) -> "Curves | None":
        """Return the curves of the first rows; None if there are no columns, or too many.

        Parameters
        ----------
        rows : offsets, slots and values
        columns : slots of columns of numbers
        pairs : whether there are pairs
        zeros : as above
        """
        indptr, slots, values = rows[0], np.asarray(rows[1], np.int64), np.asarray(rows[2], np.float64)
        number, owner = indptr.size - 1, np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
        columns = list(dict.fromkeys(map(int, columns)))
        found = {slot: _column(values[slots == slot], number, zeros) for slot in columns}
        used = [slot for slot in columns if found[slot].size]
        most = next((k for k in KNOTS if sum(_size(found[s], k) for s in used) <= MOST // 2), 0)
        if not used or not most:
            return None
        distinct, counts = np.unique(slots[~np.isin(slots, columns)], return_counts=True)
        order = np.argsort(-counts, kind="stable")[:CATEGORIES]
        categories = distinct[order[counts[order] >= RARE]]
        knots = [_knots(found[slot], most) for slot in used]
        codes = np.array([_codes(found[slot], most, number) for slot in used], np.int64)
        sizes = np.array([one.size for one in knots], np.int64)
        free = MOST - 1 - int((sizes + 2).sum()) - categories.size
        chosen = grids = np.zeros((0, 2), np.int64)
        if pairs:
            chosen, grids = _pairs(sizes, _together(owner, slots, categories, number), free)
        return cls(np.array(used, np.int64), categories, np.concatenate(knots), sizes, codes, chosen, grids, zeros)

    @cached_property
    def _tables(self) -> tuple[Any, ...]:
        """The arguments of the compiled function."""
        count, own = self.columns.size, np.concatenate((self.columns, self.categories))
        order = np.argsort(own)
        knots = np.zeros((count, int(self.sizes.max(initial=1))))
        knots[np.arange(knots.shape[1]) < self.sizes[:, None]] = self.knots
        spans = np.concatenate((self.sizes + 2, np.ones(self.categories.size, np.int64)))
        starts = 1 + np.cumsum(spans) - spans
        each = self.grids.prod(axis=1)
        pair_starts = 1 + spans.sum() + np.cumsum(each) - each
        return (
            own[order], order, knots, self.sizes, self.codes, starts, self.pairs, self.grids, pair_starts, self.zeros,
            self.width, np.uint64((1 << HASHED) - 1),
        )  # fmt: skip

    @cached_property
    def _longest(self) -> int:
        """The largest number of features of a row, without those that entries of the row have."""
        return int(1 + 4 * self.columns.size + np.minimum(self.grids, 2).prod(axis=1).sum())

    @cached_property
    def single(self) -> int:
        """The number of features that belong to one column or category, the constant among them."""
        return int(1 + (self.sizes + 2).sum() + self.categories.size)

    @cached_property
    def width(self) -> int:
        """The number of features without those that are hashed."""
        return self.single + int(self.grids.prod(axis=1).sum())

    @property
    def features(self) -> int:
        """The number of features."""
        return self.width + (1 << HASHED)

    def expand(self, indptr: NDArray[np.int64], indices: NDArray[Any], values: NDArray[Any]) -> Rows:
        """Return the features of rows, those that are hashed last; each row begins with a constant."""
        most = indices.size * 2 + (indptr.size - 1) * self._longest + 1
        out = np.empty(indptr.size, np.int64), np.empty(most, np.int32), np.empty(most, np.float32)
        rows = np.asarray(indptr, np.int64), np.asarray(indices, np.int64), np.asarray(values, np.float32)
        count = int(scanner("curves", "expand")(*rows, *self._tables, *out))
        return out[0], out[1][:count].copy(), out[2][:count].copy()

    def joined(self, rows: Rows, first: int) -> Rows:
        """Return rows followed by their features of curves, whose numbers begin with ``first``."""
        indptr, indices, values = rows
        starts, more, weights = self.expand(*rows)
        where = np.repeat(indptr[1:], np.diff(starts))
        return (
            np.asarray(indptr) + starts,
            np.insert(np.asarray(indices, np.int64), where, more.astype(np.int64) + first),
            np.insert(np.asarray(values, np.float32), where, weights),
        )

    def owner(self, feature: int) -> tuple[int, ...]:
        """Return the slots of the column or category of a feature, or of a pair; none for the constant and others."""
        found = self.owners[feature].tolist() if feature < self.width else []
        return tuple(slot for slot in found if slot >= 0)

    @cached_property
    def owners(self) -> NDArray[np.int64]:
        """The slots of the columns or categories of each feature, −1 for none: two of a pair, else one."""
        own = np.concatenate((self.columns, self.categories))
        alone = np.repeat(own, np.concatenate((self.sizes + 2, np.ones(self.categories.size, np.int64))))
        single = np.stack((alone, np.full(alone.size, -1)), axis=1)
        return np.concatenate(
            (np.full((1, 2), -1), single, np.repeat(own[self.pairs], self.grids.prod(axis=1), axis=0))
        )

    def pack(self) -> NDArray[np.float64]:
        """Return everything as one array."""
        arrays = [np.asarray(getattr(self, one.name), np.float64).ravel() for one in fields(self)]
        return np.concatenate(([one.size for one in arrays], *arrays)).astype(np.float64)

    @classmethod
    def unpack(cls, packed: NDArray[np.float64]) -> "Curves":
        """Return the curves of a packed array."""
        names = [one.name for one in fields(cls)]
        ends = np.cumsum(packed[: len(names)]).astype(np.int64)
        if ends.size < len(names) or (packed[: len(names)] < 0).any() or ends[-1] != packed.size - len(names):
            raise refuse("curves", packed.size, "the length of packed curves")
        given = dict(zip(names, np.split(packed[len(names) :], ends[:-1]), strict=True))
        knots, zeros = given.pop("knots"), bool(given.pop("zeros").any())
        whole = {name: one.astype(np.int64) for name, one in given.items()}
        pairs = {name: whole.pop(name).reshape(-1, 2) for name in ("pairs", "grids")}
        found = cls(**whole, **pairs, knots=knots, zeros=zeros)
        total = found.columns.size + found.categories.size
        if (
            found.sizes.size != found.columns.size
            or found.grids.shape != found.pairs.shape
            or found.knots.size != found.sizes.sum()
        ):
            raise refuse("curves", packed.size, "the length of packed curves")
        if found.pairs.size and not 0 <= found.pairs.min() <= found.pairs.max() < total:
            raise refuse("curves", found.pairs.max(), "columns and categories of pairs")
        return found


def _column(values: NDArray[np.float64], rows: int, zeros: bool) -> NDArray[np.float64]:
    """Return the values of a column in the first rows, in order."""
    return np.sort(np.concatenate((values, np.zeros(rows - values.size))) if zeros else values)


def _knots(ordered: NDArray[np.float64], most: int) -> NDArray[np.float64]:
    """Return all distinct values if they are few; else quantiles, and of distinct values in place of equal ones."""
    distinct = np.unique(ordered)
    if distinct.size <= most:
        return distinct
    knots = np.unique(_quantiles(ordered, most))
    return np.unique(np.concatenate((knots, _quantiles(distinct, most - knots.size))))


def _quantiles(ordered: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    return ordered[np.linspace(0, ordered.size - 1, count).round().astype(np.int64)]


def _size(ordered: NDArray[np.float64], most: int) -> int:
    return _knots(ordered, most).size + 2


def _codes(ordered: NDArray[np.float64], most: int, rows: int) -> bool:
    """Return whether values may be codes: whole numbers, more than knots, of which many are repeated."""
    distinct = np.unique(ordered)
    return bool(most < distinct.size <= CODES * rows and (distinct == np.round(distinct)).all())


def _together(
    owner: NDArray[np.int64], slots: NDArray[np.int64], categories: NDArray[np.int64], rows: int
) -> NDArray[np.int64]:
    """Return in how many rows two categories occur together, each with itself on the diagonal."""
    order = np.argsort(categories)
    places = np.minimum(np.searchsorted(categories, slots, sorter=order), max(categories.size - 1, 0))
    there = np.zeros((rows, categories.size), np.float32)
    if categories.size:
        own = categories[order[places]] == slots
        there[owner[own], order[places[own]]] = 1
    return np.asarray((there.T @ there).round(), np.int64)


def _pairs(
    sizes: NDArray[np.int64], together: NDArray[np.int64], free: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return pairs within a number of features, and the number of functions of their members.

    Pairs of columns come first, all with about as many functions: a column of two values leaves more of them to the
    other one. Pairs with categories take up to half, by the number of rows in which they differ from each member, the
    largest first; each of their functions has a few rows.
    """
    count, own = sizes.size, np.diagonal(together)
    columns, together_often = np.flatnonzero(sizes > 1).tolist(), list[tuple[int, ...]]()
    for i, j in combinations(range(len(together)), 2):
        support = int(min(together[i, j], own[i] - together[i, j], own[j] - together[i, j]))
        if support >= RARE:
            together_often.append((support, count + i, count + j, 1, 1))
    for most in GRIDS:
        found: list[tuple[int, ...]] = [
            (a, b, *_grid(int(sizes[a]) - 1, int(sizes[b]) - 1, most)) for a, b in combinations(columns, 2)
        ]
        others = together_often.copy()
        for k, c in product(range(len(together)), columns):
            functions = _grid(int(sizes[c]) - 1, 1, isqrt(most))[0]
            if own[k] >= RARE * (functions + 1):
                others.append((int(own[k]), c, count + k, functions, 1))
        total = sum(m * n for _, _, m, n in found)
        if total + min(sum(m * n for *_, m, n in others), free // 2) <= free:
            break
    else:
        found, total = [], 0
    for _, *pair, m, n in sorted(others, key=lambda one: (-one[0], one[1:])):
        if total + m * n <= free:
            found.append((*pair, m, n))
            total += m * n
    table = np.array(found, np.int64).reshape(-1, 4)
    return table[:, :2].copy(), table[:, 2:].copy()


def _grid(first: int, second: int, most: int) -> tuple[int, int]:
    """Return two numbers whose product is at most a number; the larger becomes the power of two below it until then."""
    while first * second > most:
        if second > first:
            second = _halved(second)
        else:
            first = _halved(first)
    return first, second


def _halved(number: int) -> int:
    return 1 << (number - 1).bit_length() - 1
