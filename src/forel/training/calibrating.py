"""Online calibration of probabilities during training, with metrics of the calibrated predictions.

Platt scaling has two numbers, keeps the order of rows, and needs few rows; isotonic regression needs many, and gives
equal predictions to different rows. Both are fitted to predictions that were made before their row was learned from.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data import Block
from forel.learner.keyed import ALL
from forel.learner.settings import Settings
from forel.losses.margin import Mixing
from forel.store.calibration import Calibration, calibration_of, calibration_state
from forel.training.measures import Measures
from forel.training.metrics import Report, StreamMetrics
from forel.training.run import Observer, Step
from forel.validation import refuse

__all__ = ["Calibrated", "Calibrator", "check_calibration"]

PRIOR = 10.0  # the precision at first: a and b stay close to 1 and 0 for about as many rows
# a, b, and the three entries of H, as in forel.learner.kernels.calibration, which imports numba.
INITIAL = (1.0, 0.0, PRIOR, 0.0, PRIOR)
Keys = Callable[[], tuple[NDArray[np.int64], NDArray[Any] | None]]


@dataclass(frozen=True)
class Calibrated:
    """The calibration of a trained model, and metrics of calibrated predictions.

    Parameters
    ----------
    calibration : after the last row; None for models by key, each of which has its own
    report : of the rows learned from in the first pass; each is calibrated before its label is used
    holdout : of the rows held out, in the last pass; None if no rows are
    extra : stored content, with the state with which training continues
    """

    calibration: Calibration | None
    report: Report
    holdout: Report | None
    extra: dict[str, Any]


class Calibrator(Observer):
    """Calibrates the margins of each row, then learns from its label; for models by key, each key by itself.

    Parameters
    ----------
    new_metrics : creates empty metrics
    extra : stored content of the model that training continues from
    keys : returns the codes of the keys of the last block, and the margins of the model of all rows, if there is one;
        None for one model

    ``measures`` has the metrics of calibrated predictions.

    >>> from forel.losses import Logistic
    >>> from forel.training.metrics import Metrics
    >>> from forel.training.run import Place
    >>> calibrator = Calibrator(lambda: Metrics(Logistic()))
    >>> labels = np.tile(np.float32([1, 1, 1, 0]), 500)
    >>> rows = Block(np.zeros(2001, np.int64), np.int32([]), np.float32([]), labels)
    >>> calibrator.after_block(Step(Place(), rows, np.zeros(2000, np.float32)))
    >>> round(calibrator.result(False).calibration.offset, 1)  # log 3
    1.1
    """

    name = "calibration"

    def __init__(
        self,
        new_metrics: Callable[[], StreamMetrics],
        extra: Mapping[str, Any] | None = None,
        keys: Keys | None = None,
    ) -> None:
        self.measures, self._keys = Measures(new_metrics), keys
        self.margins: NDArray[Any] | None = None  # of the last block, calibrated
        self.states = np.array([INITIAL])  # of one model, or of the model of all rows; then one for each key
        before = calibration_of(extra or {})
        if before is not None and extra is not None:
            self.states[0] = before.slope, before.offset, *extra["calibration"]["precision"]

    def after_block(self, step: Step) -> None:
        """Calibrate the margins of a block with labels 0 to 1; only the first pass is learned from."""
        block, first = step.block, step.place.pass_number == 1
        codes, others = (None, None) if self._keys is None else self._keys()
        self.margins = self.fit(block, step.margins, first, codes)
        if others is not None:
            self.fit(block, others, first)
        calibrated = step._replace(margins=self.margins)
        self.measures.after_block(calibrated)

    def end(self, pass_number: int, last: bool) -> None:
        """Finish a pass."""
        self.measures.end(pass_number, last)

    def fit(
        self,
        block: Block,
        margins: NDArray[Any],
        first: bool = True,
        codes: NDArray[np.int64] | None = None,
    ) -> NDArray[Any]:
        """Return the calibrated margins of a block, by the codes of the keys of its rows."""
        from forel.learner.kernels.kernel import routine

        weights = block.importance.astype(np.float64) if first else np.zeros(len(block))
        if block.held_out is not None:
            weights[block.held_out] = 0
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

    def result(self, holdout: bool) -> Calibrated:
        """Return the calibration and its metrics; ``holdout`` is whether rows are held out."""
        held_out = self.measures.last_holdout.report() if holdout else None
        known = None if self._keys is not None else calibration_state(self.states[0])[0]
        return Calibrated(known, self.measures.first.report(), held_out, self.extra())

    def extra(self) -> dict[str, Any]:
        """Return the calibration of one model; models by key have theirs."""
        return {} if self._keys is not None else {"calibration": calibration_state(self.states[0])[1]}

    def pack(self) -> tuple[Any, dict[str, NDArray[Any]]]:
        """Return the state as JSON and arrays."""
        known, arrays = self.measures.pack()
        return known, {"state": self.states, **arrays}

    def unpack(self, known: Any, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Replace the state by one that :meth:`pack` returned."""
        self.states = np.array(arrays["state"]).reshape(-1, len(INITIAL))
        self.measures.unpack(known, arrays)


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
