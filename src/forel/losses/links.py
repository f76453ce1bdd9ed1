"""Links: functions from margins to predictions, and their inverses.

Links compute in float64, or in another dtype, such as that of a model.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from forel.losses.sigmoid import sigmoid
from forel.validation import refuse

__all__ = [
    "BY_NAME",
    "Clipping",
    "Exponential",
    "Identity",
    "Largest",
    "Link",
    "Normalized",
    "Probability",
    "Sign",
    "SoftmaxLink",
]


class Clipping(NamedTuple):
    """Whether a mixture clips predictions to the smallest and to the largest label seen so far."""

    below: bool = False
    above: bool = False


TO_LABELS = Clipping(below=True, above=True)


class Link(Protocol):
    """A function from margins to predictions.

    Attributes with a default are those of a link whose predictions are not probabilities, of pure numbers.
    """

    def __call__(self, margin: ArrayLike, dtype: DTypeLike = np.float64) -> NDArray[Any]:
        """Return the predictions of some margins, computed in ``dtype``."""
        ...

    def inverse(self, prediction: ArrayLike) -> NDArray[Any]:
        """Return margins that give predicted labels, to which a mixture clips; a link that does not clip has none."""
        raise refuse("prediction", prediction, f"none: a mixture does not clip with the link {self.name}")

    @property
    def name(self) -> str:
        """The name in model files."""
        ...

    @property
    def probabilities(self) -> bool:
        """Whether predictions are probabilities."""
        return False

    @property
    def unitless(self) -> bool:
        """Whether margins are pure numbers; otherwise they have the unit of the labels."""
        return True

    @property
    def clipping(self) -> Clipping:
        """How a mixture clips predictions."""
        return Clipping()

    @property
    def one_vs_rest(self) -> "Link":
        """The link of several classes, each with the margin of a model that learned it against the rest."""
        return self


@dataclass(frozen=True)
class Identity(Link):
    """The margin itself.

    Parameters
    ----------
    clipping : of predictions by a mixture; those of a user-defined loss, which need not predict labels, are not clipped

    >>> Identity()([0.5, -2.0])
    array([ 0.5, -2. ])
    """

    clipping: Clipping = TO_LABELS
    name: ClassVar[str] = "identity"
    unitless: ClassVar[bool] = False

    def __call__(self, margin: ArrayLike, dtype: DTypeLike = np.float64) -> NDArray[Any]:
        """Return m."""
        return np.asarray(margin, dtype)

    def inverse(self, prediction: ArrayLike) -> NDArray[Any]:
        """Return the prediction."""
        return np.asarray(prediction, np.float64)


@dataclass(frozen=True)
class Probability(Link):
    r"""The probability of the positive class, $1/(1 + e^{-m})$.

    >>> Probability()([0.0, 800.0])
    array([0.5, 1. ])
    """

    name: ClassVar[str] = "probability"
    probabilities: ClassVar[bool] = True

    def __call__(self, margin: ArrayLike, dtype: DTypeLike = np.float64) -> NDArray[Any]:
        """Return 1/(1 + e⁻ᵐ)."""
        return np.asarray(sigmoid(np.asarray(margin, dtype)))

    @property
    def one_vs_rest(self) -> Link:
        """The probabilities of all classes, normalized to sum to 1."""
        return Normalized()


@dataclass(frozen=True)
class Exponential(Link):
    """The mean of a count, eᵐ, constant beyond a cap, and where the next power of e exceeds the range of the dtype.

    Parameters
    ----------
    cap : the margin beyond which the mean is constant, such as that of the loss

    >>> Exponential()([0, 1e9], np.float32)
    array([1.0000000e+00, 1.6516363e+38], dtype=float32)
    """

    cap: float = math.inf
    name: ClassVar[str] = "exponential"
    # Means are at least 0 anyway, and too small ones cost little.
    clipping: ClassVar[Clipping] = Clipping(above=True)

    def __call__(self, margin: ArrayLike, dtype: DTypeLike = np.float64) -> NDArray[Any]:
        """Return eᵐ up to the cap."""
        return np.asarray(np.exp(np.minimum(np.asarray(margin, dtype), self.cap_in(dtype))))

    def cap_in(self, dtype: DTypeLike) -> float:
        """Return the cap for computations in a dtype.

        >>> Exponential(80.0).cap_in(np.float32), Exponential(500.0).cap_in(np.float32)
        (80.0, 88.0)
        """
        return min(self.cap, float(math.floor(math.log(np.finfo(dtype).max))))

    def inverse(self, prediction: ArrayLike) -> NDArray[Any]:
        """Return log p, minus infinity for 0."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.asarray(prediction, np.float64)))


@dataclass(frozen=True)
class Sign(Link):
    """The class, 1 for positive margins and −1 for others.

    >>> Sign()([-0.5, 3.0])
    array([-1.,  1.])
    """

    name: ClassVar[str] = "sign"

    def __call__(self, margin: ArrayLike, dtype: DTypeLike = np.float64) -> NDArray[Any]:
        """Return 1 or −1."""
        return np.where(np.greater(margin, 0), 1.0, -1.0)

    @property
    def one_vs_rest(self) -> Link:
        """The class with the largest margin."""
        return Largest()


@dataclass(frozen=True)
class SoftmaxLink(Link):
    r"""The probabilities of several classes, $e^{m_k} / \sum_j e^{m_j}$ over the last axis.

    >>> SoftmaxLink()([0.0, 0.0])
    array([0.5, 0.5])
    """

    name: ClassVar[str] = "softmax"
    probabilities: ClassVar[bool] = True

    def __call__(self, margin: ArrayLike, dtype: DTypeLike = np.float64) -> NDArray[Any]:
        """Return the probabilities."""
        m = np.asarray(margin, dtype)
        weights = np.exp(m - np.max(m, axis=-1, keepdims=True))
        return np.asarray(weights / np.sum(weights, axis=-1, keepdims=True))


@dataclass(frozen=True)
class Normalized(Link):
    """The probabilities of several classes, each learned against the rest, normalized to sum to 1.

    >>> Normalized()(np.zeros((1, 4)))
    array([[0.25, 0.25, 0.25, 0.25]])
    """

    name: ClassVar[str] = "rest"
    probabilities: ClassVar[bool] = True

    def __call__(self, margin: ArrayLike, dtype: DTypeLike = np.float64) -> NDArray[Any]:
        """Return the probabilities."""
        from scipy.special import log_expit

        return SoftmaxLink()(log_expit(np.asarray(margin, dtype)), dtype)


@dataclass(frozen=True)
class Largest(Link):
    """The index of the class with the largest margin, over the last axis.

    >>> Largest()([[0.5, -1.0], [0.0, 2.0]])
    array([0, 1])
    """

    name: ClassVar[str] = "largest"

    def __call__(self, margin: ArrayLike, dtype: DTypeLike = np.float64) -> NDArray[Any]:
        """Return the class of each row."""
        return np.asarray(np.argmax(margin, axis=-1))


# Names are those of model files.
LINKS: tuple[Link, ...] = (Identity(), Probability(), Exponential(), Sign(), SoftmaxLink(), Normalized(), Largest())
BY_NAME: dict[str, Link] = {link.name: link for link in LINKS}
