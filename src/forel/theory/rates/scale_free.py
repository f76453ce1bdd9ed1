"""A rate that is invariant to the scale of the features."""

from dataclasses import dataclass
from math import inf
from typing import ClassVar, NamedTuple

import numpy as np

from forel.theory.norms import LINF, Norm
from forel.validation import Shape, Vector, non_negative, positive, vector, whole

__all__ = ["ScaleFree", "ScaleFreeState"]


class ScaleFreeState(NamedTuple):
    """The largest |a| and √Σg² of each coordinate."""

    largest: Vector
    root: Vector


@dataclass(frozen=True)
class ScaleFree:
    r"""A rate for each coordinate of a linear model, $\eta_{t,i} = \alpha / \bigl(s_i (\beta s_i + \sqrt{n_i})\bigr)$.

    Here $s_i$ is the largest $|a_{s,i}|$ seen, that of the present example included, and $n_i = \sum_s g_{s,i}^2$. With
    feature i in units c times as fine, $s_i$, $\sqrt{n_i}$ and the dual state grow c-fold, the strength c²-fold, the
    weight shrinks c-fold, and the prediction stays.

    Parameters
    ----------
    alpha : positive
    beta : at least 0

    One function more than other rates have: ``observe``, before predicting. Where it raises the strength, the part
    added belongs to a regularizer around $x_1$. A coordinate never seen has strength 0.

    >>> rate = ScaleFree(alpha=0.5)
    >>> state = rate.observe(rate.init(2), np.array([3.0, 0.0]))
    >>> rate.strength(state)
    array([18.,  0.])
    >>> rate.strength(rate.update(state, np.array([-1.0, 0.0])))
    array([24.,  0.])

    Survey: section 3.4, of whose per-coordinate rates this is one
    """

    shape: ClassVar[Shape] = "diagonal"
    gradient_bound: ClassVar[float] = inf
    gradient_norm: ClassVar[Norm] = LINF
    alpha: float
    beta: float = 1.0

    def __post_init__(self) -> None:
        positive("alpha", self.alpha)
        non_negative("beta", self.beta)

    def init(self, n: int) -> ScaleFreeState:
        """Return the state before any example, with strength 0."""
        nothing = np.zeros(whole("n", n, low=1))
        return ScaleFreeState(nothing, nothing)

    def observe(self, state: ScaleFreeState, features: Vector) -> ScaleFreeState:
        """Return the state after observing the example's features, before its label."""
        features = vector("features", features, state.largest.size)
        return ScaleFreeState(np.maximum(state.largest, np.abs(features)), state.root)

    def update(self, state: ScaleFreeState, g: Vector, curvature: float = 0.0) -> ScaleFreeState:
        """Add g² to n."""
        g = vector("g", g, state.root.size)
        unseen = (g != 0) & (state.largest == 0)
        if unseen.any():
            i = int(np.argmax(unseen))
            raise ValueError(f"g: got {g[i]} at index {i}, expected 0 there: observe(state, features) never saw it")
        return ScaleFreeState(state.largest, np.hypot(state.root, g))

    def strength(self, state: ScaleFreeState) -> Vector:
        """Return s(βs + √n)/α."""
        return state.largest * (self.beta * state.largest + state.root) / self.alpha
