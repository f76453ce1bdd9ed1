"""The compiled scanners by name, for callers that should not have to import numba."""

import importlib
import pathlib
from functools import cache

from forel.native import Native

__all__ = ["scanner"]


@cache
def scanner(module: str, name: str) -> Native:
    """Return a function of ``forel.formats.compiled``; its module is imported where no machine code was kept.

    >>> scanner("merge", "merge_rows").name
    'merge.merge_rows'
    """
    home = f"forel.formats.compiled.{module}"
    return Native(f"{module}.{name}", _sources(), lambda: getattr(importlib.import_module(home), name))


@cache
def _sources() -> str:
    folder = pathlib.Path(__file__).parent / "compiled"
    return "".join(path.read_text("utf-8") for path in sorted(folder.glob("*.py")))
