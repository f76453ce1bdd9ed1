"""Composing a kernel from pieces, and keeping what numba compiled for the next process."""

import hashlib
import importlib.util
import inspect
import os
import pathlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType
from typing import Any, Literal

import numba

from forel.kernels import losses as loss_pieces
from forel.kernels import pieces
from forel.kernels import prefetch as prefetching
from forel.kernels.template import TEMPLATE

__all__ = ["Recipe", "compose", "interpret"]

Labels = Literal["shared", "classes"]
LOSSES = ("logistic", "squared", "hinge", "squared_hinge", "absolute")


@dataclass(frozen=True)
class Recipe:
    """Which pieces a kernel is made of, by name; ``loss`` may also be a pair of the user's own (value, slope)."""

    loss: str | tuple[Callable[..., float], Callable[..., float]]
    rule: Literal["centered", "proximal", "mirror"]
    rate: Literal["adagrad", "scale_free", "constant", "root"]
    weights: Literal["once", "every"]
    lanes: int = 1
    bias: bool = False
    labels: Labels = "shared"
    double: bool = False
    certified: bool = False

    @property
    def loop(self) -> str:
        """The number of turns of the inner loop: a literal for one lane, and counted up where lanes go side by side."""
        return "1" if self.lanes == 1 else "zn.shape[2]"

    def pieces(self) -> dict[str, Any]:
        """Return the functions that the template names, by the names it gives them."""
        value, slope = self._loss()
        strength = self.rate if self.rate in ("adagrad", "scale_free") else "timed"
        clock = {"constant": "constant_clock", "root": "root_clock"}.get(self.rate, "no_clock")
        return {
            "value": value,
            "derivative": slope,
            "strength": getattr(pieces, strength),
            "clock": getattr(pieces, clock),
            "weight": pieces.primal_weight if self.rule == "mirror" else pieces.dual_weight,
            "step": getattr(pieces, f"{self.rule}_step"),
            "total": getattr(pieces, f"{self.weights}_total"),
            "now_weight": getattr(pieces, f"{self.weights}_now"),
            "faded": pieces.faded,
            "prefetch": prefetching.prefetch,
        }

    def _loss(self) -> tuple[Any, Any]:
        if isinstance(self.loss, str):
            return getattr(loss_pieces, f"{self.loss}_value"), getattr(loss_pieces, f"{self.loss}_slope")
        value, slope = (numba.njit(error_model="numpy", nogil=True)(f) for f in self.loss)
        return value, slope

    def source(self, imports: str) -> str:
        """Return the template with this recipe's lines and literals."""
        proximal = self.rule == "proximal"
        wanted = {
            "see": self.rate == "scale_free",
            "fade": self.rule == "mirror" and self.weights == "every",
            "proof": self.certified,
            "around": self.certified and proximal,
        }
        label = "labels[r]" if self.labels == "shared" else "(one if labels[r] == k else OTHER)"
        loss = "\n".join(
            (
                f"for k in range({self.loop}):",
                f"            y = {label}",
                "            sums[k] += float(scale * value(margin[k], y))",
                "            slope[k] = scale * derivative(margin[k], y)",
            )
        )
        other = "-one" if self.loss in ("hinge", "squared_hinge") else "zero"
        lines = []
        for line in TEMPLATE.splitlines():
            mark = next((name for name in wanted if line.lstrip().startswith(f"#{name} ")), None)
            if mark is None:
                lines.append(line)
            elif wanted[mark]:
                lines.append(line.replace(f"#{mark} ", "", 1))
        limit = "1e150" if self.double else "1e15"
        text = "\n".join(lines) + "\n"
        filled = text.format(imports=imports, lanes=self.loop, bias=int(self.bias), limit=limit, loss=loss)
        # Theorem 2 measures g_t with the strength of its own round, Theorem 1 with that of the round before.
        return filled.replace("OTHER", other).replace("MEASURED", "after" if proximal else "before")


def folder() -> pathlib.Path:
    """Return where composed kernels are kept: $FOREL_CACHE, or the user's cache folder."""
    base = os.environ.get("FOREL_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "forel"
    )
    return pathlib.Path(base) / "kernels"


@lru_cache(maxsize=64)
def compose(recipe: Recipe) -> ModuleType:
    """Return a module with the compiled functions ``learn``, ``predict`` and ``read`` of a recipe.

    The module's file has a hash of everything that went into it in its name, because numba's cache looks only at the
    file itself. A user's own functions are compiled in memory, unless they can be imported by name.
    """
    found = recipe.pieces()
    imported = {name: piece for name, piece in found.items() if _importable(piece)}
    lines = [f"from {_home(piece)} import {_name(piece)} as {name}" for name, piece in imported.items()]
    text = recipe.source("\n".join(lines))
    if len(imported) < len(found):
        module = ModuleType("forel_kernel_in_memory")
        module.__dict__.update({name: piece for name, piece in found.items() if name not in imported})
        exec(text.replace("cache=True, ", ""), module.__dict__)
        return module
    sources = "".join(inspect.getsource(inspect.getmodule(_plain(piece))) for piece in imported.values())  # type: ignore[arg-type]
    versions = f"{numba.__version__} {sys.version}"
    key = hashlib.sha256((text + sources + versions).encode()).hexdigest()[:20]
    path = folder() / f"forel_{key}.py"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}.tmp")
        temporary.write_text(text)
        temporary.replace(path)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


@lru_cache(maxsize=64)
def interpret(recipe: Recipe) -> ModuleType:
    """Return the same functions as plain Python, from the same source: slow, and what parity is tested on."""

    def unchanged(**_: object) -> Callable[[Any], Any]:
        return lambda function: function

    module = ModuleType("forel_kernel_interpreted")
    text = recipe.source("").replace("from numba import njit\n", "")
    names: dict[str, Any] = {name: _interpreted(piece) for name, piece in recipe.pieces().items()}
    module.__dict__.update(names, njit=unchanged, prefetch=lambda array, row: None)
    exec(text, module.__dict__)
    return module


@lru_cache(maxsize=1)
def _interpreted_pieces() -> dict[str, dict[str, Any]]:
    """Return the modules of pieces run once more without numba, so that pieces call uncompiled pieces."""
    spaces = {}
    for module in (pieces, loss_pieces):
        text = inspect.getsource(module).replace("from numba import njit\n", "njit = lambda **_: lambda f: f\n")
        space: dict[str, Any] = {"__name__": f"{module.__name__}_interpreted"}
        exec(text, space)
        spaces[module.__name__] = space
    return spaces


def _interpreted(piece: Any) -> Any:
    space = _interpreted_pieces().get(_plain(piece).__module__)
    return space[_name(piece)] if space is not None else _plain(piece)


def _plain(piece: Any) -> Any:
    return getattr(piece, "py_func", getattr(piece, "_defn", piece))


def _home(piece: Any) -> str:
    return str(_plain(piece).__module__)


def _name(piece: Any) -> str:
    return str(_plain(piece).__name__)


def _importable(piece: Any) -> bool:
    """Tell whether a later process finds the same function under its name."""
    module = sys.modules.get(_home(piece))
    return _home(piece) != "__main__" and getattr(module, _name(piece), None) in (piece, _plain(piece))
