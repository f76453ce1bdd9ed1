"""Linking machine code to a function with llvmlite and numba's C modules, as numba does when it reads its cache.

Functions keep numba's wrapper, which unpacks the arguments and releases the GIL.
"""

import ctypes
import os
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.jit.key import PROCESSOR
from forel.jit.private import extension

__all__ = ["link", "possible"]

ELF, SYMBOLS = b"\x7fELF\x02\x01", 2  # 64-bit little-endian; the kind of section that lists symbols
SECTION = np.dtype([("name", "<u4"), ("kind", "<u4"), ("skip", "V16"), ("at", "<u8"), ("size", "<u8"), ("link", "<u4"),
                    ("rest", "V20")])  # fmt: skip
SYMBOL = np.dtype([("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "V16")])


def possible() -> bool:
    """Return whether machine code can be linked: on Linux, without variables of numba other than the processor's."""
    return sys.platform == "linux" and {name for name in os.environ if name.startswith("NUMBA_")} <= PROCESSOR


def link(code: bytes, wrapper: str, environment: str) -> Callable[..., Any] | None:
    """Link machine code to a function, or return None if symbols are missing."""
    from llvmlite import binding

    dynfunc = _prepared()
    process = ctypes.CDLL(None)
    if not all(binding.address_of_symbol(name) or hasattr(process, name) for name in _undefined(code)):
        return None  # the linker would abort the process
    # Each engine owns its target machine.
    machine = binding.Target.from_default_triple().create_target_machine(jit=True, codemodel="jitdefault")
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    address, place = engine.get_function_address(wrapper), engine.get_global_value_address(environment)
    if not (address and place):
        return None
    # The wrapper uses the environment only for messages of exceptions.
    env = dynfunc.Environment({})
    ctypes.c_void_p.from_address(place).value = id(env)
    function: Callable[..., Any] = dynfunc.make_function(
        sys.modules[__name__], wrapper, "", address, env, (engine, env)
    )
    return function


@cache
def _prepared() -> Any:
    """Register the symbols that numba registers, and return the module that creates functions."""
    from llvmlite import binding

    memory, helpers = extension("core.runtime._nrt_python"), extension("_helperlib")
    for name, address in memory.c_helpers.items():
        binding.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)
    for name, address in helpers.c_helpers.items():
        binding.add_symbol(f"numba_{name}", address)
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return extension("_dynfunc")


def _undefined(code: bytes) -> list[str]:
    """Return the undefined symbols of an ELF object file."""
    if not code.startswith(ELF):
        raise ValueError("not machine code of this system")
    sections = _table(code, SECTION, int.from_bytes(code[40:48], "little"), int.from_bytes(code[60:62], "little"))
    names = []
    for section in sections[sections["kind"] == SYMBOLS]:
        symbols = _table(code, SYMBOL, int(section["at"]), int(section["size"]) // SYMBOL.itemsize)
        strings = int(sections[section["link"]]["at"])
        starts = strings + symbols["name"][symbols["section"] == 0].astype(np.int64)
        names += [code[a : code.index(b"\0", a)].decode() for a in starts.tolist()]
    return [name for name in names if name]


def _table(code: bytes, kind: np.dtype[Any], at: int, count: int) -> NDArray[Any]:
    return np.frombuffer(code, kind, count, at)
