"""The learner behind both river models: names, a state that grows with them, and a short path from dict to kernel.

A row is read before the model is accessed, because conversions of its values may run any code, even code that learns.
It is then written to reusable buffers and passed to the compiled function that :class:`forel.learner.learner.Learner`
uses, so that the same rows give the same bits.
"""

from array import array
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from forel.learner.certificate import Certificate
from forel.learner.locking import SeqLock
from forel.learner.rows import Rows
from forel.learner.settings import Settings
from forel.learner.state import State
from forel.river.buffers import RowBuffers, not_learned
from forel.river.experts import Experts
from forel.river.frames import Columns
from forel.river.model import Model
from forel.river.rows import SLOT, Hashing, read_row
from forel.validation import Unsupported, refuse, whole

if TYPE_CHECKING:
    from forel.experts import Guarantee

__all__ = ["DictLearner", "Target"]

SLOTS, ENTRIES = 1024, 64  # initial capacities, doubled when exceeded
Target = tuple[dict[Any, float], float | Callable[[], float]]


class DictLearner:
    """A linear model of named features with one lane or several, safe under threads.

    Parameters
    ----------
    settings, certified : as in :class:`forel.learner.learner.Learner`; several settings are mixed
    dtype : "float32" or "float64"
    bits : None for a slot for each name, or the number of bits of a hash that select a slot

    The ``model`` has lanes in parts of equal width, so that any number of classes uses the same kernels. ``codes`` maps
    classes to the kernel's labels, and ``class_starts`` are the rounds and the weight before each class first occurred.
    All three are replaced, not changed, when names or classes are added.

    >>> learner = DictLearner(Settings(alpha=1.0), "float64", None, False)
    >>> learner.learn({"a": 1.0, "b": 2}, weight=1.0, target=lambda: (learner.codes, 1.0))
    >>> list(learner.weights()), learner.lanes.rounds
    (['a', 'b'], 1)

    Survey: section 3.4
    """

    def __init__(self, settings: Settings, dtype: str, bits: int | None, certified: bool) -> None:
        if bits is not None and whole("bits", bits, low=1) > 32:
            raise refuse("bits", bits, "at most 32, or None for a slot for each name")
        self.hashing = None if bits is None else Hashing(whole("bits", bits))
        slots = SLOTS if self.hashing is None else 1 << self.hashing.bits
        lanes = State(slots, settings, settings.n_settings, dtype, bool(certified))
        self.model = Model((lanes,), Experts(settings) if settings.n_settings > 1 else None)
        self.names: dict[Hashable, int] = {}
        self.codes: dict[Any, float] = {}
        self.class_starts: tuple[tuple[int, float], ...] = ()
        self._prepare()

    def _prepare(self) -> None:
        """Initialize what is not part of a copy or a file."""
        self.guard = SeqLock()
        self._idle: list[RowBuffers] = []  # buffers that no prediction is using

    def __getstate__(self) -> dict[str, Any]:
        with self.guard.reading():  # copied, because learning may continue before all is written
            names, starts, model = dict(self.names), self.class_starts, self.model.copied()
            return {
                "hashing": self.hashing, "names": names, "codes": self.codes, "class_starts": starts, "model": model,
            }  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._prepare()

    @property
    def parts(self) -> tuple[State, ...]:
        """The states that learn."""
        return self.model.parts

    @property
    def lanes(self) -> State:
        """The first part; all parts share its settings, dtype and features."""
        return self.model.parts[0]

    def learn(self, x: Mapping[Hashable, Any], weight: float, target: Callable[[], Target]) -> None:
        """Learn from a row; a value that is not a finite number is an error, and then nothing changes.

        ``target`` returns the current codes, and a label or a function that adds a new class and returns its label.
        """
        names, values = read_row(x, self.hashing, self.lanes.dtype)
        while True:  # repeated if another thread has added a class
            codes, label = target()
            guard = self.guard
            with guard.lock:  # as SeqLock.changing, which takes as long as the kernel
                version = guard.version
                guard.check()
                if codes is not self.codes:
                    continue
                guard.version = version + 1
                try:
                    slots = self.assign_slots(names)
                    label = label() if callable(label) else label
                    buffers = self._buffers(len(values))
                    buffers.fill(slots, values)
                    if weight:  # rows of weight 0 do not count
                        buffers.learn(label, weight)
                    self._idle.append(buffers)
                    return
                finally:
                    guard.version = version + 2

    def margins(self, x: Mapping[Hashable, Any]) -> tuple[Any, dict[Any, float]]:
        """Return a row's margin, or an array with the margin of each lane, and the codes; unknown names weigh 0."""
        names, values = read_row(x, self.hashing, self.lanes.dtype)

        def answer() -> tuple[Any, dict[Any, float]]:
            codes, buffers = self.codes, self._buffers(len(values))
            buffers.fill(self.find_slots(names, buffers.lanes.features), values)
            found = buffers.predict()
            if buffers.model is self.model:  # buffers of an earlier state would keep its memory alive
                self._idle.append(buffers)
            return found, codes

        return self.guard.read(answer)

    def _buffers(self, count: int) -> RowBuffers:
        """Return buffers for a row of ``count`` entries, which no other call uses."""
        try:
            buffers = self._idle.pop()
            if buffers.model is self.model and buffers.capacity >= count:
                return buffers
        except IndexError:  # all are in use
            pass
        return RowBuffers(self.model, max(ENTRIES, 2 * count))

    def frame_margins(self, columns: Columns) -> tuple[NDArray[Any], dict[Any, float]]:
        """Return the margins of every row of a frame, and the codes of classes."""

        def answer() -> tuple[NDArray[Any], dict[Any, float]]:
            model, codes = self.model, self.codes
            rows = columns.at(self.find_slots(columns.names, model.parts[0].features))
            return self.row_margins(rows, model), codes

        return self.guard.read(answer)

    def find_slots(self, names: Any, most: int) -> Any:
        """Return the slot of each name; 0 for unknown names and for slots of ``most`` or more."""
        if self.hashing is not None:
            return names
        slots = [self.names.get(name, 0) for name in names]
        return array(SLOT, slots if len(self.names) < most else [slot if slot < most else 0 for slot in slots])

    def assign_slots(self, names: Any) -> Any:
        """Return the slot of each name, inside a change; either all new names are added or none."""
        if self.hashing is not None:
            return names
        table, before = self.names, len(self.names)
        try:
            try:
                found = array(SLOT, map(table.__getitem__, names))
            except KeyError:
                found = array(SLOT, [table.setdefault(name, len(table) + 1) for name in names])  # 0: unknown names
            if len(set(found)) < len(found):
                raise refuse("x", names, "names of which no two equal the same earlier name")
        except BaseException:
            while len(table) > before:
                table.popitem()
            raise
        if len(table) > before:
            self.make_room()
        return found

    def learn_rows(self, rows: Rows, labels: NDArray[Any], weight: NDArray[Any]) -> None:
        """Learn from rows whose slots exist, inside a change."""
        model = self.model
        experts, margins, done = model.experts, [], rows.number
        weight = np.where(weight == 0, weight.dtype.type(-1), weight)  # rows of weight 0 do not count
        for k, lanes in enumerate(model.parts):
            mine = labels - labels.dtype.type(k * model.width) if k else labels
            margins.append(np.empty((0 if experts is None else rows.number, lanes.n_lanes), lanes.dtype))
            done = min(done, lanes.learn(rows, mine, weight, margins[-1]))
        if experts is not None:
            experts.learn(np.hstack(margins)[:done], labels[:done], weight[:done])
        if done < rows.number:
            raise not_learned(float(labels[done]))

    def row_margins(self, rows: Rows, model: Model) -> NDArray[Any]:
        """Return the margin of each row and lane, or of the mixture."""
        each = [np.zeros((rows.number, lanes.n_lanes), lanes.dtype) for lanes in model.parts]
        for lanes, out in zip(model.parts, each, strict=True):
            lanes.predict(rows, out)
        margins = np.hstack(each) if len(each) > 1 else each[0]
        return margins if model.experts is None else model.experts.predict(margins)

    def make_room(self) -> None:
        """Double the slots until every name has one, inside a change."""
        features = self.lanes.features
        while self.hashing is None and len(self.names) >= features:
            features *= 2
        if features > self.lanes.features:
            self.replace(self.model.with_features(features))

    def replace(self, model: Model) -> None:
        """Continue with another model, inside a change."""
        self.model, self._idle = model, []

    def weights(self, label: int = 0) -> dict[Hashable, float]:
        """Return the weight of each name, zeros included; if names are hashed, the nonzero weights by slot."""
        with self.guard.reading():
            part, place = self._place(label)
            lane = self._best_lane(place)
            if not part.rounds:
                return {}
            if self.hashing is None:
                return dict(zip(self.names, part.weights(1, len(self.names))[:, lane].tolist(), strict=True))
            weights = part.weights(0, part.features)[:, lane]
            return {int(slot): float(weights[slot]) for slot in np.flatnonzero(weights)}

    def bias(self, label: int = 0) -> float:
        """Return the weight of the constant feature; 0 without one."""
        with self.guard.reading():
            part, place = self._place(label)
            return float(part.weights(part.features, 1)[0, self._best_lane(place)])

    def guarantee(self) -> "Guarantee | None":
        """Return the regret of a mixture to its best expert, and the bound on it; None for one setting."""
        with self.guard.reading():
            experts = self.model.experts
            return None if experts is None else experts.mixture.guarantee()

    def certificate(self, label: int = 0) -> Certificate:
        """Return the certificate of a class; its coordinates are the names in the order of weights, then the bias."""
        if not self.lanes.certified:
            raise Unsupported("certified: got False, expected a model made with certified=True")
        with self.guard.reading():
            part, place = self._place(label)
            linear, experts = self.model.linear(part), self.model.experts
            proof = (linear if experts is None else experts.learner(part)).certificate(place)
            if self.hashing is not None:
                return proof
            bias = [part.features] if part.settings.bias else []
            chosen = [*range(1, len(self.names) + 1), *bias]
        names = ("gradients", "strength", "linear", "l1", "l2", *(("scales",) if proof.scales is not None else ()))
        arrays: Any = {name: getattr(proof, name)[chosen] for name in names}
        return replace(proof, **arrays)

    def _place(self, label: int) -> tuple[State, int]:
        """Return the part that holds a class, resized for all names, and the index of the class in it."""
        self.make_room()
        part, place = divmod(label, self.model.width)
        return self.parts[part], place

    def _best_lane(self, place: int) -> int:
        """Return the lane of a class in a part; for a mixture, that of its best setting."""
        experts = self.model.experts
        return place if experts is None else place * self.model.settings + experts.best
