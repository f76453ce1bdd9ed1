"""Views of arrays in Ray's object store, which Ray marks as read-only."""

from typing import Any

import numpy as np

__all__ = ["writable_view"]


def writable_view(array: Any) -> Any:
    """Return a view of an array that is not marked as read-only; anything else is returned unchanged.

    Kernels are compiled for arrays that may be written, and never write to rows. A copy would take as long as parsing
    some formats.

    >>> array = np.arange(3)
    >>> array.flags.writeable = False
    >>> writable_view(array).flags.writeable, writable_view(array).base.array is array
    (True, True)
    """
    return np.asarray(_Memory(array)) if isinstance(array, np.ndarray) and not array.flags.writeable else array


class _Memory:
    """Another description of an array's memory, which keeps the array alive."""

    def __init__(self, array: Any) -> None:
        self.array = array
        address, _ = array.__array_interface__["data"]
        self.__array_interface__ = {**array.__array_interface__, "data": (address, False)}
