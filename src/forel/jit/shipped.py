"""LLVM code of kernels as a part of the package, from which their first use generates machine code without numba.

``make build`` writes it into the wheel, a file for each kernel and key: other sources and other versions of Python,
numpy, numba or llvmlite have other keys, and kernels are compiled as without it. The folder is trusted as the modules
next to it are, and is only read. Assembly compresses to half of what bitcode does, and gives the same machine code.
"""

import pathlib
from typing import Any

from forel.jit.files import SIZE
from forel.jit.folder import folder as code_cache
from forel.validation import refuse

__all__ = ["BITCODE", "FOLDER", "export", "path_of", "read"]

FOLDER = pathlib.Path(__file__).with_name("llvm")
BITCODE = ".bitcode"  # follows the name of a function in names of files of the code cache


def read(name: str, key: str) -> tuple[bytes, Any] | None:
    """Return the names of wrapper and environment and the LLVM module of a function; None if the package has none."""
    path = path_of(name, key)
    if not path.is_file():
        return None
    import lzma  # not part of every Python; whoever calls compiles then

    from llvmlite import binding

    names, assembly = lzma.decompress(path.read_bytes()).split(b"\n", 1)
    return names, binding.parse_assembly(assembly.decode())


def export(folder: pathlib.Path = FOLDER) -> int:
    """Write all bitcode of the code cache as files of the package, and return their number."""
    import lzma

    from llvmlite import binding

    code = code_cache()
    if code is None:
        raise refuse("FOREL_CACHE", "no folder for compiled code", "a folder that you own and only you can write to")
    folder.mkdir(parents=True, exist_ok=True)
    paths = sorted(code.glob(f"*{BITCODE}-*.bin"))
    for path in paths:
        name, _, key = path.stem.partition(f"{BITCODE}-")
        names, bitcode = path.read_bytes()[SIZE:].split(b"\n", 1)
        content = names + b"\n" + str(binding.parse_bitcode(bitcode)).encode()
        path_of(name, key, folder).write_bytes(lzma.compress(content, preset=9))
    return len(paths)


def path_of(name: str, key: str, folder: pathlib.Path | None = None) -> pathlib.Path:
    """Return the path of a function's code, by default in the package."""
    folder = FOLDER if folder is None else folder
    return folder / f"{name}-{key[:20]}.xz"
