"""Names of slots, recorded while examples are read."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Names", "PackedNames", "recorded_name"]

COLLIDED, FINGERPRINT, USED = 2, 0xFFFFFFFC, 1
PackedNames = tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.int64], NDArray[np.uint8]]


def recorded_name(text: NDArray[np.uint8], records: NDArray[np.int64], k: int) -> tuple[bytes, bytes]:
    """Return the namespace and the name that the k-th record of a parser locates in its text.

    >>> recorded_name(np.frombuffer(b"city Rome", np.uint8), np.array([[0, 0, 0, 4, 5, 9]]), 0)
    (b'city', b'Rome')
    """
    _, _, begin, middle, start, stop = records[k].tolist()
    return text[begin:middle].tobytes(), text[start:stop].tobytes()


class Names:
    """The first name hashed to each slot, and the slots with collisions.

    A name is the namespace, a caret and the feature, or the feature alone where the namespace is empty; the names
    of a cross are joined by ``*``.

    Parameters
    ----------
    bits : there are 2**bits slots, at most 2**31; memory is four bytes for each, and the bytes of each first name

    >>> from forel.data import read, slot
    >>> reader = read([{"color": "red", "size": 2.0}], names=True)
    >>> blocks = list(reader)
    >>> reader.names[slot("red", "color")], len(reader.names), reader.names.collisions
    ('color^red', 2, 0)
    """

    def __init__(self, bits: int) -> None:
        self.bits = bits
        self.fingerprints = np.zeros(1 << bits, np.uint32)
        self._pieces: list[tuple[NDArray[np.int64], bytes, NDArray[np.int64]]] = []
        self._table: tuple[Any, ...] | None = None

    def add_records(self, text: NDArray[np.uint8], records: NDArray[np.int64]) -> None:
        """Add the names that a parser's records locate in its text."""
        if records.size:
            content, spans = text.tobytes(), records[:, 2:].tolist()
            words = [b"^".join(filter(None, (content[a:b], content[c:d]))) for a, b, c, d in spans]
            self._append(records[:, 0].copy(), words)

    def add(self, slots: NDArray[Any], hashes: NDArray[np.uint64], word: Callable[[int], bytes]) -> None:
        """Add the names that are the first in their slot, and mark slots with another name.

        ``word(k)`` returns the name of ``slots[k]`` and ``hashes[k]``.
        """
        new = (hashes >> np.uint64(32)).astype(np.uint32) & np.uint32(FINGERPRINT) | np.uint32(USED)
        unused = np.flatnonzero(self.fingerprints[slots] == 0)
        fresh, first = np.unique(slots[unused], return_index=True)
        first = unused[first]
        self.fingerprints[fresh] = new[first]
        other = slots[(self.fingerprints[slots] ^ new) & np.uint32(FINGERPRINT) != 0]
        self.fingerprints[other] |= np.uint32(COLLIDED)
        words = [word(int(k)) for k in first]
        self._append(fresh.astype(np.int64), words)

    def add_crosses(self, fresh: NDArray[np.int64], word: Callable[[int], tuple[bytes, bytes]]) -> None:
        """Add the names of crosses: each row of ``fresh`` has a new slot, and the entries that are crossed."""
        words = [b"*".join(b"^".join(filter(None, word(k))) for k in parts if k >= 0) for _, *parts in fresh.tolist()]
        self._append(fresh[:, 0].copy(), words)

    def unmark(self, records: NDArray[np.int64]) -> None:
        """Clear the slots that a parser marked, before it parses the same text again."""
        self.fingerprints[records[:, 0]] = 0

    def _append(self, slots: NDArray[np.int64], words: list[bytes]) -> None:
        self._append_text(slots, b"".join(words), np.cumsum([0, *map(len, words)]))

    def _append_text(self, slots: NDArray[np.int64], text: bytes, ends: NDArray[np.int64]) -> None:
        self._pieces.append((slots, text, ends))
        self._table = None

    def _sorted(self) -> tuple[Any, ...]:
        if self._table is None:
            slots = np.concatenate([p[0] for p in self._pieces] or [np.empty(0, np.int64)])
            piece = np.repeat(np.arange(len(self._pieces)), [p[0].size for p in self._pieces])
            within = np.concatenate([np.arange(p[0].size) for p in self._pieces] or [np.empty(0, np.int64)])
            order = np.argsort(slots)
            self._table = slots[order], piece[order], within[order]
        return self._table

    def pack(self) -> PackedNames:
        """Return the sorted slots, their fingerprints, the lengths of names, and the bytes of all names.

        The arrays do not depend on block sizes. Another thread may add names meanwhile.
        """
        pieces = list(self._pieces)  # a copy, because a thread may add more
        unsorted = np.concatenate([p[0] for p in pieces] or [np.empty(0, np.int64)])
        order = np.argsort(unsorted)
        slots = unsorted[order]
        sizes = np.concatenate([np.diff(p[2]) for p in pieces] or [slots])
        starts = (np.cumsum(sizes) - sizes)[order]
        lengths = sizes[order].astype(np.int64)
        text = np.frombuffer(b"".join(p[1] for p in pieces), np.uint8)
        # The source of each byte of the result: its offset plus the shift of its name.
        shift = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
        return slots, self.fingerprints[slots], lengths, text[np.arange(text.size) + shift]

    def drain(self) -> PackedNames:
        """Return the arrays of :meth:`pack`, and remove all names."""
        packed = self.pack()
        self.fingerprints[packed[0]] = 0
        self._pieces, self._table = [], None
        return packed

    def absorb(self, packed: PackedNames) -> None:
        """Add names that were recorded elsewhere, in rows after those of this object.

        >>> names, later = Names(4), Names(4)
        >>> names.add(np.array([3]), np.array([1 << 34], np.uint64), lambda k: b"red")
        >>> later.add(np.array([3, 5]), np.array([1 << 35, 1 << 36], np.uint64), lambda k: (b"blue", b"green")[k])
        >>> names.absorb(later.drain())
        >>> names[3], names[5], names.is_shared(3), len(later)
        ('red', 'green', True, 0)
        """
        slots, found, lengths, text = packed
        before = self.fingerprints[slots]
        fresh = before == 0
        other = (before ^ found) & np.uint32(FINGERPRINT) != 0
        marks = (found | np.where(other, np.uint32(COLLIDED), np.uint32(0))) & np.uint32(COLLIDED)
        self.fingerprints[slots] = np.where(fresh, found, before | marks)
        if fresh.any():
            kept = text[np.repeat(fresh, lengths)]
            self._append_text(slots[fresh], kept.tobytes(), np.append(0, np.cumsum(lengths[fresh], dtype=np.int64)))

    @classmethod
    def unpack(
        cls, bits: int, slots: NDArray[Any], fingerprints: NDArray[Any], lengths: NDArray[Any], text: NDArray[np.uint8]
    ) -> "Names":
        """Return the names that :meth:`pack` was called on.

        >>> names = Names(4)
        >>> names.add(np.array([3]), np.array([1], np.uint64), lambda k: b"color")
        >>> Names.unpack(4, *names.pack())[3]
        'color'
        """
        names = cls(bits)
        names.fingerprints[slots] = fingerprints
        if slots.size:
            names._append_text(slots.astype(np.int64), text.tobytes(), np.append(0, np.cumsum(lengths, dtype=np.int64)))
        return names

    @property
    def collisions(self) -> int:
        """The number of slots with two different names, distinguished by 30 more bits of their hashes."""
        return int(np.count_nonzero(self.fingerprints & COLLIDED))

    def is_shared(self, slot: int) -> bool:
        """Return whether a slot has two different names, distinguished by 30 more bits of their hashes."""
        return slot in self and bool(self.fingerprints[slot] & COLLIDED)

    def __len__(self) -> int:
        return sum(p[0].size for p in self._pieces)

    def __contains__(self, slot: int) -> bool:
        return 0 <= slot < self.fingerprints.size and bool(self.fingerprints[slot])

    def __getitem__(self, slot: int) -> str:
        slots, piece, within = self._sorted()
        k = int(np.searchsorted(slots, slot))
        if k == slots.size or slots[k] != slot:
            raise KeyError(slot)
        _, text, ends = self._pieces[piece[k]]
        start, stop = ends[within[k] : within[k] + 2].tolist()
        name: bytes = text[start:stop]
        return name.decode("utf-8", "backslashreplace")

    def __iter__(self) -> Iterator[int]:
        yield from self._sorted()[0].tolist()
