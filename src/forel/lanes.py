"""The state that kernels work on: a record a coordinate, with one number of each kind for every lane."""

from collections.abc import Iterator
from copy import copy
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

from forel.certificate import Certificate, LossFloor, Snapshot
from forel.checks import enough_memory, refuse, whole
from forel.settings import Settings

__all__ = ["SUMS", "Lanes", "summed"]

LINE = 64  # bytes of a cache line
BLOCK = 1 << 15  # coordinates that are read at a time
FEWER = "use fewer bits, or fewer lanes"
SUMS = 6  # doubles a lane: loss, Σ g·x, half-sum, ticks, ΣΣ g_{1:t}², clipped rows, as in forel.kernels.template


class Lanes:
    """The numbers of several models side by side, and what can be read off them.

    Parameters
    ----------
    features : the number of features; one more coordinate is the bias
    settings, dtype, certified : as in :class:`forel.linear.Linear`
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
        self.parameters = settings.parameters(lanes, self.dtype).ravel()
        self.shape = settings.shape(self.dtype)
        self.reset()

    def reset(self) -> None:
        """Forget everything; memory that is not touched again is not used."""
        recipe = self.recipe
        slots = self.features + 1
        numbers = recipe.width + int(recipe.apart), int(recipe.counts) + self.lanes * (recipe.catches_up == "drift")
        size = slots * (numbers[0] * self.dtype.itemsize + numbers[1] * 8)
        asked = f"features: got {self.features:,} in {self.lanes} lane{'s' * (self.lanes > 1)}"
        enough_memory(asked, size, FEWER)
        try:
            self._allocate(recipe, slots)
        except MemoryError:
            refused = f"{asked}, which need {size / 1e9:,.1f} GB of memory, expected what the system gives; {FEWER}"
            raise MemoryError(refused) from None
        self.rounds = 0
        self.weight = 0.0

    def _allocate(self, recipe: Any, slots: int) -> None:
        self.flat = _zeros(slots * recipe.width, self.dtype)
        self._scales = np.zeros(slots if recipe.apart else 1, self.dtype)
        self.reach[-1] = 1  # a constant feature is always 1
        self.last = np.zeros(slots if recipe.counts else 1, np.int64)
        self.mark = np.zeros(slots * self.lanes if recipe.catches_up == "drift" else 1)
        self.totals = np.zeros(SUMS * self.lanes)

    @property
    def recipe(self) -> Any:
        """What the kernel is made of."""
        from forel.kernels.recipe import Recipe

        s, double = self.settings, self.dtype == np.float64
        pieces = s.piece, s.rule, s.rate, s.penalty_weight, self.lanes, s.bias, self.labels, double, self.certified
        classes = self.labels != "shared" or s.loss == "softmax"
        return Recipe(*pieces, groups=s.lanes if classes else 1)

    @property
    def kernel(self) -> Any:
        """The compiled functions."""
        from forel.kernels.kernel import kernel

        return kernel(self.recipe)

    @property
    def state(self) -> NDArray[Any]:
        """The record of every coordinate, the bias last: (z, n) and what a certificate needs, for each lane."""
        return self.flat.reshape(self.features + 1, -1, self.lanes)[:, : self.recipe.parts]

    @property
    def reach(self) -> NDArray[Any]:
        """The scale of every coordinate, where rates are scale-free; one number elsewhere."""
        return self.flat.reshape(-1, self.recipe.width)[:, -1] if self.recipe.within else self._scales

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
        self.kernel.gather(chosen, *self.arrays, self.totals, out.ravel())
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

    def certificate(self, lanes: slice, among: NDArray[np.int64] | None = None) -> Certificate:
        """Return what is proved of some lanes together, whose losses are one loss, in all coordinates or among some."""
        settings, primal = self.settings, self.recipe.primal
        some = np.arange(self.features + int(settings.bias)) if among is None else among
        totals = self.sums[:, lanes].sum(axis=1)
        columns, spent = np.empty((5, len(range(self.lanes)[lanes]), some.size)), 0.0
        for start, found, paid in self._parts(lanes, some):
            for column, block in zip(columns, found, strict=True):
                column[:, start : start + BLOCK] = block
            spent += paid
        gradients, strength, linear, l1, l2 = columns.reshape(5, -1)
        if among is not None:
            # Models are 0 in the other coordinates, but the learner was not.
            others = np.setdiff1d(self.seen, among, assume_unique=True)
            spent += sum(paid for _, _, paid in self._parts(lanes, others))
        return Certificate(
            rounds=self.rounds,
            weight=self.weight,
            loss=float(totals[0]),
            # Of gradients that were clipped nothing is known: any regret may have been suffered.
            lower=float(totals[0]) - float(totals[1]) if not self.clipping(lanes) else -np.inf,
            gradients=gradients,
            strength=strength,
            linear=linear,
            # Stability telescopes: what FTRL paid is Σ g·x minus the last objective at its minimiser.
            constant=float(totals[2 if primal else 1]) + spent,
            l1=l1,
            l2=l2,
            radius=None if settings.radius is None else float(self.parameters.reshape(5, -1)[4, lanes].min()),
            result="Theorem 12" if primal else "Lemma 5",
            void=self._void(lanes),
            rounding=self._rounding(lanes),
            slack=self._slack(lanes, float(totals[0]), float(totals[1]), self.weight),
            least=settings.least,
            bias=settings.bias,
            floor_void=self.clipping(lanes),
        )

    def snapshot(self) -> Snapshot:
        """Return where the sums of certificates stand."""
        if not self.certified:
            return Snapshot(self.rounds, self.weight)
        slots = self.seen
        gradients = self.state[:, self._gradient_part][slots] * self.units(slots)[:, None]
        return Snapshot(self.rounds, self.weight, self.sums.copy(), slots, gradients)

    def words(self, lanes: slice, since: Snapshot | None = None, suffered: float | None = None) -> str:
        """Return what is proved of all rows, or those since a snapshot, against models no larger than the learned one.

        ``suffered`` is what was lost on them, where that is not what these lanes lost.
        """
        before = Snapshot() if since is None else since
        loss, played = self._sums(lanes, since)
        gradients, norm = self._norms(lanes, before)
        rows, weight = self.rounds - before.rounds, self.weight - before.weight
        lower = loss - played - self._slack(lanes, loss, played, weight)
        rounding, least, bias = self._rounding(lanes), self.settings.least, self.settings.bias
        own = loss if suffered is None else suffered
        return LossFloor(rows, weight, own, lower, gradients, rounding, least, bias, self.clipping(lanes)).words(norm)

    def _sums(self, lanes: slice, since: Snapshot | None) -> tuple[float, float]:
        """Return the loss of some lanes together, and Σ g·x."""
        sums = self.sums if since is None or since.sums is None else self.sums - since.sums
        loss, played = sums[:2, lanes].sum(axis=1).tolist()
        return loss, played

    def _rounding(self, lanes: slice) -> float:
        """Return how far ‖g_{1:T}‖ as it is kept may be from that of exact sums.

        Each addition is off by a unit in the last place of the sum at most, at random: the square root of the sum of
        their squares is what all of them come to, and a few times that is not exceeded.
        """
        squares = float(self.sums[4, lanes].sum())
        return 4 * float(np.finfo(self.dtype).eps) * float(np.sqrt(squares))

    def _slack(self, lanes: slice, loss: float, played: float, weight: float) -> float:
        """Return how far Σ ℓ − Σ g·x may be from exact sums of exact losses and slopes.

        Each loss and slope is right to a few last places, and each addition to the last place of a double.
        """
        sums = float(np.abs(self.sums[:2, lanes]).sum())
        added = 2 * float(np.finfo(np.float64).eps) * self.rounds * sums
        return 8 * float(np.finfo(self.dtype).eps) * (abs(loss) + abs(played) + weight) + added

    @property
    def _gradient_part(self) -> int:
        """Which number of a record is g_{1:t}; without one, z is."""
        return 2 if self.recipe.parts > 2 else 0

    def _norms(self, lanes: slice, since: Snapshot) -> tuple[float, float]:
        """Return ‖g_{1:T}‖₂ since a snapshot and ‖x‖₂ of some lanes together, without a table of either."""
        part, gradients, weights = self._gradient_part, 0.0, 0.0
        for start, x in self.blocks(0, self.features + int(self.settings.bias)):
            g = self.state[start : start + len(x), part, lanes] * self.units(slice(start, start + len(x)))[:, None]
            if since.slots is not None and since.gradients is not None:
                low, high = np.searchsorted(since.slots, (start, start + len(x)))
                g[since.slots[low:high] - start] -= since.gradients[low:high, lanes]
            # Not vdot, which would start threads on arrays this long.
            gradients += float(np.sum(np.square(g)))
            weights += float(np.sum(np.square(x[:, lanes], dtype=np.float64)))
        return float(np.sqrt(gradients)), float(np.sqrt(weights))

    def _parts(self, lanes: slice, some: NDArray[np.int64]) -> Iterator[tuple[int, tuple[Any, ...], float]]:
        """Yield g_{1:T}, strength, Σσx and penalties of some coordinates, in blocks that stay in a cache.

        With each comes the place of its first coordinate, and what its coordinates add to the constant.
        """
        for start in range(0, some.size, BLOCK):
            yield start, *self._part(lanes, some[start : start + BLOCK])

    def _part(self, lanes: slice, some: NDArray[np.int64]) -> tuple[tuple[Any, ...], float]:
        """Return the same of a few coordinates.

        What they add is −h_{0:T} at the present point for FTRL, and what was added lately around it for Mirror Descent.
        """
        settings, recipe = self.settings, self.recipe
        p = self.parameters.reshape(5, self.lanes, 1)[:, lanes].astype(np.float64)
        parts = self.state[:, :, lanes][some].transpose(1, 2, 0).astype(np.float64)
        x = self.gather(some)[:, lanes].T.astype(np.float64)
        units = self.units(some)
        parts[1:] *= units
        parts[1] *= units
        parts[0] *= 1 if recipe.primal else units
        z, n = parts[:2]
        gradients = z if recipe.parts == 2 else parts[2]
        linear = parts[3] if recipe.parts == 4 else gradients - z
        strength = np.broadcast_to(self._strength(n, p, some), z.shape)
        late = np.zeros(1)
        if recipe.elapses:
            # Coordinates that were not seen lately have been told of strength around their weights only until then.
            late = np.where(n > 0, strength - n, 0.0)
            linear = linear + late * x
        penalized = (some < self.features).astype(np.float64)
        total = self.rounds if settings.penalty_weight == "every" else min(self.rounds, 1)
        l1, l2 = total * p[2] * penalized, total * p[3] * penalized
        objective = (gradients - linear) * x + l1 * np.abs(x) + 0.5 * (strength + l2) * x * x
        spent = float(np.sum(0.5 * late * x * x if recipe.primal else -objective))
        return (gradients, strength, linear, l1, l2), spent

    def clipping(self, lanes: slice) -> str:
        """Return what a certificate of some lanes does not know of, or nothing where all gradients were as they are."""
        rows = int(self.clipped[lanes].max())
        if not rows:
            return ""
        remedy = "scale the features and labels" + ("" if self.dtype == np.float64 else ", or use float64")
        remedy += "" if self.settings.rate == "scale_free" else ", or use rate='scale_free'"
        count = f"{rows:,} row{'s' if rows > 1 else ''}"
        return f"gradients of {count} left the range of {self.dtype} and were clipped; {remedy}"

    def _void(self, lanes: slice) -> str:
        """Return why no theorem bounds the regret, or nothing where one does."""
        if clipping := self.clipping(lanes):
            return clipping
        if self.settings.rule == "implicit":
            return "the survey proves no bound for implicit updates; use algorithm='mirror'"
        if self.recipe.primal and self.settings.rate == "scale_free":
            return (
                "Mirror Descent adds the strength of a growing scale around the present weights, which is not counted; "
                "use algorithm='proximal'"
            )
        if self.recipe.catches_up in ("drift", "replay"):
            return (
                "with rate='root' and a penalty every round, strength is added around weights that nobody looked at; "
                "use penalty_weight='once' or rate='adagrad'"
            )
        return ""

    def _strength(self, n: Any, p: Any, some: NDArray[np.int64]) -> Any:
        """Return 1/η_T of some coordinates: the pieces of the kernels once more, for whole arrays."""
        rate = self.settings.rate
        if rate == "scale_free":
            s = self.reach[some].astype(np.float64)
            return s * (p[1] * s + np.sqrt(n)) * p[0]
        if rate == "adagrad":
            return (p[1] + np.sqrt(n)) * p[0]
        return p[0] if rate == "constant" else np.sqrt(self.rounds + 1) * p[0]


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
