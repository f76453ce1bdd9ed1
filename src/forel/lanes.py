"""The state that kernels work on: a record a coordinate, with one number of each kind for every lane."""

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

from forel.certificate import Certificate
from forel.checks import refuse, whole
from forel.settings import Settings

__all__ = ["Lanes"]

LINE = 64  # bytes of a cache line
BLOCK = 1 << 15  # coordinates that are read at a time


class Lanes:
    """The numbers of several models side by side, and what can be read off them.

    Parameters
    ----------
    features : the number of features; one more coordinate is the bias
    settings, dtype, certified : as in :class:`forel.linear.Linear`
    lanes : how many models
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
        self.flat = _zeros(slots * recipe.parts * self.lanes, self.dtype)
        self.reach = np.zeros(slots if recipe.rate == "scale_free" else 1, self.dtype)
        self.reach[-1] = 1  # a constant feature is always 1
        self.last = np.zeros(slots if recipe.counts else 1, np.int64)
        self.mark = np.zeros(slots * self.lanes if recipe.catches_up == "drift" else 1)
        self.totals = np.zeros(4 * self.lanes)
        self.rounds = 0

    @property
    def recipe(self) -> Any:
        """What the kernel is made of."""
        from forel.kernels.recipe import Recipe

        s, double = self.settings, self.dtype == np.float64
        pieces = s.piece, s.rule, s.rate, s.penalty_weight, self.lanes, s.bias, self.labels, double, self.certified
        return Recipe(*pieces)

    @property
    def kernel(self) -> Any:
        """The compiled functions."""
        from forel.kernels.kernel import kernel

        return kernel(self.recipe)

    @property
    def state(self) -> NDArray[Any]:
        """The record of every coordinate, the bias last: (z, n) and what a certificate needs, for each lane."""
        return self.flat.reshape(self.features + 1, -1, self.lanes)

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What every kernel takes: state, what some rules keep beside it, rounds, and parameters."""
        return self.flat, self.reach, self.last, self.mark, self.rounds, self.parameters

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

    def certificate(self, lanes: slice) -> Certificate:
        """Return what is proved of some lanes together, whose losses are one loss."""
        settings, recipe = self.settings, self.recipe
        used = self.features + int(settings.bias)
        p = self.parameters.reshape(5, self.lanes, 1)[:, lanes].astype(np.float64)
        parts = self.state[:used, :, lanes].transpose(1, 2, 0).astype(np.float64)
        z, n = parts[:2]
        gradients = z if recipe.parts == 2 else parts[2]
        linear = parts[3] if recipe.parts == 4 else gradients - z
        strength = np.broadcast_to(self._strength(n, p), z.shape)
        totals = self.totals.reshape(4, self.lanes)[:, lanes].sum(axis=1)
        constant = float(totals[2])
        if recipe.elapses:
            # Coordinates that were not seen lately have been told of strength around their weights only until then.
            x = self.read(0, used)[:, lanes].T.astype(np.float64)
            late = np.where(n > 0, strength - n, 0.0)
            linear = linear + late * x
            constant += 0.5 * float(np.sum(late * x * x))
        penalized = np.ones(used)
        penalized[self.features :] = 0.0
        total = self.rounds if settings.penalty_weight == "every" else min(self.rounds, 1)
        return Certificate(
            rounds=self.rounds,
            loss=float(totals[0]),
            played=float(totals[1]),
            gradients=gradients.ravel(),
            strength=strength.ravel(),
            linear=linear.ravel(),
            constant=constant,
            l1=(total * p[2] * penalized).ravel(),
            l2=(total * p[3] * penalized).ravel(),
            radius=None if settings.radius is None else float(np.min(p[4])),
            result={"proximal": "Theorem 10", "centered": "Theorem 1"}.get(settings.rule, "Theorem 12"),
            void=self._void(),
        )

    def _void(self) -> str:
        """Return why no theorem bounds the regret, or nothing where one does."""
        if self.settings.rule == "implicit":
            return "the survey proves no bound for implicit updates; use algorithm='mirror'"
        if self.recipe.catches_up in ("drift", "replay"):
            return (
                "with rate='root' and a penalty every round, strength is added around weights that nobody looked at; "
                "use penalty_weight='once' or rate='adagrad'"
            )
        return ""

    def _strength(self, n: Any, p: Any) -> Any:
        """Return 1/η_T of every coordinate: the pieces of the kernels once more, for whole arrays."""
        rate = self.settings.rate
        if rate == "scale_free":
            s = np.append(self.reach[: self.features], 1)[: n.shape[-1]].astype(np.float64)
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
