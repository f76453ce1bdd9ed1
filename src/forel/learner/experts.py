"""Experts of a mixture: the protocol of groups of them, and the parameters of each kind.

A new kind of expert is a class with this protocol in a file of its own, and a line in
:meth:`forel.learner.mixture.Mixture.reset`.
"""

from typing import ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from forel.learner.rows import Examples, Rows
from forel.losses.margin import Mixing

__all__ = ["MIXERS", "ExpertGroup", "Filter", "FullFilter", "Inputs", "Mixer"]

Array = NDArray[np.float64]


class Inputs(NamedTuple):
    """What stacked experts learn from, in addition to the rows.

    Parameters
    ----------
    margins : of the experts before them, a column each
    low, high : the range of labels before each row, as margins
    again : whether rows are those of an earlier pass
    """

    margins: Array
    low: Array
    high: Array
    again: bool = False


class ExpertGroup(Protocol):
    """Experts of a mixture that share a kernel, and learn and predict together.

    ``kind`` is their kind in tables, ``key`` the name of their array in model files, and ``names`` has one for each
    expert. Groups that are not ``stacked`` ignore the inputs and are independent of each other.
    """

    kind: ClassVar[str]
    key: ClassVar[str]
    stacked: ClassVar[bool]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the experts."""
        ...

    def learn(self, given: Examples, inputs: Inputs) -> Array:
        """Learn each row in turn, and return margins from before, a column for each expert.

        Rows of negative importance are only predicted. Fewer rows than given if the group has to leave the mixture.
        """
        ...

    def predict(self, rows: Rows, inputs: Inputs) -> Array:
        """Return the margins of rows; nothing changes."""
        ...

    def without_inputs(self, first: int, count: int) -> Self:
        """Return the group after experts of some columns of its inputs left the mixture."""
        ...

    def copy(self) -> Self:
        """Return a copy."""
        ...

    def pack(self) -> Array:
        """Return the state as one array."""
        ...

    def unpack(self, array: Array) -> None:
        """Set the state to a packed array."""
        ...


class Filter(NamedTuple):
    """A diagonal Gaussian filter: a mean and a variance of every weight, and no rate.

    Parameters
    ----------
    variance : prior variance of a weight times the scale of its feature
    shrinkage : means μ of variance V give the weights μ·max(0, μ² − cV)/(μ² + cV), c = shrinkage, of which many are 0;
        0 for the means themselves
    memory : the part of what is known about a weight that stays known after a row with its feature; below 1 for squared
        loss of streams that drift
    """

    variance: float
    shrinkage: float = 0.0
    memory: float = 1.0


class FullFilter(NamedTuple):
    """A Gaussian filter with all covariances: recursive least squares, or its equivalent for log-loss.

    Parameters
    ----------
    variance : prior variance of a weight times the scale of its feature; for squared loss relative to that of residuals
    memory : the part of what is known about the weights that stays known after a row; below 1 for streams that drift

    >>> FullFilter(30.0, 0.9999).name
    'full filter, variance=30, memory=0.9999'
    """

    variance: float
    memory: float = 1.0

    @property
    def name(self) -> str:
        """The name in tables of experts."""
        return f"full filter, variance={self.variance:g}" + (f", memory={self.memory:g}" if self.memory < 1 else "")


class Mixer(NamedTuple):
    """A second-level learner: its margin is an affine function of the margins of the experts before it.

    Parameters
    ----------
    variance : prior variance of the weight of each input, around 1 divided by their number
    memory : forgetting factor of the covariance of these weights after each row; below 1 for streams that drift

    >>> [mixer.name for mixer in MIXERS[Mixing.BAYES]]
    ['mixer', 'mixer, memory=0.9997']
    """

    variance: float
    memory: float

    @property
    def name(self) -> str:
        """The name in tables of experts."""
        return "mixer" if self.memory == 1 else f"mixer, memory={self.memory:g}"


# By the rule that mixes all experts; chosen as docs/guide/no_tuning.md describes.
MIXERS = {
    Mixing.BAYES: (Mixer(0.3, 1.0), Mixer(0.1, 0.9997)),
    Mixing.EXP_CONCAVE: (Mixer(0.3, 1.0), Mixer(0.1, 0.9997)),
}
