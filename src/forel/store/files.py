"""Model files: a header and named arrays, written atomically and verified on reading.

The container is safetensors, which holds numbers and text and no code. The header is one JSON text with sorted keys in
one entry of the container's metadata, because the container does not preserve the order of several entries.
"""

import json
import os
import pathlib
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from safetensors import SafetensorError, safe_open

from forel.store.atomic import Path, permissions, sync, temporary_path, try_lock, write_error
from forel.store.container import ChunkedArray, array_bytes, write_container
from forel.store.header import VERSION, ModelFileError, canonical_json, checked_header, damaged
from forel.version import __version__

__all__ = ["ModelFile", "open_file", "write_file"]

ENTRY, FORMAT = "forel", "forel"
START = b'{"__metadata__":{"forel":'  # of the container's header, after its length in 8 bytes
CHUNK_BYTES = 1 << 24  # size of the chunks that arrays are read in


def write_file(path: Path, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any] | ChunkedArray]) -> None:
    """Write a header and arrays to a temporary file, sync it, and rename it to ``path``."""
    target = pathlib.Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise ValueError(f"{path}: got a folder or a device, expected the name of a file")
    full = {**header, "format": FORMAT, "version": VERSION, "written_by": __version__}

    def metadata(checks: Mapping[str, int]) -> dict[str, str]:
        checked = {**full, "checks": checks}
        checked["check"] = zlib.crc32(canonical_json(checked).encode())
        return {ENTRY: canonical_json(checked)}

    temporary = pathlib.Path(temporary_path(target))
    try:
        with open(temporary, "xb") as file:
            try_lock(file.fileno())
            contiguous = {name: _contiguous(array) for name, array in arrays.items()}
            write_container(file, contiguous, metadata)
            os.chmod(temporary, permissions(target, file.fileno()))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
        with suppress(OSError):  # not every system can sync a folder, and the file is complete either way
            sync(target.parent, os.O_RDONLY)
    except OSError as error:
        raise write_error(path, error) from error
    finally:
        with suppress(OSError):
            temporary.unlink()


def _contiguous(array: NDArray[Any] | ChunkedArray) -> NDArray[Any] | ChunkedArray:
    return array if isinstance(array, ChunkedArray) else np.ascontiguousarray(array)


@dataclass(frozen=True)
class ModelFile:
    """A file that is open for reading: its header, and its arrays on demand.

    Parameters
    ----------
    header : the header
    handle : the open container
    used : names of the arrays that were accessed; a valid model accesses all of them
    """

    header: dict[str, Any]
    handle: Any
    used: set[str] = field(default_factory=set)

    def has(self, name: str) -> bool:
        """Return whether there is an array of this name."""
        return name in self.header["checks"]

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of an array, without reading it."""
        if not self.has(name):
            raise ModelFileError(f"there is no array {name!r}")
        self.used.add(name)
        return tuple(self.handle.get_slice(name).get_shape())

    def names(self, prefix: str) -> list[str]:
        """Return the names of all arrays with a prefix."""
        return sorted(name for name in self.header["checks"] if name.startswith(prefix))

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
        row_bytes = np.dtype(dtype).itemsize * int(np.prod(shape[1:], dtype=object))
        step = max(1, CHUNK_BYTES // max(row_bytes, 1))
        for start in range(0, shape[0], step):
            chunk = source[start : min(start + step, shape[0])]
            if chunk.dtype != dtype:
                raise ModelFileError(f"{name!r} has numbers of type {chunk.dtype} where {np.dtype(dtype)} was expected")
            checksum = zlib.crc32(array_bytes(chunk), checksum)
            if last is not None:
                yield last
            last = start, chunk
        if checksum != self.header["checks"][name]:
            raise ModelFileError(f"the checksum of {name!r} does not match")
        if last is not None:
            yield last


@contextmanager
def open_file(path: Path) -> Iterator[ModelFile]:
    """Open a file for reading; errors, also those of the block, are raised as ``ModelFileError`` with its name."""
    try:
        # Opened twice, because errors of safetensors have no errno.
        with open(path, "rb"), safe_open(os.fspath(path), framework="numpy") as handle:
            yield ModelFile(_header(handle), handle)
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


def _header(handle: Any) -> dict[str, Any]:
    text = (handle.metadata() or {}).get(ENTRY)
    header = None if text is None else json.loads(text)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ModelFileError("a safetensors file, but not a model of forel; load it with the program that wrote it")
    content = {name: value for name, value in header.items() if name != "check"}
    newer = type(header.get("version")) is int and header["version"] > VERSION  # may use another checksum
    if not newer and header.get("check") != zlib.crc32(canonical_json(content).encode()):
        raise damaged("the checksum of the header does not match")
    header = checked_header(header)
    if not isinstance(header["checks"], dict) or set(header["checks"]) != set(handle.keys()):
        raise damaged("the arrays do not match the header")
    return header
