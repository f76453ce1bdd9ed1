"""A user-defined function as a margin loss."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from forel.losses.labels import Choice, Interval, Labels
from forel.losses.links import Clipping, Identity
from forel.losses.margin import Array, Constants, MarginLoss
from forel.validation import Unsupported

__all__ = ["Custom", "Function"]

Function = Callable[[float, float], tuple[float, float]]


@dataclass(frozen=True)
class Custom(MarginLoss):
    """A user-defined loss: a function of one margin and one label that returns value and slope.

    Attributes of the function are used where it has them: ``labels``, ``title`` and ``least``. Otherwise labels are any
    finite numbers, the title is the function's name, and there is no lower bound.

    Parameters
    ----------
    function : convex in the margin, and in the subset of Python that numba compiles; or already compiled by numba

    >>> def half_absolute(margin, label):
    ...     return 0.5 * abs(margin - label), 0.5 if margin > label else -0.5
    >>> loss = Custom(half_absolute)
    >>> loss([0.0, 3.0], 1.0), loss.title
    (array([0.5, 1. ]), 'half_absolute loss')
    """

    function: Function
    link: ClassVar[Identity] = Identity(Clipping())

    @property
    def name(self) -> str:
        """The name of the function."""
        return str(getattr(self._uncompiled, "__name__", "own"))

    @property
    def kernel(self) -> Function:
        """The function itself, which numba compiles."""
        return self.function

    @property
    def labels(self) -> Labels:
        """The function's ``labels``, or all finite numbers."""
        labels: Labels = self._attribute("labels", Interval())
        return labels

    @property
    def title(self) -> str:
        """The function's ``title``, or one made of its name."""
        return str(self._attribute("title", f"{self.name} loss"))

    @property
    def least(self) -> float:
        """The function's ``least``, or minus infinity."""
        return float(self._attribute("least", -math.inf))

    def __call__(self, margin: ArrayLike, y: ArrayLike) -> Array:
        """Return the values."""
        return self._vectorized(margin, y, output=0)

    def slope(self, margin: ArrayLike, y: ArrayLike) -> Array:
        """Return the slopes."""
        return self._vectorized(margin, y, output=1)

    def conjugate(self, slope: ArrayLike, y: ArrayLike) -> None:
        """Return None: the conjugate is not known."""

    def constants(self, margin: float = math.inf, label: float = math.inf) -> Constants:
        """Return the constants of convex functions in general."""
        return Constants(lipschitz=math.inf)

    def not_convex(self) -> str:
        """Return where the function is below one of its tangents; empty if it is nowhere, at some margins and labels.

        >>> Custom(lambda margin, label: (margin**3, 3 * margin**2)).not_convex()
        'the loss is not convex, or its slope is wrong: for label 0 it is below its tangent at margin -8 at margin -7.5'
        """
        margins = np.linspace(-8, 8, 33)
        known = self.labels.values if isinstance(self.labels, Choice) else (0.0, 1.0, -1.0)
        for label in known:
            if isinstance(self.labels, Interval) and not self.labels.low <= label <= self.labels.high:
                continue
            try:
                values, slopes = self(margins, label), self.slope(margins, label)
            except (ArithmeticError, ValueError):  # outside its domain
                continue
            with np.errstate(all="ignore"):
                tangents = values[:, None] + slopes[:, None] * (margins - margins[:, None])
                rounding = 1e-5 * (1 + np.abs(values) + np.abs(tangents))
                below = np.argwhere(values < tangents - rounding)
            if below.size:
                at, other = margins[below[0]]
                wrong = "the loss is not convex, or its slope is wrong: for label"
                return f"{wrong} {label:g} it is below its tangent at margin {at:g} at margin {other:g}"
        return ""

    def expression(self, margin: Any, y: ArrayLike) -> Any:
        """Raise: a Python function has no cvxpy expression."""
        raise Unsupported(f"{self.name} has no cvxpy expression; use a loss of forel.losses")

    @property
    def _uncompiled(self) -> Any:
        return getattr(self.function, "py_func", self.function)

    def _attribute(self, name: str, default: Any) -> Any:
        return getattr(self.function, name, getattr(self._uncompiled, name, default))

    def _vectorized(self, margin: ArrayLike, y: ArrayLike, output: int) -> Array:
        function = self._uncompiled
        return np.asarray(np.vectorize(lambda m, label: function(m, label)[output], otypes=[float])(margin, y))
