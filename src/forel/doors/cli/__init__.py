"""The ``forel`` command. Each subcommand imports what it needs when it runs, so that help answers at once."""

from forel.doors.cli.app import main

__all__ = ["main"]
