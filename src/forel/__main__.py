"""``python -m forel`` is the command."""

from forel.doors.cli import main

main()
