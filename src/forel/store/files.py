"""Model files: a header and named arrays in the format of safetensors, written atomically and verified on reading.

The format holds numbers and text and no code. The header is one JSON text with sorted keys in one entry of the
metadata, because safetensors does not preserve the order of several entries. The last array has the checksums of all
others, so that these are written while they are computed.
"""

import json
import math
import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from safetensors import SafetensorError, safe_open

from forel.store.atomic import Path, atomic_writer
from forel.store.header import VERSION, ModelFileError, canonical_json, checked_header, damaged
from forel.validation import all_finite
from forel.version import __version__

__all__ = ["ModelFile", "Rows", "open_file", "write_file"]

ENTRY, FORMAT, CHECKS = "forel", "forel", "checks"
START = b'{"__metadata__":{"forel":'  # of the JSON text of safetensors, after its length in 8 bytes
WRITTEN_BYTES = 1 << 20  # size of chunks: memory of this size is used again by the next chunk, instead of new memory
READ_BYTES = 1 << 24
DTYPES = {"f": "F", "i": "I", "u": "U"}  # of safetensors, before the number of bits


@dataclass(frozen=True)
class Rows:
    """Rows of a table, all or the ``chosen`` ones, which are copied in chunks while they are written."""

    table: NDArray[Any]
    chosen: NDArray[np.int64] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of all rows."""
        return (len(self.table) if self.chosen is None else self.chosen.size, *self.table.shape[1:])

    def chunks(self) -> Iterator[NDArray[Any]]:
        """Yield the rows in contiguous chunks."""
        step = max(1, WRITTEN_BYTES * len(self.table) // max(self.table.nbytes, 1))
        for start in range(0, self.shape[0], step):
            part = slice(start, start + step)
            yield np.ascontiguousarray(self.table[part if self.chosen is None else self.chosen[part]])


def write_file(path: Path, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any] | Rows]) -> None:
    """Write a header and arrays to a file, which is replaced atomically; raise for numbers that are not finite."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise ValueError(f"{path}: got a folder or a device, expected the name of a file")
    full = {**header, "format": FORMAT, "version": VERSION, "written_by": __version__}
    full["check"] = zlib.crc32(canonical_json(full).encode())
    rows = {name: one if isinstance(one, Rows) else Rows(np.ascontiguousarray(one)) for name, one in arrays.items()}
    names = sorted(rows, key=lambda name: (-rows[name].table.itemsize, name))  # so that numbers are aligned
    checks = dict.fromkeys(sorted(rows), 0)
    with atomic_writer(path, "b") as write:
        write(_start(full, {name: rows[name] for name in names} | {CHECKS: Rows(np.zeros(len(names), np.uint32))}))
        for name in names:
            for chunk in rows[name].chunks():
                if chunk.dtype.kind == "f" and not all_finite(chunk):
                    raise ValueError(
                        f"model: got {name} with NaN or infinity, expected finite numbers; nothing was written"
                    )
                write(chunk)
                checks[name] = zlib.crc32(chunk.data, checks[name])
        write(np.array([*checks.values()], np.uint32))


def _start(header: Mapping[str, Any], arrays: Mapping[str, Rows]) -> bytes:
    """Return what is before the arrays in a file of safetensors."""
    content: dict[str, Any] = {"__metadata__": {ENTRY: canonical_json(header)}}
    start = 0
    for name, rows in arrays.items():
        kind, end = rows.table.dtype, start + rows.table.itemsize * math.prod(rows.shape)
        dtype = f"{DTYPES[kind.kind]}{8 * kind.itemsize}"
        content[name] = {"dtype": dtype, "shape": rows.shape, "data_offsets": [start, end]}
        start = end
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


@dataclass(frozen=True)
class ModelFile:
    """A file that is open for reading: its header, and its arrays on demand.

    Parameters
    ----------
    header : the header
    handle : the open file of safetensors
    checks : the checksum of each array
    used : names of the arrays that were accessed; a valid model accesses all of them
    """

    header: dict[str, Any]
    handle: Any
    checks: Mapping[str, int]
    used: set[str] = field(default_factory=set)

    def has(self, name: str) -> bool:
        """Return whether there is an array of this name."""
        return name in self.checks

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of an array, without reading it."""
        if not self.has(name):
            raise ModelFileError(f"there is no array {name!r}")
        self.used.add(name)
        return tuple(self.handle.get_slice(name).get_shape())

    def array(self, name: str, dtype: DTypeLike, shape: tuple[int, ...]) -> NDArray[Any]:
        """Return an array, which must have this type and shape."""
        out = np.empty(shape if self.shape(name) == shape else 0, dtype)
        for start, chunk in self.chunks(name, dtype, shape):
            out[start : start + len(chunk)] = chunk
        return out

    def chunks(self, name: str, dtype: DTypeLike, shape: tuple[int, ...]) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield (first row, rows) of an array in chunks, the last one after the checksum is verified."""
        if self.shape(name) != shape:
            raise ModelFileError(f"{name!r} has the shape {self.shape(name)} where {shape} was expected")
        source, checksum, last = self.handle.get_slice(name), 0, None
        row_bytes = np.dtype(dtype).itemsize * math.prod(shape[1:])
        step = max(1, READ_BYTES // max(row_bytes, 1))
        for start in range(0, shape[0], step):
            chunk = source[start : min(start + step, shape[0])]
            if chunk.dtype != dtype:
                raise ModelFileError(f"{name!r} has numbers of type {chunk.dtype} where {np.dtype(dtype)} was expected")
            if chunk.dtype.kind == "f" and not all_finite(chunk):
                raise damaged(f"{name!r} holds invalid values")
            checksum = zlib.crc32(chunk.data, checksum)
            if last is not None:
                yield last
            last = start, chunk
        if checksum != self.checks[name]:
            raise ModelFileError(f"the checksum of {name!r} does not match")
        if last is not None:
            yield last


@contextmanager
def open_file(path: Path) -> Iterator[ModelFile]:
    """Open a file for reading; errors, also those of the block, are raised as ``ModelFileError`` with its name."""
    try:
        # Opened twice, because errors of safetensors have no errno.
        with open(path, "rb"), safe_open(os.fspath(path), framework="numpy") as handle:
            yield _content(handle)
    except OSError as error:
        raise OSError(error.errno, f"{path}: could not be read ({error.strerror or error}); check the path") from error
    except MemoryError as error:
        reason = str(error) or "the model does not fit into memory"
        raise MemoryError(f"{path}: {reason}; or load it on a larger machine") from None
    except SafetensorError as error:
        if not _starts_as_model(path):
            remedy = "pass a file that forel train --model or forel.save wrote"
            raise ModelFileError(f"{path}: not a model of forel; {remedy}") from None
        raise damaged(f"{path}: not a complete model file ({error})") from None
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from error
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError, RecursionError) as error:
        raise damaged(f"{path}: not a complete model file ({type(error).__name__}: {error})") from error


def _starts_as_model(path: Path) -> bool:
    """Return whether a file may be the beginning of a model file, whose header is shorter than 4 GB."""
    with open(path, "rb") as file:
        start = file.read(8 + len(START))
    return not any(start[4:8]) and START.startswith(start[8:])


def _content(handle: Any) -> ModelFile:
    text = (handle.metadata() or {}).get(ENTRY)
    header = None if text is None else json.loads(text)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ModelFileError("a safetensors file, but not a model of forel; load it with the program that wrote it")
    content = {name: value for name, value in header.items() if name != "check"}
    newer = type(header.get("version")) is int and header["version"] > VERSION  # may use another checksum
    if not newer and header.get("check") != zlib.crc32(canonical_json(content).encode()):
        raise damaged("the checksum of the header does not match")
    header = checked_header(header)
    names, checks = sorted(set(handle.keys()) - {CHECKS}), handle.get_tensor(CHECKS)
    if checks.dtype != np.uint32:
        raise damaged("the checksums are not whole numbers")
    return ModelFile(header, handle, dict(zip(names, checks.tolist(), strict=True)))
