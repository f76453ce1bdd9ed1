"""Files by path or URL: ``s3://``, ``gs://``, ``hdfs://``, ``file://`` and others that pyarrow's file systems know.

Credentials and regions are those that pyarrow finds, such as in the environment.
"""

import fnmatch
import io
import os
import re
from typing import Any

from forel.validation import refuse

__all__ = ["RemoteFile", "absolute", "file_state", "is_file", "is_url", "open_file", "url_files"]

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
PATTERN = re.compile(r"[*?\[]")


def is_url(name: Any) -> bool:
    """Return whether a name is a URL.

    >>> is_url("s3://bucket/day.csv"), is_url("day.csv"), is_url("c:/day.csv")
    (True, False, False)
    """
    return isinstance(name, str) and URL.match(name) is not None


class RemoteFile(io.RawIOBase):
    """A file of a pyarrow file system, as a raw stream of bytes; ``native`` is the file itself."""

    def __init__(self, file: Any) -> None:
        self.native = file

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, memory: Any) -> int:
        """Fill the memory as far as there are bytes, and return their number."""
        data = self.native.read(len(memory))
        memory[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Change the position, and return it."""
        return int(self.native.seek(offset, whence))

    def tell(self) -> int:
        """Return the position."""
        return int(self.native.tell())

    def close(self) -> None:
        """Close the file."""
        self.native.close()
        super().close()


def open_file(name: str) -> io.BufferedReader:
    """Open a path or URL for reading bytes."""
    if not is_url(name):
        return open(name, "rb")
    system, path = _located(name)
    return io.BufferedReader(RemoteFile(system.open_input_file(path)), 1 << 20)


def is_file(name: Any) -> bool:
    """Return whether a path or URL is that of a regular file."""
    if not is_url(name):
        return isinstance(name, str) and os.path.isfile(name)
    return bool(_info(name).is_file)


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


def url_files(url: str) -> list[str]:
    """Return the URLs of the files that a URL or pattern names, in the order of the file system.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for name in ("a1.vw", "a2.vw", "b.csv"):
    ...     _ = (folder / name).write_text("1 |a b")
    >>> sorted(found.rpartition("/")[2] for found in url_files(f"file://{folder}/a*.vw"))
    ['a1.vw', 'a2.vw']
    """
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
    wanted = url.removeprefix(prefix)
    selector = FileSelector(folder, allow_not_found=True, recursive="/" in wanted[len(folder) :].lstrip("/"))
    names = [info.path for info in system.get_file_info(selector) if info.is_file]
    matching = [prefix + name for name in names if _matches(name, wanted)]
    if not matching:
        raise FileNotFoundError(f"source: got {url!r}, expected a pattern of files that are there")
    return matching


def _matches(path: str, pattern: str) -> bool:
    """Return whether a path matches a pattern, folder by folder."""
    parts, wanted = path.split("/"), pattern.split("/")
    return len(parts) == len(wanted) and all(map(fnmatch.fnmatchcase, parts, wanted))


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
