"""The ``forel`` command."""
