"""A kernel's functions, each found when it is first called: linked where it was compiled before, else compiled."""

import importlib
import pathlib
from functools import cache, lru_cache, partial
from types import ModuleType
from typing import Any

from forel.jit import CachedFunction, sources
from forel.jit.function import LOCK
from forel.learner.kernels.recipe import Recipe

__all__ = ["kernel", "routine"]

BLOCKS = ("learn", "feed", "predict", "gather")  # what takes many rows at a time, and need not come from numba


class Kernel:
    """The functions of a recipe: those for blocks by what was kept of them, those for one row from numba."""

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        source = f"{recipe}\n{_sources()}"
        for name in BLOCKS:
            setattr(self, name, CachedFunction(name, source, partial(self.__getattr__, name)))

    @property
    def module(self) -> ModuleType:
        """All functions as numba has them."""
        from forel.learner.kernels.compose import compose

        with LOCK:  # or threads that are the first would all write and compile it
            return compose(self._recipe)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.module, name)


@lru_cache(maxsize=64)
def kernel(recipe: Recipe) -> Any:
    """Return the functions of a recipe; a loss of the user's own is compiled by numba in every process.

    >>> kernel(Recipe("logistic", "proximal", "adagrad", "once")).learn.name
    'learn'
    """
    if isinstance(recipe.loss, str):
        return Kernel(recipe)
    from forel.learner.kernels.compose import compose

    return compose(recipe)


@cache
def routine(module: str, name: str) -> CachedFunction:
    """Return a compiled function of a module of this package that is not specialised by a recipe.

    >>> routine("mixing", "hedged").name
    'hedged'
    """
    return CachedFunction(
        name, _sources(), lambda: getattr(importlib.import_module(f"forel.learner.kernels.{module}"), name)
    )


@cache
def _sources() -> str:
    return sources(pathlib.Path(__file__).parent)
