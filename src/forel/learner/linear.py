"""The fast learner: a linear model that learns online from sparse rows, in compiled code.

It is the one object of forel that changes in place, one call at a time, whatever threads calls come from. Its updates
are those of ``forel.theory.algorithms``, coordinate by coordinate, touching only the features of a row; a parity test
holds both together.
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from forel.learner import certify
from forel.learner.certificate import Certificate, Snapshot
from forel.learner.guard import Guard, changes, reads
from forel.learner.lanes import Lanes, summed
from forel.learner.rows import Rows, merged, rows_of
from forel.learner.settings import Settings
from forel.losses import Classes, Interval
from forel.validation import all_finite, real, refuse, whole

__all__ = ["Linear", "Rows", "Settings", "rows_of"]


class Linear:
    """A linear model, or several side by side, learned one row at a time.

    Parameters
    ----------
    features : the number of features
    settings : what is learned, and how
    classes : with it, lane k learns class k against the rest, or together with the others for the loss "softmax", and
        labels are 0, 1, …, classes − 1; of K settings, lanes 0 to K − 1 are class 0, and so on
    dtype : float32, or float64 for twice the memory and more digits
    certified : whether to keep the sums from which :meth:`certificate` tells how much better a fixed model could have
        done; one more number for each feature and lane where regularizers are proximal, two for mirror descent

    >>> model = Linear(2, Settings(alpha=1.0, bias=False), dtype=np.float64)
    >>> float(model.learn([[1.0, 0.0], [0.0, 1.0]], [1, 0])[0])  # progressive log-loss: predicted before learning
    1.386...
    >>> model.weights.ravel().round(3)
    array([ 0.333, -0.333])

    Survey: section 3.4
    """

    def __init__(
        self,
        features: int,
        settings: Settings,
        classes: int | None = None,
        dtype: DTypeLike = np.float32,
        certified: bool = False,
    ) -> None:
        loss = settings.loss_function
        self.joint = loss.joint
        given = loss.labels.count if isinstance(loss.labels, Classes) else None
        classes = given if classes is None else classes
        if classes is None and self.joint:
            raise refuse("classes", classes, f"the number of classes, for the loss {loss.name!r}")
        if given not in (None, classes):
            raise refuse("classes", classes, f"{given}, as the loss has")
        self.classes = None if classes is None else whole("classes", classes, low=2)
        labels: Literal["shared", "classes", "signs"] = "shared"
        if self.classes is not None and not self.joint:
            labels = "signs" if settings.signed else "classes"
        lanes = (self.classes or 1) * settings.lanes
        self._hold(Lanes(features, settings, lanes, dtype, certified, labels))

    def _hold(self, lanes: Lanes) -> None:
        self._lanes, self._guard = lanes, Guard()
        self.settings, self.features, self.lanes = lanes.settings, lanes.features, lanes.lanes
        self.dtype, self.certified = lanes.dtype, lanes.certified

    @classmethod
    def from_lanes(cls, lanes: Lanes, classes: int | None = None) -> "Linear":
        """Return a model with an existing state, which is shared, not copied."""
        model = cls.__new__(cls)
        model.classes, model.joint = classes, lanes.settings.loss == "softmax"
        model._hold(lanes)
        return model

    @reads
    def copied_lanes(self) -> Lanes:
        """Return a copy of the state."""
        return self._lanes.copied()

    @reads
    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lanes": self._lanes.copied()}

    @changes
    def reset(self) -> None:
        """Forget everything; memory that is not touched again is not used."""
        self._lanes.reset()

    @property
    def state(self) -> NDArray[Any]:
        """The record of every coordinate, the bias last: (z, n) and what a certificate needs, for each lane."""
        return self._lanes.state

    @property
    def rounds(self) -> int:
        """How many rows were learned from."""
        return self._lanes.rounds

    @property
    def weight(self) -> float:
        """The sum of the importances of all rows that were learned from."""
        return self._lanes.weight

    @property
    def loss(self) -> NDArray[np.float64]:
        """Each lane's sum of losses before learning; for "softmax" one sum of all classes for each setting."""
        return self._lanes.totals[: self.settings.lanes if self.joint else self.lanes].copy()

    def learn(self, X: Any, y: ArrayLike, importance: ArrayLike | None = None) -> NDArray[np.float64]:
        """Predict, suffer and learn from each row in turn; return each lane's sum of losses before learning.

        ``importance`` multiplies a row's loss, and so its gradient. A row of importance 2 is not the same as the row
        twice: the second time, a learner has already learned from the first.
        """
        return self._learn(X, y, importance, keep=False)[1]

    def progress(
        self, X: Any, y: ArrayLike, importance: ArrayLike | None = None, held: NDArray[np.bool_] | None = None
    ) -> NDArray[Any]:
        """Learn from each row in turn, and return every lane's margins from before the row was learned from.

        Rows that are ``held`` out are predicted when it is their turn, and not learned from: the model is as if they
        had not been there.

        >>> Linear(1, Settings("squared", alpha=1.0, bias=False)).progress([[1.0], [1.0]], [2.0, 2.0]).ravel().round(2)
        array([0.  , 0.67], dtype=float32)
        """
        return self._learn(X, y, importance, keep=True, held=held)[0]

    def _learn(
        self, X: Any, y: ArrayLike, importance: ArrayLike | None, keep: bool, held: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Learn from rows, and return their margins if they are to be kept, and each lane's sum of losses."""
        rows = merged(X, self.features, self.dtype)
        labels = self._labels(y, rows.number)
        scale = self._importance(importance, rows.number)
        if held is not None:
            scale = np.where(held, self.dtype.type(-1), scale)
        lanes, out = self._lanes, np.empty((rows.number if keep else 0, self.lanes), self.dtype)
        with self._guard.changing():
            before = self.loss
            arguments = *rows, labels, scale, *lanes.arrays, lanes.shape, rows.longest + 1, lanes.totals, out.ravel()
            rounds = int(lanes.kernel.learn(*arguments))
            learned = scale[: -1 - rounds] if rounds < 0 else scale
            learned = learned[learned >= 0]
            lanes.rounds, lanes.weight = lanes.rounds + learned.size, summed(lanes.weight, learned)
            if rounds < 0:
                row = -1 - rounds
                raise ValueError(
                    f"loss: got a value or slope that is not finite in row {row}, whose label is {labels[row]:g}, "
                    "expected finite numbers; the rows before it were learned from"
                )
            return out, self.loss - before

    def margins(self, X: Any) -> NDArray[Any]:
        """Return the margin of every row and lane."""
        rows, lanes = rows_of(X, self.features, self.dtype), self._lanes
        out = np.empty((rows.number, self.lanes), self.dtype)
        self._guard.read(lambda: lanes.kernel.predict(*rows, *lanes.arrays, lanes.totals, out.ravel()))
        return out

    @property
    @reads
    def weights(self) -> NDArray[Any]:
        """The weights, a row a feature and a column a lane, exact zeros included."""
        return self._lanes.read(0, self.features)

    @property
    @reads
    def bias(self) -> NDArray[Any]:
        """The weight of the constant feature in each lane; 0 without one."""
        constant: NDArray[Any] = self._lanes.read(self.features, 1)[0]
        return constant

    @reads
    def only(self, setting: int) -> "Linear":
        """Return the model of one of several settings by itself, which goes on as it would have here.

        >>> both = Linear(2, Settings(alpha=(0.1, 1.0)))
        >>> _ = both.learn(np.eye(2), [1, 0])
        >>> np.array_equal(both.only(1).weights[:, 0], both.weights[:, 1])
        True
        """
        count = self.settings.lanes
        if not 0 <= setting < count:
            raise refuse("setting", setting, f"0 to {count - 1}")
        alone = Linear(self.features, self.settings.only(setting), self.classes, self.dtype, self.certified)
        alone._lanes.take(self._lanes, slice(setting, None, count))
        return alone

    @property
    @reads
    def seen(self) -> NDArray[np.int64]:
        """The coordinates whose records are not zero, in order; the bias is ``features``."""
        return self._lanes.seen

    @reads
    def weights_at(self, coordinates: NDArray[np.int64]) -> NDArray[Any]:
        """Return the weights of some coordinates, a row each and a column a lane; the bias is ``features``.

        >>> model = Linear(1 << 20, Settings(alpha=1.0), certified=True)
        >>> _ = model.learn(Rows(np.array([0, 2]), np.int32([7, 99]), np.float32([1, 2])), [1])
        >>> model.seen, model.weights_at(model.seen).ravel().round(3)
        (array([      7,      99, 1048576]), array([0.333, 0.5  , 0.333], dtype=float32))
        """
        return self._lanes.gather(coordinates)

    @property
    @reads
    def nonzeros(self) -> int:
        """How many weights are not zero, those of all lanes together, without a table of all of them.

        >>> Linear(1 << 10, Settings()).nonzeros
        0
        """
        return sum(int(np.count_nonzero(weights)) for _, weights in self._lanes.blocks(0, self.features))

    @reads
    def certificate(self, lane: int = 0, among: NDArray[np.int64] | None = None) -> Certificate:
        """Return what is proved of one lane so far: regret, its bound, and what any fixed model could have reached.

        The classes of "softmax" are one model, whose weights are those of the first class, then the second, and so on.
        ``among`` are the coordinates that models are told by, all others of which are 0; None for all. Those that were
        ``seen`` leave nothing out of what is said of balls, and are soon gone through where most were not.
        """
        return certify.certificate(self._lanes, self._certified(lane), among)

    @reads
    def snapshot(self) -> Snapshot:
        """Return where the sums stand, so that :meth:`words` can speak of the rows after it alone."""
        return certify.snapshot(self._lanes)

    @reads
    def words(self, lane: int = 0, since: Snapshot | None = None, suffered: float | None = None) -> str:
        """Return what the certificate of a lane says of all models no larger than it, without the certificate's tables.

        It speaks of all rows, or of those ``since`` a snapshot, on which ``suffered`` was lost if that is known.

        >>> model = Linear(1, Settings(alpha=1.0, bias=False), certified=True)
        >>> _ = model.learn(np.ones((100, 1)), [1] * 60 + [0] * 40)
        >>> model.words() == model.certificate().words(model.weights)
        True
        """
        return certify.words(self._lanes, self._certified(lane), since, suffered)

    def _certified(self, lane: int) -> slice:
        """Return the lanes of one model, of which something is proved."""
        if not self.certified:
            raise ValueError("certified: got False, expected a model made with certified=True")
        last = (self.settings.lanes if self.joint else self.lanes) - 1
        if not 0 <= lane <= last:
            raise refuse("lane", lane, f"0 to {last}")
        return slice(lane, None, last + 1) if self.joint else slice(lane, lane + 1)

    def _labels(self, y: ArrayLike, count: int) -> NDArray[Any]:
        labels = np.asarray(real("y", y))
        if labels.shape != (count,):
            raise ValueError(f"y: got shape {labels.shape}, expected one label for each of {count} rows")
        if labels.dtype.kind not in "fiub":
            raise refuse("y", labels.dtype, "numbers; encode classes as numbers first")
        domain = self.settings.labels if self.classes is None else Classes(self.classes)
        if isinstance(domain, Interval) and self._fit(labels, domain.low, domain.high):
            return labels
        return self._narrow("y", domain.check("y", labels))

    def _importance(self, importance: ArrayLike | None, count: int) -> NDArray[Any]:
        if importance is None:
            ones: NDArray[Any] = np.ones(count, self.dtype)
            return ones
        given = np.asarray(real("importance", importance))
        if given.shape != (count,):
            raise ValueError(f"importance: got shape {given.shape}, expected one number for each of {count} rows")
        if self._fit(given, 0.0, np.inf):
            return given
        held = given.astype(np.float64)
        if not all_finite(held) or held.min(initial=0.0) < 0:
            k = int(np.argmax(~(held >= 0) | ~np.isfinite(held)))
            raise ValueError(f"importance: got {held[k]} in row {k}, expected finite numbers of at least 0")
        return self._narrow("importance", held)

    def _fit(self, given: NDArray[Any], low: float, high: float) -> bool:
        """Tell whether an array can be taken as it is, all of it finite and in [low, high]."""
        from forel.learner.kernels.kernel import routine

        usable = given.dtype == self.dtype and given.flags.c_contiguous and given.flags.writeable
        most = np.finfo(self.dtype).max
        ends = self.dtype.type(max(low, -most)), self.dtype.type(min(high, most))
        return usable and bool(routine("range", "within")(given, *ends))

    def _narrow(self, name: str, held: NDArray[np.float64]) -> NDArray[Any]:
        """Return the numbers in the state's type, or refuse one that it cannot hold."""
        with np.errstate(over="ignore"):
            narrow: NDArray[Any] = held.astype(self.dtype)
        if not all_finite(narrow):
            k = int(np.argmin(np.isfinite(narrow)))
            raise ValueError(f"{name}: got {held[k]} in row {k}, expected numbers within the range of {self.dtype}")
        return narrow
