"""Private names of numba, each of which another version may lack: then what needs it is left out, and forel is slower.

No other module imports such names. What uses them catches ``MISSING``.
"""

import importlib
import importlib.util
import os
import sys
from importlib.machinery import PathFinder
from typing import Any

from forel.jit.key import numba_folder

__all__ = ["EXTENSIONS", "MISSING", "NAMES", "extension", "private"]

MISSING = (ImportError, AttributeError, TypeError, ValueError, LookupError)  # a name, or its expected form

# Of the code cache, of linking, and of compiling.
NAMES = {
    "dumps": "numba.core.serialize.dumps",
    "reduce": "numba.core.compiler.CompileResult._reduce",
    "rebuild": "numba.core.compiler.CompileResult._rebuild",
    "using_svml": "numba.core.config.USING_SVML",
    "uncounted": "numba.core.cpu.CPUTargetOptions._nrt",
    "memory": "numba.core.runtime.context.NRTContext",
    "populate_array": "numba.np.arrayobj.populate_array",
}
EXTENSIONS = ("core.runtime._nrt_python", "_helperlib", "_dynfunc")


def private(name: str) -> Any:
    """Return one of ``NAMES``.

    >>> private("dumps").__name__
    'dumps'
    """
    module, _, rest = NAMES[name].rpartition(".")
    try:
        return getattr(importlib.import_module(module), rest)
    except ModuleNotFoundError:  # an attribute of a class
        module, _, owner = module.rpartition(".")
        return getattr(getattr(importlib.import_module(module), owner), rest)


def extension(name: str) -> Any:
    """Load one of ``EXTENSIONS``, C modules of numba, without importing numba."""
    full = f"numba.{name}"
    if full in sys.modules:
        return sys.modules[full]
    spec = PathFinder.find_spec(full, [os.path.join(numba_folder(), *name.split(".")[:-1])])
    if spec is None or spec.loader is None:
        raise ImportError(full)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
