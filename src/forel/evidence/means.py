r"""A confidence sequence for the mean of bounded numbers: an interval that holds after every row at once.

For numbers $x_t$ in an interval of length c, and predictable $g_t$ in it,
$\exp(\lambda\sum_s(x_s - m_s) - \psi(\lambda)\sum_s(x_s - g_s)^2)$ with $m_s = E[x_s|x_1, \ldots, x_{s-1}]$ and
$\psi(\lambda) = (-\log(1 - c\lambda) - c\lambda)/c^2$ is a supermartingale for $0 \le \lambda < 1/c$ (empirical
Bernstein; Howard, Ramdas, McAuliffe and Sekhon 2021). So is its mean over several λ. By Ville's inequality it exceeds
2/α with a probability of at most α/2, at any row, and the same holds for $-x$. Numbers need not be independent, nor
have the same mean: the statement is about $\frac1t\sum_s m_s$.
"""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forel.validation import refuse, whole

__all__ = ["MeanSequence", "costs", "finite_rows", "rates"]

Floats = NDArray[np.float64]
RATES = np.geomspace(1e-4, 0.9, 12)  # λ times the length of the interval
CHUNK = 1 << 13  # rows whose numbers fit into a cache


def rates(width: float) -> Floats:
    """Return the rates λ over which evidence is averaged, for numbers in an interval of a given length."""
    return RATES / width


def costs(width: float) -> Floats:
    r"""Return $\psi(\lambda)$ of each of the rates."""
    return np.asarray((-np.log1p(-RATES) - RATES) / width**2)


def finite_rows(name: str, values: ArrayLike, rows: int | None = None) -> Floats:
    """Return one finite number for each row; raise with the row for others."""
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.ndim != 1 or (rows is not None and array.size != rows):
        raise refuse(name, f"shape {array.shape}", f"one number for each of {'the' if rows is None else rows} rows")
    if not np.isfinite(array).all():
        row = int(np.argmin(np.isfinite(array)))
        raise refuse(f"row {row} of {name}", float(array[row]), "a finite number")
    return array


class MeanSequence:
    r"""Intervals for the average conditional mean of numbers, of each of several groups, valid after every row at once.

    Parameters
    ----------
    low, high : where the numbers are
    level : the probability that an interval ever fails is at most this, for each group
    groups : how many there are; sequences for their means are separate

    >>> sequence = MeanSequence(0, 1)
    >>> sequence.add([0.0, 1.0] * 500)
    >>> low, high = sequence.interval()
    >>> bool(0.4 < low[0] < 0.5 < high[0] < 0.6)
    True
    """

    def __init__(self, low: float, high: float, level: float = 0.05, groups: int = 1) -> None:
        if not 0 < level < 1:
            raise refuse("level", level, "a probability between 0 and 1")
        if not -math.inf < low < high < math.inf:
            raise refuse("low, high", (low, high), "the ends of an interval")
        self.low, self.high, self.level = float(low), float(high), level
        self._rates, self._costs = rates(self.high - self.low), costs(self.high - self.low)
        self.state = np.zeros((whole("groups", groups, low=1), 3))  # of each group: rows, Σ x, Σ (x − g)²

    def add(self, values: ArrayLike, groups: ArrayLike | None = None) -> None:
        """Add the number of each row, and its group, from 0."""
        for _ in self.follow(values, groups):
            pass

    def follow(self, values: ArrayLike, groups: ArrayLike | None = None) -> Iterator[tuple[Floats, Floats, Floats]]:
        """Add rows, and yield the rows, sums and variations after each of them, some rows of a group at a time."""
        x = finite_rows("values", values)
        if x.size and (x.min() < self.low or x.max() > self.high):
            raise refuse("values", f"numbers from {x.min():g} to {x.max():g}", f"[{self.low:g}, {self.high:g}]")
        if groups is None:
            yield from self._of_group(0, x)
            return
        group = np.asarray(groups, np.intp)
        order = np.argsort(group, kind="stable")
        for some in np.split(order, np.flatnonzero(np.diff(group[order])) + 1) if x.size else ():
            yield from self._of_group(int(group[some[0]]), x[some])

    def _of_group(self, group: int, values: Floats) -> Iterator[tuple[Floats, Floats, Floats]]:
        state = self.state[group]
        for start in range(0, values.size, CHUNK):
            x = values[start : start + CHUNK]
            # Cumulative sums add in order, so that they do not depend on blocks.
            sums = np.cumsum(np.append(state[1], x))
            rows = state[0] + np.arange(x.size + 1)
            mean = np.divide(sums[:-1], rows[:-1], out=np.full(x.size, (self.low + self.high) / 2), where=rows[:-1] > 0)
            variation = np.cumsum(np.append(state[2], np.square(x - np.clip(mean, self.low, self.high))))
            state[:] = rows[-1], sums[-1], variation[-1]
            yield rows[1:], sums[1:], variation[1:]

    def log_evidence(self, excess: Floats, variation: Floats) -> Floats:
        """Return the logarithm of the e-value against sums of means that are at least ``excess`` below those of x."""
        terms = np.multiply.outer(self._rates, excess) - np.multiply.outer(self._costs, variation)
        return np.asarray(np.logaddexp.reduce(terms, axis=0) - math.log(RATES.size))

    def proves(self, excess: Floats, variation: Floats) -> NDArray[np.bool_]:
        """Return whether the e-value reaches 2/α."""
        needed = math.log(2 / self.level)
        largest = (np.multiply.outer(self._rates, excess) - np.multiply.outer(self._costs, variation)).max(axis=0)
        found: NDArray[np.bool_] = largest >= needed
        found[found] = self.log_evidence(excess[found], variation[found]) >= needed
        return np.asarray(found)

    @property
    def rows(self) -> Floats:
        """The number of rows of each group."""
        return self.state[:, 0]

    @property
    def means(self) -> Floats:
        """The mean of the numbers of each group; not a number for groups without rows."""
        means = np.divide(self.state[:, 1], self.rows, out=np.full(len(self.state), np.nan), where=self.rows > 0)
        return np.asarray(means)

    def interval(self) -> tuple[Floats, Floats]:
        """Return the ends of the interval of each group, within the range of the numbers."""
        rows, sums, variation = self.state.T
        low, high = np.zeros(rows.size), np.min(
            (math.log(2 * RATES.size / self.level) + np.multiply.outer(self._costs, variation)) / self._rates[:, None],
            axis=0,
        )  # fmt: skip
        for _ in range(60):  # the evidence increases with the excess
            middle = (low + high) / 2
            above = self.log_evidence(middle, variation) >= math.log(2 / self.level)
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        some = np.maximum(rows, 1)
        return np.maximum((sums - high) / some, self.low), np.minimum((sums + high) / some, self.high)
