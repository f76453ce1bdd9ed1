"""The certificate of a run: loss floors of the rows of its first pass, from the slopes of all passes.

Every pass learns from the same rows, and loss floors need only convexity: the slopes of each pass give a valid floor,
and the largest one is used.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data import Names
from forel.learner.certificate_sums import CertificateSums
from forel.learner.dual import Concavity, DualPoint, SlopeHistogram
from forel.learner.gram import Gram
from forel.learner.learner import Learner
from forel.learner.loss_floor import Frontier
from forel.learner.polish import SampledRows
from forel.training.measures import Measures
from forel.training.reservoir import Reservoir
from forel.training.run import Observer, Step

__all__ = ["CertificateOfRun", "RunCertificate"]


@dataclass
class RunCertificate:
    """The best certificate of the rows of a run so far, and the state that later passes need.

    Parameters
    ----------
    summary, frontier : the certificate in sentences, and floors by norm, once the first pass has ended
    numbers : the numbers behind the sentences
    points : points of the dual problem of earlier passes
    before : the learner's sums at the start of this pass; None if unknown
    """

    summary: str | None = None
    frontier: Frontier | None = None
    points: tuple[DualPoint, ...] = ()
    before: CertificateSums | None = None
    numbers: dict[str, Any] | None = None

    def end_pass(
        self,
        model: Learner,
        first: tuple[int, float],
        more: bool,
        collisions: int | None = None,
        sample: SampledRows | None = None,
        gram: Gram | None = None,
    ) -> None:
        """Add the pass that has ended.

        Parameters
        ----------
        model : the learner
        first : rows and total loss of the first pass, which the certificate is about
        more : whether a further pass follows
        collisions : the number of slots of several names; None for an estimate
        sample : of the rows of this pass, whose slopes are polished
        gram : sums of products of the rows of squared loss
        """
        if self.before is not None:
            rows, loss = first
            floor = model.loss_floor(since=self.before, loss=loss, sample=sample)
            floor = floor.of_hashed_features(model.features, model.used_slots, collisions)
            if gram is not None:
                floor = gram.floors(floor, lambda slots: model.state.scales[slots] if floor.scaled else 0.0 * slots + 1)
            if floor.rows == rows:
                floor = floor.with_points(self.points).tightest()
                self.points, self.summary, self.frontier = floor.points, floor.summary(), floor.frontier()
                self.numbers = floor.to_json()
        self.before = model.snapshot() if more else None

    def pack(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the content of a checkpoint, as JSON and as arrays."""
        content: dict[str, Any] = {
            "summary": self.summary, "floor": self.numbers, "points": [_json(point) for point in self.points],
            "frontier": None, "before": None,
        }  # fmt: skip
        if self.frontier is not None:
            content["frontier"] = {**asdict(self.frontier), "points": [list(point) for point in self.frontier.points]}
        if self.before is None or self.summary is None:  # the first pass starts from the initial model
            return content, {}
        sums = {each.name: getattr(self.before, each.name) for each in fields(self.before)}
        content["before"] = {name: value for name, value in sums.items() if isinstance(value, int | float)}
        return content, {f"before.{name}": value for name, value in sums.items() if isinstance(value, np.ndarray)}

    @classmethod
    def unpack(cls, content: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> "RunCertificate":
        """Return the certificate of a checkpoint."""
        frontier, before = content["frontier"], content["before"]
        if frontier is not None:
            frontier = Frontier(**{**frontier, "points": tuple((norm, floor) for norm, floor in frontier["points"])})
        if before is not None:
            tables: dict[str, Any] = {name.removeprefix("before."): array for name, array in arrays.items()}
            if "slots" in tables:  # files store additional arrays as float64
                tables["slots"] = tables["slots"].astype(np.int64)
            before = CertificateSums(**before, **tables)
        points = tuple(_point(point) for point in content["points"])
        return cls(content["summary"], frontier, points, before, content["floor"])


class CertificateOfRun(Observer):
    """Completes the certificate of a certified model at the end of each pass.

    Parameters
    ----------
    model : the learner
    measures : the metrics of the run
    before : the learner's sums at the start of the run
    names : names of features by slot, if they are kept
    """

    name = "certificate"

    def __init__(self, model: Learner, measures: Measures, before: CertificateSums, names: Names | None = None) -> None:
        self._model, self._measures, self._before, self._names = model, measures, before, names
        self._ended = False
        self.proved = RunCertificate(before=before)
        self._sample = Reservoir()
        settings, one = model.settings, model.classes is None
        self._gram = Gram(model.features, settings.bias) if one and settings.loss == "squared" else None
        self._first = True

    def begin(self, pass_number: int) -> None:
        """Forget the sample of the pass before."""
        if self._ended:
            self._sample, self._ended = Reservoir(), False
        self._first = pass_number == 1

    def after_block(self, step: Step) -> None:
        """Keep a sample of the rows; the learner has the sums."""
        if self._model.lane_margins is not None and not self._model.classes:
            self._sample.add(step, self._model.lane_margins)
        if self._gram is not None and self._first:
            block = step.block
            weight = block.importance if block.held_out is None else np.where(block.held_out, 0, block.importance)
            self._gram.add(block.indptr, block.indices, block.values, block.labels, weight)

    def end(self, pass_number: int, last: bool) -> None:
        """Add the pass that has ended."""
        first = self._measures.first.report()
        loss = first.loss * first.weight if first.weight else 0.0
        collisions = None if self._names is None else self._names.collisions
        self.proved.end_pass(
            self._model, (first.rows, loss), not last, collisions, self._sample.rows(first.rows), self._gram
        )
        self._ended = True

    def pack(self) -> tuple[Any, dict[str, NDArray[Any]]]:
        """Return the state as JSON and arrays."""
        content, arrays = self.proved.pack()
        sample = {f"sample.{name}": array for name, array in self._sample.pack().items()}
        gram = {} if self._gram is None else {f"gram.{name}": array for name, array in self._gram.pack().items()}
        return content, {**arrays, **sample, **gram}

    def unpack(self, known: Any, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Replace the state by one that :meth:`pack` returned."""
        sample = {name[7:]: array for name, array in arrays.items() if name.startswith("sample.")}
        self._sample.unpack(sample)
        if self._gram is not None:
            self._gram.unpack({name[5:]: array for name, array in arrays.items() if name.startswith("gram.")})
        own = {name: array for name, array in arrays.items() if name.startswith("before.")}
        self.proved = RunCertificate.unpack(known, own)
        if known["summary"] is None:  # in the first pass
            self.proved.before = self._before


def _json(point: DualPoint) -> dict[str, Any]:
    found = asdict(point)
    if point.slopes is not None:
        found["slopes"] = {name: np.asarray(value).tolist() for name, value in found["slopes"].items()}
    return found


def _point(found: dict[str, Any]) -> DualPoint:
    concavity, slopes = found["concavity"], found["slopes"]
    if slopes is not None:
        weights, totals = np.array(slopes["weights"]), np.array(slopes["totals"])
        slopes = SlopeHistogram(weights, totals, slopes["slack"])
    return DualPoint(**{**found, "concavity": None if concavity is None else Concavity(**concavity), "slopes": slopes})
