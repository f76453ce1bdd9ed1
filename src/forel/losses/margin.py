"""The protocol of margin losses: value, slope, conjugate, link, labels, constants, and the kernel.

A margin loss ℓ(m, y) compares a margin m = a·x with a label y. Its methods work on arrays and do not validate labels,
which are checked once, where data enters, by ``loss.labels.check``. A loss carries everything that theory, learner,
mixtures and model files need to know about it, so that no other module lists losses by name.
"""

import math
from collections.abc import Callable
from dataclasses import fields
from enum import Enum
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from forel.losses.labels import Interval, Labels
from forel.losses.links import Identity, Link
from forel.validation import refuse

__all__ = ["Array", "Constants", "DualShape", "MarginLoss", "Mixing"]

Array = NDArray[np.float64]
ROUNDING = 4 * float(np.finfo(np.float64).eps)  # tolerance for a slope plus a label outside a domain


class Constants(NamedTuple):
    r"""Constants of a loss as a function of its margin that theorems use, over a range of margins and labels.

    Parameters
    ----------
    lipschitz : $\sup |\ell'|$, which may be infinite
    smoothness : $\sup \ell''$, infinite if the slope jumps
    strong_convexity : $\inf \ell''$, 0 if the loss is not strongly convex
    exp_concavity : the largest α with $e^{-\alpha\ell}$ concave, $\inf \ell''/\ell'^2$; 0 if there is none

    >>> Constants(lipschitz=1.0)
    Constants(lipschitz=1.0, smoothness=inf, strong_convexity=0.0, exp_concavity=0.0)

    Survey: section 3.7
    """

    lipschitz: float
    smoothness: float = math.inf
    strong_convexity: float = 0.0
    exp_concavity: float = 0.0


class Mixing(Enum):
    """How a mixture weights experts by their losses, and what it guarantees.

    BAYES : the loss is −log p of the predicted probability; probabilities are mixed with the rate 1
    EXP_CONCAVE : half the squared distance; predictions are mixed with a rate that falls from ∞ to 1/(b − a)², for
        labels in [a, b], as far as larger rates cost more than their bound
    CONVEX : any other convex loss; margins are mixed by AdaHedge
    """

    BAYES = "log K"
    EXP_CONCAVE = "log K over the rate, and what larger rates cost"
    CONVEX = "twice the mixability gap"


class DualShape(Enum):
    """How −ℓ*(θs), with s the slope at a margin of loss ℓ, depends on θ in [0, 1]; certificates shrink slopes by θ.

    UNKNOWN : certificates use θ = 1 alone, which needs no conjugate
    LINEAR : −ℓ*(θs) = −θℓ*(s), so that no θ below 1 proves more than θ = 1, or than that losses are at least 0
    QUADRATIC : −ℓ*(θs) = −θℓ*(s) + θ(1 − θ)ℓ
    CONCAVE : −ℓ*(θs) has a lower bound in θ whose coefficients the function of ``forel.learner.kernels.concavity`` of
        the kernel's name returns
    ENTROPY : labels are 0 and 1, or classes, and −ℓ*(θs) is at least the entropy of a probability θ|s|, where for
        several classes s is the slope of the right one; other labels are bounded as for CONCAVE
    """

    UNKNOWN = "unknown"
    LINEAR = "linear"
    QUADRATIC = "quadratic"
    CONCAVE = "concave"
    ENTROPY = "entropy"


class MarginLoss(Protocol):
    """A loss ℓ(m, y), convex in the margin m; all methods broadcast over arrays.

    Attributes with a default are those of a non-negative loss of any finite label.
    """

    def __call__(self, margin: ArrayLike, y: ArrayLike) -> Array:
        """Return ℓ(m, y)."""
        ...

    def slope(self, margin: ArrayLike, y: ArrayLike) -> Array:
        """Return the subgradient in m that is smallest in absolute value."""
        ...

    def conjugate(self, slope: ArrayLike, y: ArrayLike) -> Array | None:
        r"""Return $\ell^*(s, y) = \sup_m sm - \ell(m, y)$, infinite outside its domain; None where it is not known."""
        ...

    def constants(self, margin: float = math.inf, label: float = math.inf) -> Constants:
        """Return the constants for |m| ≤ ``margin`` and those labels of the domain with |y| ≤ ``label``."""
        ...

    def expression(self, margin: Any, y: ArrayLike) -> Any:
        """Return ℓ(m, y) as a cvxpy expression."""
        ...

    def not_convex(self) -> str:
        """Return why the loss is not convex; empty if it is."""
        return ""

    def parameter(self, dtype: DTypeLike) -> float:
        """Return the parameter of the kernel, 0 without one; raise if it is too large for a dtype."""
        return getattr(self, self.parameter_name) if self.parameter_name else 0.0

    @property
    def parameter_name(self) -> str:
        """The name of the number that the loss has as its parameter, empty without one."""
        return next((one.name for one in fields(cast(Any, self)) if isinstance(one.default, float)), "")

    @property
    def name(self) -> str:
        """The name in settings and model files."""
        ...

    @property
    def title(self) -> str:
        """The name of an average of ℓ in tables."""
        ...

    @property
    def kernel(self) -> str | Callable[[float, float], tuple[float, float]]:
        """The function to compile: its name in ``forel.learner.kernels.losses``, or a user-defined function."""
        return self.name

    @property
    def labels(self) -> Labels:
        """The domain of labels; two classes are coded −1 and 1 if it is {−1, 1}, and 0 and 1 otherwise."""
        return Interval()

    @property
    def link(self) -> Link:
        """The function from margins to predictions."""
        return Identity()

    @property
    def joint(self) -> bool:
        """Whether ℓ is a function of several margins, one for each class."""
        return False

    @property
    def mixing(self) -> Mixing:
        """How a mixture weights experts by this loss."""
        return Mixing.CONVEX

    @property
    def dual_shape(self) -> DualShape:
        """How the dual value of a slope changes when the slope is multiplied by a factor below 1."""
        return DualShape.UNKNOWN

    @property
    def least(self) -> float:
        """A lower bound on ℓ over all margins and labels, minus infinity where there is none."""
        return 0.0


def conjugate_within(inside: NDArray[np.bool_], value: ArrayLike) -> Array:
    """Return the value of a conjugate inside its domain, and infinity outside."""
    return np.where(inside, value, math.inf)


def share(slope: ArrayLike, y: ArrayLike, largest: float) -> tuple[NDArray[np.bool_], Array]:
    """Return whether p = s + y is in [0, largest] up to rounding, and p clipped to it."""
    p = np.add(slope, y, dtype=np.float64)
    return (p >= -ROUNDING) & (p <= largest * (1 + ROUNDING)), np.clip(p, 0.0, largest)


def xlogx(p: ArrayLike) -> Array:
    """Return p log p, which is 0 for p = 0."""
    positive = np.asarray(p, dtype=np.float64)
    return positive * np.log(np.where(positive > 0, positive, 1.0))


def residual(margin: ArrayLike, y: ArrayLike) -> Array:
    """Return m − y in float64: short and unsigned integers would wrap around."""
    return np.asarray(np.subtract(margin, y, dtype=np.float64))


def product(margin: ArrayLike, y: ArrayLike) -> Array:
    """Return the product of two arrays in float64."""
    return np.asarray(np.multiply(margin, y, dtype=np.float64))


def reach(name: str, value: float) -> float:
    """Return ``value`` as the end of a range |·| ≤ value, which may be infinite."""
    if not value >= 0:
        raise refuse(name, value, "a number of at least 0, or infinity")
    return float(value)


def inverse_square(value: float) -> float:
    """Return 1/value², from 1/0 = ∞ to 1/∞ = 0."""
    square = value * value
    return 1 / square if square else math.inf
