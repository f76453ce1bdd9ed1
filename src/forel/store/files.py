"""One file: a header and arrays, written all or not at all, and read only when whole.

The container is safetensors, which holds numbers and text and nothing that runs. The header is one JSON text with
sorted keys, in one entry of the container's metadata: several would be written in no particular order.
"""

import errno
import json
import os
import pathlib
import re
import secrets
import shutil
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from forel.store.locks import lock
from forel.store.versions import VERSION, Unreadable, migrated, this_forel

__all__ = ["File", "Path", "Unreadable", "beside", "failure", "opened", "permissions", "sweep", "text_of", "write"]

Path = str | os.PathLike[str]
ENTRY, FORMAT = "forel", "forel"
PIECE = 1 << 24  # bytes that are read at a time
REMEDIES = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "make room, or write elsewhere"),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "choose a folder that you may write to"),
    **dict.fromkeys((errno.ENOENT, errno.ENOTDIR), "make the folder first"),
}


def text_of(content: Any) -> str:
    """Return JSON that is the same for equal content."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)


def write(path: Path, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a file beside ``path`` and rename it once it is on the disk; until then an older one stays as it is."""
    target = pathlib.Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise ValueError(f"{path}: got a folder or a device, expected the name of a file")
    whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    full = {**header, "format": FORMAT, "version": VERSION, "written_by": this_forel()}
    full["checks"] = {name: zlib.crc32(_bytes(array)) for name, array in whole.items()}
    full["check"] = zlib.crc32(text_of(full).encode())
    # In a folder of its own, because the container's library writes to yet another file first.
    folder = pathlib.Path(beside(target))
    temporary = folder / "whole"
    try:
        folder.mkdir()
        with _in_use(folder):
            mode = _new_mode(target, temporary)
            save_file(whole, temporary, {ENTRY: text_of(full)})
            os.chmod(temporary, mode)
            _sync(temporary, os.O_RDWR)
            temporary.replace(target)
        with suppress(OSError):  # some systems cannot sync a folder, and the file is whole either way
            _sync(target.parent, os.O_RDONLY)
    except (OSError, SafetensorError) as error:
        raise failure(path, error) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sweep(path: Path) -> None:
    """Remove what a process that was killed while it wrote to ``path`` has left; what another is writing stays."""
    target = pathlib.Path(os.path.realpath(path))
    for left in target.parent.glob(f"{_prefix(target)}*.forel"):
        with suppress(OSError), _in_use(left) as mine:
            if mine:
                shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)


def beside(path: Path) -> str:
    """Return a name in the folder of a file, for what is not yet whole; ``sweep`` finds it."""
    target = pathlib.Path(path)
    return str(target.with_name(f"{_prefix(target)}{secrets.token_hex(8)}.forel"))


def _prefix(target: pathlib.Path) -> str:
    return f".{zlib.crc32(os.fsencode(target.name)):08x}-"


def permissions(target: pathlib.Path, new: int) -> int:
    """Return those of the file that is replaced, or those of the ``new`` one, which is open."""
    return (target.stat() if target.exists() else os.fstat(new)).st_mode & 0o777


def _new_mode(target: pathlib.Path, temporary: pathlib.Path) -> int:
    place = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    try:
        return permissions(target, place)
    finally:
        os.close(place)


@contextmanager
def _in_use(place: pathlib.Path) -> Iterator[bool]:
    """Lock a file or a folder meanwhile, and tell whether nobody else had it."""
    handle = os.open(place, os.O_RDONLY)
    try:
        yield lock(handle)
    finally:
        os.close(handle)


def _sync(place: pathlib.Path, flags: int) -> None:
    handle = os.open(place, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def failure(path: Path, error: Exception) -> OSError:
    """Return an error that says what to do; the container's library tells the system's number only in words."""
    said = re.search(r"os error (\d+)", str(error))
    number = error.errno if isinstance(error, OSError) else int(said[1]) if said else None
    if number is None:
        return OSError(f"{path}: could not be written ({error}); a file that was there is unchanged")
    what = f"could not be written ({os.strerror(number)}); a file that was there is unchanged"
    return OSError(number, f"{path}: {what}; {REMEDIES.get(number, 'try again, or elsewhere')}")


@dataclass(frozen=True)
class File:
    """A file that is being read: its header, and its arrays when asked for."""

    header: dict[str, Any]
    handle: Any
    used: set[str] = field(default_factory=set)

    def has(self, name: str) -> bool:
        """Tell whether there is such an array."""
        return name in self.header["checks"]

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of an array, without reading it."""
        if not self.has(name):
            raise Unreadable(f"there is no array {name!r}")
        self.used.add(name)
        return tuple(self.handle.get_slice(name).get_shape())

    def named(self, beginning: str) -> list[str]:
        """Return the names of all arrays that begin so."""
        return sorted(name for name in self.header["checks"] if name.startswith(beginning))

    def array(self, name: str, dtype: DTypeLike, shape: tuple[int, ...]) -> NDArray[Any]:
        """Return a whole array, which must be of this type and shape."""
        out = np.empty(shape if self.shape(name) == shape else 0, dtype)
        for start, piece in self.pieces(name, dtype, shape):
            out[start : start + len(piece)] = piece
        return out

    def pieces(self, name: str, dtype: DTypeLike, shape: tuple[int, ...]) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield an array piece by piece, each with the row it begins with; the last comes only if all were whole."""
        if self.shape(name) != shape:
            raise Unreadable(f"{name!r} has the shape {self.shape(name)} where {shape} was expected")
        source, check, held = self.handle.get_slice(name), 0, None
        row = np.dtype(dtype).itemsize * int(np.prod(shape[1:], dtype=object))
        step = max(1, PIECE // max(row, 1))
        for start in range(0, shape[0], step):
            piece = source[start : min(start + step, shape[0])]
            if piece.dtype != dtype:
                raise Unreadable(f"{name!r} has numbers of type {piece.dtype} where {np.dtype(dtype)} was expected")
            check = zlib.crc32(_bytes(piece), check)
            if held is not None:
                yield held
            held = start, piece
        if check != self.header["checks"][name]:
            raise Unreadable(f"the numbers of {name!r} are not those that were written")
        if held is not None:
            yield held


@contextmanager
def opened(path: Path) -> Iterator[File]:
    """Open a file for reading; whatever is wrong with it, also inside the block, is an ``Unreadable`` that names it."""
    try:
        # Opened twice, because the container's library does not say the number of what went wrong.
        with open(path, "rb"), safe_open(os.fspath(path), framework="numpy") as handle:
            yield File(_header(handle), handle)
    except OSError as error:
        raise OSError(error.errno, f"{path}: could not be read ({error.strerror or error}); check the path") from error
    except MemoryError as error:
        said = str(error) or "the model needs more memory than there is"
        raise MemoryError(f"{path}: {said}; or load it on a larger machine") from None
    except SafetensorError as error:
        what = f"not a whole model file ({error}); take another copy, or train again"
        raise Unreadable(f"{path}: {what}") from None
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError, RecursionError) as error:
        raise Unreadable(f"{path}: {_sentence(error)}") from error


def _header(handle: Any) -> dict[str, Any]:
    text = (handle.metadata() or {}).get(ENTRY)
    header = None if text is None else json.loads(text)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise Unreadable("a safetensors file, but not a model of forel; load it with what wrote it")
    rest = {name: value for name, value in header.items() if name != "check"}
    newer = type(header.get("version")) is int and header["version"] > VERSION  # which may check otherwise
    if not newer and header.get("check") != zlib.crc32(text_of(rest).encode()):
        raise Unreadable("the header is not the one that was written; take another copy, or train again")
    header = migrated(header)
    if not isinstance(header["checks"], dict) or set(header["checks"]) != set(handle.keys()):
        raise Unreadable("the arrays are not those that the header names; take another copy, or train again")
    return header


def _sentence(error: Exception) -> str:
    if isinstance(error, Unreadable):
        return str(error)
    return f"not a whole model file ({type(error).__name__}: {error}); take another copy, or train again"


def _bytes(array: NDArray[Any]) -> Any:
    """Return the memory of an array, without a copy where it lies in one piece."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
