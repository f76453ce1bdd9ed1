"""Composing a kernel from pieces, and keeping what numba compiled for the next process."""

import inspect
import linecache
import math
import pathlib
import secrets
import sys
from collections.abc import Callable
from functools import lru_cache, partial
from types import ModuleType
from typing import Any

import numba

from forel.jit import disabled, sources
from forel.jit.compiling import keep
from forel.jit.disabled import uncompiled
from forel.jit.folder import folder
from forel.jit.key import key
from forel.learner.kernels import dither, elementary, losses, pieces, plain
from forel.learner.kernels.recipe import FLAGS, Recipe

__all__ = ["compose", "interpret"]

ENTRIES = ("learn", "feed", "predict", "gather", "learn_one", "predict_one")


@lru_cache(maxsize=64)
def compose(recipe: Recipe) -> ModuleType:
    """Return a module with the compiled functions ``learn``, ``feed``, ``predict`` and ``gather`` of a recipe.

    ``learn_one`` and ``predict_one`` are the same for one row, with less to hand over.

    Its name has a hash of everything that went into it. A loss of the user's own is compiled in every process, unless
    it can be imported by name.
    """
    if disabled():
        found = interpret(recipe)
        module = ModuleType("forel_kernel_uncompiled")
        module.__dict__.update({name: uncompiled(getattr(found, name)) for name in ENTRIES})
        return module
    lines = [f"from forel.learner.kernels.{piece} as {name}" for name, piece in _imports(recipe)]
    own = None if isinstance(recipe.loss, str) else recipe.loss
    if own is not None and _importable(own):
        lines.append(f"from {own.__module__} import {own.__name__} as loss")
    if own is not None and not hasattr(own, "py_func"):
        lines.append('loss = njit(error_model="numpy", nogil=True)(loss)')
    text = recipe.source("\n".join(lines))
    if own is not None and not _importable(own):
        return _executed("forel_kernel_in_memory", text, {"loss": own, "kept": numba.njit})
    source = key(text, sources(pathlib.Path(__file__).parent), *([_source(own)] if own is not None else []))
    name = f"forel_kernel_{source[:20]}"
    kept = folder()
    notice = None if kept is None else f"compiling a kernel, once; it is kept in {kept}"
    return _executed(name, text, {"kept": partial(_kept, source, notice)})


def _executed(name: str, text: str, names: dict[str, Any]) -> ModuleType:
    """Return a module with some names, of which the text is run."""
    module = ModuleType(name)
    module.__dict__.update(names)
    if "loss" not in names:  # numba looks for code of earlier processes by the module's name, and so do tracebacks
        sys.modules[name] = module
        linecache.cache[f"<{name}>"] = len(text), None, text.splitlines(True), f"<{name}>"
    exec(compile(text, f"<{name}>", "exec"), module.__dict__)
    return module


def _kept(source: str, notice: str | None, **options: Any) -> Callable[[Any], Any]:
    """Return a decorator that compiles by numba, with the code cache."""
    return lambda function: keep(numba.njit(**options)(function), source, notice)


def _source(own: Any) -> str:
    """Return the source of a loss's module, or something that no other process has."""
    module = inspect.getmodule(own)
    try:
        return "" if module is None else inspect.getsource(module)
    except OSError:
        return secrets.token_hex()


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
    found = {name: piece.split(".") for name, piece in recipe.pieces().items() if name not in plain.__all__}
    names = {name: spaces[home][piece] for name, (home, piece) in found.items()}
    if not isinstance(recipe.loss, str):
        names["loss"] = getattr(recipe.loss, "py_func", recipe.loss)
    twins = {name: getattr(plain, name) for name in plain.__all__}
    module.__dict__.update(names, **twins, njit=_unchanged, kept=_unchanged)
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
    spaces["dither"]["noise"] = lambda t, key: (0.0, 0.0)  # plain rounding
    return spaces
