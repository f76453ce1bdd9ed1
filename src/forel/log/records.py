"""What an event log records, as bytes. Rows are kept hashed, in their order, which decides the rounding of margins."""

import json
import struct
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forel.learner.rows import CoalescedRows, Rows

__all__ = [
    "Control", "Examples", "Left", "Outcome", "Prediction", "Record", "join_rows", "pack_each", "pack_rows",
    "unpack_rows",
]  # fmt: skip

_PREDICTION, _OUTCOME, _EXAMPLES, _LEFT = (struct.Struct(f) for f in ("<dHH", "<QdfdB", "<dII", "<Qd"))
_ROWS, _ONE_ROW = struct.Struct("<IB"), struct.Struct("<IBI")
GIVEN, ASSUMED = 0, 1  # sources of an outcome: a client, or the time that a prediction waited


class Prediction(NamedTuple):
    """A prediction that waits for its outcome: its id, the margins that were served, and its row."""

    time: float
    name: bytes
    margins: NDArray[np.float64]
    row: bytes

    def pack(self) -> bytes:
        """Return the payload of a record."""
        head = _PREDICTION.pack(self.time, len(self.name), self.margins.size)
        return b"".join((head, self.name, self.margins.tobytes(), self.row))

    @classmethod
    def unpack(cls, data: bytes) -> "Prediction":
        """Return what :meth:`pack` packed."""
        when, length, count = _PREDICTION.unpack_from(data)
        start = _PREDICTION.size + length
        name = data[_PREDICTION.size : start]
        return cls(when, name, np.frombuffer(data, np.float64, count, start), data[start + 8 * count :])


class Outcome(NamedTuple):
    """The label of an earlier prediction, whose record begins at ``place``; ``source`` is ``GIVEN`` or ``ASSUMED``."""

    time: float
    place: int
    label: float
    importance: float
    source: int = GIVEN

    def pack(self) -> bytes:
        """Return the payload of a record."""
        return _OUTCOME.pack(self.place, self.label, self.importance, self.time, self.source)

    @classmethod
    def unpack(cls, data: bytes) -> "Outcome":
        """Return what :meth:`pack` packed."""
        place, label, importance, when, source = _OUTCOME.unpack(data)
        return cls(when, place, label, importance, source)


class Examples(NamedTuple):
    """Rows that arrived with their labels, and the margins that were served; from a stream, the offsets after them."""

    time: float
    rows: bytes
    labels: NDArray[np.float64]
    importance: NDArray[np.float32]
    margins: NDArray[np.float64]
    offsets: dict[str, int] | None = None

    def pack(self) -> bytes:
        """Return the payload of a record."""
        after = b"" if self.offsets is None else json.dumps(self.offsets).encode()
        head = _EXAMPLES.pack(self.time, len(self.rows), self.margins.shape[1])
        arrays = self.labels, self.importance, self.margins
        return b"".join((head, self.rows, *(np.ascontiguousarray(array).tobytes() for array in arrays), after))

    @classmethod
    def unpack(cls, data: bytes) -> "Examples":
        """Return what :meth:`pack` packed."""
        when, size, outputs = _EXAMPLES.unpack_from(data)
        start = _EXAMPLES.size + size
        rows = data[_EXAMPLES.size : start]
        n = _ROWS.unpack_from(rows)[0]
        labels = np.frombuffer(data, np.float64, n, start)
        importance = np.frombuffer(data, np.float32, n, start + 8 * n)
        margins = np.frombuffer(data, np.float64, n * outputs, start + 12 * n).reshape(n, outputs)
        after = data[start + (12 + 8 * outputs) * n :]
        return cls(when, rows, labels, importance, margins, json.loads(after) if after else None)


class Left(NamedTuple):
    """A prediction that waited too long, and was dropped."""

    time: float
    place: int

    def pack(self) -> bytes:
        """Return the payload of a record."""
        return _LEFT.pack(self.place, self.time)

    @classmethod
    def unpack(cls, data: bytes) -> "Left":
        """Return what :meth:`pack` packed."""
        place, when = _LEFT.unpack(data)
        return cls(when, place)


class Control(NamedTuple):
    """A change of the models that learn, or of which of them is served."""

    time: float
    content: dict[str, Any]

    def pack(self) -> bytes:
        """Return the payload of a record."""
        return json.dumps({"time": self.time, **self.content}, sort_keys=True).encode()

    @classmethod
    def unpack(cls, data: bytes) -> "Control":
        """Return what :meth:`pack` packed."""
        content = json.loads(data)
        return cls(content.pop("time"), content)


Record = Prediction | Outcome | Examples | Left | Control
KINDS: dict[int, Any] = {1: Prediction, 2: Outcome, 3: Examples, 4: Left, 5: Control}
NUMBERS: dict[Any, int] = {each: number for number, each in KINDS.items()}


def pack_rows(rows: Rows) -> bytes:
    """Return rows as bytes: their number, whether all values are 1, lengths, slots, and values unless all are 1.

    >>> rows = CoalescedRows(np.array([0, 2, 3]), np.int32([7, 3, 7]), np.float32([1, 2, 1]))
    >>> [array.tolist() for array in unpack_rows(pack_rows(rows))]
    [[0, 2, 3], [7, 3, 7], [1.0, 2.0, 1.0]]
    """
    lengths = (rows.indptr[1:] - rows.indptr[:-1]).astype(np.uint32)
    plain = bool((rows.values == 1).all())
    head = _ROWS.pack(lengths.size, plain), lengths.tobytes(), rows.indices.tobytes()
    return b"".join((*head, b"" if plain else rows.values.tobytes()))


def unpack_rows(data: bytes) -> CoalescedRows:
    """Return rows that :func:`pack_rows` packed."""
    return join_rows([data])


def join_rows(packed: list[bytes]) -> CoalescedRows:
    """Return the rows of several records as one block."""
    lengths, indices, values = [], [], []
    for data in packed:
        n, plain = _ROWS.unpack_from(data)
        own = np.frombuffer(data, np.uint32, n, _ROWS.size)
        start, entries = _ROWS.size + 4 * n, int(own.sum(dtype=np.int64))
        lengths.append(own)
        indices.append(np.frombuffer(data, np.int32, entries, start))
        values.append(_ones(entries) if plain else np.frombuffer(data, np.float32, entries, start + 4 * entries))
    indptr = np.zeros(sum(map(len, lengths)) + 1, np.int64)
    np.cumsum(np.concatenate(lengths), out=indptr[1:])
    return CoalescedRows(indptr, np.concatenate(indices), np.concatenate(values))


_ONES = np.ones(1 << 12, np.float32)


def _ones(count: int) -> NDArray[np.float32]:
    return _ONES[:count] if count <= _ONES.size else np.ones(count, np.float32)


def pack_each(rows: Rows) -> list[bytes]:
    """Return each of several rows as bytes, as :func:`pack_rows` does.

    >>> rows = CoalescedRows(np.array([0, 2, 2]), np.int32([7, 3]), np.float32([1, 2]))
    >>> pack_each(rows) == [pack_rows(rows.take(np.array([k]))) for k in (0, 1)]
    True
    """
    ends, slots, values = rows.indptr.tolist(), rows.indices.tobytes(), rows.values.tobytes()
    others = np.concatenate(([0], np.cumsum(rows.values != 1))).tolist()
    packed = []
    for a, b in pairwise(ends):
        plain = others[a] == others[b]
        head = _ONE_ROW.pack(1, plain, b - a)
        packed.append(b"".join((head, slots[4 * a : 4 * b], b"" if plain else values[4 * a : 4 * b])))
    return packed
