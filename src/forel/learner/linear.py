"""The fast learner: a linear model that learns online from sparse rows, in compiled code.

Models change in place, one call at a time, from any thread. Their updates are those of ``forel.theory.algorithms``,
coordinate by coordinate, and touch only the features of a row; parity tests compare both.
"""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from forel.learner import certify
from forel.learner.certificate import Certificate
from forel.learner.certificate_sums import CertificateSums
from forel.learner.certified_lanes import bounded_lanes, certified_lanes
from forel.learner.guard import Guard, changes, reads
from forel.learner.initial_state import initial_state, number_of_classes
from forel.learner.lanes import Lanes
from forel.learner.loss_floor import LossFloor
from forel.learner.rows import Rows, rows_of, training_rows
from forel.learner.settings import Settings
from forel.learner.targets import importances_of, labels_of, not_finite
from forel.learner.weight_table import WeightTables, count_nonzeros
from forel.losses import Classes, Interval
from forel.validation import refuse

__all__ = ["Linear", "Rows", "Settings", "rows_of"]


class Linear:
    """A linear model, or several that learn from the same rows, learned one row at a time.

    Parameters
    ----------
    features : the number of features
    settings : loss, algorithm, rate and penalty; each entry of a sequence is a separate setting
    classes : the number of classes, with labels 0, 1, …, classes − 1; each class has a lane, which is trained against
        the rest, or jointly with the others for the softmax loss; with K settings, lanes 0 to K − 1 are class 0, etc.
    dtype : float32, or float64 for twice the memory and more digits
    certified : whether to keep the sums that :meth:`certificate` needs: one more number for each feature and lane where
        regularizers are proximal, two for mirror descent; with filters three for each feature

    >>> model = Linear(2, Settings(alpha=1.0, bias=False), dtype=np.float64)
    >>> float(model.learn([[1.0, 0.0], [0.0, 1.0]], [1, 0])[0])  # progressive log-loss: predicted before learning
    1.386...
    >>> model.weights.ravel().round(3)
    array([ 0.333, -0.333])

    Survey: section 3.4
    """

    kind: ClassVar[str] = "trainer"
    options: ClassVar[tuple[str, ...]] = ()
    share: ClassVar[None] = None
    pool: ClassVar[None] = None

    def __init__(
        self,
        features: int,
        settings: Settings,
        classes: int | None = None,
        dtype: DTypeLike = np.float32,
        certified: bool = False,
    ) -> None:
        self.classes, self.joint = number_of_classes(settings, classes), settings.loss_function.joint
        self._set_state(initial_state(features, settings, self.classes, dtype, certified))

    def _set_state(self, lanes: Lanes) -> None:
        self._lanes, self._guard = lanes, Guard()
        self._tables = WeightTables()
        self.settings, self.features, self.lanes = lanes.settings, lanes.features, lanes.lanes
        self.dtype, self.certified = lanes.dtype, lanes.certified

    @classmethod
    def from_lanes(cls, lanes: Lanes, classes: int | None = None) -> "Linear":
        """Return a model with an existing state, which is shared, not copied."""
        model = cls.__new__(cls)
        model.classes, model.joint = classes, lanes.settings.loss_function.joint
        model._set_state(lanes)
        return model

    @reads
    def copied_lanes(self) -> Lanes:
        """Return a copy of the state."""
        return self._lanes.copied()

    @reads
    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lanes": self._lanes.copied(), "_tables": WeightTables()}

    @changes
    def reset(self) -> None:
        """Return to the state before the first row."""
        self._lanes.reset()

    @staticmethod
    def stored_arrays(settings: Settings) -> dict[str, tuple[int, ...] | None]:
        """Return an empty dict: a linear model has only the arrays of its lanes."""
        return {}

    def pack(self) -> dict[str, NDArray[np.float64]]:
        """Return an empty dict, as :meth:`stored_arrays` does."""
        return {}

    def unpack(self, arrays: dict[str, NDArray[np.float64]]) -> None:
        """Do nothing: there are no arrays."""

    @property
    def linear(self) -> "Linear":
        """The model itself; for a mixture its linear models."""
        return self

    @property
    def state(self) -> NDArray[Any]:
        """The record of every coordinate, the bias last: (z, n) and the sums of a certificate, for each lane."""
        return self._lanes.state

    @property
    def rounds(self) -> int:
        """The number of rows learned from."""
        return self._lanes.rounds

    @property
    def weight(self) -> float:
        """The sum of the importances of all rows learned from."""
        return self._lanes.weight

    @property
    def loss(self) -> NDArray[np.float64]:
        """The sum of each lane's losses before learning; for a joint loss one sum for each setting."""
        return self._lanes.totals[: self.settings.lanes if self.joint else self.lanes].copy()

    @property
    def softmax_margins(self) -> bool:
        """Whether the probabilities of classes are the softmax of their margins."""
        return self.joint

    def learn(self, X: Any, y: ArrayLike, importance: ArrayLike | None = None) -> NDArray[np.float64]:
        """Predict and then learn each row in turn; return the sum of each lane's losses before learning.

        ``importance`` multiplies a row's loss, and so its gradient. A row of importance 2 is not the same as the row
        twice: the second time, the model has already learned from the first.
        """
        return self._learn(X, y, importance, keep=False)[1]

    def progress(
        self, X: Any, y: ArrayLike, importance: ArrayLike | None = None, held_out: NDArray[np.bool_] | None = None
    ) -> NDArray[Any]:
        """Learn each row in turn, and return the margins of every lane before the row was learned from.

        Rows in the mask ``held_out`` are predicted in turn and do not change the model.

        >>> Linear(1, Settings("squared", alpha=1.0, bias=False)).progress([[1.0], [1.0]], [2.0, 2.0]).ravel().round(2)
        array([0.  , 0.67], dtype=float32)
        """
        return self._learn(X, y, importance, keep=True, held_out=held_out)[0]

    def relearn(
        self, X: Any, y: ArrayLike, importance: ArrayLike | None = None, held_out: NDArray[np.bool_] | None = None
    ) -> NDArray[Any]:
        """Learn rows of an earlier pass again, which is the same as :meth:`progress`; for mixtures it differs."""
        return self.progress(X, y, importance, held_out)

    def _learn(
        self, X: Any, y: ArrayLike, importance: ArrayLike | None, keep: bool, held_out: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Learn rows, and return their margins, if ``keep``, and the sum of each lane's losses."""
        rows = training_rows(X, self.features, self.dtype)
        domain = self.settings.labels if self.classes is None else Classes(self.classes)
        labels = labels_of(y, rows.number, domain, self.dtype)
        scale = importances_of(importance, rows.number, self.dtype)
        if held_out is not None:
            scale = np.where(held_out, self.dtype.type(-1), scale)
        lanes, out = self._lanes, np.empty((rows.number if keep else 0, self.lanes), self.dtype)
        with self._guard.changing():
            before = self.loss
            if isinstance(domain, Interval) and domain.high == np.inf:  # others are coded, or small
                lanes.note(label=np.abs(np.asarray(y, np.float64) - labels))
            row = lanes.learn(rows, labels, scale, out)
            if row < rows.number:
                raise not_finite(row, labels[row])
            return out, self.loss - before

    def margins(self, X: Any) -> NDArray[Any]:
        """Return the margin of every row and lane."""
        rows = rows_of(X, self.features, self.dtype)
        return self._guard.read(lambda: self._margins(rows))

    def _margins(self, rows: Rows) -> NDArray[Any]:
        # With one setting of each class, a table takes half the memory of the state; it pays for enough non-zeros.
        whole = self.classes is not None and self.settings.lanes == 1
        if whole and rows.indptr[-1] >= self.features:
            table = self._tables.table(self._lanes, np.arange(self.lanes), self._guard.version)
            found = table.margins_within_scales(rows)
            if found is not None:
                return found
        out = np.empty((rows.number, self.lanes), self.dtype)
        self._lanes.predict(rows, out)
        return out

    def group_margins(self, rows: Rows, group: NDArray[np.intp]) -> NDArray[Any]:
        """Return margins of validated rows by class and setting of a group, from a table that is kept."""
        chosen = (np.arange(0, self.lanes, self.settings.lanes)[:, None] + group).ravel()
        return self._guard.read(lambda: self._tables.table(self._lanes, chosen, self._guard.version).margins(rows))

    @property
    @reads
    def weights(self) -> NDArray[Any]:
        """The weights, a row for each feature and a column for each lane, exact zeros included."""
        return self._lanes.weights(0, self.features)

    @property
    @reads
    def bias(self) -> NDArray[Any]:
        """The weight of the constant feature in each lane; 0 without one."""
        constant: NDArray[Any] = self._lanes.weights(self.features, 1)[0]
        return constant

    @reads
    def only(self, setting: int | None = None) -> "Linear":
        """Return the model of one of several settings, which can continue to learn; the model itself for None.

        >>> both = Linear(2, Settings(alpha=(0.1, 1.0)))
        >>> _ = both.learn(np.eye(2), [1, 0])
        >>> np.array_equal(both.only(1).weights[:, 0], both.weights[:, 1])
        True
        """
        if setting is None:
            return self
        count = self.settings.lanes
        if not 0 <= setting < count:
            raise refuse("setting", setting, f"0 to {count - 1}")
        own_settings = self.settings.only(setting)
        certified = self.certified and (not self.settings.filters or setting in bounded_lanes(self.settings))
        alone = Linear(self.features, own_settings, self.classes, self.dtype, certified)
        alone._lanes.take(self._lanes, slice(setting, None, count))
        return alone

    @property
    @reads
    def seen(self) -> NDArray[np.int64]:
        """The coordinates with a record that is not zero, in order; the bias is ``features``."""
        return self._lanes.seen

    @reads
    def weights_at(self, coordinates: NDArray[np.int64]) -> NDArray[Any]:
        """Return the weights of some coordinates, a column for each lane; the bias is ``features``.

        >>> model = Linear(1 << 20, Settings(alpha=1.0), certified=True)
        >>> _ = model.learn(Rows(np.array([0, 2]), np.int32([7, 99]), np.float32([1, 2])), [1])
        >>> model.seen, model.weights_at(model.seen).ravel().round(3)
        (array([      7,      99, 1048576]), array([0.333, 0.5  , 0.333], dtype=float32))
        """
        return self._lanes.weights_at(coordinates)

    @property
    @reads
    def nonzeros(self) -> int:
        """The number of non-zero weights in all lanes.

        >>> Linear(1 << 10, Settings()).nonzeros
        0
        """
        return count_nonzeros(self._lanes)

    def guarantee(self) -> None:
        """Return None: only mixtures have a guarantee."""

    def explain(self) -> None:
        """Return None: only mixtures have experts."""

    @reads
    def certificate(self, lane: int = 0, among: NDArray[np.int64] | None = None) -> Certificate:
        """Return the regret of one lane to fixed models, its bound, and lower bounds on the loss of fixed models.

        The classes of a joint loss are one model, whose weights are those of the first class, then the second, and so
        on. ``among`` are the coordinates of comparators, which are 0 elsewhere; None for all. The coordinates ``seen``
        give the same loss floors as all coordinates, in less time.
        """
        bounded = bounded_lanes(self.settings)
        if self.settings.filters and lane not in bounded:
            expected = " or ".join(map(str, bounded))
            raise refuse("lane", lane, f"{expected}: filters have no bound, and gradients of other lanes are not kept")
        return certify.certificate(self._lanes, self.certified_lanes(lane), among, self._candidates(lane))

    @reads
    def snapshot(self) -> CertificateSums:
        """Return the sums of certificates, from which :meth:`summary` computes those of the rows after it."""
        return certify.snapshot(self._lanes)

    @reads
    def summary(self, lane: int = 0, since: CertificateSums | None = None, loss: float | None = None) -> str:
        """Return the certificate of a lane against all models of at most its norm, in a sentence.

        It covers all rows, or those ``since`` a snapshot; ``loss`` is the total loss on them, None for the lane's.
        No array of all coordinates is needed.

        >>> model = Linear(1, Settings(alpha=1.0, bias=False), certified=True)
        >>> _ = model.learn(np.ones((100, 1)), [1] * 60 + [0] * 40)
        >>> model.summary() == model.certificate().summary(model.weights)
        True
        """
        return self.loss_floor(lane, since, loss).summary()

    @reads
    def loss_floor(
        self,
        lane: int = 0,
        since: CertificateSums | None = None,
        loss: float | None = None,
    ) -> LossFloor:
        """Return lower bounds on the loss of fixed models by their norm; arguments are those of :meth:`summary`.

        The slopes of every setting give a bound; the largest one is used.
        """
        lanes = self.certified_lanes(lane)
        return certify.loss_floor(self._lanes, lanes, self._candidates(lane), since, loss)

    def _candidates(self, lane: int) -> list[slice]:
        """Return the lanes of every setting that learns from the same labels and has sums of certificates."""
        count = self.settings.lanes
        first = 0 if self.joint else lane // count * count
        return [self.certified_lanes(first + setting) for setting in certified_lanes(self.settings)]

    def certified_lanes(self, lane: int) -> slice:
        """Return the lanes of one model that a certificate covers: one, or all classes of a joint loss."""
        if not self.certified:
            raise ValueError("certified: got False, expected a model made with certified=True")
        last = (self.settings.lanes if self.joint else self.lanes) - 1
        if not 0 <= lane <= last:
            raise refuse("lane", lane, f"0 to {last}")
        return slice(lane, None, last + 1) if self.joint else slice(lane, lane + 1)
