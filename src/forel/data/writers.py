"""Writers of text formats: svmlight with slots, VW and JSON lines with names."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forel.data.block import Block
from forel.data.scanners import scanner
from forel.jit.deferred import Deferred

__all__ = ["WRITERS", "json_lines", "number_lines", "svmlight_lines", "vw_lines"]

WIDTH = 16  # maximum number of bytes of a number and its line end
UNFIT = bytes.maketrans(bytes(range(33)) + b":|", b"_" * 35)  # bytes that names in VW text cannot have


def _write_plain(numbers: NDArray[np.float64], row: int, end: int, text: NDArray[np.uint8]) -> tuple[int, int]:
    """Write numbers from a row on to a text from its end on; return the number of rows, and the new end."""
    rest = numbers[row:].tolist()
    lines = np.frombuffer(("%.6g\n" * len(rest) % tuple(rest)).encode(), np.uint8)
    text[end : end + lines.size] = lines
    return numbers.size, end + lines.size


write_numbers = Deferred(partial(scanner, "number_text", "write_numbers"), _write_plain, items=1 << 19)


def number_lines(values: ArrayLike) -> str:
    """Return numbers as lines with six significant digits, as ``f"{value:.6g}"`` gives.

    >>> number_lines([0.25, -2.0, 1 / 3, 1e-7])
    '0.25\\n-2\\n0.333333\\n1e-07\\n'
    """
    numbers = np.ascontiguousarray(values, np.float64)
    text, row, end = np.empty(WIDTH * numbers.size, np.uint8), 0, 0
    while row < numbers.size:
        row, end = write_numbers(numbers, row, end, text)
        if row < numbers.size:
            line = f"{numbers[row]:.6g}\n".encode()
            text[end : end + len(line)] = np.frombuffer(line, np.uint8)
            row, end = row + 1, end + len(line)
    return text[:end].tobytes().decode("ascii")


def _rows(block: Block) -> Iterator[tuple[int, range]]:
    ends = block.indptr.tolist()
    for row in range(len(block)):
        yield row, range(ends[row], ends[row + 1])


def _written(number: Any) -> str:
    """Return the shortest decimal that parses to the same float32."""
    text = str(number)
    return text.removesuffix(".0")


def svmlight_lines(block: Block, lost: Counter[str]) -> Iterator[str]:
    """Yield lines of slots and values; svmlight has no names, importances or tags.

    >>> block = Block(np.array([0, 2]), np.int32([7, 3]), np.float32([0.1, 1]), np.float32([1]))
    >>> list(svmlight_lines(block, Counter()))
    ['1 3:1 7:0.1']
    """
    for row, entries in _rows(block):
        if np.isnan(block.labels[row]):
            lost["examples without a label, left out"] += 1
            continue
        lost["importances"] += int(block.importance[row] != 1)
        lost["tags"] += int(bool(block.tags and block.tags[row]))
        pairs = sorted((int(block.indices[k]), k) for k in entries)
        words = [f"{slot}:{_written(block.values[k])}" for slot, k in pairs]
        yield " ".join([_written(block.labels[row]), *words])


def vw_lines(block: Block, lost: Counter[str]) -> Iterator[str]:
    """Yield lines of VW text; bytes that its names cannot have become underscores.

    >>> block = Block(np.array([0, 2]), np.int32([7, 3]), np.float32([0.1, 1]), np.float32([1]),
    ...               entry_names=((b"", b"price"), (b"city", b"New York")))
    >>> list(vw_lines(block, Counter()))
    ['1 | price:0.1 |city New_York']
    """
    for row, entries in _rows(block):
        words, last = [], None
        if not np.isnan(block.labels[row]):
            words.append(_written(block.labels[row]))
            if block.importance[row] != 1:
                words.append(_written(block.importance[row]))
        else:
            lost["importances of examples without a label"] += int(block.importance[row] != 1)
        if block.tags and block.tags[row]:
            words.append("'" + block.tags[row].decode("utf-8", "surrogateescape"))
        for k in entries:
            namespace, name = _entry_name(block, k)
            clean = namespace.translate(UNFIT), name.translate(UNFIT)
            lost["names with bytes that became _"] += int(clean != (namespace, name))
            if clean[0] != last:
                last = clean[0]
                words.append("|" + last.decode("utf-8", "surrogateescape"))
            text = clean[1].decode("utf-8", "surrogateescape")
            words.append(text if block.values[k] == 1 else f"{text}:{_written(block.values[k])}")
        yield " ".join(words if last is not None else [*words, "|"])


def json_lines(block: Block, lost: Counter[str]) -> Iterator[str]:
    """Yield objects with the keys ``label`` and ``importance``, one for each namespace, and names without a namespace.

    >>> block = Block(np.array([0, 2]), np.int32([7, 3]), np.float32([0.1, 1]), np.float32([1]),
    ...               entry_names=((b"", b"price"), (b"city", b"New York")))
    >>> list(json_lines(block, Counter()))
    ['{"label": 1, "price": 0.1, "city": "New York"}']
    """
    for row, entries in _rows(block):
        spaces: dict[str, dict[str, Any]] = {}
        for k in entries:
            words = _entry_name(block, k)
            namespace, name = (word.decode("utf-8", "backslashreplace") for word in words)
            lost["names that are no UTF-8"] += int((namespace.encode(), name.encode()) != words)
            features = spaces.setdefault(namespace, {})
            features[name] = block.values[k] + features[name] if name in features else block.values[k]
        head: dict[str, Any] = {}
        if not np.isnan(block.labels[row]):
            head["label"] = _number(block.labels[row])
        if block.importance[row] != 1:
            head["importance"] = _number(block.importance[row])
        lost["tags"] += int(bool(block.tags and block.tags[row]))
        # A name without a namespace is a key, unless another key has this name.
        bare = spaces.pop("", {})
        if bare.keys() & (spaces.keys() | {"label", "importance", ""}):
            spaces[""] = bare
        else:
            head |= {name: _number(value) for name, value in bare.items()}
        if spaces.keys() & {"label", "importance"}:
            raise ValueError("names: got a namespace called label or importance, expected other names for JSON")
        yield json.dumps(head | {space: _object(features) for space, features in spaces.items()}, ensure_ascii=False)


def _object(features: dict[str, Any]) -> Any:
    """Return the features of a namespace: a string or a list of them if all values are 1, and otherwise an object."""
    if all(value == 1 and name for name, value in features.items()):
        return next(iter(features)) if len(features) == 1 else list(features)
    return {name: _number(value) for name, value in features.items()}


def _number(value: Any) -> float | int:
    number = float(str(value))
    return int(number) if number.is_integer() and abs(number) < 1e15 else number


def _entry_name(block: Block, k: int) -> tuple[bytes, bytes]:
    # Features of svmlight have no names but their ids.
    return (b"", str(int(block.indices[k])).encode()) if block.entry_names is None else block.entry_names[k]


WRITERS: dict[str, Callable[[Block, Counter[str]], Iterator[str]]] = {
    "svmlight": svmlight_lines,
    "vw": vw_lines,
    "jsonl": json_lines,
}
