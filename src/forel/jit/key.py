"""One key for all compiled code: sources, versions, settings of numba, and the processor."""

import hashlib
import importlib.util
import os
import pathlib
import platform
import sys
from functools import cache

import numpy as np

__all__ = ["PROCESSOR", "environment", "key", "numba_folder", "portable_key", "processor", "sources"]

PROCESSOR = frozenset({"NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"})  # variables of numba that choose a processor


def key(*parts: object) -> str:
    """Return the key of code that depends on these parts and on the environment, as 40 hexadecimal digits.

    >>> key("learn", "x + x") == key("learn", "x + x"), key("learn", "x + x") == key("learn", "x + y")
    (True, False)
    """
    return _hash(environment(), *parts)


def portable_key(*parts: object) -> str:
    """Return the key of LLVM code, which depends neither on the processor nor on variables of numba, nor on patches.

    numba's part of compiling depends on the bytecode and the C interface of Python, which patch releases do not change,
    and on what it knows about a minor version of numpy.

    >>> portable_key("learn", "x + x") == key("learn", "x + x")
    False
    """
    return _hash(repr(_portable_versions()), *parts)


def _hash(*parts: object) -> str:
    return hashlib.sha256(repr(tuple(map(str, parts))).encode()).hexdigest()[:40]


def sources(*paths: str | pathlib.Path) -> str:
    """Return a hash of files, and of all modules in folders: code depends on what it calls or inlines.

    >>> len(sources(__file__))
    64
    """
    digest = hashlib.sha256()
    for path in map(pathlib.Path, paths):
        for file in sorted(path.glob("*.py")) if path.is_dir() else [path]:
            text = file.read_bytes()
            digest.update(f"{file.name} {len(text)}\n".encode() + text)
    return digest.hexdigest()


def environment() -> str:
    """Return what machine code depends on apart from its sources, without importing numba."""
    return repr((*_versions(), *processor(), _settings()))


def _settings() -> list[tuple[str, str]]:
    """Return the variables of numba, in order."""
    return sorted((name, value) for name, value in os.environ.items() if name.startswith("NUMBA_"))


def processor() -> tuple[str, str]:
    """Return name and features of the target processor: the host, unless variables of numba set another."""
    name, features = os.environ.get("NUMBA_CPU_NAME"), os.environ.get("NUMBA_CPU_FEATURES")
    host = _host()
    return host[0] if name is None else name, host[1] if features is None else features


@cache
def numba_folder() -> str:
    """Return the folder of numba without importing it."""
    spec = importlib.util.find_spec("numba")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError("numba")
    return spec.submodule_search_locations[0]


@cache
def _versions() -> tuple[str, ...]:
    import llvmlite

    numba = pathlib.Path(numba_folder(), "_version.py").read_text()
    return numba, llvmlite.__version__, np.__version__, sys.version, platform.system(), platform.machine()


@cache
def _portable_versions() -> tuple[str, ...]:
    from llvmlite import binding

    numba, llvmlite, numpy, _, *system = _versions()
    python = f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}"
    return numba, llvmlite, ".".join(numpy.split(".")[:2]), python, *system, binding.get_process_triple()


@cache
def _host() -> tuple[str, str]:
    from llvmlite import binding

    return binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()
