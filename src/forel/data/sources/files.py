"""Files by path, pattern or URL, such as ``s3://``, ``gs://``, ``hdfs://``, ``file://`` and others that pyarrow knows.

Credentials and regions are those that pyarrow finds, such as in the environment.
"""

import glob
import io
import os
import re
import sys
import zlib
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any

from forel.validation import refuse

__all__ = [
    "absolute",
    "expand_paths",
    "file_state",
    "fingerprints",
    "growth",
    "is_file",
    "is_one_shot",
    "is_topic",
    "is_url",
    "natural_key",
    "open_file",
    "single_sources",
    "standard_input",
]  # fmt: skip

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
PATTERN = re.compile(r"[*?\[]")
CHECKED = 1 << 16  # bytes at the beginning and at the end


def single_sources(source: Any) -> list[Any]:
    """Return the parts of a source: each file by itself."""
    if isinstance(source, str | os.PathLike):
        return list(expand_paths(source))
    if isinstance(source, Sequence) and source and all(isinstance(s, str | os.PathLike) for s in source):
        return [path for one in source for path in expand_paths(one)]
    if isinstance(source, Sequence) and source and all(hasattr(s, "read") for s in source):
        return list(source)
    return [source]


def expand_paths(source: str | os.PathLike[str]) -> list[str]:
    """Return the files that a path, URL or glob pattern matches, in natural order; "-" is standard input.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for name in ("a10.vw", "a2.vw", "b.csv"):
    ...     _ = (folder / name).write_text("1 |a b")
    >>> [found.rpartition("/")[2] for found in expand_paths(f"file://{folder}/a*.vw")], expand_paths("-")
    (['a2.vw', 'a10.vw'], ['-'])
    """
    path = os.fspath(source)
    if is_topic(path):
        return [path]
    if is_url(path):
        return sorted(_url_files(path), key=natural_key)
    if path == "-" or os.path.isfile(path):
        return [path]
    if os.path.isdir(path):
        raise refuse("source", path, "a file; for all files of a folder add /*")
    if os.path.exists(path):  # a pipe or a device
        return [path]
    found = sorted((p for p in glob.glob(path, recursive=True) if os.path.isfile(p)), key=natural_key)
    if not found:
        raise FileNotFoundError(f"source: got {path!r}, expected a file that is there, or a pattern of such")
    return found


def natural_key(path: str) -> tuple[Any, ...]:
    """Return a key for sorting that compares runs of digits as numbers.

    >>> sorted(["part-10.csv", "part-2.csv"], key=natural_key)
    ['part-2.csv', 'part-10.csv']
    """
    parts = re.split(r"([0-9]+)", path)
    return tuple(int(part) if k % 2 else part for k, part in enumerate(parts)), path


def open_file(name: str) -> io.BufferedReader:
    """Open a path or URL for reading bytes."""
    if not is_url(name):
        return open(name, "rb")
    system, path = _located(name)
    return io.BufferedReader(system.open_input_file(path), 1 << 20)


def standard_input() -> Any:
    """Return a stream of standard input; Python aborts at exit if another thread waits for bytes of ``sys.stdin``."""
    try:
        raw: Any = io.FileIO(os.dup(sys.stdin.fileno()))
    except (AttributeError, OSError, ValueError):  # no file of the system
        return sys.stdin.buffer
    raw.name = "standard input"
    return io.BufferedReader(raw)


def is_file(name: Any) -> bool:
    """Return whether a path or URL is that of a regular file."""
    return (
        bool(not is_topic(name) and _info(name).is_file)
        if is_url(name)
        else isinstance(name, str) and os.path.isfile(name)
    )


def is_one_shot(source: Any) -> bool:
    """Return whether a source is a stream, which can be read only once.

    >>> is_one_shot(["-"]), is_one_shot([{"x": 1.0}])
    (True, False)
    """
    if isinstance(source, Iterator) or hasattr(source, "read"):
        return True
    return any(not is_file(one) if isinstance(one, str) else hasattr(one, "read") for one in single_sources(source))


def absolute(name: str) -> str:
    """Return a URL, or the absolute path of a file."""
    return name if is_url(name) else os.path.abspath(name)


def file_state(name: str) -> tuple[int, int]:
    """Return the size of a file in bytes, and the time of its last change in nanoseconds, 0 if it is not known."""
    if is_url(name):
        found = _info(name)
        return int(found.size), int(found.mtime_ns or 0)
    state = os.stat(name)
    return state.st_size, state.st_mtime_ns


def growth(name: str, size: int | None = None) -> tuple[int, int]:
    """Return the size of a file that grows, or of its first ``size`` bytes, and a checksum of their beginning and end.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.vw"
    >>> _ = path.write_text("1 |a b")
    >>> before = growth(path)
    >>> _ = path.write_text("1 |a b\\n")
    >>> before[0], growth(path, 6) == before, growth(path) == before
    (6, True, False)
    """
    length = min(os.path.getsize(name), sys.maxsize if size is None else size)
    with open(name, "rb") as file:
        found = zlib.crc32(file.read(min(length, CHECKED)))
        file.seek(max(0, length - CHECKED))
        return length, zlib.crc32(file.read(min(length, CHECKED)), found)


def fingerprints(source: Any, growing: bool = False) -> list[list[Any]] | None:
    """Return path, size and modification time of each file, or of a growing one its path; None if a part is no file.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.vw"
    >>> _ = path.write_text("1 |a b")
    >>> [[_, size, _]] = fingerprints([path])
    >>> size, fingerprints(["-", path])
    (6, None)
    """
    found = single_sources(source)
    if not all(map(is_file, found)):
        return None
    return [[absolute(one), *(() if growing else file_state(one))] for one in found]


def is_url(name: Any) -> bool:
    """Return whether a source is a URL."""
    return isinstance(name, str) and URL.match(name) is not None


def is_topic(source: Any) -> bool:
    """Return whether a source is the address of a topic.

    >>> is_topic("kafka://localhost:9092/clicks"), is_topic("clicks.vw")
    (True, False)
    """
    return isinstance(source, str) and source.startswith("kafka://")


def _url_files(url: str) -> list[str]:
    """Return the URLs of the files that a URL or pattern names, in the order of the file system."""
    pattern = PATTERN.search(url)
    if pattern is None:
        found = _info(url)
        if found.is_file:
            return [url]
        if found.type.name == "Directory":
            raise refuse("source", url, "a file; for all files of a folder add /*")
        raise FileNotFoundError(f"source: got {url!r}, expected a file that is there, or a pattern of such")
    from pyarrow.fs import FileSelector

    fixed = url[: pattern.start()].rpartition("/")[0]
    system, folder = _located(fixed)
    prefix = fixed.removesuffix(folder) if fixed.endswith(folder) else fixed[: fixed.index("://") + 3]
    wanted = PurePosixPath("/", url.removeprefix(prefix))  # from the root, so that it matches folder by folder
    selector = FileSelector(folder, allow_not_found=True, recursive="/" in url[len(fixed) + 1 :])
    names = [info.path for info in system.get_file_info(selector) if info.is_file]
    matching = [prefix + name for name in names if PurePosixPath("/", name).match(str(wanted))]
    if not matching:
        raise FileNotFoundError(f"source: got {url!r}, expected a pattern of files that are there")
    return matching


def _info(url: str) -> Any:
    system, path = _located(url)
    return system.get_file_info(path)


def _located(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it."""
    import pyarrow as pa
    from pyarrow.fs import FileSystem

    try:
        system, path = FileSystem.from_uri(url)
    except pa.ArrowInvalid as error:
        reason = str(error).splitlines()[0]
        raise refuse("source", url, f"a URL of a file system that pyarrow knows ({reason})") from error
    return system, path
