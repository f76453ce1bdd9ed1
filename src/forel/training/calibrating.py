"""Online calibration of probabilities during training, with metrics of the calibrated predictions.

Platt scaling has two numbers, keeps the order of rows, and needs few rows; isotonic regression needs many, and gives
equal predictions to different rows. Both are fitted to predictions that were made before their row was learned from.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data import Block
from forel.learner.keyed import ALL
from forel.learner.settings import Settings
from forel.losses.margin import Mixing
from forel.store.calibration import Calibration, calibration_of, calibration_state
from forel.training.metrics import Report, StreamMetrics
from forel.training.slices import SliceMetrics, SliceTable, slice_tables
from forel.validation import refuse

__all__ = ["Calibrated", "Calibrator", "check_calibration"]

PRIOR = 10.0  # the precision at first: a and b stay close to 1 and 0 for about as many rows
# a, b, and the three entries of H, as in forel.learner.kernels.calibration, which imports numba.
INITIAL = (1.0, 0.0, PRIOR, 0.0, PRIOR)


@dataclass(frozen=True)
class Calibrated:
    """The calibration of a trained model, and metrics of calibrated predictions.

    Parameters
    ----------
    calibration : after the last row; None for models by key, each of which has its own
    report : of the rows learned from in the first pass; each is calibrated before its label is used
    holdout : of the rows held out, in the last pass; None if no rows are
    slices : of the rows of ``report``, by the values of columns
    extra : the state, as JSON, with which training continues
    """

    calibration: Calibration | None
    report: Report
    holdout: Report | None
    slices: tuple[SliceTable, ...]
    extra: dict[str, Any]


class Calibrator:
    """Calibrates the margins of each row, then learns from its label; for models by key, each key by itself.

    Parameters
    ----------
    new_metrics : creates empty metrics
    columns : by whose values metrics are sliced
    extra : stored content of the model that training continues from

    >>> from forel.losses import Logistic
    >>> from forel.training.metrics import Metrics
    >>> calibrator = Calibrator(lambda: Metrics(Logistic()), ())
    >>> labels = np.tile(np.float32([1, 1, 1, 0]), 500)
    >>> rows = Block(np.zeros(2001, np.int64), np.int32([]), np.float32([]), labels)
    >>> _ = calibrator.add(rows, np.zeros(2000, np.float32), None)
    >>> round(calibrator.result(False).calibration.offset, 1)  # log 3
    1.1
    """

    def __init__(
        self, new_metrics: Callable[[], StreamMetrics], columns: Sequence[str], extra: Mapping[str, Any] | None = None
    ) -> None:
        self._new_metrics = new_metrics
        self.progressive, self.holdout = new_metrics(), new_metrics()
        self.slices = [SliceMetrics(column, self.progressive) for column in columns]
        self.states = np.array([INITIAL])  # of one model, or of the model of all rows; then one for each key
        before = calibration_of(extra or {})
        if before is not None and extra is not None:
            self.states[0] = before.slope, before.offset, *extra["calibration"]["precision"]

    def add(
        self,
        block: Block,
        margins: NDArray[Any],
        held_out: NDArray[np.bool_] | None,
        first: bool = True,
        codes: NDArray[np.int64] | None = None,
    ) -> NDArray[Any]:
        """Return the calibrated margins of a block with labels 0 to 1; only the first pass is learned from.

        ``codes`` are those of the keys of rows; None for one model.
        """
        labels = block.labels
        calibrated = self.fit(block, margins, held_out, first, codes)
        if held_out is not None:
            self.holdout.add(calibrated[held_out], labels[held_out], block.importance[held_out])
        if first:
            learned: Any = slice(None) if held_out is None else ~held_out
            scores = self.progressive.add(calibrated[learned], labels[learned], block.importance[learned])
            for values, metrics in zip(() if block.slices is None else block.slices, self.slices, strict=False):
                metrics.add(values[learned], scores)
        return calibrated

    def fit(
        self,
        block: Block,
        margins: NDArray[Any],
        held_out: NDArray[np.bool_] | None,
        first: bool = True,
        codes: NDArray[np.int64] | None = None,
    ) -> NDArray[Any]:
        """Return the calibrated margins of a block as :meth:`add` does, and update no metrics."""
        from forel.learner.kernels.kernel import routine

        weights = block.importance.astype(np.float64) if first else np.zeros(len(block))
        if held_out is not None:
            weights[held_out] = 0
        calibrated = np.empty(len(block), margins.dtype)
        if codes is None:
            given = np.ascontiguousarray(margins), block.labels, weights
            routine("calibration", "calibrate")(*given, self.states[0], calibrated)
            return calibrated
        places = codes - ALL
        missing = int(places.max(initial=0)) + 1 - len(self.states)
        self.states = np.concatenate((self.states, np.tile(INITIAL, (max(missing, 0), 1))))
        order = np.argsort(places, kind="stable")
        starts = np.flatnonzero(np.diff(places[order], prepend=-1))
        for own in np.split(order, starts[1:]) if len(block) else ():
            out, state = np.empty(own.size, margins.dtype), self.states[places[own[0]]]
            routine("calibration", "calibrate")(margins[own], block.labels[own], weights[own], state, out)
            calibrated[own] = out
        return calibrated

    def next_pass(self) -> None:
        """Start another pass, with its own metrics of rows held out."""
        self.holdout = self._new_metrics()

    def result(self, holdout: bool) -> Calibrated:
        """Return the calibration and its metrics; ``holdout`` is whether rows are held out."""
        held_out = self.holdout.report() if holdout else None
        known, extra = (None, {}) if len(self.states) > 1 else calibration_state(self.states[0])
        return Calibrated(known, self.progressive.report(), held_out, slice_tables(self.slices), extra)

    def pack(self) -> tuple[dict[str, Any], dict[str, NDArray[np.float64]]]:
        """Return the state as JSON values and arrays."""
        arrays = {f"progressive.{name}": array for name, array in self.progressive.pack().items()}
        arrays |= {f"holdout.{name}": array for name, array in self.holdout.pack().items()}
        slices = [one.pack() for one in self.slices]
        arrays |= {f"{k}.{name}": array for k, (_, parts) in enumerate(slices) for name, array in parts.items()}
        return {"slices": [known for known, _ in slices]}, {"state": self.states, **arrays}

    def unpack(self, known: Mapping[str, Any], arrays: Mapping[str, NDArray[np.float64]]) -> None:
        """Replace the state by one that :meth:`pack` returned."""
        self.states = np.array(arrays["state"]).reshape(-1, len(INITIAL))
        for name, metrics in (("progressive", self.progressive), ("holdout", self.holdout)):
            metrics.unpack({part: arrays[f"{name}.{part}"] for part in metrics.pack()})
        for k, (by_value, one) in enumerate(zip(self.slices, known["slices"], strict=True)):
            parts = {name.removeprefix(f"{k}."): array for name, array in arrays.items() if name.startswith(f"{k}.")}
            by_value.unpack(one, parts)


def check_calibration(settings: Settings, classes: int | None) -> None:
    """Raise unless predictions are probabilities of two classes from one margin.

    >>> check_calibration(Settings("squared"), None)
    Traceback (most recent call last):
    ValueError: calibrate: got True, expected False for the loss squared: only probabilities of log-loss are calibrated
    """
    if classes is not None:
        raise refuse("calibrate", True, f"False for {classes} classes: only probabilities of two are calibrated")
    if settings.loss_function.mixing is not Mixing.BAYES:
        name = settings.loss_function.name
        raise refuse("calibrate", True, f"False for the loss {name}: only probabilities of log-loss are calibrated")
