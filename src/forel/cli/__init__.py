"""The ``forel`` command. Each subcommand imports what it needs when it runs, so that help answers at once."""

import atexit
import gc
import os

__all__ = ["main"]

COLLECTIONS = (100_000, 50, 100)  # new objects before a collection of each generation


def main() -> None:
    """Run the command; an error is a message on stderr and exit code 2, not a traceback.

    Imports create many objects that stay until the end. With the usual thresholds the garbage collector would traverse
    them dozens of times, and once more before the interpreter exits. Threads of BLAS, which commands do not need, would
    be started when numpy is imported, and wait for work in a loop.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.set_threshold(*COLLECTIONS)
    atexit.register(gc.freeze)
    from forel.cli.app import main

    main()
