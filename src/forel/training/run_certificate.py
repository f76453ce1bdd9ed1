"""The certificate of a run: loss floors of the rows of its first pass, from the slopes of all passes.

Every pass learns from the same rows, and loss floors need only convexity: the slopes of each pass give a valid floor,
and the largest one is used.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data import Names
from forel.learner.certify import CertificateSums
from forel.learner.dual import Concavity, DualPoint, SlopeHistogram
from forel.learner.gram import Gram
from forel.learner.learner import Learner
from forel.learner.loss_floor import LossFloor
from forel.learner.polish import SampledRows
from forel.training.metrics import Measures
from forel.training.row_sample import Reservoir
from forel.training.run import Observer, Step

__all__ = ["CertificateOfRun"]

ROWS = 3000  # of the sample whose slopes are polished


class CertificateOfRun(Observer):
    """Completes the certificate of a certified model at the end of each pass.

    Parameters
    ----------
    model : the learner
    measures : the metrics of the run
    before : the learner's sums at the start of the run
    names : names of features by slot, if they are kept
    reweighted : whether rows have other importances in later passes, so that only the first pass counts
    """

    name = "certificate"

    def __init__(
        self, model: Learner, measures: Measures, before: CertificateSums, names: Names | None = None,
        reweighted: bool = False,
    ) -> None:  # fmt: skip
        self._model, self._measures, self._names, self._reweighted = model, measures, names, reweighted
        self.floor: LossFloor | None = None  # the best so far, once the first pass has ended
        self._before: CertificateSums | None = before  # the learner's sums at the start of this pass
        self._sample, self._ended, self._first = Reservoir(ROWS), False, True
        settings, one = model.settings, model.classes is None
        self._gram = Gram(model.features, settings.bias) if one and settings.loss == "squared" else None

    def begin(self, pass_number: int) -> None:
        """Forget the sample of the pass before."""
        if self._ended:
            self._sample, self._ended = Reservoir(ROWS), False
        self._first = pass_number == 1

    def after_block(self, step: Step) -> None:
        """Keep a sample of the rows; the learner has the sums."""
        block = step.block
        weight = block.importance if block.held_out is None else np.where(block.held_out, 0, block.importance)
        if self._model.lane_margins is not None and not self._model.classes:
            self._sample.add(block, weight > 0, self._model.lane_margins)
        if self._gram is not None and self._first:
            self._gram.add(block.indptr, block.indices, block.values, block.labels, weight)

    def end(self, pass_number: int, last: bool) -> None:
        """Add the pass that has ended."""
        model, first = self._model, self._measures.first.report()
        assert self._before is not None
        loss = first.loss * first.weight if first.weight else 0.0
        collisions = None if self._names is None else self._names.collisions
        floor = model.loss_floor(since=self._before, loss=loss, sample=self._sampled(first.rows))
        floor = floor.of_hashed_features(model.features, model.used_slots, collisions)
        if self._gram is not None:
            scales = model.state.scales
            floor = self._gram.floors(floor, lambda slots: scales[slots] if floor.scaled else 0.0 * slots + 1)
        if pass_number > 1 and self._reweighted:
            self.floor = self.floor and replace(self.floor, norm=floor.norm, setting=floor.setting).tightest()
        elif floor.rows == first.rows:
            self.floor = floor.with_points(self.floor.points if self.floor else ()).tightest()
        self._before, self._ended = None if last else model.snapshot(), True

    def _sampled(self, learned: int) -> SampledRows | None:
        """Return the sample of so many rows; None without rows."""
        rows, margins = self._sample.rows()
        if not len(rows):
            return None
        importance, every = rows.importance.astype(np.float64), len(rows) == learned
        slots, values = rows.indices.astype(np.int64), rows.values.astype(np.float64)
        return SampledRows(rows.indptr, slots, values, rows.labels, importance, margins, every)

    def pack(self) -> tuple[Any, dict[str, NDArray[Any]]]:
        """Return the state as JSON and arrays."""
        parts: dict[str, Any] = {"sample": self._sample.pack(), "gram": self._gram.pack() if self._gram else {}}
        known = None
        if self._before is not None and self.floor is not None:  # the first pass starts from the initial model
            sums = {each.name: getattr(self._before, each.name) for each in fields(self._before)}
            parts["before"] = {name: value for name, value in sums.items() if isinstance(value, np.ndarray)}
            numbers = {name: value for name, value in sums.items() if isinstance(value, int | float)}
            # As text, because numbers of a void floor need not be finite.
            known = [json.dumps(asdict(self.floor), default=np.ndarray.tolist), numbers]
        return known, {f"{part}.{name}": array for part, arrays in parts.items() for name, array in arrays.items()}

    def unpack(self, known: Any, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Replace the state by one that :meth:`pack` returned."""

        def part(start: str) -> dict[str, NDArray[Any]]:
            return {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}

        self._sample.unpack(part("sample."))
        if self._gram is not None:
            self._gram.unpack(part("gram."))
        if known is not None:  # after the first pass
            stored, before = json.loads(known[0]), dict[str, Any](known[1]) | part("before.")
            if "slots" in before:  # files store additional arrays as float64
                before["slots"] = before["slots"].astype(np.int64)
            self.floor = LossFloor(**{**stored, "points": tuple(map(_point, stored["points"]))})
            self._before = CertificateSums(**before)


def _point(found: dict[str, Any]) -> DualPoint:
    """Return a point from JSON."""
    concavity, slopes = found["concavity"], found["slopes"]
    if slopes is not None:
        slopes = SlopeHistogram(np.array(slopes["weights"]), np.array(slopes["totals"]), slopes["slack"])
    return DualPoint(**{**found, "concavity": None if concavity is None else Concavity(**concavity), "slopes": slopes})
