"""The result of training: a model and its metrics."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from numpy.typing import NDArray

from forel.data import Names, Problems
from forel.data.features.label_words import LabelWords
from forel.learner.contributions import MixtureExplanation
from forel.learner.learner import Learner
from forel.learner.loss_floor import Frontier
from forel.notebook import card, plain
from forel.store import Stored, save
from forel.store.atomic import Path
from forel.store.explaining import Explanation
from forel.store.named_weights import NamedWeight
from forel.store.summary import METRICS
from forel.training.calibrating import Calibrated
from forel.training.checkpoint import remove_checkpoint
from forel.training.inclusion import Inclusion
from forel.training.key_summary import KeySummary
from forel.training.label_order import LabelOrder
from forel.training.metrics import Report
from forel.training.slices import SliceTable

__all__ = ["Trained"]

NOT_STORED = (
    "table",
    "rmse",
    "mae",
    "baseline_rmse",
    "r2",
    "confusion",
    "classes",
)  # of a report, so that equal runs give equal files


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained model, and the metrics of its training.

    Parameters
    ----------
    model : the learner, which can continue to learn
    report : metrics of the first pass; each row is predicted before it is learned from
    holdout : metrics of the rows held out, in the last pass; None if no rows are
    final : metrics of the final model on at most 5,000 of them, evenly spread; None if that is ``holdout``
    passes : metrics of the rows learned from in each pass; from the second on, the model has learned them before
    rows, entries : rows and features of the first pass, including rows held out
    seconds : time from the first byte to the last row
    compiling : how much of it was spent on compiling, before the first row or beside others
    problems : malformed examples
    certificate : summary of the certificate of the rows of ``report``, against all fixed models of at most the learned
        model's norm; None without a certificate
    frontier : lower bounds on the loss of fixed models on these rows, by their norm; None where there are none
    names : names of features by slot; None if they were not kept
    reading : read options to store with the model
    checkpoint : the checkpoint of the run; None without one
    others : extra content of the model that training started from
    schema : kind, range and share of missing values of each column
    slices : metrics of the rows of ``report`` by the values of each column of the option ``slices``
    calibrated : the calibration, and metrics of calibrated predictions; None without it. All other metrics, the
        guarantee and the certificate are about predictions before calibration
    inclusion : which features are learned from; None for all
    keys : metrics of the model of each key, with the option ``by``; ``model`` then is a
        :class:`forel.learner.keyed.KeyedModels`, which maps keys to models
    label_order : counts of the labels of the first pass in order, which warn of sorted ones; None with ``by``
    """

    model: Learner
    report: Report
    holdout: Report | None
    passes: tuple[Report, ...]
    rows: int
    entries: int
    seconds: float
    problems: Problems
    certificate: str | None = None
    frontier: Frontier | None = None
    names: Names | None = None
    reading: dict[str, Any] = field(default_factory=dict)
    checkpoint: Path | None = None
    others: dict[str, Any] = field(default_factory=dict)
    schema: dict[str, dict[str, Any]] = field(default_factory=dict)
    slices: tuple[SliceTable, ...] = ()
    calibrated: Calibrated | None = None
    inclusion: Inclusion | None = None
    keys: tuple[KeySummary, ...] = ()
    label_order: LabelOrder | None = None
    final: Report | None = None
    compiling: float = 0.0

    @property
    def stored(self) -> Stored:
        """The model as :func:`forel.load` would return it."""
        return Stored(self.model, self.extra, self.names, arrays=self.arrays)

    def __stored__(self) -> Stored:
        return self.stored

    @property
    def label_words(self) -> LabelWords | None:
        """The words of the labels, of which one is positive; None if labels are numbers."""
        positive = self.reading.get("positive")
        kind = self.reading.get("kinds", {}).get(self.reading.get("label"))
        return LabelWords.of_kind(kind) if positive is None else LabelWords(None, positive)

    @property
    def extra(self) -> dict[str, Any]:
        """Content stored with the model: read options, schema, metrics, and content of the model it started from."""
        reports = {"report": self.report, "holdout": self.holdout, "final": self.final}
        return {
            **self.others,
            "reading": self.reading,
            **({"schema": self.schema} if self.schema else {}),
            **({} if self.inclusion is None else {"inclusion": self.inclusion.rule.to_json()}),
            **({"calibration": self.calibrated.extra} if self.calibrated and self.calibrated.extra else {}),
            **{name: None if report is None else _json(report) for name, report in reports.items()},
            **({"keys": [one.to_json() for one in self.keys]} if self.keys else {}),
        }

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays stored with the model: counts of features, if rare ones are left out."""
        return {} if self.inclusion is None else self.inclusion.pack()

    def _summary(self) -> list[tuple[str, object]]:
        """Return the title and value of what is shown of a run; None for a value that is not defined."""
        return [
            ("settings", self.model.settings.summary),
            ("rows", self.rows),
            ("features in all", self.entries),
            (self.model.settings.title, self.report.loss),
            ("held-out loss", None if self.holdout is None else self.holdout.loss),
            *((name, getattr(self.report, name)) for name in METRICS),
            ("guarantee", self.model.guarantee()),
            ("certificate", self.certificate),
        ]

    def __repr__(self) -> str:
        return plain("Trained model", self._summary())

    def _repr_html_(self) -> str:
        floors = {} if self.frontier is None else {"loss_floor_by_norm": [floor for _, floor in self.frontier.points]}
        return card("Trained model", self._summary(), **floors)

    def predict_one(self, row: Mapping[str, Any]) -> float | str:
        """Return the prediction for one row, as :meth:`forel.store.Stored.predict_one` does."""
        return self.stored.predict_one(row)

    def predict_many(self, rows: Any) -> NDArray[Any]:
        """Return the prediction for each row of a table, file or list of dicts."""
        return self.stored.predict_many(rows)

    def explain_one(self, row: Mapping[str, Any]) -> Explanation:
        """Return the contribution of each feature of a row, by name."""
        return self.stored.explain_one(row)

    def explain_mixture(self) -> MixtureExplanation | None:
        """Return what each expert of a mixture contributes; None for one model."""
        return self.model.explain()

    def largest_weights(self, top: int = 20) -> list[NamedWeight]:
        """Return the weights that usually add most to a margin; with names if these were kept."""
        return self.stored.largest_weights(top)

    def save(self, path: Path) -> None:
        """Write the model to a file, with its read options and names, and remove the checkpoint."""
        save(path, self.model, self.extra, self.names, self.arrays)
        self.remove_checkpoint()

    def best(self) -> "Trained":
        """Return the same result with the best setting's model alone; itself if there is one setting only.

        The calibration of a mixture is left out, because it is not that of the best setting.
        """
        calibrated = self.calibrated if self.model.guarantee() is None else None
        return replace(self, model=self.model.select_setting(), calibrated=calibrated)

    def remove_checkpoint(self) -> None:
        """Remove the checkpoint of the run, once the model is saved elsewhere."""
        if self.checkpoint is not None:
            remove_checkpoint(self.checkpoint)


def _json(report: Report) -> dict[str, Any]:
    """Return the metrics of a report that models store; JSON has no NaN."""
    return {name: value for name, value in asdict(report).items() if name not in NOT_STORED and value == value}
