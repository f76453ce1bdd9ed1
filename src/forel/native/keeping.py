"""Files of machine code: below the cache folder, whole or not there, and never trusted without their checksum."""

import hashlib
import json
import os
import pathlib
from typing import Any

__all__ = ["home", "read", "write"]

CHECKSUM = 32  # bytes at the beginning of a file


def home() -> pathlib.Path:
    """Return where compiled code is kept: $FOREL_CACHE, or the user's cache folder."""
    base = os.environ.get("FOREL_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "forel"
    )
    return pathlib.Path(base)


def read(path: pathlib.Path) -> tuple[bytes, dict[str, Any]] | None:
    """Return machine code and its facts, or None where there is no such file, or not all of it."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    told, rest = content[:CHECKSUM], content[CHECKSUM:]
    if hashlib.sha256(rest).digest() != told:
        return None
    facts, code = rest.split(b"\n", 1)
    return code, json.loads(facts)


def write(path: pathlib.Path, code: bytes, facts: dict[str, Any]) -> None:
    """Write a file, all of it or nothing; where nothing can be written, nothing is kept."""
    rest = json.dumps(facts).encode() + b"\n" + code
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(hashlib.sha256(rest).digest() + rest)
        temporary.replace(path)
    except OSError:
        return
