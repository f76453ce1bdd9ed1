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
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.learner.lean import LeanMargins
from forel.learner.rows import CoalescedRows
from forel.log import Control, Examples, Folder, Left, LogFailed, Outcome, Prediction
from forel.log.champion import Event
from forel.log.folder import event_of_examples, event_of_outcomes, freeze
from forel.log.records import ASSUMED, Record, pack_each, pack_rows
from forel.serve.rows import Coding, RowsOfRequests
from forel.training.model import Model

__all__ = ["Latency", "Service", "Waiting"]

MICRO = 256  # rows learned before other events of the loop, and an eighth of those that wait for it
SHOWN = 6  # last outcomes
LAST = 4096  # answers whose latencies are known
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


class Latency:
    """How long the last answers took, in seconds, and how many there were.

    >>> latency = Latency()
    >>> for k in range(100):
    ...     latency.add(k / 100)
    >>> latency.quantile(0.5), latency.count, round(latency.total, 1)
    (0.5, 100, 49.5)
    """

    def __init__(self) -> None:
        self.last, self.count, self.total = deque[float](maxlen=LAST), 0, 0.0

    def add(self, seconds: float, count: int = 1) -> None:
        """Count answers that were given together."""
        self.last.append(seconds)
        self.count += count
        self.total += count * seconds

    def quantile(self, share: float) -> float | None:
        """Return a quantile of the last answers; None without any."""
        return float(np.quantile(self.last, share, method="nearest")) if self.last else None


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
        self.intake_failure: str | None = None  # why a stream is read no more
        self.todo, self.queued = deque[Event](), 0  # what is recorded and not learned yet, and its rows
        self.unacknowledged = deque[tuple[int, list[tuple[Done, list[str]]], float]]()
        self._asked: list[tuple[bytes, bytes | None, Callable[..., None]]] = []
        self._settling: list[tuple[Sequence[tuple[bytes, float, float]], Done]] = []
        self._named = set[bytes]()  # ids of predictions that are asked for in this iteration
        self.recent: deque[bytes] = deque(maxlen=SHOWN)  # ids of the last outcomes
        self._scheduled = self._learning = False
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
            self._named.add(name)
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
        self._named.clear()
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
        settled = self.index.settled.get(name)
        place = self.index.waiting.get(name, -1) if settled is None else settled.place
        return self.log.prediction(place) if place >= self.log.start else None

    def knows(self, name: bytes) -> bool:
        """Return whether an id is that of an earlier prediction."""
        return name in self._named or name in self.index.waiting or name in self.index.settled

    def interval(self, prediction: float) -> tuple[float, float]:
        """Return the ends of the interval around a predicted number, as it is now."""
        width = 0.0 if self.contest.coverage is None else self.contest.coverage.half_width
        return max(prediction - width, self.coding.low), min(prediction + width, self.coding.high)

    # Records.
    def record(self, records: Sequence[Record]) -> list[int] | None:
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
        for _, answers, _ in waiting:
            for done, _ in answers:
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
        made, answers, now = dict[bytes, Outcome](), list[tuple[Done, list[str]]](), time.time()
        waiting, settled = self.index.waiting, self.index.settled
        self.recent.extend([one[0] for outcomes, _ in asked[-SHOWN:] for one in outcomes[-SHOWN:]])
        for outcomes, done in asked:
            statuses = list[str]()
            for name, label, importance in outcomes:
                if name in made:
                    before = made[name].label
                elif (place := waiting.get(name)) is not None:
                    made[name] = Outcome(now, place, label, importance)
                    statuses.append("recorded")
                    continue
                elif name in settled:
                    before = settled[name].label
                else:
                    statuses.append("unknown")
                    continue
                statuses.append("late" if math.isnan(before) else "duplicate" if before == label else "contradicting")
            answers.append((done, statuses))
        if self._record_outcomes(list(made.values())):
            for status, count in Counter(chain.from_iterable(statuses for _, statuses in answers)).items():
                self.counts[f"outcomes {status}"] += count
            self._acknowledge(answers)
        else:
            for done, _ in answers:
                done(None)

    def _record_outcomes(self, made: list[Outcome]) -> bool:
        """Record outcomes, and let them be learned; return whether they are recorded."""
        pieces = [slice(start, start + MICRO) for start in range(0, len(made), MICRO)]
        events = [event_of_outcomes(self.log, made[piece]) for piece in pieces]  # which reads, and may find damage
        places = self.record(made) if made else []
        if places is None:
            return False
        ends = [*places, self.log.end][1:]
        for piece, event in zip(pieces, events, strict=True):
            self._enqueue(event._replace(end=ends[piece][-1]))
        return True

    def _enqueue(self, event: Event) -> None:
        self.todo.append(event)
        self.queued += event.labels.size

    def learn_rows(
        self, rows: CoalescedRows, labels: NDArray[np.float64], importance: NDArray[np.float32],
        margins: NDArray[np.float64], done: Done, offsets: dict[str, int] | None = None,
    ) -> bool:  # fmt: skip
        """Record rows that came with their labels, in pieces that are learned at once; return whether that succeeded.

        ``offsets`` are those of a stream after the rows, which are then one piece, or none.
        """
        now, made = time.time(), []
        for start in range(0, max(labels.size, 1), MICRO):
            piece, ends = slice(start, start + MICRO), rows.indptr[start : start + MICRO + 1]
            entries = slice(int(ends[0]), int(ends[-1]))
            packed = pack_rows(CoalescedRows(ends - ends[0], rows.indices[entries], rows.values[entries]))
            arrays = labels[piece].copy(), importance[piece].copy(), margins[piece].copy()
            made.append(Examples(now, packed, *arrays, offsets))
        places = self.record(made)
        if places is None:
            done(None)
            return False
        for one, end in zip(made, [*places, self.log.end][1:], strict=True):
            self._enqueue(event_of_examples(end, one))
        self.counts["outcomes recorded"] += labels.size
        self._acknowledge([(done, ["recorded"] * labels.size)])
        return True

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
        while self.todo and self.broken is None:
            self._learn_batch(MICRO)
        self.contest.apply(record, self.log.end, self.folder.load_model)
        done(["recorded"])

    def _acknowledge(self, answers: list[tuple[Done, list[str]]]) -> None:
        """Give answers when everything recorded until now is on the disk."""
        if self.log.failed is not None:
            for done, _ in answers:
                done(None)
        elif self.log.end <= self.log.durable:
            for done, statuses in answers:
                done(statuses)
        else:
            self.unacknowledged.append((self.log.end, answers, time.perf_counter()))
            self._wake.set()

    def after_disk(self, done: Done) -> None:
        """Call ``done`` behind everything that waits for the disk."""
        if self.unacknowledged:
            self.unacknowledged[-1][1].append((done, []))
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
            _, answers, started = self.unacknowledged.popleft()
            self.acknowledged.add(now - started, len(answers))
            for done, statuses in answers:
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
        if self.todo and self.todo[0].end <= self.log.durable:
            self._learn_batch(max(MICRO, self.queued // 8))  # more where outcomes come faster than they are learned
            if self.promote:
                self._promote()
            self.checkpoint_if_due()
            self.schedule_learning()

    def _learn_batch(self, most: int) -> None:
        batch, rows = list[Event](), 0
        while self.todo and rows < most and (not batch or self.todo[0].end <= self.log.durable):
            batch.append(self.todo.popleft())
            rows += batch[-1].labels.size
        self.queued -= rows
        try:
            self.contest.learn(batch)
        except ValueError as error:  # a loss that is not finite
            self.broken = str(error)
            self.todo.clear()
            self.queued = 0

    def _promote(self) -> None:
        for name, comparison in self.contest.comparisons.items():
            if comparison.better == comparison.smaller_loss == "B":  # not where a few large losses say otherwise
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
            oldest = self.index.oldest if not self.todo else (0.0, self.log.start)  # what is learned next may be old
            needs = min([self.contest.position, *([] if oldest is None else [oldest[1]])])
            self._saver = threading.Thread(target=self._save, args=(*freeze(self.contest), needs), name="checkpoint")
            self._saver.start()
            if force:
                self._saver.join()

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
            if self._record_outcomes(made):
                self.counts["outcomes assumed"] += len(places)
                self._acknowledge([])
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
    def problem(self) -> str | None:
        """Why not everything is learned; None if all is well."""
        return self.failure or self.broken or self.intake_failure

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
                self._learn_batch(MICRO)
            self.checkpoint_if_due(force=True)
        self.folder.close()
