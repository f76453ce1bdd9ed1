"""Packages that need an extra: without it they can be imported, and are empty."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any


def lazy(
    package: str, homes: Mapping[str, str], required: Sequence[str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package whose extra has its name.

    Parameters
    ----------
    package : its name
    homes : the module of each public name, in the package
    required : packages that the modules import
    """

    def missing() -> list[str]:
        return [name for name in required if find_spec(name) is None]

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}; it has {', '.join(homes)}")
        absent, extra = missing(), package.rpartition(".")[2]
        if absent:
            raise ModuleNotFoundError(
                f"{package} needs {' and '.join(absent)}; install the extra: pip install 'forel[{extra}]'"
            )
        return getattr(importlib.import_module(f"{package}.{homes[name]}"), name)

    def names() -> list[str]:
        # Completion and help read every name listed here.
        return [] if missing() else list(homes)

    return get, names
