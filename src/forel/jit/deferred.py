"""Functions that are compiled only once there is enough work: compiling takes as long as numpy does for many items."""

import os
from collections.abc import Callable
from typing import Any

from forel.jit.function import CachedFunction

__all__ = ["AT_ONCE", "Deferred"]

AT_ONCE = "FOREL_COMPILE_AT_ONCE"  # set by ``forel dev warm``, and when a wheel is built


class Deferred:
    """A function that another one replaces for the first items of a process, unless its code is cached.

    Parameters
    ----------
    compiled : returns the compiled function; the first argument is an array of items
    plain : a function with the same results, to the bit, that does not need numba
    items : number of items from which compiling pays

    >>> import numpy as np
    >>> new = CachedFunction("count", "a new source", lambda: None)
    >>> deferred = Deferred(lambda: new, len, items=5)
    >>> deferred(np.array([1, 0, 3])), deferred.items
    (3, 2)
    """

    def __init__(self, compiled: Callable[[], CachedFunction], plain: Callable[..., Any], items: int) -> None:
        self.compiled, self.plain, self.items = compiled, plain, items

    def __call__(self, *arguments: Any) -> Any:
        """Call one of the functions."""
        compiled = self.compiled()
        if self.items > 0 and AT_ONCE not in os.environ and not compiled.cached(*arguments):
            self.items -= arguments[0].size
            return self.plain(*arguments)
        return compiled(*arguments)
