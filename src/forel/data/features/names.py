"""Names of slots, kept in the same pass that reads the examples."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data.scanners import scanner

__all__ = ["Names"]

MET, FINGERPRINT, TOUCHED = 2, 0xFFFFFFFC, 1


class Names:
    """The first name that each slot was touched by, and in how many slots two different names met.

    A name is the namespace, a caret and the feature, or the feature alone where the namespace is empty; the names
    of a cross are joined by ``*``.

    Parameters
    ----------
    bits : of the slots; four bytes are kept for each, and the bytes of each first name

    >>> from forel.data import read, slot
    >>> reader = read([{"colour": "red", "size": 2.0}], names=True)
    >>> blocks = list(reader)
    >>> reader.names[slot("red", "colour")], len(reader.names), reader.names.met
    ('colour^red', 2, 0)
    """

    def __init__(self, bits: int) -> None:
        self.bits = bits
        self.prints = np.zeros(1 << bits, np.uint32)
        self._pieces: list[tuple[NDArray[np.int64], bytes, NDArray[np.int64]]] = []
        self._table: tuple[Any, ...] | None = None

    def record(self, text: NDArray[np.uint8], records: NDArray[np.int64]) -> None:
        """Keep names whose bytes are where the records of a parser say."""
        if not records.size:
            return
        slots, _, begin, middle, start, stop = records.T
        size = int((middle - begin + (middle > begin) + stop - start).sum())
        ends, out = np.zeros(slots.size + 1, np.int64), np.empty(size, np.uint8)
        scanner("recorded", "gather")(text, records, ends, out)
        self._keep(slots.copy(), out.tobytes(), ends)

    def meet(self, slots: NDArray[Any], hashes: NDArray[np.uint64], word: Callable[[int], bytes]) -> None:
        """Keep those of some names that are the first of their slot, and mark slots where another name was.

        ``word(k)`` is the name that ``slots[k]`` and ``hashes[k]`` are of.
        """
        mine = (hashes >> np.uint64(32)).astype(np.uint32) & np.uint32(FINGERPRINT) | np.uint32(TOUCHED)
        fresh, first = np.unique(slots, return_index=True)
        new = self.prints[fresh] == 0
        fresh, first = fresh[new], first[new]
        self.prints[fresh] = mine[first]
        other = slots[(self.prints[slots] ^ mine) & np.uint32(FINGERPRINT) != 0]
        self.prints[other] |= np.uint32(MET)
        words = [word(int(k)) for k in first]
        self._keep(fresh.astype(np.int64), b"".join(words), np.cumsum([0, *map(len, words)]))

    def crossed(self, fresh: NDArray[np.int64], word: Callable[[int], tuple[bytes, bytes]]) -> None:
        """Keep the names of slots that were touched first: a slot, and the entries whose names make its own."""
        words = [b"*".join(b"^".join(filter(None, word(k))) for k in parts if k >= 0) for _, *parts in fresh.tolist()]
        self._keep(fresh[:, 0].copy(), b"".join(words), np.cumsum([0, *map(len, words)]))

    def forget(self, records: NDArray[np.int64]) -> None:
        """Take back what a parser marked, because it reads the same text again."""
        self.prints[records[:, 0]] = 0

    def _keep(self, slots: NDArray[np.int64], text: bytes, ends: NDArray[np.int64]) -> None:
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

    def packed(self) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.int64], NDArray[np.uint8]]:
        """Return the slots in order, their fingerprints, how long each name is, and the bytes of all names.

        The same names give the same arrays, in whatever pieces they were read. A reader may go on meanwhile.
        """
        pieces = list(self._pieces)  # those of now, because a thread may add more
        unsorted = np.concatenate([p[0] for p in pieces] or [np.empty(0, np.int64)])
        order = np.argsort(unsorted)
        slots = unsorted[order]
        sizes = np.concatenate([np.diff(p[2]) for p in pieces] or [slots])
        starts = (np.cumsum(sizes) - sizes)[order]
        lengths = sizes[order].astype(np.int64)
        text = np.frombuffer(b"".join(p[1] for p in pieces), np.uint8)
        # Where each byte of the result is in the text: its own place, moved by how far its name moves.
        moved = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
        return slots, self.prints[slots], lengths, text[np.arange(text.size) + moved]

    @classmethod
    def unpacked(
        cls, bits: int, slots: NDArray[Any], prints: NDArray[Any], lengths: NDArray[Any], text: NDArray[np.uint8]
    ) -> "Names":
        """Return the names that :meth:`packed` was called on.

        >>> names = Names(4)
        >>> names.meet(np.array([3]), np.array([1], np.uint64), lambda k: b"colour")
        >>> Names.unpacked(4, *names.packed())[3]
        'colour'
        """
        names = cls(bits)
        names.prints[slots] = prints
        if slots.size:
            names._keep(slots.astype(np.int64), text.tobytes(), np.append(0, np.cumsum(lengths, dtype=np.int64)))
        return names

    @property
    def met(self) -> int:
        """In how many slots two different names met, as far as 30 bits more of their hashes tell."""
        return int(np.count_nonzero(self.prints & MET))

    def shared(self, slot: int) -> bool:
        """Tell whether another name than the first met a slot, as far as can be told."""
        return slot in self and bool(self.prints[slot] & MET)

    def __len__(self) -> int:
        return sum(p[0].size for p in self._pieces)

    def __contains__(self, slot: int) -> bool:
        return 0 <= slot < self.prints.size and bool(self.prints[slot])

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
