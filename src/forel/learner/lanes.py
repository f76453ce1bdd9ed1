"""The state that kernels work on: a record a coordinate, with one number of each kind for every lane."""

from collections.abc import Iterator
from copy import copy
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

from forel.learner.kernels.spec import KernelSpec
from forel.learner.layout import SUMS, Layout
from forel.learner.settings import Settings
from forel.validation import enough_memory, refuse, whole

__all__ = ["SUMS", "Lanes", "summed"]

LINE = 64  # bytes of a cache line
BLOCK = 1 << 15  # coordinates that are read at a time
FEWER = "use fewer bits, or fewer lanes"


class Lanes:
    """The numbers of several models side by side, and what can be read off them.

    Parameters
    ----------
    features : the number of features; one more coordinate is the bias
    settings, dtype, certified : as in :class:`forel.learner.linear.Linear`
    lanes : how many models; of several settings, each so many times, one after the other
    labels : how labels are told to lanes, "shared", or "classes" or "signs" for one lane a class

    >>> lanes = Lanes(3, Settings(), 2, np.float32)
    >>> lanes.state.shape, lanes.rounds
    ((4, 2, 2), 0)

    Survey: section 3.4
    """

    def __init__(
        self,
        features: int,
        settings: Settings,
        lanes: int,
        dtype: DTypeLike = np.float32,
        certified: bool = False,
        labels: Literal["shared", "classes", "signs"] = "shared",
    ) -> None:
        self.features = whole("features", features, low=1)
        self.settings = settings
        if dtype not in (np.float32, np.float64, "float32", "float64"):
            raise refuse("dtype", dtype, "float32 or float64")
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.lanes = lanes
        self.certified = certified
        self.labels = labels
        s = settings
        self.layout = Layout(s.rule, s.rate, s.penalty_weight, lanes, self.dtype == np.float64, certified)
        self.parameters = settings.parameters(lanes, self.dtype).ravel()
        self.shape = settings.shape(self.dtype)
        self.reset()

    def reset(self) -> None:
        """Forget everything; memory that is not touched again is not used."""
        slots = self.features + 1
        size = self.layout.nbytes(slots)
        asked = f"features: got {self.features:,} in {self.lanes} lane{'s' * (self.lanes > 1)}"
        enough_memory(asked, size, FEWER)
        try:
            self._allocate(slots)
        except MemoryError:
            refused = f"{asked}, which need {size / 1e9:,.1f} GB of memory, expected what the system gives; {FEWER}"
            raise MemoryError(refused) from None
        self.rounds = 0
        self.weight = 0.0

    def _allocate(self, slots: int) -> None:
        sizes = self.layout.sizes(slots)
        self.flat = _zeros(slots * self.layout.width, self.dtype)
        self._scales = np.zeros(sizes["scales"], self.dtype)
        self.reach[-1] = 1  # a constant feature is always 1
        self.last = np.zeros(sizes["last_round"], np.int64)
        self.mark = np.zeros(sizes["drift_marks"])
        self.totals = np.zeros(SUMS * self.lanes)

    @property
    def spec(self) -> KernelSpec:
        """What the kernel is compiled for."""
        s, loss = self.settings, self.settings.loss_function
        per_class = self.labels != "shared" or loss.joint
        return KernelSpec(loss.twin, self.layout, s.bias, self.labels, s.lanes if per_class else 1)

    @property
    def kernel(self) -> Any:
        """The compiled functions."""
        from forel.learner.kernels.kernel import kernel

        return kernel(self.spec)

    @property
    def state(self) -> NDArray[Any]:
        """The record of every coordinate, the bias last: (z, n) and what a certificate needs, for each lane."""
        return self.flat.reshape(self.features + 1, -1, self.lanes)[:, : self.layout.parts]

    @property
    def reach(self) -> NDArray[Any]:
        """The scale of every coordinate, where rates are scale-free; one number elsewhere."""
        return self.flat.reshape(-1, self.layout.width)[:, -1] if self.layout.scale_in_record else self._scales

    def units(self, some: NDArray[np.int64] | slice) -> NDArray[np.float64]:
        """The powers of two in which z, n and g_{1:t} of some coordinates are kept, by their scales; 1 for other rates.

        >>> lanes = Lanes(2, Settings(rate="scale_free"), 1)
        >>> lanes.reach[:2] = 1.7e18, 0.3
        >>> np.log2(lanes.units(slice(None)))
        array([60., -2.,  0.])
        """
        if self.settings.rate != "scale_free":
            return np.ones(1)
        kind, scales = np.finfo(self.dtype), self.reach[some].astype(np.float64)
        exponents = np.where(scales > 0, np.frexp(scales)[1] - 1, 0)
        powers: NDArray[np.float64] = np.ldexp(1.0, np.clip(exponents, kind.minexp, kind.maxexp - 2))
        return powers

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What every kernel takes: state, what some rules keep beside it, rounds, noise key, and parameters."""
        return self.flat, self._scales, self.last, self.mark, self.rounds, self.settings.noise_key, self.parameters

    @property
    def sums(self) -> NDArray[np.float64]:
        """The running sums, a row each and a column a lane: loss, Σ g·x, half-sum, ticks, ΣΣ g_{1:t}², clipped rows."""
        return self.totals.reshape(SUMS, self.lanes)

    @property
    def clipped(self) -> NDArray[np.float64]:
        """How many rows of each lane were not learned from as they are, for numbers out of range; 0 uncertified."""
        rows: NDArray[np.float64] = self.sums[5]
        return rows

    def take(self, other: "Lanes", lanes: slice) -> None:
        """Copy some lanes of another state with as many features; memory of untouched coordinates stays unused."""
        slots = self.features + 1
        tables = [(self.state, other.state[:, :, lanes]), (self.reach, other.reach), (self.last, other.last)]
        if self.mark.size > 1:
            tables.append((self.mark.reshape(slots, -1), other.mark.reshape(slots, -1)[:, lanes]))
        for mine, given in tables:
            for start in range(0, len(given), BLOCK):
                part = given[start : start + BLOCK]
                used = np.flatnonzero(part.any(axis=tuple(range(1, part.ndim))) if part.ndim > 1 else part)
                mine[start + used] = part[used]
        self.sums[:] = other.sums[:, lanes]
        self.rounds, self.weight = other.rounds, other.weight

    def copied(self) -> "Lanes":
        """Return a copy; memory of untouched coordinates stays unused."""
        new = copy(self)
        new.reset()
        new.take(self, slice(None))
        return new

    def read(self, first: int, count: int) -> NDArray[Any]:
        """Return the weights of ``count`` coordinates from ``first`` on, a column a lane."""
        out = np.empty((count, self.lanes), self.dtype)
        for start, weights in self.blocks(first, count):
            out[start - first : start - first + len(weights)] = weights
        return out

    def blocks(self, first: int, count: int) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield the same weights in blocks that stay in a cache, each with its first coordinate."""
        for start in range(first, first + count, BLOCK):
            yield start, self.gather(np.arange(start, min(start + BLOCK, first + count)))

    def gather(self, chosen: NDArray[np.int64]) -> NDArray[Any]:
        """Return the weights of the chosen coordinates, a column a lane."""
        out = np.empty((chosen.size, self.lanes), self.dtype)
        self.kernel.weights(chosen, *self.arrays, self.totals, out.ravel())
        return out

    @property
    def seen(self) -> NDArray[np.int64]:
        """The coordinates that rows had, in order, so far as their records can tell."""
        used = self.features + int(self.settings.bias)
        if self.reach.size == self.features + 1:  # a number each, instead of a record
            return np.flatnonzero(self.reach[:used])
        width = self.flat.size // (self.features + 1)
        blocks = [self.flat[a * width : min(a + BLOCK, used) * width] for a in range(0, used, BLOCK)]
        owners = [k * BLOCK + np.flatnonzero(block) // width for k, block in enumerate(blocks)]
        # Numbers of one record lie together, so that a record is met anew where its owner changes.
        return np.concatenate([one[np.diff(one, prepend=-1) > 0] for one in owners])


def _zeros(count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return zeros that begin with a cache line, in memory that the system gives only where it is written."""
    room = LINE // dtype.itemsize
    raw = np.zeros(count + room, dtype)
    start = (-raw.ctypes.data % LINE) // dtype.itemsize
    return raw[start : start + count]


def summed(start: float, terms: NDArray[Any]) -> float:
    """Return a sum continued one term after the other, so that it does not depend on how rows come in blocks.

    >>> summed(0.5, np.float32([1, 2]))
    3.5
    """
    return float(np.add.accumulate(np.concatenate(([start], terms)))[-1])
