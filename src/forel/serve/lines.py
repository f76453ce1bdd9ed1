"""The protocol of Vowpal Wabbit's daemon: lines in, a line with the prediction and the tag out.

All complete lines that a read finds are one block. Those with a label are learned from, and their block is answered
when it is on the disk.
"""

import asyncio
import time
from functools import partial
from typing import Any

import numpy as np

from forel.learner.rows import CoalescedRows
from forel.serve.http import BUFFER, Limits
from forel.serve.service import Service

__all__ = ["Lines"]


class Lines(asyncio.BufferedProtocol):
    """A connection; received bytes go into one buffer.

    Parameters
    ----------
    service, limits : what answers, and what a client may use
    connections : those that are open
    """

    def __init__(self, service: Service, limits: Limits, connections: set[Any]) -> None:
        self.service, self.limits, self.connections = service, limits, connections
        self.buffer, self.size = bytearray(1 << 16), 0
        self.waiting, self.pending, self.since = False, 0, time.monotonic()
        self.streaming = self.closing = False

    def connection_made(self, transport: Any) -> None:
        """Take a connection, or close it if there are too many."""
        self.transport = transport
        if len(self.connections) >= self.limits.connections:
            transport.close()
            return
        transport.set_write_buffer_limits(high=BUFFER)
        self.connections.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        """Forget the connection."""
        self.closing = True
        self.connections.discard(self)

    def expire(self) -> None:
        """Close the connection if its client does not take answers, or leaves a line unfinished."""
        if self.waiting or (self.size and not self.pending):
            self.transport.abort()

    def get_buffer(self, hint: int) -> Any:
        """Return where to put received bytes."""
        if self.size == len(self.buffer):
            self.buffer += bytes(len(self.buffer))
        return memoryview(self.buffer)[self.size :]

    def buffer_updated(self, count: int) -> None:
        """Answer the lines that are complete."""
        self.size += count
        self.since = time.monotonic()
        end = self.buffer.rfind(b"\n", 0, self.size) + 1
        if end:
            data = bytes(memoryview(self.buffer)[:end])
            self.buffer[: self.size - end], self.size = self.buffer[end : self.size], self.size - end
            self._answer(data)
        elif self.size > self.limits.body:
            self._fail(f"line: got more than {self.limits.body:,} bytes, expected fewer")

    def eof_received(self) -> bool:
        """Answer a last line without its end; keep the connection open until everything is answered."""
        self.closing = True
        if self.size:
            data, self.size = bytes(memoryview(self.buffer)[: self.size]) + b"\n", 0
            self._answer(data)
        return self.pending > 0

    def _answer(self, data: bytes) -> None:
        started, service = time.perf_counter(), self.service
        service.flush()
        parsed = service.rows.of_lines(data)
        rows, coding = CoalescedRows(*parsed[:3]), service.coding
        margins, errors = service.margins(rows), dict(parsed.errors)
        labelled, labels = np.flatnonzero(~np.isnan(parsed.labels)), parsed.labels.copy()
        learned = list[int]()
        for k in labelled.tolist():
            try:
                labels[k] = coding.label(float(labels[k]))
                learned.append(k)
            except ValueError as error:
                errors[int(parsed.lines[k])] = str(error)
        if not np.isfinite(parsed.importance).all() or (parsed.importance > 1e6).any():
            learned = [k for k in learned if parsed.importance[k] <= 1e6]
        out = self._text(data, parsed, margins, errors)
        service.counts["predictions"] += len(margins)
        service.counts["lines refused"] += len(errors)
        service.predicted.add(time.perf_counter() - started, len(margins) or 1)
        if not learned:
            self._write_behind(out)
            return
        kept = np.array(learned)
        chosen = rows if kept.size == parsed.labels.size else CoalescedRows(*rows.take(kept))
        self.pending += 1
        service.learn_rows(chosen, labels[kept], parsed.importance[kept], margins[kept], partial(self._recorded, out))

    def _text(self, data: bytes, parsed: Any, margins: Any, errors: dict[int, str]) -> bytes:
        """Return a line for each line: the prediction and the tag, or what is wrong."""
        coding = self.service.coding
        plain = not errors and not any(parsed.tags) and data.count(b"\n") == len(margins)
        if plain and coding.classes is None:
            return (b"%.6f\n" * len(margins)) % tuple(coding.predictions(margins).tolist())
        texts = {line: f"error: {why}".encode() for line, why in errors.items()}
        for line, own, tag in zip(parsed.lines.tolist(), margins, parsed.tags, strict=True):
            shown = coding.shown(own)
            text = shown.encode() if isinstance(shown, str) else b"%.6f" % shown
            texts.setdefault(line, text + b" " + tag if tag else text)
        return b"".join(texts.get(line, b"") + b"\n" for line in range(data.count(b"\n")))

    def _write_behind(self, out: bytes) -> None:
        """Write answers behind those that wait for the disk."""
        if self.pending:
            self.pending += 1
            self.service.after_disk(partial(self._recorded, out))
        else:
            self.transport.write(out)

    def _recorded(self, out: bytes, statuses: list[str] | None) -> None:
        self.pending -= 1
        if statuses is None:
            self._fail("the disk does not take outcomes now; these lines may not be learned")
        elif not self.transport.is_closing():
            self.transport.write(out)
            if self.closing and not self.pending:
                self.transport.close()

    def _fail(self, why: str) -> None:
        """Say what is wrong, and close the connection."""
        self.closing = True
        if not self.transport.is_closing():
            self.transport.write(f"error: {why}\n".encode())
            self.transport.close()

    def pause_writing(self) -> None:
        """Read nothing more while the client does not take its answers."""
        self.waiting, self.since = True, time.monotonic()
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        """Read on."""
        self.waiting = False
        self.transport.resume_reading()
