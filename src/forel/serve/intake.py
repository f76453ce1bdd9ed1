"""Learning from the messages of a topic in Kafka. Their offsets are in the records of the log that they lead to."""

import asyncio
import threading
import time
import traceback
from contextlib import suppress
from typing import Any

import msgspec
import numpy as np

from forel.data.sources.kafka import Message, Topic
from forel.learner.rows import CoalescedRows
from forel.log.records import join_rows, pack_rows
from forel.serve.messages import Learn
from forel.serve.service import MICRO, Service

__all__ = ["Intake"]

WAIT, AGAIN, PAUSE = 0.2, 1.0, 0.01  # seconds for messages, until the disk is tried again, and to learn
BEHIND = 64 * MICRO  # rows that are not learned yet, beyond which no more are taken

Row = tuple[bytes, float, float]


class Intake:
    """Takes messages on a thread of its own, and gives them to a service on its event loop, a batch at a time.

    A message is a body of ``/v1/learn`` in JSON with the outcome of one prediction or with one row and its label, or a
    line of VW text. What it leads to and the offset after it are in one record, so that it is learned exactly once.

    Parameters
    ----------
    service : what learns
    url : of the topic; messages from the offsets in the log on are taken
    """

    def __init__(self, service: Service, url: str) -> None:
        self.service, self.offsets = service, dict(service.contest.offsets)
        self.topic = Topic(url, self.offsets)
        self._open = True
        self._thread = threading.Thread(target=self._take_forever, name="kafka", daemon=True)
        self._thread.start()

    def _take_forever(self) -> None:
        """Take messages until it is closed; those that cannot be recorded wait for the disk."""
        try:
            while self._open:
                batch = self.topic.take(MICRO, WAIT)
                while batch and self._open and not self._given(batch):
                    time.sleep(AGAIN)
                while self._open and self.service.queued > BEHIND:
                    time.sleep(PAUSE)
        except Exception as error:
            traceback.print_exc()
            self.service.intake_failure = str(error)
        finally:
            self.topic.close()

    def _given(self, batch: list[Message]) -> bool:
        """Let the event loop learn a batch, and return whether it was recorded."""
        future = asyncio.run_coroutine_threadsafe(self._learn(batch), self.service.loop)
        while self._open:
            with suppress(TimeoutError):
                return future.result(WAIT)
        return False

    async def _learn(self, batch: list[Message]) -> bool:
        service, rows, outcomes = self.service, list[Row](), list[tuple[bytes, float, float]]()
        if service.log.failed is not None or service.broken is not None:
            return False
        for message in batch:
            try:
                self._read(message.value, rows, outcomes)
            except (ValueError, TypeError, OverflowError, msgspec.MsgspecError, RecursionError) as error:
                service.counts["messages refused"] += 1
                if service.counts["messages refused"] == 1:
                    where = f"{self.topic.url}, partition {message.partition}, offset {message.next - 1}"
                    print(f"forel: {where}: {error}; further ones are counted", flush=True)
        refused = list[bool]()
        if outcomes:  # those that were recorded before a server was killed are duplicates
            service.settle(outcomes, lambda statuses: refused.append(statuses is None))
        service.flush()
        if any(refused):
            return False
        after = self.offsets | {one.partition: one.next for one in batch}
        packed = join_rows([row for row, _, _ in rows]) if rows else NO_ROWS
        labels, importance = np.array([one[1] for one in rows]), np.array([one[2] for one in rows], np.float32)
        margins = service.margins(packed)
        if not service.learn_rows(packed, labels, importance, margins, lambda statuses: None, after):
            return False
        self.offsets = after
        return True

    def _read(self, value: bytes, rows: list[Row], outcomes: list[tuple[bytes, float, float]]) -> None:
        """Add what a message says."""
        service = self.service
        if value.startswith(b"{"):
            asked: Any = DECODE(value)
            if asked.label is None or (asked.id is None) == (asked.row is None):
                raise ValueError("message: expected a label, and either an id or a row")
            label, weight = service.coding.label(asked.label), asked.importance
            if asked.row is None:
                outcomes.append((asked.id.encode(), label, weight))
                return
            if isinstance(asked.row, dict):
                rows.append((pack_rows(service.rows.of_dicts([asked.row], len(value))), label, weight))
                return
            value = asked.row.encode("utf-8", "surrogatepass")
            parsed = self._line(value)
        else:
            parsed = self._line(value)
            label = service.coding.label(float(parsed.labels[0]))
            weight = float(parsed.importance[0])
        rows.append((pack_rows(CoalescedRows(*parsed[:3])), label, weight))

    def _line(self, text: bytes) -> Any:
        parsed = self.service.rows.of_lines(text.rstrip(b"\n") + b"\n")
        if parsed.errors or parsed.labels.size != 1:
            raise ValueError(f"message: {parsed.errors.get(0, 'expected one line with features')}")
        return parsed

    def close(self) -> None:
        """Take no more messages."""
        self._open = False
        self._thread.join()


DECODE = msgspec.json.Decoder(Learn).decode
NO_ROWS = CoalescedRows(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))
