"""The ``forel`` command. Each subcommand imports what it needs when it runs, so that help answers at once."""

import atexit
import gc

__all__ = ["main"]

COLLECTIONS = (100_000, 50, 100)  # new objects before a collection of each generation


def main() -> None:
    """Run the command; an error is a message on stderr and exit code 1, not a traceback.

    Imports create many objects that stay until the end. With the usual thresholds the garbage collector would traverse
    them dozens of times, and once more before the interpreter exits.
    """
    gc.set_threshold(*COLLECTIONS)
    atexit.register(gc.freeze)
    from forel.doors.cli.app import main

    main()
