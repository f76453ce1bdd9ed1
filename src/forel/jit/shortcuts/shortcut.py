"""One shortcut: methods of numba that are replaced together, and the other private parts that the replacements use."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Method", "Shortcut"]


@dataclass(frozen=True)
class Method:
    """A method, or a function of a module, and its replacement.

    Parameters
    ----------
    owner : the class or module
    name : the name of the method
    parameters : the names of its parameters, in the versions of numba that the replacement was written for
    replacement : returns the replacement of a given original
    """

    owner: Any
    name: str
    parameters: tuple[str, ...]
    replacement: Callable[[Callable[..., Any]], Callable[..., Any]]

    @property
    def original(self) -> Any:
        """The method as it is now; None if there is none."""
        return getattr(self.owner, self.name, None)

    @property
    def as_expected(self) -> bool:
        """Whether there is such a method, with the expected parameters."""
        original = self.original
        return inspect.isfunction(original) and tuple(inspect.signature(original).parameters) == self.parameters


@dataclass(frozen=True)
class Shortcut:
    """Methods that are replaced together or not at all, and other private parts that the replacements use."""

    methods: tuple[Method, ...]
    required: tuple[tuple[Any, str], ...] = ()

    @property
    def usable(self) -> bool:
        """Whether all parts are as expected."""
        return all(method.as_expected for method in self.methods) and all(hasattr(*part) for part in self.required)
