"""Composing a kernel from pieces, and keeping what numba compiled for the next process."""

import hashlib
import importlib.util
import inspect
import math
import os
import pathlib
import sys
from collections.abc import Callable
from functools import lru_cache
from types import ModuleType
from typing import Any

import numba

from forel.kernels import address, dither, elementary, inline, losses, pieces, plain, prefetch, records, scratch
from forel.kernels.recipe import FLAGS, Recipe
from forel.native import home

__all__ = ["compose", "interpret"]

COMPILED = ("carray", "pointer", *plain.__all__)  # what only compiled code can have


def folder() -> pathlib.Path:
    """Return where composed kernels are kept: $FOREL_CACHE, or the user's cache folder."""
    return home() / "kernels"


@lru_cache(maxsize=64)
def compose(recipe: Recipe) -> ModuleType:
    """Return a module with the compiled functions ``learn``, ``feed``, ``predict`` and ``gather`` of a recipe.

    ``learn_one`` and ``predict_one`` are the same for one row, with less to hand over.

    The module's file has a hash of everything that went into it in its name, because numba's cache looks only at the
    file itself. A loss of the user's own is compiled in memory, unless it can be imported by name.
    """
    lines = [f"from forel.kernels.{piece} as {name}" for name, piece in _imports(recipe)]
    own = None if isinstance(recipe.loss, str) else recipe.loss
    if own is not None and _importable(own):
        lines.append(f"from {own.__module__} import {own.__name__} as loss")
    if own is not None and not hasattr(own, "py_func"):
        lines.append('loss = njit(error_model="numpy", nogil=True)(loss)')
    text = recipe.source("\n".join(lines))
    if own is not None and not _importable(own):
        return _in_memory(text, {"loss": own})
    modules = [
        address,
        dither,
        elementary,
        inline,
        losses,
        pieces,
        prefetch,
        records,
        scratch,
        *([inspect.getmodule(own)] if own is not None else []),
    ]
    sources = "".join(inspect.getsource(module) for module in modules if module is not None)
    versions = f"{numba.__version__} {sys.version}"
    key = hashlib.sha256((text + sources + versions).encode()).hexdigest()[:20]
    try:
        path = _written(folder() / f"forel_{key}.py", text)
    except OSError:  # no folder that can be written to: every process compiles for itself
        return _in_memory(text, {})
    if not any(path.parent.glob(f"__pycache__/{path.stem}.*.nbi")):
        _announce(path.parent)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _written(path: pathlib.Path, text: str) -> pathlib.Path:
    """Write a module that is not there yet, all of it or nothing."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}.tmp")
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    return path


def _in_memory(text: str, names: dict[str, Any]) -> ModuleType:
    module = ModuleType("forel_kernel_in_memory")
    module.__dict__.update(names)
    exec(text.replace("cache=True, ", ""), module.__dict__)
    return module


def _announce(kept: pathlib.Path) -> None:
    """Say what the first rows wait for; $FOREL_QUIET keeps it silent."""
    if not os.environ.get("FOREL_QUIET"):
        print(f"forel: compiling a kernel, once; it is kept in {kept}", file=sys.stderr, flush=True)


def _imports(recipe: Recipe) -> list[tuple[str, str]]:
    return [(name, piece.replace(".", " import ")) for name, piece in recipe.pieces().items()]


def _importable(own: Any) -> bool:
    """Tell whether a later process finds the same function under its name."""
    module = sys.modules.get(own.__module__)
    return own.__module__ != "__main__" and getattr(module, own.__name__, None) is own


@lru_cache(maxsize=64)
def interpret(recipe: Recipe) -> ModuleType:
    """Return the same functions as plain Python, from the same source: slow, and what parity is tested on."""
    module = ModuleType("forel_kernel_interpreted")
    spaces = _interpreted()
    found = {name: piece.split(".") for name, piece in recipe.pieces().items() if name not in COMPILED}
    names = {name: spaces[home][piece] for name, (home, piece) in found.items()}
    if not isinstance(recipe.loss, str):
        names["loss"] = getattr(recipe.loss, "py_func", recipe.loss)
    twins = {name: getattr(plain, name) for name in plain.__all__}
    module.__dict__.update(names, **twins, njit=_unchanged)
    exec(recipe.source("").replace("from numba import njit\n", ""), module.__dict__)
    return module


def _unchanged(*_: object, **__: object) -> Callable[[Any], Any]:
    return lambda function: function


@lru_cache(maxsize=1)
def _interpreted() -> dict[str, dict[str, Any]]:
    """Return the modules of pieces run once more without numba, so that pieces call uncompiled pieces."""
    spaces: dict[str, dict[str, Any]] = {}
    shared = {"fast": lambda f: f, "njit": _unchanged, "intrinsic": lambda f: f, "FLAGS": FLAGS}
    shared |= {"decay": elementary.decay, "log1p": elementary.log1p}
    for name, module in (("dither", dither), ("pieces", pieces), ("losses", losses)):
        lines = inspect.getsource(module).splitlines()
        kept = [line for line in lines if not line.startswith(("from numba", "from llvmlite", "from forel", "fast ="))]
        space: dict[str, Any] = {"__name__": f"{module.__name__}_interpreted", **shared}
        exec("\n".join(kept), space)
        space["binade"] = lambda x: abs(x) and 2.0 ** math.floor(math.log2(abs(x)))
        spaces[name] = space
        shared["add"] = spaces["dither"]["add"]
    spaces["dither"]["noise"] = lambda t: (0.0, 0.0)  # plain rounding
    return spaces
