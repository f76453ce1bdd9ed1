r"""A confidence sequence for the mean of bounded numbers: an interval that holds after every row at once.

For numbers $x_t$ in an interval of length c, and predictable $g_t$ in it,
$\exp(\lambda\sum_s(x_s - m_s) - \psi(\lambda)\sum_s(x_s - g_s)^2)$ with $m_s = E[x_s|x_1, \ldots, x_{s-1}]$ and
$\psi(\lambda) = (-\log(1 - c\lambda) - c\lambda)/c^2$ is a supermartingale for $0 \le \lambda < 1/c$ (empirical
Bernstein; Howard, Ramdas, McAuliffe and Sekhon 2021). So is its mean over several λ. By Ville's inequality it exceeds
2/α with a probability of at most α/2, at any row, and the same holds for $-x$. Numbers need not be independent, nor
have the same mean: the statement is about $\frac1t\sum_s m_s$.

Numbers with *weights* $w_s > 0$ that are known before them are $w_sx_s$ in intervals of length $cw_s$. With
$W_t = \max_{s \le t} w_s$ in place of c, $\psi$ only increases, and of a supermartingale that ends where
$\lambda cW_t \ge 1$ the rest is 0. So the same holds for $\sum_s w_sm_s / \sum_s w_s$, with λ in units of
$1/(cw_1)$, and without a limit of weights.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forel.validation import refuse, whole

__all__ = ["COLUMNS", "MeanSequence", "MeanSums", "costs", "finite_rows", "rates"]

Floats = NDArray[np.float64]
RATES = np.geomspace(1e-4, 0.9, 12)  # λ times the length of the interval
CHUNK = 1 << 13  # rows whose numbers fit into a cache
COLUMNS = 6


class MeanSums(NamedTuple):
    """Sums after some rows, or of some groups; ``total`` is Σ wx, and ``variation`` is Σ (wx − wg)²."""

    rows: Floats
    total: Floats
    variation: Floats
    weight: Floats
    largest: Floats
    first: Floats | float


def rates(width: ArrayLike) -> Floats:
    """Return the rates λ over which evidence is averaged, for numbers in an interval of a given length."""
    return np.divide.outer(RATES, width)


def costs(width: ArrayLike, ratio: ArrayLike = 1.0) -> Floats:
    r"""Return $\psi(\lambda)$ of each of the rates, for an interval that is longer by a ratio; infinite if too long."""
    product = np.multiply.outer(RATES, ratio)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = (-np.log1p(-product) - product) / np.square(np.multiply(width, ratio))
    return np.where(product < 1, found, np.inf)


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
        # Of each group: rows, Σ wx, Σ (wx − wg)², Σ w, the largest w, and the first.
        self.state = np.zeros((whole("groups", groups, low=1), COLUMNS))

    def add(self, values: ArrayLike, groups: ArrayLike | None = None, weights: ArrayLike | None = None) -> None:
        """Add the number of each row, its group, from 0, and its weight; rows of weight 0 do not count."""
        for _ in self.follow(values, groups, weights):
            pass

    def follow(
        self, values: ArrayLike, groups: ArrayLike | None = None, weights: ArrayLike | None = None
    ) -> Iterator["MeanSums"]:
        """Add rows, and yield the sums after each of them, some rows of a group at a time."""
        x = finite_rows("values", values)
        if x.size and (x.min() < self.low or x.max() > self.high):
            raise refuse("values", f"numbers from {x.min():g} to {x.max():g}", f"[{self.low:g}, {self.high:g}]")
        w = np.ones(x.size) if weights is None else finite_rows("weights", weights, x.size)
        group = np.zeros(x.size, np.intp) if groups is None else np.asarray(groups, np.intp)
        if (w < 0).any():
            raise refuse(f"row {int(np.argmax(w < 0))} of weights", float(w.min()), "a weight of at least 0")
        x, group, w = x[w > 0], group[w > 0], w[w > 0]
        order = np.argsort(group, kind="stable")
        for some in np.split(order, np.flatnonzero(np.diff(group[order])) + 1) if x.size else ():
            yield from self._of_group(int(group[some[0]]), x[some], w[some])

    def _of_group(self, group: int, values: Floats, weights: Floats) -> Iterator["MeanSums"]:
        state = self.state[group]
        for start in range(0, values.size, CHUNK):
            w = weights[start : start + CHUNK]
            x = values[start : start + CHUNK] * w
            # Cumulative sums add in order, so that they do not depend on blocks.
            sums, total = np.cumsum(np.append(state[1], x)), np.cumsum(np.append(state[3], w))
            rows = state[0] + np.arange(x.size + 1)
            middle = np.full(x.size, (self.low + self.high) / 2)
            mean = np.divide(sums[:-1], total[:-1], out=middle, where=rows[:-1] > 0)
            variation = np.cumsum(np.append(state[2], np.square(x - w * np.clip(mean, self.low, self.high))))
            largest, first = np.maximum.accumulate(np.append(state[4], w))[1:], state[5] or w[0]
            state[:] = rows[-1], sums[-1], variation[-1], total[-1], largest[-1], first
            if largest[0] == largest[-1]:
                largest = largest[:1]
            yield MeanSums(rows[1:], sums[1:], variation[1:], total[1:], largest, first)

    def log_evidence(self, excess: Floats, sums: "MeanSums") -> Floats:
        """Return the logarithm of the e-value against sums of means that are at least ``excess`` below those of x."""
        return np.asarray(np.logaddexp.reduce(self._terms(excess, sums), axis=0) - math.log(RATES.size))

    def proves(self, excess: Floats, sums: "MeanSums") -> NDArray[np.bool_]:
        """Return whether the e-value reaches 2/α."""
        needed, terms = math.log(2 / self.level), self._terms(excess, sums)
        found: NDArray[np.bool_] = terms.max(axis=0) >= needed
        found[found] = np.logaddexp.reduce(terms[:, found], axis=0) - math.log(RATES.size) >= needed
        return np.asarray(found)

    def _terms(self, excess: Floats, sums: "MeanSums") -> Floats:
        """Return the logarithm of the supermartingale of each rate; −∞ where it ended."""
        each, cost = self._rates_and_costs(sums)
        lost = np.isinf(cost)
        terms = each * excess - np.where(lost, 0.0, cost) * sums.variation
        return np.where(lost, -np.inf, terms) if lost.any() else terms

    def _rates_and_costs(self, sums: "MeanSums") -> tuple[Floats, Floats]:
        """Return λ and ψ(λ), a column for each row or group, or one for all."""
        first = np.atleast_1d(np.where(np.equal(sums.first, 0), 1.0, sums.first))
        width = (self.high - self.low) * first
        return rates(width), costs(width, np.maximum(np.atleast_1d(sums.largest) / first, 1.0))

    @property
    def sums(self) -> "MeanSums":
        """The sums of each group."""
        return MeanSums(*self.state.T)

    @property
    def weighted(self) -> bool:
        """Whether the weight of a row is not 1."""
        sums = self.sums
        return bool(((sums.weight != sums.rows) | (sums.largest > 1)).any())

    def interval(self) -> tuple[Floats, Floats]:
        """Return the ends of the interval of each group, within the range of the numbers."""
        sums, needed = self.sums, math.log(2 / self.level)
        each, cost = self._rates_and_costs(sums)
        most = np.where(np.isinf(cost), np.inf, (needed + math.log(RATES.size) + cost * sums.variation) / each)
        low, high = np.zeros(sums.rows.size), most.min(axis=0)
        with np.errstate(invalid="ignore"):
            for _ in range(60):  # the evidence increases with the excess
                middle = (low + high) / 2
                above = self.log_evidence(middle, sums) >= needed
                low, high = np.where(above, low, middle), np.where(above, middle, high)
        some = np.where(sums.rows > 0, sums.weight, 1.0)
        return np.maximum((sums.total - high) / some, self.low), np.minimum((sums.total + high) / some, self.high)
