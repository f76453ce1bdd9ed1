"""A learner for models that supply their own sparse gradients, such as embedding tables."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from forel.learner import certify
from forel.learner.certificate import Certificate
from forel.learner.guard import Guard, changes, reads
from forel.learner.lanes import Lanes
from forel.learner.settings import Settings
from forel.losses import Squared
from forel.validation import all_finite, number, real, refuse, whole

__all__ = ["GradientLearner"]


class GradientLearner:
    """An online algorithm on sparse gradients of any model.

    Each index has ``lanes`` weights, such as a row of an embedding table.

    Parameters
    ----------
    features : the number of indices
    settings : algorithm, rate and penalty; ``loss`` and ``bias`` are ignored
    lanes : the number of weights of an index
    dtype, certified : as in :class:`forel.learner.linear.Linear`

    >>> learner = GradientLearner(1000, Settings(alpha=0.5, l1=0.1), dtype=np.float64)
    >>> for _ in range(10):
    ...     w = learner.weights([7])
    ...     learner.feed([7], w - 3.0)  # the gradient of ½(w − 3)²
    >>> learner.rounds, learner.weights([7, 8]).ravel().round(2)
    (10, array([1.72, 0.  ]))

    Survey: section 3.4
    """

    def __init__(
        self,
        features: int,
        settings: Settings,
        lanes: int = 1,
        dtype: DTypeLike = np.float32,
        certified: bool = False,
    ) -> None:
        if settings.rate == "scale_free":
            raise refuse(
                "rate", "scale_free", "a rate that does not depend on features, because gradients come without them"
            )
        if settings.algorithm == "implicit":
            raise refuse("algorithm", "implicit", "one that needs only the gradient of a loss")
        if settings.lanes not in (1, whole("lanes", lanes, low=1)):
            raise refuse("settings", settings.lanes, f"one value, or one for each of {lanes} lanes")
        # One compiled kernel for all losses, which updates from gradients do not use.
        self._lanes = Lanes(features, replace(settings, loss=Squared(), bias=False), lanes, dtype, certified)
        self.settings, self.features, self.lanes, self.dtype = settings, self._lanes.features, lanes, self._lanes.dtype
        self._loss = 0.0  # NaN if a round had no loss
        self._guard = Guard()

    @reads
    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lanes": self._lanes.copied()}

    @property
    def rounds(self) -> int:
        """The number of gradients learned from."""
        return self._lanes.rounds

    @changes
    def reset(self) -> None:
        """Return to the state before the first round."""
        self._lanes.reset()
        self._loss = 0.0

    def feed(self, indices: ArrayLike, gradient: ArrayLike, loss: float | None = None) -> None:
        """Learn from one gradient, zero outside the indices: a row for each index, a column for each lane.

        ``loss`` is the loss of the round. Loss floors of a certificate need it in every round; regret and its bound do
        not.
        """
        value = math.nan if loss is None else number("loss", loss, "a finite number, or None")
        coordinates = self._indices(indices)
        lanes = self._lanes
        with np.errstate(over="ignore"):
            rows = np.asarray(real("gradient", gradient), dtype=np.float64).astype(self.dtype)
        if rows.size != coordinates.size * self.lanes or rows.shape[:1] != coordinates.shape:
            raise ValueError(
                f"gradient: got shape {rows.shape}, expected {coordinates.size} rows of {self.lanes} numbers"
            )
        if not all_finite(rows):
            raise ValueError("gradient: got NaN or a number out of range, expected finite numbers")
        if np.unique(coordinates).size < coordinates.size:
            raise ValueError("indices: got one of them twice, expected each once, with its gradients added up")
        ends = np.array([0, coordinates.size], np.int64)
        with self._guard.changing():
            lanes.rounds = int(
                lanes.kernel.feed(ends, coordinates, rows.ravel(), *lanes.arrays, coordinates.size + 1, lanes.totals)
            )
            lanes.weight += 1.0
            self._loss += value

    def weights(self, indices: ArrayLike | None = None) -> NDArray[Any]:
        """Return the weights at some indices, or at all: a row for each index, a column for each lane."""
        lanes = self._lanes
        if indices is None:
            return self._guard.read(lambda: lanes.weights(0, self.features))
        chosen = self._indices(indices)
        return self._guard.read(lambda: lanes.weights_at(chosen))

    @reads
    def certificate(self) -> Certificate:
        """Return the certificate; models are vectors of all indices of the first lane, then the second, and so on."""
        if not self._lanes.certified:
            raise ValueError("certified: got False, expected a learner made with certified=True")
        proof = certify.certificate(self._lanes, slice(None))
        void = "some rounds had no loss; pass loss to feed in every round" if math.isnan(self._loss) else ""
        # Regret does not depend on losses; missing ones count as 0.
        loss = 0.0 if void else self._loss
        points = {
            norm: tuple(replace(point, lower=point.lower + loss, concavity=None) for point in each)
            for norm, each in proof.points.items()
        }
        return replace(
            proof,
            loss=loss,
            lower=proof.lower + loss,
            least=-math.inf,
            floor_void=void or proof.floor_void,
            points=points,
        )

    def _indices(self, indices: ArrayLike) -> NDArray[np.int64]:
        coordinates = np.asarray(indices)
        if coordinates.size == 0:
            return np.zeros(0, np.int64)
        if coordinates.ndim != 1 or coordinates.dtype.kind not in "iu":
            raise ValueError(
                f"indices: got shape {coordinates.shape} of {coordinates.dtype}, expected a vector of integers"
            )
        if coordinates.min() < 0 or coordinates.max() >= self.features:
            bad = int(coordinates.min() if coordinates.min() < 0 else coordinates.max())
            raise ValueError(f"indices: got {bad}, expected 0 to {self.features - 1}")
        return coordinates.astype(np.int64, copy=False)
