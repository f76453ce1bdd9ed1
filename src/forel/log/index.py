"""Which predictions wait for their outcome, and which had one: ids are looked up here, rows stay in the log."""

from collections import Counter, OrderedDict, deque
from itertools import islice, takewhile
from typing import NamedTuple

from forel.log.records import Left, Outcome, Prediction, Record

__all__ = ["Index", "Settled"]

STEP = 10.0  # seconds to which ages are known


class Settled(NamedTuple):
    """The place of a prediction that had its outcome, and the label; NaN of one that was dropped."""

    place: int
    label: float


class Index:
    """The ids of a log.

    Parameters
    ----------
    remember : how many ids that had their outcome are kept, to recognize a repeated one

    >>> import numpy as np
    >>> index = Index()
    >>> index.note(0, Prediction(5.0, b"a", np.zeros(1), b""))
    >>> index.waiting, index.oldest
    ({b'a': 0}, (5.0, 0))
    >>> index.note(60, Outcome(6.0, 0, 1.0, 1.0))
    >>> index.waiting, index.settled, index.oldest
    ({}, {b'a': Settled(place=0, label=1.0)}, None)
    """

    def __init__(self, remember: int = 1_000_000) -> None:
        self.remember = remember
        self.waiting: dict[bytes, int] = {}
        self.settled: dict[bytes, Settled] = {}
        self._waits: OrderedDict[int, tuple[float, bytes]] = OrderedDict()  # times and names by place, oldest first
        self._began: Counter[float] = Counter()  # how many began to wait in each step of time
        self._order: deque[bytes] = deque()  # of settled ids: taking a dict's first key is slow after deletions

    def note(self, place: int, record: Record) -> None:
        """Add a record of the log, in its order."""
        if isinstance(record, Prediction):
            self.waiting[record.name], self._waits[place] = place, (record.time, record.name)
            self._began[record.time // STEP] += 1
        elif isinstance(record, Outcome):
            self._settle(record.place, record.label)
        elif isinstance(record, Left):
            self._settle(record.place, float("nan"))

    def _settle(self, place: int, label: float) -> None:
        if place not in self._waits:  # its prediction is in a segment that was deleted
            return
        when, name = self._waits.pop(place)
        self._began[when // STEP] -= 1
        if not self._began[when // STEP]:
            del self._began[when // STEP]
        del self.waiting[name]
        self.settled[name] = Settled(place, label)
        self._order.append(name)
        if len(self._order) > self.remember:
            self.settled.pop(self._order.popleft(), None)

    @property
    def oldest(self) -> tuple[float, int] | None:
        """The time and place of the prediction that waits for longest; None if none waits."""
        return next(((when, place) for place, (when, _) in self._waits.items()), None)

    def oldest_places(self, before: float, most: int) -> list[int]:
        """Return the places of predictions that wait since a time or longer, oldest first."""
        older = takewhile(lambda one: one[1][0] <= before, self._waits.items())
        return [place for place, _ in islice(older, max(most, 0))]

    def ages(self, now: float, limits: tuple[float, ...] = (60, 3600, 86400)) -> list[int]:
        """Return how many predictions have waited for up to each limit in seconds, and for longer, within a step."""
        counts = [0] * (len(limits) + 1)
        for step, count in self._began.items():
            counts[sum(now - STEP * step > limit for limit in limits)] += count
        return counts
