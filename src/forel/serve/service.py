"""What a server does with requests: predict, record, acknowledge, learn. All on one event loop, but for the disk.

All requests of one iteration of the loop are one block: predicted by one call, recorded by one write. Outcomes are
acknowledged when they are on the disk, and learned after that, a few rows at a time: predictions see the model between
two rows.
"""

import asyncio
import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.learner.lean import LeanMargins
from forel.learner.rows import CoalescedRows
from forel.log import Control, Examples, Folder, Left, LogFailed, Outcome, Prediction
from forel.log.champion import Event
from forel.log.folder import freeze
from forel.log.records import ASSUMED, pack_each, pack_rows
from forel.serve.latency import Latency
from forel.serve.rows import Coding, RowsOfRequests
from forel.training.model import Model

__all__ = ["Service", "Waiting"]

MICRO = 64  # rows learned before other events of the loop
BEHIND = 8 * MICRO  # events that wait to be learned, for each further micro-batch
SHOWN = 8  # last outcomes
EXPIRED = 1000  # predictions that are dropped in one step


@dataclass(frozen=True)
class Waiting:
    """How long and how many predictions wait for their outcome.

    Parameters
    ----------
    seconds : after which one is dropped
    most : number of predictions that wait; the oldest is dropped before its time
    negative : whether one that waited too long is learned as a negative, instead of being dropped
    """

    seconds: float = 86400.0
    most: int = 1_000_000
    negative: bool = False


Done = Callable[[list[str] | None], None]


class Service:
    """A folder's models and log, for the requests of one event loop.

    Parameters
    ----------
    folder : open
    waiting : limits of what waits
    features : the largest number of features of a row
    every : rows learned between checkpoints
    promote : whether a challenger that is better by the test is promoted by itself
    retain : seconds for which segments of the log are kept; None for all
    """

    def __init__(
        self, folder: Folder, waiting: Waiting, features: int = 10_000, every: int = 100_000,
        promote: bool = False, retain: float | None = None,
    ) -> None:  # fmt: skip
        self.folder, self.log, self.index, self.contest = folder, folder.log, folder.index, folder.contest
        self.waiting, self.every, self.promote, self.retain = waiting, every, promote, retain
        self.loop = asyncio.get_running_loop()
        self.rows = RowsOfRequests(self.contest.model, features)
        self.coding = Coding(self.contest.model)
        self.counts: Counter[str] = Counter()
        self.predicted, self.acknowledged = Latency(), Latency()
        self.failure: str | None = None  # why outcomes are refused
        self.broken = folder.broken  # why nothing is learned any more
        self.todo = deque[Event]()
        self.unacknowledged = deque[tuple[int, list[str], Done, float]]()
        self._asked: list[tuple[bytes, bytes | None, Callable[..., None]]] = []
        self._settling: list[tuple[Sequence[tuple[bytes, float, float]], Done]] = []
        self.named = set[bytes]()  # ids of predictions that are asked for in this iteration
        self.recent: deque[bytes] = deque(maxlen=SHOWN)  # ids of the last outcomes
        self._scheduled = self._learning = self._changing = False
        self._lean: LeanMargins | None = None
        self._saved, self._saver = self.contest.rows, threading.Thread()
        self._wake, self._open = threading.Event(), True
        self._syncer = threading.Thread(target=self._sync_forever, name="log", daemon=True)
        self._syncer.start()

    # Predictions.
    def margins(self, rows: CoalescedRows) -> NDArray[np.float64]:
        """Return the margins of rows by the champion, as it is between two rows."""
        learner = self.contest.model.learner
        if self._lean is None or self._lean.learner is not learner:
            self._lean = LeanMargins(learner)
        return np.array(self._lean(rows), np.float64)

    def predict_line(self, line: bytes, name: bytes | None, done: Callable[..., None]) -> None:
        """Predict a line together with all others of this iteration of the loop.

        ``done`` gets its margins, or why there are none, and whether the prediction was recorded.
        """
        self._asked.append((line, name, done))
        if name is not None:
            self.named.add(name)
        self.schedule()

    def schedule(self) -> None:
        """Process what has arrived after all sockets that are ready have been read."""
        if not self._scheduled:
            self._scheduled = True
            self.loop.call_soon(self.flush)

    def flush(self) -> None:
        """Predict the lines of this iteration and record those with an id; then record outcomes."""
        self._scheduled = False
        if self._asked:
            self._predict()
        if self._settling:
            self._settle()

    def _predict(self) -> None:
        asked, self._asked = self._asked, []
        self.named.clear()
        parsed = self.rows.of_lines(b"\n".join([line for line, _, _ in asked]) + b"\n")
        rows = CoalescedRows(*parsed[:3])
        margins, places = self.margins(rows), parsed.lines.tolist()
        names = [asked[k][1] for k in places]
        named = [k for k, name in enumerate(names) if name is not None]
        recorded = False
        if named:
            packed = pack_each(rows)
            chosen = [name for name in names if name is not None]
            recorded = self.remember(chosen, [packed[k] for k in named], margins[named])
        found = dict(zip(places, margins, strict=True))
        for k, (_, _, done) in enumerate(asked):
            wrong = parsed.errors.get(k, "got an empty line, expected features")
            done(found.get(k), wrong if k not in found else None, recorded)

    def remember(self, names: Sequence[bytes], rows: Sequence[bytes], margins: NDArray[np.float64]) -> bool:
        """Record predictions that wait for their outcome; return False where the log cannot be written."""
        self._make_room(len(names))
        now = time.time()
        made = [Prediction(now, name, own, row) for name, own, row in zip(names, margins, rows, strict=True)]
        return self.record(made) is not None

    def find(self, name: bytes) -> Prediction | None:
        """Return the prediction of an id; None if it is unknown."""
        place = self.index.waiting.get(name)
        if place is None:
            settled = self.index.settled.get(name)
            place = None if settled is None else settled.place
        if place is None or place < self.log.start:
            return None
        found = self.log.read(place)
        assert isinstance(found, Prediction)
        return found

    # Records.
    def record(self, records: list[Any]) -> list[int] | None:
        """Append records, and return their places; None where the log cannot be written."""
        try:
            places = self.log.append(records)
        except LogFailed as error:
            self._fail(str(error))
            return None
        if self.log.failed is None:
            self.failure = None
        for place, record in zip(places, records, strict=True):
            self.index.note(place, record)
        return places

    def _fail(self, why: str) -> None:
        """Refuse outcomes; those that wait may be on the disk or not, and their clients ask again."""
        self.failure = why
        waiting, self.unacknowledged = self.unacknowledged, deque()
        for _, _, done, _ in waiting:
            done(None)

    def settle(self, outcomes: Sequence[tuple[bytes, float, float]], done: Done) -> None:
        """Record the outcomes of predictions: ids, labels and importances; together with those of other requests.

        ``done`` gets "recorded", "duplicate", "contradicting", "late" or "unknown" for each when they are on the disk;
        None where the disk fails. Late is the outcome of a prediction that was dropped.
        """
        self._settling.append((outcomes, done))
        self.schedule()

    def _settle(self) -> None:
        asked, self._settling = self._settling, []
        made, found, answers, now = dict[bytes, Outcome](), list[Any](), list[list[str]](), time.time()
        for outcomes, _ in asked:
            statuses = list[str]()
            self.recent.extend(name for name, _, _ in outcomes[-SHOWN:])
            for name, label, importance in outcomes:
                place = self.index.waiting.get(name)
                if place is not None and name not in made:
                    made[name] = Outcome(now, place, label, importance)
                    found.append(self.log.read(place))
                    statuses.append("recorded")
                    continue
                settled = self.index.settled.get(name)
                if settled is None and name not in made:
                    statuses.append("unknown")
                    continue
                before = made[name].label if settled is None else settled.label
                statuses.append("late" if math.isnan(before) else "duplicate" if before == label else "contradicting")
            answers.append(statuses)
        recorded = self._record_outcomes(list(made.values()), found)
        for (_, done), statuses in zip(asked, answers, strict=True):
            if recorded:
                self.counts.update(f"outcomes {status}" for status in statuses)
                self._acknowledge(statuses, done)
            else:
                done(None)

    def _record_outcomes(self, made: list[Outcome], found: list[Any]) -> bool:
        """Record outcomes of predictions that were found, and let them be learned; return whether they are recorded."""
        places = self.record(made) if made else []
        if places is None:
            return False
        for outcome, prediction, end in zip(made, found, [*places, self.log.end][1:], strict=True):
            values = np.array([outcome.label]), np.array([outcome.importance], np.float32)
            self.todo.append(Event(end, outcome.time, prediction.row, *values, prediction.margins.reshape(1, -1)))
        return True

    def learn_rows(
        self, rows: CoalescedRows, labels: NDArray[np.float64], importance: NDArray[np.float32],
        margins: NDArray[np.float64], done: Done,
    ) -> None:  # fmt: skip
        """Record rows that came with their labels, in pieces that are learned at once."""
        now, made = time.time(), []
        for start in range(0, labels.size, MICRO):
            piece, ends = slice(start, start + MICRO), rows.indptr[start : start + MICRO + 1]
            entries = slice(int(ends[0]), int(ends[-1]))
            packed = pack_rows(CoalescedRows(ends - ends[0], rows.indices[entries], rows.values[entries]))
            made.append(Examples(now, packed, labels[piece].copy(), importance[piece].copy(), margins[piece].copy()))
        places = self.record(made)
        if places is None:
            done(None)
            return
        for one, end in zip(made, [*places, self.log.end][1:], strict=True):
            self.todo.append(Event(end, *one))
        self.counts["outcomes recorded"] += labels.size
        self._acknowledge(["recorded"] * labels.size, done)

    def control(self, content: dict[str, Any], done: Done) -> None:
        """Record a change of models, and apply it in the order of the log."""
        record = Control(time.time(), content)
        if self.record([record]) is None:
            done(None)
            return
        try:
            self.log.sync()
        except LogFailed as error:
            self._fail(str(error))
            done(None)
            return
        self._changing = True
        while self.todo and self.broken is None:
            self._learn_batch()
        self._changing = False
        self.contest.apply(record, self.log.end, self.folder.load_model)
        done(["recorded"])

    def _acknowledge(self, statuses: list[str], done: Done) -> None:
        """Call ``done`` when everything recorded until now is on the disk."""
        if self.log.failed is not None:
            done(None)
        elif self.log.end <= self.log.durable:
            done(statuses)
        else:
            self.unacknowledged.append((self.log.end, statuses, done, time.perf_counter()))
            self._wake.set()

    def after_disk(self, done: Done) -> None:
        """Call ``done`` behind everything that waits for the disk."""
        if self.unacknowledged:
            self.unacknowledged.append((self.unacknowledged[-1][0], [], done, time.perf_counter()))
        else:
            done([])

    def _sync_forever(self) -> None:
        """Make records durable, all that came meanwhile by one call; on a thread of its own."""
        while True:
            self._wake.wait()
            self._wake.clear()
            if not self._open:
                return
            try:
                end = self.log.sync()
            except LogFailed as error:
                self.loop.call_soon_threadsafe(self._fail, str(error))
            else:
                self.loop.call_soon_threadsafe(self._on_durable, end)

    def _on_durable(self, end: int) -> None:
        now = time.perf_counter()
        while self.unacknowledged and self.unacknowledged[0][0] <= end:
            _, statuses, done, started = self.unacknowledged.popleft()
            self.acknowledged.add(now - started)
            done(statuses)
        self.schedule_learning()

    # Learning.
    def schedule_learning(self) -> None:
        """Learn what is durable, a micro-batch at a time between other events of the loop."""
        if self.todo and not self._learning and self.broken is None:
            self._learning = True
            self.loop.call_soon(self._learn_some)

    def _learn_some(self) -> None:
        self._learning = False
        for _ in range(1 + len(self.todo) // BEHIND):  # more at a time where outcomes come faster than they are learned
            if not self.todo or self.todo[0].end > self.log.durable:
                return
            self._learn_batch()
        self.checkpoint_if_due()
        self.schedule_learning()

    def _learn_batch(self) -> None:
        batch, rows = list[Event](), 0
        while self.todo and rows < MICRO and (not batch or self.todo[0].end <= self.log.durable):
            batch.append(self.todo.popleft())
            rows += batch[-1].labels.size
        try:
            self.contest.learn(batch)
        except ValueError as error:  # a loss that is not finite
            self.broken = str(error)
            self.todo.clear()
            return
        if self.promote and not self._changing:
            self._promote()

    def _promote(self) -> None:
        for name, comparison in self.contest.comparisons.items():
            if comparison.better == "B":
                self.control({"promote": name, "by": f"test at level {self.contest.level:g}"}, lambda _: None)
                return

    def checkpoint_if_due(self, force: bool = False) -> None:
        """Copy the models, and save the copies on another thread."""
        rows = self.contest.rows
        if self.broken is not None or self._saver.is_alive():
            if not force or self.broken is not None:
                return
            self._saver.join()
        if force or rows - self._saved >= self.every:
            self._saved = rows
            oldest = self.index.oldest
            needs = min([self.contest.position, *([] if oldest is None else [oldest[1]]), *self._places()])
            self._saver = threading.Thread(target=self._save, args=(*freeze(self.contest), needs), name="checkpoint")
            self._saver.start()
            if force:
                self._saver.join()

    def _places(self) -> list[int]:
        """Return the places of predictions whose outcomes are recorded and not learned yet."""
        return [self.log.start] if self.todo else []

    def _save(self, *frozen: Any) -> None:
        try:
            self.folder.save(*frozen)
            if self.retain is not None:
                self.folder.retain(self.retain)
        except OSError as error:
            self.counts["checkpoints failed"] += 1
            print(f"forel: checkpoint: {error}", flush=True)

    # What waits.
    def expire(self) -> None:
        """Settle predictions that have waited too long."""
        now = time.time()
        places = self.index.oldest_places(now - self.waiting.seconds, EXPIRED)
        if places and self.waiting.negative:
            made = [Outcome(now, place, self.coding.label(0), 1.0, ASSUMED) for place in places]
            if self._record_outcomes(made, [self.log.read(place) for place in places]):
                self.counts["outcomes assumed"] += len(places)
                self._acknowledge([], lambda statuses: None)
        else:
            self._drop(places)

    def _make_room(self, count: int) -> None:
        """Drop the oldest predictions where too many wait."""
        over = len(self.index.waiting) + count - self.waiting.most
        if over > 0:
            self._drop(self.index.oldest_places(math.inf, over))

    def _drop(self, places: list[int]) -> None:
        now = time.time()
        if places and self.record([Left(now, place) for place in places]) is not None:
            self.counts["predictions dropped"] += len(places)

    @property
    def model(self) -> Model:
        """The model that is served."""
        return self.contest.model

    def close(self) -> None:
        """Learn everything that is recorded, save, and stop."""
        self.flush()
        self._open = False
        self._wake.set()
        self._syncer.join()
        try:
            end = self.log.sync()
        except LogFailed as error:
            self._fail(str(error))
        else:
            self._on_durable(end)
            while self.todo and self.broken is None:
                self._learn_batch()
            self.checkpoint_if_due(force=True)
        self.folder.close()
