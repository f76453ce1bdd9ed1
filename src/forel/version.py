"""The version of the package, from which the build takes it."""

__version__ = "0.2.0"
