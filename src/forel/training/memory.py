"""A run ends with an error before it takes all memory, because the system would kill it.

The tables of a model are addresses, to which the system gives memory where they are written: wide records take memory
for the features that occur, which nobody knows before.
"""

import os
from contextlib import suppress

from forel.markup import counted
from forel.training.run import Observer, Step
from forel.validation import total_memory

__all__ = ["MemoryLimit"]

MOST = 0.95  # of the machine's memory and swap


class MemoryLimit(Observer):
    """Raises an error when this process takes nearly all memory of the machine."""

    def __init__(self) -> None:
        self._most = MOST * total_memory()

    def after_block(self, step: Step) -> None:
        """Compare the memory that the process takes."""
        if (taken := resident_memory()) > self._most:
            rows = f"memory: got {taken / 1e9:,.1f} GB after {counted(step.place.rows, 'row')}"
            most = f"expected at most {self._most / 1e9:,.1f} GB"
            raise MemoryError(f"{rows}, {most}; use fewer bits, or fewer lanes")


def resident_memory() -> float:
    """Return the memory that this process takes, in bytes; 0 if unknown."""
    with suppress(OSError, ValueError, IndexError), open("/proc/self/statm", encoding="ascii") as file:
        return float(int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
    return 0.0
