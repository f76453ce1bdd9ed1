"""Slots of names: the definition of the hash in plain Python, and its compiled form for many names."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data.compiled import scanner

__all__ = ["cross_slot", "expected_collisions", "hash_name", "slot", "slots_of_hashes"]

START, FACTOR = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93
FIRST, SECOND = 0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53
ALL = (1 << 64) - 1


def hash_name(name: bytes, start: int = START) -> int:
    r"""Return the 64-bit hash of a name; ``start`` is the hash of its namespace, if any.

    $h \leftarrow \mathrm{fold}((h \oplus w)\, K)$ for each word w of eight bytes, little-endian, the last padded with
    zeros, where $\mathrm{fold}(h) = h \oplus \lfloor h / 2^{32} \rfloor$; then the length is mixed in, followed by the
    finalizer of MurmurHash3.

    >>> hex(hash_name(b"price"))
    '0xa9bc9f2f7ed051b2'
    """
    h = start
    for i in range(0, len(name), 8):
        h = (h ^ int.from_bytes(name[i : i + 8], "little")) * FACTOR & ALL
        h ^= h >> 32
    h ^= len(name)
    h = (h ^ h >> 33) * FIRST & ALL
    h = (h ^ h >> 33) * SECOND & ALL
    return h ^ h >> 33


def slot(name: str | bytes, namespace: str | bytes = "", bits: int = 22) -> int:
    """Return the slot of a feature: the last bits of its hash.

    Names that are integers are hashed like all others.

    >>> slot("red", "color"), slot("red"), slot("red", bits=10)
    (4007082, 1674509, 269)
    """
    return _hash(name, namespace) & ((1 << bits) - 1)


def slots_of_hashes(hashes: NDArray[np.uint64], bits: int) -> NDArray[Any]:
    """Return the slots of features, the last bits of their hashes, with the dtype of a block's indices.

    >>> slots_of_hashes(np.array([0xA9BC9F2F7ED051B2], np.uint64), 10)
    array([434], dtype=int32)
    """
    return (hashes & np.uint64((1 << bits) - 1)).astype(np.int32)


def cross_slot(*features: tuple[str | bytes, str | bytes], bits: int = 22) -> int:
    """Return the slot of a crossed feature from the names and namespaces of its parts, in any order.

    >>> cross_slot(("red", "color"), ("Rome", "city"), bits=10)
    971
    """
    hashes = sorted(_hash(*feature) for feature in features)
    return hash_name(b"".join(h.to_bytes(8, "little") for h in hashes)) & ((1 << bits) - 1)


def _hash(name: str | bytes, namespace: str | bytes) -> int:
    first = namespace if isinstance(namespace, bytes) else namespace.encode()
    second = name if isinstance(name, bytes) else name.encode()
    return hash_name(second, hash_name(first) if first else START)


def hash_names(names: Sequence[bytes], starts: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the hashes of many names, each with its initial state, by compiled code."""
    ends = np.zeros(len(names) + 1, np.int64)
    np.cumsum([len(name) for name in names], out=ends[1:])
    return hash_spans(np.frombuffer(b"".join(names) or b"\0", np.uint8), ends[:-1], ends[1:], starts)


def hash_spans(
    text: NDArray[np.uint8], starts: NDArray[Any], stops: NDArray[Any], states: NDArray[np.uint64] | int
) -> NDArray[np.uint64]:  # fmt: skip
    """Return the hashes of the bytes of ``text`` from ``starts[k]`` to ``stops[k]``, with one state or their own."""
    out: NDArray[Any] = np.empty(starts.size, np.uint64)
    states = np.full(starts.size, states, np.uint64) if isinstance(states, int) else states
    scanner("hashing", "hash_spans")(text, starts, stops, states, out)
    return out


def expected_collisions(used: int, bits: int) -> float:
    r"""Return the expected number of slots that several names share, if names have ``used`` of 2**bits slots.

    By linear counting, N = −M log(1 − u/M) names have u of M slots; M (1 − (1 + N/M) exp(−N/M)) of these slots have at
    least two.

    >>> round(expected_collisions(11_908, 22), 1), expected_collisions(0, 22)
    (16.9, 0.0)
    """
    slots = 1 << bits
    load = -math.log1p(-min(used, slots - 1) / slots)
    return slots * (-math.expm1(-load) - load * math.exp(-load))
