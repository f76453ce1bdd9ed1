"""The container of model files, in the format of safetensors, written in chunks.

A file is the length of a header in 8 bytes, the header as JSON, and the bytes of all arrays. It is the same file that
``safetensors`` writes, without an array of its own for what is computed on the way.
"""

import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

__all__ = ["CHUNK_BYTES", "ChunkedArray", "array_bytes", "write_container"]

CHUNK_BYTES = 1 << 20  # memory of this size is used again by the next chunk, instead of new memory
LARGEST_CHECKSUM = (1 << 32) - 1  # with the most digits
# In the order of safetensors, which aligns arrays of large numbers first.
TYPES = {
    "uint64": "U64",
    "int64": "I64",
    "float64": "F64",
    "float32": "F32",
    "uint32": "U32",
    "int32": "I32",
    "float16": "F16",
    "uint16": "U16",
    "int16": "I16",
    "int8": "I8",
    "uint8": "U8",
    "bool": "BOOL",
}
ORDER = {name: place for place, name in enumerate(TYPES)}


@dataclass(frozen=True)
class ChunkedArray:
    """An array that exists only in chunks, one at a time.

    Parameters
    ----------
    dtype, shape : of the whole array
    chunks : returns a new iterator over its rows in contiguous chunks

    >>> whole = ChunkedArray(np.dtype(np.int64), (3,), lambda: iter((np.arange(2), np.arange(2, 3))))
    >>> np.concatenate(list(whole.chunks()))
    array([0, 1, 2])
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    chunks: Callable[[], Iterator[NDArray[Any]]]

    @property
    def nbytes(self) -> int:
        """The number of bytes of the whole array."""
        return self.dtype.itemsize * int(np.prod(self.shape, dtype=object))


def write_container(
    file: BinaryIO, arrays: Mapping[str, NDArray[Any] | ChunkedArray], metadata: Callable[[Mapping[str, int]], Any]
) -> None:
    """Write arrays to a file that is open for writing bytes.

    Parameters
    ----------
    file : the file
    arrays : contiguous arrays by name
    metadata : returns the text that is stored with them, as a dict of strings, from the CRC-32 of each array

    The header is before the arrays and holds their checksums, so that arrays are written at a place that assumes the
    longest checksums, and once more if these are shorter by so many digits that the place is another one.
    """
    ordered = sorted(arrays.items(), key=lambda item: (ORDER[item[1].dtype.name], item[0]))
    checks = dict.fromkeys(arrays, LARGEST_CHECKSUM)
    checks |= {name: zlib.crc32(array_bytes(array)) for name, array in ordered if isinstance(array, np.ndarray)}
    header = _header(ordered, metadata(checks))
    while True:
        place = len(header)
        file.seek(place)
        for name, array in ordered:
            if isinstance(array, np.ndarray):
                file.write(array_bytes(array))
            else:
                checks[name] = _write_chunks(file, array)
        file.truncate()
        header = _header(ordered, metadata(checks))
        if len(header) == place:
            break
    file.seek(0)
    file.write(header)


def array_bytes(array: NDArray[Any]) -> Any:
    """Return the memory of an array, without a copy if it is contiguous."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _write_chunks(file: BinaryIO, array: ChunkedArray) -> int:
    """Write an array while its next chunk is computed, and return its checksum."""
    checksum, before = 0, Future[int]()
    before.set_result(0)
    with ThreadPoolExecutor(1, "forel-writer") as pool:
        for chunk in array.chunks():
            data = array_bytes(chunk)
            before.result()
            before = pool.submit(file.write, data)
            checksum = zlib.crc32(data, checksum)
        before.result()
    return checksum


def _header(arrays: list[tuple[str, NDArray[Any] | ChunkedArray]], metadata: Any) -> bytes:
    """Return the length of the header and the header, padded to whole numbers of 8 bytes."""
    content, start = {"__metadata__": metadata}, 0
    for name, array in arrays:
        end = start + array.nbytes
        content[name] = {"dtype": TYPES[array.dtype.name], "shape": list(array.shape), "data_offsets": [start, end]}
        start = end
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text
