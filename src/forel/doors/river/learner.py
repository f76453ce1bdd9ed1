"""What both models are made of: names, a state that grows with them, and a short way from a dict to the kernel.

A row is checked, packed into buffers that are used again and again, and given to the same compiled function that
:class:`forel.learner.linear.Linear` uses; so the same rows give the same bits. Rows of plain names and numbers are
read in compiled code, during which nothing else runs. All others are read in Python before the model is
looked at, because their conversion, hashes and comparisons may do anything, even learn.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from forel.doors.river.arguments import number_of
from forel.doors.river.buffers import RowBuffers, unlearned
from forel.doors.river.frames import Columns
from forel.doors.river.slots import beside, forget, hashed, resized, slot_of
from forel.learner import certify
from forel.learner.certificate import Certificate
from forel.learner.guard import Guard
from forel.learner.lanes import Lanes, summed
from forel.learner.rows import Rows
from forel.learner.settings import Settings
from forel.validation import Unsupported, refuse, whole

__all__ = ["Labels", "Learner", "Target"]

SLOTS, ENTRIES = 1024, 64  # to begin with; both double when they are not enough
Labels = Literal["shared", "classes", "signs"]
Target = tuple[dict[Any, float], float | Callable[[], float]]


@cache
def compiled() -> Any:
    """Return the module that reads plain dicts in compiled code, None where the interpreter is not what it expects."""
    try:
        from forel.learner.kernels import dicts

        return dicts if dicts.usable() else None
    except (ImportError, AttributeError, TypeError):  # of a numba that has changed
        return None


class Learner:
    """A linear model of named features, one lane or several, safe under threads.

    Parameters
    ----------
    settings, certified : as in :class:`forel.learner.linear.Linear`
    dtype : "float32" or "float64"
    bits : None for a slot a name, or how many bits of a hash choose a slot

    Lanes are in ``parts`` of equal width, so that many of them need no wider kernel. ``codes`` are the labels that the
    kernel knows classes by, ``begun`` the rounds and their importance before each class came. All three are replaced,
    never changed.

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
        slots = SLOTS if self.bits is None else 1 << self.bits
        self.parts: tuple[Lanes, ...] = (Lanes(slots, settings, 1, dtype, bool(certified)),)
        self.names: dict[Hashable, int] = {}
        self.codes: dict[Any, float] = {}
        self.begun: tuple[tuple[int, float], ...] = ()
        self._begin()

    def _begin(self) -> None:
        self.guard = Guard()
        self._idle: list[RowBuffers] = []  # buffers that no prediction is using
        self._learning: RowBuffers | None = None  # those of the one call that learns
        # A module, because whoever counts a model's memory goes on into functions of numba's.
        self._dicts = compiled()
        # The same dict as names until a name comes that is not plain, and None from then on.
        self._plain = self.names if self._dicts and all(map(self._dicts.plain, self.names)) else None
        self._address = id(self._plain) if self.bits is None else 0

    def __getstate__(self) -> dict[str, Any]:
        with self.guard.reading():  # and copied, since learning may go on before all is written
            parts = tuple(part.copied() for part in self.parts)
            held = {"bits": self.bits, "names": dict(self.names), "codes": self.codes, "begun": self.begun}
            return {**held, "parts": parts}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()

    @property
    def lanes(self) -> Lanes:
        """The first part, which says what is the same for all."""
        return self.parts[0]

    def learn(
        self, x: Mapping[Hashable, Any], label: float, weight: float, codes: dict[Any, float] | None = None
    ) -> dict[Hashable, Any] | None:
        """Learn from a row of plain names and numbers, whose label was found in ``codes``.

        Return None if that was done. Otherwise nothing has changed, and what is returned is for :meth:`learn_any`.
        """
        held = x if self.bits is None and type(x) is dict else dict(x)
        row = held if self.bits is None else self._hashed(held)
        if row is None:
            return held
        guard, more = self.guard, False
        with guard.lock:
            version = guard.version
            if version & 1:
                guard.check()
            if codes is not self.codes and codes is not None:
                return held
            guard.version = version + 1
            try:
                names, buffers = self._plain, self._learning
                if buffers is None:
                    buffers = self._learning = self._buffers(len(row))
                if names is not None and self._dicts.read(
                    id(row), self._address, buffers.numbers, buffers.places, weight, -1
                ):
                    lanes = buffers.lanes
                    if len(names) >= lanes.features:
                        self.make_room()
                        buffers = self._learning = buffers.on(self.parts)
                        lanes = buffers.lanes
                    if buffers.others:
                        buffers.learn(label, weight)
                    else:
                        rounds = buffers.kernel.learn_one(buffers.block, lanes.rounds, label)
                        if rounds < 0:
                            raise unlearned(label)
                        lanes.rounds = rounds
                        lanes.weight += weight
                    return None
                if len(row) > buffers.room:
                    more, self._learning = True, None
            finally:
                guard.version = version + 2
        return self.learn(held, label, weight, codes) if more else held

    def margins(self, x: Mapping[Hashable, Any]) -> tuple[Any, dict[Any, float]]:
        """Return a row's margin, or an array of every lane's, and the codes of classes; unknown names weigh 0."""
        held = x if self.bits is None and type(x) is dict else dict(x)
        row = held if self.bits is None else self._hashed(held)
        guard = self.guard
        before, codes = guard.version, self.codes
        found = self._predicted(row)
        if found is not None and (before & 1 or guard.version != before):
            with guard.reading():
                found, codes = self._predicted(row), self.codes
        return (found, codes) if found is not None else self._margins_slowly(held)

    def _predicted(self, row: dict[Any, Any] | None) -> Any:
        """Return the margins of a row of plain names and numbers, of a state that may be in the middle of a change."""
        names = self._plain  # holds the dict, whose address is read from
        if names is None or row is None:
            return None
        buffers = self._buffers(len(row))
        lanes = buffers.lanes
        if not self._dicts.read(id(row), self._address, buffers.numbers, buffers.places, 1.0, lanes.features):
            return None
        found = buffers.kernel.predict_one(buffers.block, lanes.rounds) if lanes.lanes == 1 else buffers.predict()
        if buffers.parts is self.parts:  # others would keep the memory of an earlier state
            self._idle.append(buffers)
        return found

    def _buffers(self, count: int) -> RowBuffers:
        """Return buffers for a row of so many entries, which nobody else uses."""
        try:
            buffers = self._idle.pop()
            if buffers.parts is self.parts and buffers.room >= count:
                return buffers
        except IndexError:  # all are in use
            pass
        return RowBuffers(self.parts, max(ENTRIES, 2 * count))

    def _hashed(self, x: dict[Hashable, Any]) -> dict[int, Any] | None:
        """Return the values of a row, which nobody else holds, by slots; None for values that cannot be added."""
        assert self.bits is not None
        try:
            return hashed(x.items(), self.bits)
        except (TypeError, ValueError, OverflowError):
            return None

    def _read(self, x: Mapping[Hashable, Any]) -> tuple[list[Any], NDArray[Any]]:
        """Return the names, or slots, and the values of a row as it is now; conversions may run anybody's code."""
        items, dtype = list((x if type(x) is dict else dict(x)).items()), self.lanes.dtype
        values = [number_of(name, value, dtype) for name, value in items]
        names = [name for name, _ in items]
        if self.bits is not None:
            sums = hashed(zip(names, values, strict=True), self.bits)
            names, values = list(sums), list(sums.values())
        with np.errstate(over="ignore"):
            held = np.array(values, np.float64).astype(dtype)
        if not np.isfinite(held).all():
            raise refuse("x", x, f"numbers whose sum in a slot is within the range of {dtype}")
        return names, held

    def learn_any(self, x: Mapping[Hashable, Any], weight: float, target: Callable[[], Target]) -> None:
        """Learn from any row; one with a value that is not a finite number is refused, and nothing changes.

        ``target`` returns the codes as they are, and a label or what makes room for a new class and returns its label.
        """
        names, values = self._read(x)
        while True:  # as a rule once; again if a class came while the label was looked for
            codes, label = target()
            with self.guard.changing():
                if codes is not self.codes:
                    continue
                slots = self.slots(names)
                one = np.array([label() if callable(label) else label, weight], values.dtype)
                self.learn_rows(Rows(np.array([0, len(slots)]), np.array(slots, np.int64), values), one[:1], one[1:])
                return

    def _margins_slowly(self, x: dict[Hashable, Any]) -> tuple[Any, dict[Any, float]]:
        """Return the margins of any row."""
        names, values = self._read(x)

        def answer() -> tuple[Any, dict[Any, float]]:
            parts, codes = self.parts, self.codes
            slots = np.array(self.found(names, parts[0].features), np.int64)
            margins = self.row_margins(Rows(np.array([0, slots.size]), slots, values), parts)[0]
            return margins.item(0) if margins.size == 1 else margins, codes

        return self.guard.read(answer)

    def frame_margins(self, columns: Columns) -> tuple[NDArray[Any], dict[Any, float]]:
        """Return the margins of every row of a frame, and the codes of classes."""

        def answer() -> tuple[NDArray[Any], dict[Any, float]]:
            parts, codes = self.parts, self.codes
            rows = columns.at(self.found(columns.names, parts[0].features))
            return self.row_margins(rows, parts), codes

        return self.guard.read(answer)

    def found(self, names: Iterable[Hashable], most: int) -> list[int]:
        """Return the slot of each name, 0 for one that is not known or has a slot that is not below ``most``."""
        if self.bits is not None:
            return list(names)  # type: ignore[arg-type]
        table = self.names
        return [slot if slot < most else 0 for slot in (table.get(name, 0) for name in names)]

    def slots(self, names: list[Any]) -> list[int]:
        """Return the slot of each name, with new ones and room for them, inside a change; all or none are added."""
        if self.bits is not None:
            return names
        before, known, found = (self.names, self._plain), len(self.names), []
        try:
            for name in names:
                if self._plain is not None and name not in self.names and not self._dicts.plain(name):
                    # The dict that compiled code may be reading keeps to plain names.
                    self.names, self._plain = dict(self.names), None
                found.append(slot_of(self.names, name))
            if len(set(found)) < len(found):
                raise refuse("x", names, "names of which no two equal the same earlier name")
        except BaseException:
            self.names, self._plain = before
            forget(self.names, known)
            raise
        self.make_room()
        return found

    def learn_rows(self, rows: Rows, labels: NDArray[Any], weight: NDArray[Any]) -> None:
        """Learn from rows whose slots exist, inside a change."""
        longest, rounds = rows.longest + 1, self.lanes.rounds
        for k, lanes in enumerate(self.parts):
            mine = labels - labels.dtype.type(k * lanes.lanes) if k else labels
            arguments = *rows, mine, weight, *lanes.arrays, lanes.shape, longest, lanes.totals, labels[:0]
            rounds = lanes.kernel.learn(*arguments)
            if rounds < 0:
                raise unlearned(float(labels[-1 - rounds]))
        for lanes in self.parts:
            lanes.rounds, lanes.weight = rounds, summed(lanes.weight, weight)

    def row_margins(self, rows: Rows, parts: tuple[Lanes, ...]) -> NDArray[Any]:
        """Return the margin of each row and lane."""
        each = [np.zeros((rows.number, lanes.lanes), lanes.dtype) for lanes in parts]
        for lanes, out in zip(parts, each, strict=True):
            lanes.kernel.predict(*rows, *lanes.arrays, lanes.totals, out.ravel())
        return np.hstack(each) if len(each) > 1 else each[0]

    def make_room(self) -> None:
        """Double the slots until every name has one, inside a change."""
        features = self.lanes.features
        while self.bits is None and len(self.names) >= features:
            features *= 2
        if features > self.lanes.features:
            self._replace(tuple(resized(part, features, part.lanes, part.labels) for part in self.parts))

    def widen(self, lanes: int, labels: Labels) -> None:
        """Go on with so many lanes in the one part there is, inside a change."""
        self._replace((resized(self.lanes, self.lanes.features, lanes, labels),))

    def extend(self) -> None:
        """Add a part of as many lanes as the others have, inside a change."""
        self._replace((*self.parts, beside(self.lanes)))

    def _replace(self, parts: tuple[Lanes, ...]) -> None:
        self.parts, self._idle, self._learning = parts, [], None

    def weights(self, lane: int = 0) -> dict[Hashable, float]:
        """Return the weight of each name, exact zeros included; of slots that are not zero where names are hashed."""
        with self.guard.reading():
            part, lane = self._place(lane)
            if not part.rounds:
                return {}
            if self.bits is None:
                return dict(zip(self.names, part.read(1, len(self.names))[:, lane].tolist(), strict=True))
            held = part.read(0, part.features)[:, lane]
            return {int(slot): float(held[slot]) for slot in np.flatnonzero(held)}

    def bias(self, lane: int = 0) -> float:
        """Return the weight of the constant feature; 0 without one."""
        with self.guard.reading():
            part, lane = self._place(lane)
            return float(part.read(part.features, 1)[0, lane])

    def certificate(self, lane: int = 0) -> Certificate:
        """Return what is proved of a lane; its coordinates are the names in the order of weights, and the bias last."""
        if not self.lanes.certified:
            raise Unsupported("certified: got False, expected a model made with certified=True")
        with self.guard.reading():
            part, lane = self._place(lane)
            proof = certify.certificate(part, slice(lane, lane + 1))
            if self.bits is not None:
                return proof
            bias = [part.features] if part.settings.bias else []
            chosen = [*range(1, len(self.names) + 1), *bias]
        arrays: Any = {name: getattr(proof, name)[chosen] for name in ("gradients", "strength", "linear", "l1", "l2")}
        return replace(proof, **arrays)

    def _place(self, lane: int) -> tuple[Lanes, int]:
        """Return the part that has a lane, with room for all names, and the lane's place in it."""
        self.make_room()
        part, place = divmod(lane, self.lanes.lanes)
        return self.parts[part], place
