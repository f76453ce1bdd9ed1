"""Metrics of each pass, of the rows learned from and of the rows held out."""

from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import NDArray

from forel.training.metrics import Report, RowScores, StreamMetrics
from forel.training.run import Observer, Step

__all__ = ["Measures"]


class Measures(Observer):
    """Metrics of the rows learned from in each pass, and of the rows held out in the last one.

    Parameters
    ----------
    new_metrics : returns empty metrics
    """

    name = "metrics"

    def __init__(self, new_metrics: Callable[[], StreamMetrics]) -> None:
        self._new = new_metrics
        self.progressive, self.holdout = new_metrics(), new_metrics()
        self.finished: list[StreamMetrics] = []  # of the rows learned from, in earlier passes
        self.last_holdout = self.holdout
        # Of the last block: the rows learned from, and those held out.
        self.scores: RowScores | None = None
        self.held_out_scores: RowScores | None = None

    def after_block(self, step: Step) -> None:
        """Add the rows of a block."""
        block, some = step.block, step.learned
        self.scores = self.progressive.add(step.margins[some], block.labels[some], block.importance[some])
        if (out := block.held_out) is not None:
            self.held_out_scores = self.holdout.add(step.margins[out], block.labels[out], block.importance[out])

    def end(self, pass_number: int, last: bool) -> None:
        """Keep the metrics of a pass, and start those of the next one."""
        self.finished.append(self.progressive)
        self.last_holdout = self.holdout
        self.progressive, self.holdout = self._new(), self._new()

    @property
    def first(self) -> StreamMetrics:
        """The metrics of the rows learned from in the first pass."""
        return self.finished[0] if self.finished else self.progressive

    def reports(self) -> tuple[Report, ...]:
        """Return the metrics of the rows learned from in each pass that has ended."""
        return tuple(one.report() for one in self.finished)

    def pack(self) -> tuple[Any, dict[str, NDArray[Any]]]:
        """Return the state as JSON and arrays."""
        each = [*self.finished, self.progressive, self.holdout]
        arrays = {f"{k}.{name}": array for k, one in enumerate(each) for name, array in one.pack().items()}
        return len(self.finished), arrays

    def unpack(self, known: Any, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Replace the state by one that :meth:`pack` returned."""
        each = [self._new() for _ in range(known + 2)]
        for k, one in enumerate(each):
            one.unpack({name: arrays[f"{k}.{name}"] for name in one.pack()})
        *self.finished, self.progressive, self.holdout = each
