"""Memory of a new model, which is committed on another thread while a command imports its modules."""

import os
import pathlib
from typing import Any

from forel.training.overlap import available_cores

__all__ = ["commit_memory", "uses_most_memory"]

MIN_BYTES = 1 << 25  # of the source, so that learning takes longer than committing memory
MIN_BITS, MAX_BITS, MAX_STATE = 20, 24, 1 << 29  # of models whose state is committed, and its bytes
HEAD = 1 << 16  # bytes of a file that are looked at
MIN_NAMES = 256  # distinct names in these; hashing spreads them over most huge pages of a state of 22 bits
HUGE_PAGES = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled")


def commit_memory(source: list[str], bits: int, settings: Any, certified: bool) -> None:
    """Commit the memory of the state of a model, if the source is such that nearly all of it will be used.

    Parameters
    ----------
    source : the files
    bits, settings, certified : of the model, which is for one margin
    """
    if not MIN_BITS <= bits <= MAX_BITS or available_cores() < 2 or not uses_most_memory(source):
        return
    from forel.learner.aligned import commit_ahead
    from forel.learner.lanes import Lanes

    state = Lanes(1 << bits, settings, settings.lanes, certified=certified).records
    if state.nbytes <= MAX_STATE:
        commit_ahead(state.size, state.dtype)


def uses_most_memory(source: list[str]) -> bool:
    """Return whether a source is large, and VW text of many features, in a system with huge pages.

    >>> uses_most_memory(["no such file"])
    False
    """
    try:
        if sum(os.path.getsize(path) for path in source) < MIN_BYTES or "[never]" in HUGE_PAGES.read_text():
            return False
        with open(source[0], "rb") as file:
            head = file.read(HEAD)
    except OSError:  # a stream, a pattern, another system, or an error that reading reports
        return False
    return b" |" in head and len({token.partition(b":")[0] for token in head.split()}) >= MIN_NAMES
