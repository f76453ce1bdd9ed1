"""Pages of the API reference: one per public module, from its docstrings."""

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import forel

__all__ = ["modules", "nav", "page"]

# Compiled code has no types or examples; the command line has --help.
EXCLUDED = ("forel.learner.kernels", "forel.data.compiled", "forel.doors.cli")


def modules() -> Iterator[str]:
    """Yield the names of all public modules."""
    for info in pkgutil.walk_packages(forel.__path__, "forel."):
        parts = info.name.split(".")
        if not any(part.startswith("_") for part in parts) and not info.name.startswith(EXCLUDED):
            yield info.name


def page(name: str) -> str:
    """Markdown page of a module; the page of a package documents its own names and lists its modules."""
    module = importlib.import_module(name)
    if not hasattr(module, "__path__"):
        return f"# `{name}`\n\n::: {name}\n"
    own = [n for n, thing in vars(module).items() if not n.startswith("_") and _made_in(thing, name)]
    lines = [f"# `{name}`", "", f"::: {name}", "    options:", f"      members: {own or 'false'}", ""]
    parts = [other for other in modules() if other.rpartition(".")[0] == name]
    if parts:
        lines += ["| module | description |", "|---|---|", *(f"| [`{p}`]({p}.md) | {_first(p)} |" for p in parts)]
    return "\n".join(lines) + "\n"


def _made_in(thing: Any, name: str) -> bool:
    return not isinstance(thing, ModuleType) and getattr(thing, "__module__", "") == name


def _first(name: str) -> str:
    doc = importlib.import_module(name).__doc__ or ""
    return doc.strip().splitlines()[0].replace("|", "\\|")


def nav() -> list[Any]:
    """Navigation entries of the reference: packages with their modules."""
    found: dict[str, list[Any]] = {}
    for name in modules():
        _, top, *_ = name.split(".")
        found.setdefault(f"forel.{top}", []).append({name: f"reference/{name}.md"})
    return [pages[0] if len(pages) == 1 else {top: pages} for top, pages in found.items()]
