"""Pages of the API reference: the names used most, and one page per public module, from its docstrings."""

import ast
import importlib
import importlib.util
import inspect
import pathlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import forel

__all__ = ["FIRST", "front", "modules", "nav", "page"]

# The names that most programs use, in the order in which they are needed.
FIRST = (
    "forel.training.train.train",
    "forel.training.model.load",
    "forel.training.model.Model",
    "forel.learner.settings.Settings",
    "forel.training.model.predict",
    "forel.training.model.evaluate",
    "forel.training.model.save",
    "forel.training.result.Training",
    "forel.training.metrics.Report",
    "forel.data.reader.read",
    "forel.sklearn.estimators.FTRLClassifier",
    "forel.sklearn.estimators.FTRLRegressor",
    "forel.river.models.LinearClassifier",
    "forel.river.models.LinearRegressor",
    "forel.onnx.export.to_onnx",
    "forel.mlflow.models.save_model",
    "forel.mlflow.models.log_model",
    "forel.mlflow.models.load_model",
)

# Compiled code has no types or examples; the command line has --help.
EXCLUDED = ("forel.learner.kernels", "forel.data.compiled", "forel.cli")


# They import extras that need not be installed; their pages are made from their text, as those of all modules.
OPTIONAL = ("forel.optax.transformations", "forel.torch.optimizers")


def modules() -> Iterator[str]:
    """Yield the names of all public modules."""
    for info in pkgutil.walk_packages(forel.__path__, "forel."):
        parts = info.name.split(".")
        if not any(part.startswith("_") for part in parts) and not info.name.startswith(EXCLUDED):
            yield info.name


def front() -> str:
    """Markdown page of the names used most: signature, first line, public methods, and a link to details."""
    lines = ["# The API in use", ""]
    for path in FIRST:
        module, _, name = path.rpartition(".")
        thing = getattr(importlib.import_module(module), name)
        public = f"forel.{name}" if name in forel.__all__ else path
        first = (inspect.getdoc(thing) or "").splitlines()[0]
        lines += [f"## `{public}`", "", f"{first} [Details]({module}.md).", ""]
        lines += ["```python", _signature(name, thing), "```", ""]
        methods = [f"| `{method}` | {text} |" for method, text in _methods(thing)]
        lines += ["| method or attribute | |", "|---|---|", *methods, ""] if methods else []
    return "\n".join(lines) + "\n"


def _methods(thing: Any) -> Iterator[tuple[str, str]]:
    """Yield the public methods and properties of a class with the first lines of their docstrings."""
    for name, value in vars(thing).items() if isinstance(thing, type) else ():
        doc = inspect.getdoc(getattr(thing, name)) if callable(value) or isinstance(value, property) else None
        if doc and not name.startswith("_"):
            yield name, doc.splitlines()[0].replace("|", "\\|")


def _signature(name: str, thing: Any) -> str:
    """The signature with a line for each parameter, without annotations, which are long."""
    parameters = []
    for one in inspect.signature(thing).parameters.values():
        star = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        default = (
            "" if one.default is one.empty else f"={one.default!r}" if "<factory>" not in repr(one.default) else "=..."
        )
        parameters.append(f"    {star}{one.name}{default},")
    return "\n".join([f"{name}(", *parameters, ")"])


def page(name: str) -> str:
    """Markdown page of a module; the page of a package documents its own names and lists its modules."""
    module = None if name in OPTIONAL else importlib.import_module(name)
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
    path = importlib.util.find_spec(name).origin
    doc = ast.get_docstring(ast.parse(pathlib.Path(path).read_text(encoding="utf-8"))) or ""
    return doc.strip().splitlines()[0].replace("|", "\\|")


def nav() -> list[Any]:
    """Navigation entries of the reference: packages with their modules."""
    found: dict[str, list[Any]] = {}
    for name in modules():
        _, top, *_ = name.split(".")
        found.setdefault(f"forel.{top}", []).append({name: f"reference/{name}.md"})
    packages = [pages[0] if len(pages) == 1 else {top: pages} for top, pages in found.items()]
    return [{"The API in use": "reference/api.md"}, *packages]
