"""A margin loss at one example, as a function of the point."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from forel.cvx import cvxpy
from forel.losses.labels import Labels
from forel.losses.margin import MarginLoss
from forel.losses.softmax import Softmax
from forel.validation import Unsupported, Vector, frozen, refuse, vector

__all__ = ["Example", "MulticlassExample"]


@dataclass(frozen=True, eq=False)
class Example:
    r"""A margin loss at one example, $f(x) = \ell(a \cdot x, y)$.

    Parameters
    ----------
    loss : the margin loss ℓ
    features : the vector a
    label : y, in the domain of the loss

    >>> from forel.losses import Logistic
    >>> example = Example(Logistic(), [1.0, 2.0], label=1)
    >>> example.subgradient(np.zeros(2)), example.lipschitz ** 2
    (array([-0.5, -1. ]), 5.0...)

    Survey: section 1
    """

    loss: MarginLoss
    features: Vector
    label: float

    def __init__(self, loss: MarginLoss, features: ArrayLike, label: float) -> None:
        if loss.joint:
            raise Unsupported(f"{type(loss).__name__} has a margin for each class; use MulticlassExample")
        object.__setattr__(self, "loss", loss)
        object.__setattr__(self, "features", frozen(vector("features", features)))
        object.__setattr__(self, "label", _label(loss.labels, label))

    @property
    def lipschitz(self) -> float:
        """The Lipschitz constant in the Euclidean norm, ‖a‖ times that of ℓ."""
        length = float(np.linalg.norm(self.features))
        return length * self.loss.constants(label=abs(self.label)).lipschitz if length else 0.0

    @property
    def strong_convexity(self) -> float:
        """That of ℓ times a² in one dimension; 0 in more, because f is constant orthogonally to a."""
        if self.features.size > 1:
            return 0.0
        return float(self.features[0] ** 2) * self.loss.constants(label=abs(self.label)).strong_convexity

    def __call__(self, x: Vector) -> float:
        """Return ℓ(a·x, y)."""
        return float(self.loss(self.features @ x, self.label))

    def subgradient(self, x: Vector) -> Vector:
        """Return ℓ'(a·x, y) a."""
        return float(self.loss.slope(self.features @ x, self.label)) * self.features

    def expression(self, x: Any) -> Any:
        """Return ℓ(a·x, y) as a cvxpy expression."""
        return self.loss.expression(self.features @ x, self.label)


@dataclass(frozen=True, eq=False)
class MulticlassExample:
    r"""The softmax loss at one example, $f(X) = \ell(X^\top a, y)$; the point is the n×K matrix X in row-major order.

    Parameters
    ----------
    loss : the softmax loss ℓ of K classes
    features : the vector a, of length n
    label : the class y

    >>> example = MulticlassExample(Softmax(2), [1.0, 2.0], label=0)
    >>> example.subgradient(np.zeros(4))
    array([-0.5,  0.5, -1. ,  1. ])

    Survey: section 1
    """

    loss: Softmax
    features: Vector
    label: float

    def __init__(self, loss: Softmax, features: ArrayLike, label: float) -> None:
        if loss.classes is None:
            raise refuse("loss", loss, "the number of classes, as in Softmax(3)")
        object.__setattr__(self, "loss", loss)
        object.__setattr__(self, "features", frozen(vector("features", features)))
        object.__setattr__(self, "label", _label(loss.labels, label))

    @property
    def lipschitz(self) -> float:
        """The Lipschitz constant in the Euclidean norm, ‖a‖ times that of ℓ."""
        return float(np.linalg.norm(self.features)) * self.loss.constants().lipschitz

    @property
    def strong_convexity(self) -> float:
        """0: adding a constant to all margins does not change the loss."""
        return 0.0

    def __call__(self, x: Vector) -> float:
        """Return ℓ(Xᵀa, y)."""
        return float(self.loss(self._margins(x), self.label))

    def subgradient(self, x: Vector) -> Vector:
        """Return the outer product of a and the slope, in row-major order."""
        return np.outer(self.features, self.loss.slope(self._margins(x), self.label)).ravel()

    def expression(self, x: Any) -> Any:
        """Return ℓ(Xᵀa, y) as a cvxpy expression."""
        shape = (self.features.size, self.loss.classes)
        return self.loss.expression(self.features @ cvxpy().reshape(x, shape, order="C"), self.label)

    def _margins(self, x: Vector) -> Vector:
        margins: Vector = self.features @ x.reshape(self.features.size, -1)
        return margins


def _label(labels: Labels, label: float) -> float:
    checked = labels.check("label", label)
    if checked.ndim:
        raise ValueError(f"label: got shape {checked.shape}, expected one number")
    return float(checked)
