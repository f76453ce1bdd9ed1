"""Mixers: experts whose inputs are the predictions of the other experts of a mixture."""

from copy import copy
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from forel.learner.experts import Inputs, Mixer
from forel.learner.rows import Examples, Rows
from forel.losses.margin import Mixing
from forel.validation import refuse

__all__ = ["Mixers"]

Array = NDArray[np.float64]
RESIDUALS = 3  # numbers about residuals of squared loss: the sum of their squares, of importances, and the unit


class Mixers:
    """The states of all mixers of a mixture.

    Parameters
    ----------
    mixers : their parameters
    inputs : the number of experts whose margins they combine
    rule : the rule by which the mixture weights its experts; mixers of log-loss are geometric, others affine

    >>> Mixers((Mixer(0.3, 1.0),), 2, Mixing.BAYES).states.shape
    (1, 4, 3)
    """

    kind: ClassVar[str] = "mixer"
    key: ClassVar[str] = "mixers"
    stacked: ClassVar[bool] = True

    def __init__(self, mixers: tuple[Mixer, ...], inputs: int, rule: Mixing) -> None:
        self.mixers, self.inputs, self.rule = mixers, inputs, rule
        self.parameters = np.array([(one.variance, one.memory) for one in mixers]).reshape(-1, 2)
        # The weights of inputs and of a constant, then the rows of their covariances.
        self.states: Array = np.zeros((len(mixers), inputs + 2, inputs + 1))
        self.residuals: Array = np.zeros((len(mixers) if rule is Mixing.EXP_CONCAVE else 0, RESIDUALS))
        for state, one in zip(self.states, mixers, strict=True):
            state[0, :-1], state[1:] = 1 / inputs, one.variance * np.eye(inputs + 1)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the mixers."""
        return tuple(one.name for one in self.mixers)

    def learn(self, given: Examples, inputs: Inputs) -> Array:
        """Learn each row in turn, and return margins from before, a column for each mixer."""
        from forel.learner.kernels.kernel import routine

        mixed = np.empty((len(inputs.margins), len(self.mixers)))
        rows = inputs.margins, given.labels, given.importance
        if self.rule is Mixing.BAYES:
            routine("geometric", "mix")(*rows, self.parameters, self.states, mixed)
        else:
            limits = inputs.low, inputs.high
            routine("ridge", "mix")(*rows, *limits, self.parameters, self.states, self.residuals, mixed)
        return mixed

    def predict(self, rows: Rows, inputs: Inputs) -> Array:
        """Return the margins of rows; nothing changes."""
        held_out = Examples(rows, np.zeros(rows.number), np.full(rows.number, -1.0))
        return self.copy().learn(held_out, inputs)  # a copy, because arrays may be read-only

    def without_inputs(self, first: int, count: int) -> "Mixers":
        """Return the mixers without some inputs, whose weights are divided equally among the others."""
        kept = np.delete(np.arange(self.inputs), slice(first, first + count))
        new, columns = Mixers(self.mixers, kept.size, self.rule), np.append(kept, self.inputs)  # with the constant
        new.states[:] = self.states[:, np.append(0, 1 + columns)[:, None], columns]
        new.residuals[:] = self.residuals
        new.states[:, 0, :-1] += self.states[:, 0, first : first + count].sum(axis=1, keepdims=True) / kept.size
        return new

    def copy(self) -> "Mixers":
        """Return a copy."""
        new = copy(self)
        new.states, new.residuals = self.states.copy(), self.residuals.copy()
        return new

    def pack(self) -> Array:
        """Return weights, covariances and residuals in one array."""
        return np.concatenate((self.states.ravel(), self.residuals.ravel()))

    def unpack(self, array: Array) -> None:
        """Set the state to a packed array."""
        expected = self.states.size + self.residuals.size
        if array.size != expected:
            raise refuse(self.key, array.size, f"{expected} numbers")
        states, residuals = np.split(array, [self.states.size])
        self.states[:], self.residuals[:] = states.reshape(self.states.shape), residuals.reshape(self.residuals.shape)
