"""``python -m forel`` is the command."""

from forel.cli import main

main()
