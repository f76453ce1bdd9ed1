"""What both models are made of: names, a state that grows with them, and a short way from a dict to the kernel.

A row is checked, packed into buffers that are used again and again, and given to the same compiled function that
:class:`forel.linear.Linear` uses; so the same rows give the same bits.
"""

from collections.abc import Hashable, Mapping
from dataclasses import fields, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from forel.certificate import Certificate
from forel.checks import Unsupported, number, refuse, whole
from forel.lanes import Lanes, summed
from forel.river.slots import forget, hashed, resized
from forel.rows import Rows
from forel.settings import Settings

__all__ = ["Learner", "importance", "settings_of"]

SLOTS, ENTRIES = 1024, 64  # to begin with; both double when they are not enough


def settings_of(model: Any, losses: tuple[str, ...]) -> Settings:
    """Return a model's parameters as settings of one lane."""
    settings = Settings(**{f.name: getattr(model, f.name) for f in fields(Settings) if hasattr(model, f.name)})
    if settings.piece not in losses:
        raise refuse("loss", model.loss, f"one of {', '.join(losses)}")
    if settings.lanes > 1 or any(np.ndim(getattr(model, name)) for name in ("alpha", "beta", "l1", "l2", "radius")):
        raise ValueError(
            "alpha, beta, l1, l2, radius: got a sequence, expected one number each; forel.linear.Linear learns several "
            "models side by side"
        )
    return settings


def importance(w: Any) -> float:
    """Return what multiplies a row's loss."""
    return number("w", w, "a number of at least 0", low=0.0, high=float(np.finfo(np.float32).max))


class Learner:
    """A linear model of named features, one lane or several.

    Parameters
    ----------
    settings, certified : as in :class:`forel.linear.Linear`
    dtype : "float32" or "float64"
    bits : None for a slot a name, or how many bits of a hash choose a slot

    >>> learner = Learner(Settings(alpha=1.0), "float64", None, False)
    >>> learner.learn({"a": 1.0, "b": 2}, label=1.0, weight=1.0)
    >>> list(learner.weights()), learner.lanes.rounds
    (['a', 'b'], 1)

    Survey: section 3.4
    """

    def __init__(self, settings: Settings, dtype: str, bits: int | None, certified: bool) -> None:
        self.bits = None if bits is None else whole("bits", bits, low=1)
        if self.bits is not None and self.bits > 32:
            raise refuse("bits", bits, "at most 32, or None for a slot a name")
        self.names: dict[Hashable, int] = {}
        self.lanes = Lanes(SLOTS if self.bits is None else 1 << self.bits, settings, 1, dtype, bool(certified))
        self._room, self._bound = -1, False

    def _prepare(self, room: int) -> None:
        """Make buffers for rows of ``room`` entries, as the kernel's functions for one row take them."""
        from forel.kernels import dicts

        # A module, because whoever counts a model's memory goes on into functions of numba's.
        self._room, self._dicts = room, dicts
        self._numbers = np.zeros(room + dicts.FRONT, self.lanes.dtype)
        self._places = np.zeros(2 + room + dicts.CELLS, np.int64)
        self._numbers[2] = self.lanes.shape
        self._bound = False

    def _bind(self) -> None:
        """Write down where everything lies that a kernel takes, until an array is replaced."""
        lanes = self.lanes
        self._kernel = getattr(lanes.kernel, "module", lanes.kernel)
        self._out = np.zeros(lanes.lanes, lanes.dtype)
        *state, _, key, parameters = lanes.arrays
        arrays: tuple[NDArray[Any], ...] = (self._places, self._numbers, *state, parameters, lanes.totals, self._out)
        self._block = np.array([v for a in arrays for v in (a.ctypes.data, a.size)] + [lanes.rounds, key], np.int64)
        self._slots, self._bound = lanes.features, True

    def __getstate__(self) -> dict[str, Any]:
        return {"bits": self.bits, "names": self.names, "lanes": self.lanes}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _room=-1, _bound=False)

    def check(self, x: Mapping[Hashable, Any]) -> None:
        """Refuse a row that could not be learned from, and change nothing."""
        self.margins(x)

    def learn(self, x: Mapping[Hashable, Any], label: float, weight: float) -> None:
        """Learn from a row; one with a value that is not a finite number is refused, and nothing changes."""
        names = self.names
        known = len(names)
        good = self._write(x, label, weight, True)
        if good and len(names) >= self._slots and self.bits is None:
            self.make_room()
            self._bind()
        rounds = self._kernel.learn_one(self._block) if good else -1
        if rounds < 0:
            forget(names, known)
            raise self._refusal(x)
        self.lanes.rounds = rounds
        self.lanes.weight += weight

    def margins(self, x: Mapping[Hashable, Any]) -> NDArray[Any]:
        """Return the margin of each lane, in an array that the next call writes over; names not seen have weight 0."""
        if not self._write(x, 0.0, 1.0, False) or self._kernel.predict_one(self._block) < 0:
            raise self._refusal(x)
        return self._out

    def _write(self, x: Mapping[Hashable, Any], label: float, weight: float, adding: bool) -> bool:
        """Write a row where the kernel looks for it, and return whether that could be done."""
        try:
            row: Mapping[Any, Any] = x if self.bits is None else hashed(x.items(), self.bits)
        except (TypeError, ValueError, OverflowError):  # of values that cannot be added
            return False
        if type(row) is not dict:
            row = dict(row)
        if len(row) > self._room:
            self._prepare(max(ENTRIES, 2 * len(row)))
        if not self._bound:
            self._bind()
        names = id(self.names) if self.bits is None else 0
        return bool(self._dicts.read(id(row), names, self._numbers, self._places, label, weight, adding))

    def learn_rows(self, rows: Rows, labels: NDArray[Any], weight: NDArray[Any]) -> None:
        """Learn from rows whose slots exist."""
        lanes, longest = self.lanes, rows.longest + 1
        arguments = *rows, labels, weight, *lanes.arrays, lanes.shape, longest, lanes.totals, labels[:0]
        lanes.rounds = lanes.kernel.learn(*arguments)
        lanes.weight = summed(lanes.weight, weight)
        self._bound = False

    def row_margins(self, rows: Rows) -> NDArray[Any]:
        """Return the margin of each row and lane."""
        lanes = self.lanes
        out = np.zeros((rows.number, lanes.lanes), lanes.dtype)
        lanes.kernel.predict(*rows, *lanes.arrays, lanes.totals, out.ravel())
        return out

    def make_room(self, lanes: int | None = None, labels: Literal["shared", "classes", "signs"] | None = None) -> None:
        """Double the slots until every name has one; with ``lanes``, go on with so many."""
        old, features = self.lanes, self.lanes.features
        while self.bits is None and len(self.names) >= features:
            features *= 2
        self.lanes = resized(old, features, lanes or old.lanes, labels or old.labels)
        self._bound = False

    def weights(self, lane: int = 0) -> dict[Hashable, float]:
        """Return the weight of each name, exact zeros included; of slots that are not zero where names are hashed."""
        if not self.lanes.rounds:
            return {}
        if self.bits is None:
            return dict(zip(self.names, self.lanes.read(1, len(self.names))[:, lane].tolist(), strict=True))
        held = self.lanes.read(0, self.lanes.features)[:, lane]
        return {int(slot): float(held[slot]) for slot in np.flatnonzero(held)}

    def bias(self, lane: int = 0) -> float:
        """Return the weight of the constant feature; 0 without one."""
        return float(self.lanes.read(self.lanes.features, 1)[0, lane])

    def certificate(self, lane: int = 0) -> Certificate:
        """Return what is proved of a lane; its coordinates are the names in the order of weights, and the bias last."""
        if not self.lanes.certified:
            raise Unsupported("certified: got False, expected a model made with certified=True")
        proof = self.lanes.certificate(slice(lane, lane + 1))
        if self.bits is not None:
            return proof
        bias = [self.lanes.features] if self.lanes.settings.bias else []
        chosen = [*range(1, len(self.names) + 1), *bias]
        arrays: Any = {name: getattr(proof, name)[chosen] for name in ("gradients", "strength", "linear", "l1", "l2")}
        return replace(proof, **arrays)

    def _refusal(self, x: Mapping[Hashable, Any]) -> ValueError:
        """Return a sentence on the first value that cannot be used."""
        largest = float(np.finfo(self.lanes.dtype).max)
        for name, value in x.items():
            if isinstance(value, str):
                remedy = "a number; convert it, or put river's preprocessing.OneHotEncoder before the model"
                return refuse(f"x[{name!r}]", value, remedy)
            try:
                fine = abs(float(value)) <= largest
            except (TypeError, ValueError, OverflowError):
                fine = False
            if not fine:
                return refuse(f"x[{name!r}]", value, f"a finite number within the range of {self.lanes.dtype}")
        return refuse("x", x, f"numbers whose sum in a slot is within the range of {self.lanes.dtype}")
