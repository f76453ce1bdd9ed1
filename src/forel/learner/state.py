"""The state of several models that learn from the same rows: records, separate arrays, and running sums.

This module owns these arrays: it allocates, resizes and copies them.
"""

import mmap
import sys
from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

from forel.learner.certificate import certified_lanes
from forel.learner.kernels.reference import KernelSpec
from forel.learner.layout import SUMS, Layout, units_of
from forel.learner.rows import Examples, Rows, index_dtype, not_finite
from forel.learner.settings import Settings
from forel.losses import Interval
from forel.losses.margin import DualShape
from forel.validation import enough_memory, refuse, whole

__all__ = [
    "BLOCK", "LabelCoding", "State", "clear_lanes", "place_classes", "renumber", "resize",
    "split_binary", "summed",
]  # fmt: skip

BLOCK = 1 << 15  # coordinates processed at a time
EXACT = 1 << 52  # below it, floats count exactly
CHUNK = 64  # coordinates gathered at a time, whose records fit into the first-level cache
SCAN_BYTES = 1 << 22  # bytes scanned for touched coordinates at a time
FEWER = "use fewer bits, or fewer lanes"
LINE = 64  # bytes of a cache line
SMALL = 1 << 24  # bytes of arrays in pages of any size
WIDE = 1 << 10  # bytes of records that are in small pages
PAGE = 1 << 12  # bytes of a small page
NO_RESERVE = 0x4000 if sys.platform == "linux" else 0  # addresses without memory, which Python has no name for
LARGE = 1 << 32  # bytes of arrays that are in small pages

LabelCoding = Literal["shared", "classes", "signs"]


class State:
    """The state of several models, with the layout of :class:`~forel.learner.layout.Layout`.

    Parameters
    ----------
    features : the number of features; one more coordinate is the bias
    settings, dtype, certified : as in :class:`forel.learner.learner.Learner`
    lanes : the number of models: settings times classes
    labels : "shared" by all lanes, or coded for one lane per class: 0 and 1 ("classes") or ±1 ("signs")

    >>> state = State(3, Settings(), 2, np.float32)
    >>> state.numbers.shape, state.rounds
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
        labels: LabelCoding = "shared",
    ) -> None:
        self.features = whole("features", features, low=1)
        self.settings = settings
        if dtype not in (np.float32, np.float64, "float32", "float64"):
            raise refuse("dtype", dtype, "float32 or float64")
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.certified = certified
        self.shape = settings.shape(self.dtype)
        self._set_lanes(lanes, labels)
        self.reset()

    def _set_lanes(self, lanes: int, labels: LabelCoding) -> None:
        s = self.settings
        self.n_lanes, self.labels = lanes, labels
        shape, double = s.loss_function.dual_shape, self.dtype == np.float64
        histogram = shape is DualShape.ENTROPY
        concavity = (histogram and not s.loss_function.joint) or shape is DualShape.CONCAVE
        filters = lanes if s.algorithm == "filter" else len(s.filters)
        needs = self.certified, histogram, concavity
        kept = certified_lanes(s) if self.certified and s.filters else ()
        self.layout = Layout(s.algorithm, s.rate, s.penalty_weight, lanes, double, *needs, filters, kept)
        self.parameters = s.parameters(lanes, self.dtype).ravel()
        self._kernel: Any = None

    def reset(self) -> None:
        """Return to the state before the first row; the system commits memory when coordinates are first used."""
        slots = self.features + 1
        size = self.layout.nbytes(slots)
        request = f"features: got {self.features:,} in {self.n_lanes} lane{'s' * (self.n_lanes > 1)}"
        if self.layout.width * self.dtype.itemsize < PAGE:  # else memory is only for coordinates that occur
            enough_memory(request, size, FEWER)
        try:
            self._allocate(slots)
        except MemoryError:
            message = f"{request}, which need {size / 1e9:,.1f} GB of memory, expected free memory; {FEWER}"
            raise MemoryError(message) from None
        self.rounds = 0
        self.total_importance = 0.0

    def _allocate(self, slots: int) -> None:
        sizes = self.layout.sizes(slots)
        self.records = aligned_zeros(slots * self.layout.width, self.dtype, self.layout.width)
        self._scales = aligned_zeros(sizes["scales"], self.dtype)
        self.scales[-1] = 1  # a constant feature is always 1
        self.last_round = np.zeros(sizes["last_round"], np.int64)
        self.totals = np.zeros((SUMS + self.layout.dual_sums) * self.n_lanes)

    def empty_like(
        self, features: int | None = None, lanes: int | None = None, labels: LabelCoding | None = None
    ) -> "State":
        """Return lanes with the same settings in the initial state; arguments that are not None replace a size."""
        new = copy(self)
        new.features = self.features if features is None else features
        new._set_lanes(self.n_lanes if lanes is None else lanes, labels or self.labels)
        new.reset()
        return new

    @property
    def spec(self) -> KernelSpec:
        """The spec of the kernel."""
        s, loss = self.settings, self.settings.loss_function
        settings = s.n_settings if self.labels != "shared" or loss.joint else 1
        return KernelSpec(loss.kernel, self.layout, s.bias, self.labels, settings, loss.joint)

    @property
    def kernel(self) -> Any:
        """The compiled functions."""
        from forel.learner.kernels import kernel

        if self._kernel is None:
            found = kernel.kernel(self.spec)
            self._kernel = lambda: found  # tools that measure the memory of a model do not follow functions
        return self._kernel()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kernel": None}

    def progress(self, given: Examples, first: int = 0, written: bool = True) -> NDArray[Any]:
        """Predict and then learn each row in turn; return the margins from before, a column each, or no rows of them.

        Raise for a row whose loss is not finite, with its number if the first one has the number ``first``.
        """
        labels, importance = given.labels.astype(self.dtype), given.importance.astype(self.dtype)
        domain, count = self.settings.labels, given.rows.number
        if self.labels == "shared" and isinstance(domain, Interval) and domain.high == np.inf:
            self.note(label=np.abs(given.labels - labels))  # others are coded, or small
        margins = np.empty((count if written else 0, self.n_lanes), self.dtype)
        if (row := self.learn(given.rows, labels, importance, margins)) < count:
            raise not_finite(first + row, given.labels[row])
        return margins

    def learn(self, rows: Rows, labels: NDArray[Any], importance: NDArray[Any], out: NDArray[Any]) -> int:
        """Predict and then learn each row in turn; return the number of rows before the first loss that is not finite.

        Margins before learning are written to ``out``, unless it is empty. Rows of negative importance are held out.
        """
        inputs = *rows, labels, importance
        margins = out.ravel()
        count = int(self.kernel.learn(*inputs, *self.arrays, self.shape, rows.longest + 1, self.totals, margins))
        learned = importance[:count]
        learned = learned[learned >= 0]
        self.note(importance=np.abs(learned - 1))
        self.rounds, self.total_importance = self.rounds + learned.size, summed(self.total_importance, learned)
        return count

    def note(self, **errors: NDArray[Any]) -> None:
        """Note facts about rows that certificates need: how far importances are from 1, and rounded labels from y."""
        if self.certified:
            for fact, name in zip(self.all_sums[-2:], ("importance", "label"), strict=True):
                fact[:] = max(float(fact[0]), float(errors[name].max(initial=0.0)) if name in errors else 0.0)

    def predict(self, rows: Rows) -> NDArray[Any]:
        """Return the margins of every row, a column for each lane."""
        margins = np.empty((rows.number, self.n_lanes), self.dtype)
        self.kernel.score(*rows, *self.arrays, self.totals, False, margins.ravel())
        return margins

    @property
    def _rows(self) -> NDArray[Any]:
        return self.records.reshape(-1, self.layout.width)

    @property
    def numbers(self) -> NDArray[Any]:
        """The records by coordinate, part and lane, the bias last."""
        return self._rows[:, : self.layout.parts * self.n_lanes].reshape(self.features + 1, -1, self.n_lanes)

    @property
    def scales(self) -> NDArray[Any]:
        """The scale of every coordinate for scale-free rates; one number for others."""
        return self._rows[:, self.layout.scale_offset] if self.layout.scale_in_record else self._scales

    @property
    def gradients(self) -> NDArray[Any]:
        """The sums of gradients g_{1:t} by coordinate, a column for each of the layout's certified lanes, in units."""
        kept = len(self.layout.gradient_lanes)
        return self._rows[:, -3:][:, :kept] if kept else self.numbers[:, self.layout.gradient_part]

    def units(self, coordinates: NDArray[np.int64] | slice) -> NDArray[np.float64]:
        """Return the units in which z, n and g_{1:t} of coordinates are kept; 1 for rates without scales.

        >>> state = State(2, Settings(rate="scale_free"), 1)
        >>> state.scales[:2] = 1.7e18, 0.3
        >>> np.log2(state.units(slice(None)))
        array([60.,  0.,  0.])
        """
        return units_of(self.scales[coordinates]) if self.settings.rate == "scale_free" else np.ones(1)

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The arguments of every kernel function: arrays, rounds, key of the rounding noise, parameters."""
        scales = self.records[self.layout.scale_offset :] if self.layout.gradient_lanes else self._scales
        return self.records, scales, self.last_round, self.rounds, self.settings.noise_key, self.parameters

    @property
    def sums(self) -> NDArray[np.float64]:
        """The running sums, a row for each of :data:`forel.learner.layout.SUMS` and a column for each lane."""
        return self.totals[: SUMS * self.n_lanes].reshape(SUMS, self.n_lanes)

    @property
    def all_sums(self) -> NDArray[np.float64]:
        """The running sums with those of certificates, in the order of ``Layout.dual_sums``."""
        return self.totals.reshape(-1, self.n_lanes)

    @property
    def clipped(self) -> NDArray[np.float64]:
        """The number of rows of each lane in which a number was clipped; 0 without a certificate."""
        rows: NDArray[np.float64] = self.sums[4]
        return rows

    @property
    def tables(self) -> dict[str, NDArray[Any]]:
        """Views of the records and separate arrays in use, a row for each coordinate, by their names in files."""
        slots, layout = self.features + 1, self.layout
        tables: dict[str, NDArray[Any]] = {"state": self.numbers}
        if layout.rate == "scale_free":
            tables["reach"] = self.scales.reshape(slots, 1)
        if layout.gradient_lanes:
            tables["gradients"] = self.gradients
        if layout.keeps_round:
            tables["last"] = self.last_round.reshape(slots, 1)
        return tables

    def nonzero_rows(self) -> NDArray[np.int64]:
        """Return the coordinates with any nonzero bit in their record or in the separate arrays."""
        slots, (_, *separate) = self.features + 1, self.tables.values()
        tables = [_as_integers(table) for table in (self.records.reshape(slots, -1), *separate)]
        step = max(1, SCAN_BYTES // sum(table.itemsize * table.shape[1] for table in tables))
        touched = []
        for start in range(0, slots, step):
            parts = [table[start : start + step] for table in tables]
            if not any(part.any() for part in parts):
                continue
            used = np.zeros(len(parts[0]), bool)
            for part in parts:
                for column in part.T:  # with few columns many times as fast as any(axis=1)
                    used |= column != 0
            touched.append(np.flatnonzero(used) + start)
        return np.concatenate(touched) if touched else np.empty(0, np.int64)

    def copy_lanes_from(self, other: "State", lanes: slice) -> None:
        """Copy some lanes of another state with the same features; memory of untouched coordinates is not committed.

        The sums of certificates are not copied if this state has none.
        """
        parts = min(self.layout.parts, other.layout.parts)
        source, targets = ({**each.tables, "state": each.numbers[:, :parts]} for each in (other, self))
        if parts < self.layout.parts:  # which has g_{1:t} in its records, the other one after its scales
            columns = [other.layout.gradient_lanes.index(lane) for lane in range(other.n_lanes)[lanes]]
            source["gradients"], targets["gradients"] = other.gradients[:, columns], self.gradients
        for name, target in targets.items():
            table = source[name][..., lanes] if name == "state" else source[name]
            for start in range(0, len(table), BLOCK):
                part = table[start : start + BLOCK]
                used = np.flatnonzero(part.any(axis=tuple(range(1, part.ndim))))
                target[start + used] = part[used]
        self.all_sums[:] = other.all_sums[: len(self.all_sums), lanes]
        self.rounds, self.total_importance = other.rounds, other.total_importance

    def copied(self) -> "State":
        """Return a copy; memory of untouched coordinates is not committed."""
        new = self.empty_like()
        new.copy_lanes_from(self, slice(None))
        return new

    def cloned(self) -> "State":
        """Return a copy as fast as memory can be copied; it commits memory for all coordinates."""
        new = copy(self)
        for name in ("records", "_scales", "last_round", "totals"):
            setattr(new, name, getattr(self, name).copy())
        return new

    def weights(self, first: int, count: int) -> NDArray[Any]:
        """Return the weights of ``count`` coordinates from ``first`` on, a column for each lane."""
        out = np.empty((count, self.n_lanes), self.dtype)
        for start in range(0, count, BLOCK):
            some = slice(start, min(start + BLOCK, count))
            out[some] = self.weights_at(np.arange(first + some.start, first + some.stop))
        return out

    def weights_at(self, coordinates: NDArray[np.int64]) -> NDArray[Any]:
        """Return the weights of coordinates, a column for each lane."""
        out = np.empty((coordinates.size, self.n_lanes), self.dtype)
        indices = coordinates.astype(index_dtype(self.features))
        ends, zeros = np.append(np.arange(0, indices.size, CHUNK), indices.size), np.zeros(indices.size, self.dtype)
        self.kernel.score(ends, indices, zeros, *self.arrays, self.totals, True, out.ravel())
        return out

    @property
    def active_coordinates(self) -> NDArray[np.int64]:
        """The coordinates whose records are not zero, in order: those of the features that occurred in rows."""
        used = self.features + int(self.settings.bias)
        if self.scales.size == self.features + 1:  # scan one number per coordinate instead of a record
            return np.flatnonzero(self.scales[:used])
        touched = self.nonzero_rows()
        return touched[touched < used]


def _as_integers(table: NDArray[Any]) -> NDArray[Any]:
    """View a table as the widest integers that divide a row, which are zero only if all bits are."""
    wide = table.itemsize * table.shape[1] % 8 == 0 and table.flags.c_contiguous
    return table.view(np.uint64 if wide else {4: np.uint32, 8: np.uint64}[table.itemsize])


def summed(start: float, terms: NDArray[Any]) -> float:
    """Return a sum continued one term at a time, so that it does not depend on how rows are split into blocks.

    >>> summed(0.5, np.float32([1, 2]))
    3.5
    """
    if float(start).is_integer() and start < EXACT and (terms == 1).all():
        return float(start) + terms.size
    return float(np.add.accumulate(np.concatenate(([start], terms)))[-1])


def resize(old: State, features: int, lanes: int, labels: LabelCoding) -> State:
    """Return a copy with more features or lanes; new ones are in the initial state."""
    return _moved(old, old.empty_like(features, lanes, labels), slice(old.features), slice(None))


def renumber(old: State, places: NDArray[Any], features: int) -> State:
    """Return a copy whose first features have the given places among ``features``; those with others are left out."""
    kept = np.flatnonzero(places < features)
    return _moved(old, old.empty_like(features), places[kept], kept)


def _moved(old: State, new: State, places: Any, some: Any) -> State:
    """Copy the records of some features to their places, that of the bias, and the sums, to the first lanes."""
    for name, table in new.tables.items():
        wide, before = (table[..., : old.n_lanes] if name == "state" else table), old.tables[name]
        wide[places], wide[-1] = before[:-1][some], before[-1]
    new.all_sums[:, : old.n_lanes] = old.all_sums
    new.rounds, new.total_importance = old.rounds, old.total_importance
    return new


def place_classes(old: State, count: int, places: Sequence[int], labels: LabelCoding) -> State:
    """Return the lanes of ``count`` classes: the old ones at their places, the others in the initial state."""
    settings = old.settings.n_settings
    new = old.empty_like(lanes=count * settings, labels=labels)
    for name in new.tables.keys() - {"state"}:  # which does not depend on the lane
        new.tables[name][:] = old.tables[name]
    for k, place in enumerate(places):
        source, target = (slice(c * settings, (c + 1) * settings) for c in (k, place))
        new.numbers[..., target], new.all_sums[:, target] = old.numbers[..., source], old.all_sums[:, source]
    new.rounds, new.total_importance = old.rounds, old.total_importance
    return new


def split_binary(state: State, settings: int = 1) -> None:
    """Make the first two classes of some settings from the model of the second class, in the lanes of the first.

    For even losses, f(m, y) = f(−m, −y), the model of the first class is the same with the sign of all parts of a
    record but n changed.
    """
    first, second, numbers = slice(0, settings), slice(settings, 2 * settings), state.numbers
    numbers[:, :, second] = numbers[:, :, first]
    numbers[:, 0, first] = 0 - numbers[:, 0, first]
    numbers[:, 2:, first] = 0 - numbers[:, 2:, first]
    state.all_sums[:, second] = state.all_sums[:, first]


def clear_lanes(state: State, some: slice) -> None:
    """Reset some lanes to the initial state."""
    state.numbers[:, :, some] = 0
    state.all_sums[:, some] = 0


def aligned_zeros(count: int, dtype: np.dtype[Any], record: int = 1) -> NDArray[Any]:
    """Return zeros aligned to a cache line, in memory that the system commits only where it is written.

    Memory is committed by huge pages of some megabytes where the system has them, of which a few thousand random
    records touch all. Records of ``record`` numbers that take a good part of a small page are in small pages instead,
    and so are large arrays, of which a few thousand records would commit the memory of a whole machine.

    >>> aligned_zeros(3, np.dtype("float32")).ctypes.data % 64
    0
    """
    size = count * dtype.itemsize
    wide = record * dtype.itemsize >= WIDE and size > SMALL
    if (wide or size > LARGE) and hasattr(mmap, "MADV_NOHUGEPAGE"):
        return _small_pages(count, dtype)
    padding = LINE // dtype.itemsize
    raw = np.zeros(count + padding, dtype)
    start = (-raw.ctypes.data % LINE) // dtype.itemsize
    return raw[start : start + count]


def _small_pages(count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return zeros in small pages, which begin with a page."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE
    try:
        memory = mmap.mmap(-1, count * dtype.itemsize, flags=flags)
    except OSError as error:
        raise MemoryError(str(error)) from None
    with suppress(OSError):  # of systems without huge pages
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, dtype)
