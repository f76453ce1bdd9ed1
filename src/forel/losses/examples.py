"""A margin loss at one example, as a function of the point."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from forel.cvx import cvxpy
from forel.losses.margin import MarginLoss
from forel.validation import Vector, frozen, refuse, vector

__all__ = ["Example"]


@dataclass(frozen=True, eq=False)
class Example:
    r"""A margin loss at one example, $f(x) = \ell(a \cdot x, y)$.

    For a loss of K margins, such as :class:`Softmax`, it is $f(X) = \ell(X^\top a, y)$, where the point is the n×K
    matrix X in row-major order.

    Parameters
    ----------
    loss : the margin loss ℓ
    features : the vector a, of length n
    label : y, in the domain of the loss

    >>> from forel.losses import Logistic, Softmax
    >>> example = Example(Logistic(), [1.0, 2.0], label=1)
    >>> example.subgradient(np.zeros(2)), example.lipschitz ** 2
    (array([-0.5, -1. ]), 5.0...)
    >>> Example(Softmax(2), [1.0, 2.0], label=0).subgradient(np.zeros(4))
    array([-0.5,  0.5, -1. ,  1. ])

    Survey: section 1
    """

    loss: MarginLoss
    features: Vector
    label: float

    def __init__(self, loss: MarginLoss, features: ArrayLike, label: float) -> None:
        if getattr(loss, "classes", 0) is None:
            raise refuse("loss", loss, "the number of classes, as in Softmax(3)")
        checked = loss.labels.check("label", label)
        if checked.ndim:
            raise ValueError(f"label: got shape {checked.shape}, expected one number")
        object.__setattr__(self, "loss", loss)
        object.__setattr__(self, "features", frozen(vector("features", features)))
        object.__setattr__(self, "label", float(checked))

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

    def margin(self, x: Vector) -> Vector:
        """Return a·x, or Xᵀa."""
        margins: Vector = self.features @ (x.reshape(self.features.size, -1) if self.loss.joint else x)
        return margins

    def __call__(self, x: Vector) -> float:
        """Return ℓ(a·x, y)."""
        return float(self.loss(self.margin(x), self.label))

    def subgradient(self, x: Vector) -> Vector:
        """Return ℓ'(a·x, y) a, the outer product of a and the slope for several margins."""
        return np.multiply.outer(self.features, self.loss.slope(self.margin(x), self.label)).ravel()

    def expression(self, x: Any) -> Any:
        """Return ℓ(a·x, y) as a cvxpy expression."""
        if self.loss.joint:
            x = cvxpy().reshape(x, (self.features.size, x.size // self.features.size), order="C")
        return self.loss.expression(self.features @ x, self.label)
