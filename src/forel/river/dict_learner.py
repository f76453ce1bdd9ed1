"""The learner behind both river models: names, a state that grows with them, and a short path from dict to kernel.

A row is read before the model is accessed, because conversions of its values may run any code, even code that learns.
It is then written to reusable buffers and passed to the compiled function that :class:`forel.learner.learner.Learner`
uses, so that the same rows give the same bits.
"""

from array import array
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data import ReadOptions
from forel.learner.certificate import Certificate
from forel.learner.learner import Learner, without_filter_lanes
from forel.learner.locking import SeqLock
from forel.learner.rows import Rows
from forel.learner.settings import Settings
from forel.learner.state import LabelCoding, State, clear_lanes, resize, split_binary
from forel.river.one_row import OneRow, not_learned, unread, used_lanes
from forel.river.rows import SLOT, FrameRows, read_row
from forel.store.row_reader import RowReader
from forel.validation import Unsupported, refuse

__all__ = ["DictLearner", "Target", "with_room_for_classes"]

SLOTS, ENTRIES = 1024, 64  # initial capacities, doubled when exceeded
# For more than two classes, lanes are allocated for 4, 16, 64, ... classes, so that few kernels are compiled.
CLASSES = 4
Target = tuple[dict[Any, float], float | Callable[[], float]]


class DictLearner:
    """A linear model of named features with one lane or several, safe under threads.

    Parameters
    ----------
    settings, certified : as in :class:`forel.learner.learner.Learner`; several settings are mixed
    dtype : "float32" or "float64"
    bits : None for a slot for each name, or the number of bits of a hash that select a slot

    ``codes`` maps classes to the kernel's labels, and ``class_starts`` are the rounds and the weight before each class
    first occurred. Both and the ``learner`` are replaced, not changed, when names or classes are added.

    >>> model = DictLearner(Settings(alpha=1.0), "float64", None, False)
    >>> model.learn({"a": 1.0, "b": 2}, weight=1.0, target=lambda: (model.codes, 1.0))
    >>> list(model.weights()), model.state.rounds
    (['a', 'b'], 1)

    Survey: section 3.4
    """

    def __init__(self, settings: Settings, dtype: str, bits: int | None, certified: bool) -> None:
        self.options = None if bits is None else ReadOptions(bits=bits)
        slots = SLOTS if self.options is None else 1 << self.options.bits
        self.learner = Learner(slots, settings, None, dtype, bool(certified))
        self.names: dict[Hashable, int] = {}
        self.codes: dict[Any, float] = {}
        self.class_starts: tuple[tuple[int, float], ...] = ()
        self._prepare()

    def _prepare(self) -> None:
        """Initialize what is not part of a copy or a file."""
        self.guard = SeqLock()
        self.reader = None if self.options is None else RowReader(self.options, dtype=self.learner.dtype)
        self._idle: list[OneRow] = []  # buffers that no prediction is using

    def __getstate__(self) -> dict[str, Any]:
        with self.guard.reading():  # copied, because learning may continue before all is written
            kept = {"options": self.options, "names": dict(self.names), "codes": dict(self.codes)}
            return {**kept, "class_starts": self.class_starts, "learner": self.learner.copy()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._prepare()

    @property
    def state(self) -> State:
        """The state of the learner."""
        return self.learner.state

    def learn(self, x: Mapping[Hashable, Any], weight: float, target: Callable[[], Target]) -> None:
        """Learn from a row; a value that is not a finite number is an error, and then nothing changes.

        ``target`` returns the current codes, and a label or a function that adds a new class and returns its label.
        """
        names, values = read_row(x, self.reader, self.learner.dtype)
        while True:  # repeated if another thread has added a class
            codes, label = target()
            guard = self.guard
            with guard.lock:  # as SeqLock.writing, which takes as long as the kernel
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
        """Return a row's margin, or an array with the margin of each class, and the codes; unknown names weigh 0."""
        names, values = read_row(x, self.reader, self.learner.dtype)

        def answer() -> tuple[Any, dict[Any, float]]:
            codes, buffers = self.codes, self._buffers(len(values))
            buffers.fill(self.find_slots(names, buffers.learner.state.features), values)
            found = buffers.predict()
            if buffers.learner is self.learner:  # buffers of an earlier state would keep its memory alive
                self._idle.append(buffers)
            return found, codes

        return self.guard.read(answer)

    def _buffers(self, count: int) -> OneRow:
        """Return buffers for a row of ``count`` entries, which no other call uses."""
        try:
            buffers = self._idle.pop()
            if buffers.learner is self.learner and buffers.capacity >= count:
                return buffers
        except IndexError:  # all are in use
            pass
        return OneRow(self.learner, max(ENTRIES, 2 * count))

    def frame_margins(self, frame: FrameRows) -> tuple[NDArray[Any], dict[Any, float]]:
        """Return the margins of every row of a frame, and the codes of classes."""

        def answer() -> tuple[NDArray[Any], dict[Any, float]]:
            learner, codes = self.learner, self.codes
            rows = frame.at(self.find_slots(frame.names, learner.features))
            margins = learner.state.predict(rows)
            return margins if learner.mixture is None else learner.mixture.mixed(
                margins[:, : used_lanes(learner)]
            ), codes

        return self.guard.read(answer)

    def find_slots(self, names: Any, most: int) -> Any:
        """Return the slot of each name; 0 for unknown names and for slots of ``most`` or more."""
        if self.options is not None:
            return names
        slots = [self.names.get(name, 0) for name in names]
        return array(SLOT, slots if len(self.names) < most else [slot if slot < most else 0 for slot in slots])

    def assign_slots(self, names: Any) -> Any:
        """Return the slot of each name, inside a change; either all new names are added or none."""
        if self.options is not None:
            return names
        table, before = self.names, len(self.names)
        try:
            try:
                found = array(SLOT, map(table.__getitem__, names))
            except KeyError:
                found = array(SLOT, [table.setdefault(name, len(table) + 1) for name in names])  # 0: unknown names
            if len(set(found)) < len(found):
                raise refuse("x", names, "names of which no two equal the same earlier name")
            if len(table) > before:
                self._make_room()
        except BaseException:
            while len(table) > before:
                table.popitem()
            raise
        return found

    def _make_room(self) -> None:
        """Double the slots until every name has one, inside a change."""
        features, learner = self.learner.features, self.learner
        while len(self.names) >= features:
            features *= 2
        if features > learner.features:
            wide = resize(learner.state, features, learner.state.n_lanes, learner.state.labels)
            self.replace(Learner.of(wide, learner.mixture, learner.classes))

    def learn_rows(self, rows: Rows, labels: NDArray[Any], weight: NDArray[Any]) -> None:
        """Learn from rows whose slots exist, inside a change."""
        state, mixture = self.learner.state, self.learner.mixture
        weight = np.where(weight == 0, weight.dtype.type(-1), weight)  # rows of weight 0 do not count
        margins = np.empty((0 if mixture is None else rows.number, state.n_lanes), state.dtype)
        done = state.learn(rows, labels, weight, margins)
        if mixture is not None:
            mixture.learn(unread(labels[:done], weight[:done]), margins[:done, : used_lanes(self.learner)])
        if done < rows.number:
            raise not_learned(float(labels[done]))

    def add_class(self, known: int, labels: LabelCoding) -> None:
        """Add empty lanes for one more class after the ``known`` ones, which are two or more, inside a change."""
        state, mixture = self.learner.state, self.learner.mixture
        if known == 2:
            state = without_filter_lanes(state)
            settings = state.settings.n_settings
            state = resize(state, state.features, CLASSES * settings, labels)
            split_binary(state, settings)
        elif known * (settings := state.settings.n_settings) == state.n_lanes:
            state = resize(state, state.features, CLASSES * state.n_lanes, labels)
        else:  # lanes without a class have learned from every row as one of the rest
            clear_lanes(state, slice(known * settings, (known + 1) * settings))
        mixture = None if mixture is None else mixture.with_classes(known + 1)
        self.replace(Learner.of(state, mixture, known + 1))

    def narrow(self) -> Learner:
        """Return the learner without lanes that have no class yet."""
        learner, state = self.learner, self.learner.state
        if learner.classes is None:
            return learner
        exact = state.empty_like(lanes=learner.classes * state.settings.n_settings)
        exact.copy_lanes_from(state, slice(0, exact.n_lanes))
        return Learner.of(exact, learner.mixture, learner.classes)

    def replace(self, learner: Learner) -> None:
        """Continue with another learner, inside a change."""
        self.learner, self._idle = learner, []

    def weights(self, label: int = 0) -> dict[Hashable, float]:
        """Return the weight of each name, zeros included; if names are hashed, the nonzero weights by slot."""
        with self.guard.reading():
            state, lane = self.learner.state, self._best_lane(label)
            if not state.rounds:
                return {}
            if self.options is None:
                return dict(zip(self.names, state.weights(1, len(self.names))[:, lane].tolist(), strict=True))
            weights = state.weights(0, state.features)[:, lane]
            return {int(slot): float(weights[slot]) for slot in np.flatnonzero(weights)}

    def bias(self, label: int = 0) -> float:
        """Return the weight of the constant feature; 0 without one."""
        with self.guard.reading():
            return float(self.state.weights(self.state.features, 1)[0, self._best_lane(label)])

    def certificate(self, label: int = 0) -> Certificate:
        """Return the certificate of a class; its coordinates are the names in the order of weights, then the bias."""
        if not self.learner.certified:
            raise Unsupported("certified: got False, expected a model made with certified=True")
        with self.guard.reading():
            proof = self.learner.certificate(label)
            if self.options is not None:
                return proof
            chosen = [*range(1, len(self.names) + 1), *([self.state.features] if self.state.settings.bias else [])]
        names = ("gradients", "strength", "linear", "l1", "l2", *(("scales",) if proof.scales is not None else ()))
        arrays: Any = {name: getattr(proof, name)[chosen] for name in names}
        return replace(proof, **arrays)

    def _best_lane(self, label: int) -> int:
        """Return the lane of a class; of a mixture, that of its best setting."""
        return label * self.state.settings.n_settings + self.learner.best


def with_room_for_classes(learner: Learner) -> Learner:
    """Return a learner of several classes with the lanes that :class:`DictLearner` has for them."""
    state, room = learner.state, CLASSES
    if learner.classes is None:
        return learner
    while room < learner.classes:
        room *= CLASSES
    wide = resize(state, state.features, room * state.settings.n_settings, state.labels)
    return Learner.of(wide, learner.mixture, learner.classes)
