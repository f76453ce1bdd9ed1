"""An expert of mixtures of several classes: the default mixture for two classes, for each class against the rest."""

from copy import copy
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from forel.data.features.curves import Curves
from forel.learner.curve_experts import pack_state, unpack_state
from forel.learner.experts import Inputs
from forel.learner.grid import default_grid
from forel.learner.mixture import Mixture
from forel.learner.rows import Examples, Rows
from forel.learner.settings import Settings
from forel.learner.state import State, resize
from forel.validation import refuse

__all__ = ["MOST", "ClassExperts"]

Array = NDArray[np.float64]
MOST = 20  # classes, as each takes the time of a model


class ClassExperts:
    """The states and mixtures of all classes.

    Parameters
    ----------
    curves : of all mixtures
    classes : the number of classes
    settings : of the mixture of several classes, whose loss the mixtures have
    features, dtype : of their states

    >>> rows = Rows(np.arange(5), np.zeros(4, np.int32), np.float32([0, 1, 2, 3]))
    >>> experts = ClassExperts(Curves.of(rows, [0]), 3, Settings(), 1, np.float32)
    >>> experts.predict(rows, None).shape, len(experts.parts)
    ((4, 3), 3)
    """

    kind: ClassVar[str] = "class"
    key: ClassVar[str] = "class_experts"
    stacked: ClassVar[bool] = False
    names: ClassVar[tuple[str, ...]] = ("mixture of each class",)

    def __init__(self, curves: Curves, classes: int, settings: Settings, features: int, dtype: Any) -> None:
        self.settings = default_grid(loss=settings.loss, bias=settings.bias, seed=settings.seed)
        own, lanes = self.settings, self.settings.n_settings
        self.parts = [
            (State(features, own, lanes, dtype), Mixture(own, None, None, curves, dtype)) for _ in range(classes)
        ]

    def learn(self, given: Examples, inputs: Inputs) -> Array:
        """Learn each row in turn, and return margins from before, a column for each class."""
        columns = []
        for number, (state, mixture) in enumerate(self.parts):
            own = given._replace(labels=(given.labels == number) * 1.0)
            columns.append(mixture.learn(own, state.progress(own), inputs.again))
        return np.hstack(columns).astype(np.float64)

    def predict(self, rows: Rows, inputs: Inputs) -> Array:
        """Return the margins of rows, a column for each class."""
        columns = [mixture.predict(rows, state.predict(rows)) for state, mixture in self.parts]
        return np.hstack(columns).astype(np.float64)

    def without_inputs(self, first: int, count: int) -> "ClassExperts":
        """Return the experts themselves, which have no inputs."""
        return self

    def add_features(self, features: int) -> None:
        """Give all states more features."""
        self.parts = [(resize(state, features, state.n_lanes, state.labels), one) for state, one in self.parts]

    def copy(self) -> "ClassExperts":
        """Return a copy."""
        new = copy(self)
        new.parts = [(state.copied(), mixture.copy()) for state, mixture in self.parts]
        return new

    def pack(self) -> Array:
        """Return the states as one array."""
        packed = []
        for state, mixture in self.parts:
            for one in (pack_state(state, state.nonzero_rows()), *mixture.pack().values()):
                packed += [np.array([float(one.size)]), one]
        return np.concatenate(packed)

    def unpack(self, array: Array) -> None:
        """Set the states to a packed array."""
        start, parts = 0, list[Array]()
        while start < array.size:
            stop = start + 1 + int(array[start])
            parts.append(array[start + 1 : stop])
            start = stop
        names = list(self.parts[0][1].pack())
        if start != array.size or len(parts) != len(self.parts) * (1 + len(names)):
            raise refuse(self.key, array.size, "the length of packed states")
        for state, mixture in self.parts:
            own, parts = parts[: 1 + len(names)], parts[1 + len(names) :]
            unpack_state(self.key, state, own[0])
            mixture.unpack(dict(zip(names, own[1:], strict=True)))
