"""From machine code to a function: what numba does when it reads its cache, by llvmlite and numba's own C modules.

A function keeps numba's wrapper, which takes arrays from Python and gives up the interpreter's lock, so that nothing
here knows how arguments are laid out.
"""

import ctypes
import importlib.util
import os
import sys
from collections.abc import Callable
from functools import cache
from importlib.machinery import PathFinder
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.jit.key import numba_folder

__all__ = ["link", "possible"]

ELF, SYMBOLS = b"\x7fELF\x02\x01", 2  # 64 bits, lowest byte first; the kind of section that lists symbols
SECTION = np.dtype([("name", "<u4"), ("kind", "<u4"), ("skip", "V16"), ("at", "<u8"), ("size", "<u8"), ("link", "<u4"),
                    ("rest", "V20")])  # fmt: skip
SYMBOL = np.dtype([("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "V16")])
PROCESSOR = {"NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"}  # part of every key


def possible() -> bool:
    """Return whether machine code can be linked: on Linux, without variables for numba other than the processor's."""
    return sys.platform == "linux" and {name for name in os.environ if name.startswith("NUMBA_")} <= PROCESSOR


def link(code: bytes, wrapper: str, environment: str) -> Callable[..., Any] | None:
    """Return the function of machine code, or None if it needs symbols that are missing."""
    from llvmlite import binding

    make = _prepared()
    process = ctypes.CDLL(None)
    if not all(binding.address_of_symbol(name) or hasattr(process, name) for name in _undefined(code)):
        return None  # the linker would end the process
    # An engine owns its machine: two of them cannot share one.
    machine = binding.Target.from_default_triple().create_target_machine(jit=True, codemodel="jitdefault")
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    # The wrapper uses the environment only for messages of exceptions.
    held = make.Environment({})
    ctypes.c_void_p.from_address(engine.get_global_value_address(environment)).value = id(held)
    address = engine.get_function_address(wrapper)
    made: Callable[..., Any] = make.make_function(sys.modules[__name__], wrapper, "", address, held, (engine, held))
    return made


@cache
def _prepared() -> Any:
    """Register the symbols that numba registers, and return the module that creates functions."""
    from llvmlite import binding

    memory, helpers = _extension("core", "runtime", "_nrt_python"), _extension("_helperlib")
    for name, address in memory.c_helpers.items():
        binding.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)
    for name, address in helpers.c_helpers.items():
        binding.add_symbol(f"numba_{name}", address)
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return _extension("_dynfunc")


def _extension(*names: str) -> Any:
    """Load a C extension of numba without importing numba."""
    full = ".".join(("numba", *names))
    if full in sys.modules:
        return sys.modules[full]
    spec = PathFinder.find_spec(full, [os.path.join(numba_folder(), *names[:-1])])
    if spec is None or spec.loader is None:
        raise ImportError(full)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _undefined(code: bytes) -> list[str]:
    """Return the undefined symbols of an ELF object file."""
    if not code.startswith(ELF):
        raise ValueError("not machine code of this system")
    sections = _table(code, SECTION, int.from_bytes(code[40:48], "little"), int.from_bytes(code[60:62], "little"))
    found = []
    for section in sections[sections["kind"] == SYMBOLS]:
        symbols = _table(code, SYMBOL, int(section["at"]), int(section["size"]) // SYMBOL.itemsize)
        names = int(sections[section["link"]]["at"])
        starts = names + symbols["name"][symbols["section"] == 0].astype(np.int64)
        found += [code[a : code.index(b"\0", a)].decode() for a in starts.tolist()]
    return [name for name in found if name]


def _table(code: bytes, kind: np.dtype[Any], at: int, count: int) -> NDArray[Any]:
    return np.frombuffer(code, kind, count, at)
