"""The command line of a fuzzer with a time limit."""

import argparse
from collections.abc import Callable

__all__ = ["command"]


def command(run: Callable[[float, int], object], description: str) -> None:
    """Run a fuzzer for the seconds, and from the seed, that the command line gives."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    run(options.seconds, options.seed)
