"""The protocol of Vowpal Wabbit's daemon: lines in, a line with the prediction and the tag out.

All complete lines that a read finds are one block. Those with a label are learned from, and their block is answered
when it is on the disk.
"""

import time
from functools import partial
from typing import Any

import numpy as np

from forel.learner.rows import CoalescedRows
from forel.serve.connection import Connection, Site
from forel.serve.service import Service

__all__ = ["Lines"]


class Lines(Connection):
    """A connection.

    Parameters
    ----------
    service : what answers
    site : what it shares with other connections
    """

    def __init__(self, service: Service, site: Site) -> None:
        super().__init__(site, b"error: there are too many connections; try again later\n")
        self.service, self.rest = service, b""

    def expire(self) -> None:
        """Close the connection if its client does not take answers, or leaves a line unfinished."""
        if self.waiting or (self.rest and not self.unanswered):
            self.transport.abort()

    def take(self, data: bytes) -> None:
        """Answer the lines that are complete."""
        end = data.rfind(b"\n") + 1
        lines, self.rest = self.rest + data[:end], data[end:] if end else self.rest + data
        if end:
            self._answer(lines)
        elif len(self.rest) > self.site.limits.body:
            self._fail(f"line: got more than {self.site.limits.body:,} bytes, expected fewer")

    def eof_received(self) -> bool:
        """Answer a last line without its end; keep the connection open until everything is answered."""
        self.closing = True
        if self.rest:
            data, self.rest = self.rest + b"\n", b""
            self._answer(data)
        return self.unanswered > 0

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
        out = self._text(data, parsed, margins, errors)
        service.counts["predictions"] += len(margins)
        service.counts["lines refused"] += len(errors)
        service.predicted.add(time.perf_counter() - started, len(margins) or 1)
        if not learned and not self.unanswered:
            self.transport.write(out)
            return
        self.asked()
        if not learned:
            service.after_disk(partial(self._recorded, out))
            return
        kept = np.array(learned)
        chosen = rows if kept.size == parsed.labels.size else CoalescedRows(*rows.take(kept))
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

    def _recorded(self, out: bytes, statuses: list[str] | None) -> None:
        if statuses is None:
            self._fail("the disk does not take outcomes now; these lines may not be learned")
        else:
            self.answered(out)

    def _fail(self, why: str) -> None:
        """Say what is wrong, and close the connection."""
        self.closing = True
        if not self.transport.is_closing():
            self.transport.write(f"error: {why}\n".encode())
            self.transport.close()
