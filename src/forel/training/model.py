"""A model with everything that predictions need: what :func:`forel.train` and :func:`forel.load` return."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from forel.data import Names, Problems, ReadOptions, read, slot
from forel.data.labels import LabelWords, padded_names, validated_classes
from forel.learner.contributions import MixtureExplanation
from forel.learner.keyed import ONE_KEY, KeyedModels
from forel.learner.locking import reading
from forel.learner.rows import CoalescedRows
from forel.learner.settings import Settings
from forel.losses.labels import Interval
from forel.losses.links import Probability
from forel.losses.sigmoid import sigmoid_of_float
from forel.notebook import card, plain
from forel.store.atomic import Path
from forel.store.column_curves import Curves, column_curves
from forel.store.explaining import Explanation, explain
from forel.store.header import damaged, settings_from_json, validated_extra
from forel.store.named_rows import NamedRows, named_rows
from forel.store.named_weights import MOMENTS, NamedWeight, largest_values, largest_weights
from forel.store.row_reader import NewKeys, RowReader
from forel.store.saving import read_model, write_model
from forel.store.serving import ServingModel, class_link, number_of_classes
from forel.training.labels import LabelEncoder
from forel.training.scoring import evaluate_model, predict_blocks, prediction_link
from forel.training.statements import coverage_of
from forel.validation import Unsupported, refuse

if TYPE_CHECKING:
    from forel.training.metrics import Report
    from forel.training.result import Evaluation, Training

__all__ = ["Inspection", "Model", "as_model", "load", "save"]

METRICS = {
    "auc": "AUC", "auc_se": "AUC, std. error", "calibration": "calibration ratio", "accuracy": "accuracy",
    "rmse": "RMSE", "mae": "MAE", "r2": "R²", "deviance": "Poisson deviance",
}  # fmt: skip
SHOWN = 6  # columns or classes
MEASURED = "report", "holdout", "final", "certificate", "interval"  # of the rows of training
NOT_HASHED = (
    "got a scikit-learn estimator or a river model with columns of its own, expected one of hashed names; "
    "forel.load(path).predict_many(rows) predicts frames, dicts or arrays"
)


@dataclass(frozen=True)
class Inspection:
    """The largest weights of a model, and what each expert of a mixture contributes; None for one model.

    ``measure`` is what weights are multiplied by: "std. dev." of values in a sample of rows; without one, their
    "largest |value|" ever, if the model keeps it, or the "unit" of features. ``curves`` are those of columns and pairs,
    by the best expert on curves; None without one.
    """

    weights: Sequence[NamedWeight]
    mixture: MixtureExplanation | None
    measure: str = "std. dev."
    curves: Curves | None = None

    def _summary(self) -> list[tuple[str, object]]:
        return [(one.name or str(one.slot), one.weight) for one in self.weights]

    def __repr__(self) -> str:
        return plain("Largest weights", self._summary())

    def _repr_html_(self) -> str:
        return card("Largest weights", self._summary())


@dataclass(eq=False, repr=False)
class Model:
    """A learner with the names, read options and other content of its file.

    Parameters
    ----------
    learner : the learner, a serving model, or the models of all keys
    extra : content that is stored with it: read options, schema, metrics
    names : names of features by slot, if they were kept
    estimator : attributes of the scikit-learn estimator or river model that it belongs to, as JSON
    arrays : further arrays by name
    path : of the file, if it was loaded from one
    training : what the run that trained it measured; None if it was loaded

    >>> from forel.learner.learner import Learner
    >>> from forel.learner.settings import Settings
    >>> Model(Learner(16, Settings(alpha=0.5)))
    Model
      kind: linear
      settings: loss=logistic, algorithm=proximal, rate=adagrad, alpha=0.5, beta=1.0, l1=0.0, l2=0.0
      rows: 0
      slots: 16
    """

    learner: Any
    extra: dict[str, Any] = field(default_factory=dict)
    names: Names | None = None
    estimator: dict[str, Any] | None = None
    arrays: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    path: Path | None = None
    training: "Training" = None  # type: ignore[assignment]  # typed for the models that training returns

    def __getstate__(self) -> dict[str, Any]:
        """Return the content, without what is derived from it, some of which cannot be pickled."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @classmethod
    def trained(
        cls,
        learner: Any,
        training: "Training",
        names: Names | None = None,
        extra: Mapping[str, Any] = MappingProxyType({}),
    ) -> "Model":
        """Return the result of training; ``extra`` is the content to store with it, besides what was measured."""
        arrays = {} if training.moments is None else {MOMENTS: training.moments}
        return cls(learner, {**extra, **training.extra}, names, arrays=arrays, training=training)

    def __model__(self) -> "Model":
        return self

    def _summary(self) -> list[tuple[str, object]]:
        """Return the title and value of what is shown; None for a value that is not defined."""
        learner, settings, training = self.learner, self.settings, self.training
        report, reading = (_mapping(self.extra.get(name)) for name in ("report", "reading"))
        if training is not None and training.report is not None:
            report = training.report.to_json()  # with metrics that are not stored
        return [
            ("path", None if self.path is None else str(self.path)),
            ("kind", _kind(learner)),
            ("settings", settings.summary),
            ("rows", learner.rounds),
            (settings.title, report.get("loss")),
            ("held-out loss", _mapping(self.extra.get("holdout")).get("loss")),
            *((title, report.get(name)) for name, title in METRICS.items()),
            ("guarantee", None if training is None else learner.guarantee()),
            ("certificate", None if training is None else training.certificate),
            ("label", reading.get("label")),
            ("classes", _first(self.classes or ())),
            ("columns", _first(_mapping(self.extra.get("schema")))),
            ("slots", learner.features),
        ]

    def __repr__(self) -> str:
        return plain("Model", self._summary())

    def _repr_html_(self) -> str:
        frontier = None if self.training is None else self.training.frontier
        floors = {} if frontier is None else {"loss_floor_by_norm": [floor for _, floor in frontier.points]}
        return card("Model", self._summary(), **floors)

    @property
    def settings(self) -> Settings:
        """The settings that the model was trained with."""
        settings = self.learner.settings
        return settings_from_json(settings) if isinstance(settings, Mapping) else settings

    @property
    def report(self) -> "Report":
        """Metrics of the rows of training, each predicted before it was learned from; of a model just trained."""
        if self.training is None:
            raise AttributeError("report: the model was loaded; its metrics are in extra['report']")
        return self.training.report

    @property
    def read_options(self) -> ReadOptions:
        """The read options of training, for rows to predict."""
        stored = self.extra.get("reading", {})
        if self.named_rows is not None:
            raise ValueError(f"model: {NOT_HASHED}")
        if not stored:  # a learner by itself
            stored = {"bits": max(1, (self.learner.features - 1).bit_length())}
        options = ReadOptions.from_json(stored, owner="model")
        if "bits" not in stored:
            raise damaged("read options without the field 'bits'")
        if self.learner.features < 1 << options.bits:
            raise damaged(f"read options of {options.bits} bits for a model of {self.learner.features:,} features")
        return options.updated({"slices": (self.learner.by,)}) if isinstance(self.learner, KeyedModels) else options

    @property
    def classes(self) -> tuple[str, ...] | None:
        """The names of several classes, which are 0, 1, ... if none were stored; None for one margin.

        >>> from forel.learner.learner import Learner
        >>> from forel.learner.settings import Settings
        >>> Model(Learner(4, Settings("softmax"), classes=2)).classes
        ('0', '1')
        """
        count = number_of_classes(self.learner)
        if count is None:
            return None
        named = self.read_options.classes if self.named_rows is None else tuple(map(str, self.named_rows.classes))
        return padded_names(named, count) if named and isinstance(named, tuple) else tuple(map(str, range(count)))

    def options(self, **changed: Any) -> ReadOptions:
        """Return the options to read labelled rows with, some changed; the number of bits and the classes are fixed.

        >>> from forel.learner.learner import Learner
        >>> from forel.learner.settings import Settings
        >>> Model(Learner(16, Settings())).options(bits=20)
        Traceback (most recent call last):
        ValueError: bits: got 20, expected 4, as the model was trained with
        """
        known, names = self.read_options, self.classes
        if changed.get("bits") not in (None, known.bits):
            raise ValueError(f"bits: got {changed['bits']}, expected {known.bits}, as the model was trained with")
        given = validated_classes(changed.get("classes"))
        if names is not None and given not in (None, "auto", len(names), names):
            raise ValueError(f"classes: got {given}, expected {names}, as the model was trained with")
        return known.updated({**changed, "classes": names or given})

    @property
    def label_words(self) -> LabelWords | None:
        """The words of the labels, of which one is positive; None if labels are numbers."""
        reading = self.extra.get("reading", {})
        positive = reading.get("positive")
        kind = reading.get("kinds", {}).get(reading.get("label"))
        return LabelWords.of_kind(kind) if positive is None else LabelWords(None, positive)

    def predict(
        self,
        source: Any,
        *,
        margins: bool = False,
        probabilities: bool = False,
        interval: float | None = None,
        threads: int | None = None,
        **reading: Any,
    ) -> Any:
        """Return the prediction for each row of a source, without learning; labels are optional.

        Predictions are probabilities for log-loss, means for regression losses, margins for hinge losses, and the names
        of classes where there are several. A warning lists how rows differ from those of training.

        Parameters
        ----------
        source : as in :func:`forel.data.read`
        margins : return margins w·x instead of predictions, with a column for each of several classes
        probabilities : return probabilities, with a column for each of several classes
        interval : return predictions, and the ends of an interval for each, in two columns. It is the level that the
            model was trained with; the half width is that after the last row of training
        threads : number of parser threads; None for a default
        reading : options of :class:`forel.data.ReadOptions` that differ from those of training

        >>> from forel.training.train import train
        >>> clicks = [{"site": "news", "click": 1}, {"site": "shop", "click": 0}] * 50
        >>> model = train(clicks, label="click", bits=10)
        >>> (model.predict([{"site": "news"}, {"site": "shop"}]) > 0.5).tolist()
        [True, False]
        """
        names, link = self.classes, np.asarray if margins else prediction_link(self, probabilities)
        if self.named_rows is not None:
            parts = [link(self.margins(source))]
        else:
            parts = [link(found) for _, found in predict_blocks(self, source, threads, **reading)]
        columns = names is not None and (margins or probabilities)
        kind: Any = np.float64 if names is None or columns else np.array(names).dtype
        empty: Any = np.zeros((0, len(names or ())) if columns else 0, kind)
        predictions = np.concatenate(parts).astype(kind, copy=False) if parts else empty
        return predictions if interval is None else (predictions, self.intervals(predictions, interval))

    def intervals(self, predictions: NDArray[Any], level: float | None = None) -> NDArray[np.float64]:
        """Return the ends of the interval around each prediction, within the range of labels of the loss.

        >>> from forel.training.train import train
        >>> rows = [{"a": k % 5, "y": k % 7} for k in range(500)]
        >>> model = train(rows, label="y", loss="squared", bits=4, interval=0.8)
        >>> predictions, ends = model.predict(rows[:2], interval=0.8)
        >>> bool((ends[:, 0] < predictions).all()), ends.shape
        (True, (2, 2))
        """
        coverage = coverage_of(self.extra)
        if coverage is None:
            raise refuse("interval", level, "None: the model was trained without intervals, as interval=0.9 keeps")
        if level not in (None, coverage.level):
            raise refuse("interval", level, f"{coverage.level:g}, with which the model was trained")
        labels, center = self.settings.labels, np.asarray(predictions, np.float64)
        ends = np.stack([center - coverage.half_width, center + coverage.half_width], axis=-1)
        return np.maximum(ends, labels.low) if isinstance(labels, Interval) else ends

    def evaluate(
        self, source: Any, *, interval: float | None = None, threads: int | None = None, **reading: Any
    ) -> "Evaluation":
        """Measure the model on a source, without learning.

        Parameters
        ----------
        source, threads, reading : as in :meth:`predict`
        interval : level of intervals around predicted numbers, which follow the rows; None for that of training

        >>> from forel.training.train import train
        >>> clicks = [{"site": "news", "click": 1}, {"site": "shop", "click": 0}] * 50
        >>> train(clicks, label="click", bits=10).evaluate(clicks).report.auc
        1.0
        """
        return evaluate_model(self, source, threads, reading, interval)

    def learn(self, source: Any, **reading: Any) -> "Model":
        """Learn from each row of a source in place, without measuring, and return the model.

        :func:`forel.train` with this model as ``start`` measures.

        >>> from forel.training.train import train
        >>> model = train([{"a": 1, "y": 1}] * 9, label="y", bits=4)
        >>> model.learn([{"a": 1, "y": 1}] * 5).learner.rounds
        14
        """
        self._check_one()
        if isinstance(self.learner, ServingModel) or self.named_rows is not None:
            raise refuse("model", _kind(self.learner), "a learner of hashed names; estimators learn by partial_fit")
        options = self.options(**reading)
        problems = Problems(options.on_error)
        labels = LabelEncoder(self.settings, problems, number_of_classes(self.learner), self.classes or ())
        for block in map(labels, read(source, options=options)):
            self.learner.learn(CoalescedRows(*block.rows), block.labels, block.importance)
        return self

    def predict_one(self, row: Mapping[str, Any]) -> float | str:
        """Return the prediction for one row: a probability or a mean, the margin for hinge losses, or a class.

        A probability is that of the positive label, for estimators and river models of the second class.

        Parameters
        ----------
        row : values by the names of columns, as in dicts that :func:`forel.data.read` takes; labels are ignored. For an
            estimator that was fitted with arrays, a sequence of values

        >>> from forel.learner.learner import Learner
        >>> from forel.learner.settings import Settings
        >>> Model(Learner(16, Settings())).predict_one({"city": "Rome", "age": 31})
        0.5
        """
        found = None if self._reader is None else self._reader.read(row)
        if found is None:
            self._check_keys(row)
            margins = self.margins([row])[0]
        else:
            margins = self._row_margins(*found)
        return float(self._link(margins)) if self._names is None else self._names[int(np.argmax(margins))]

    def predict_many(self, rows: Any) -> NDArray[Any]:
        """Return the prediction for each row of a table, file or list of dicts, as :func:`forel.data.read` takes it.

        For estimators and river models, of a frame, a list of dicts, or an array if the columns had no names.
        """
        found = prediction_link(self)(self.margins(rows))
        return np.asarray(found, None if self._names else np.float64)

    def margins(self, source: Any) -> NDArray[Any]:
        """Return the margins of the rows of a source, with a column for each of several classes."""
        if self.named_rows is not None:
            parts = [self.learner.margins(self.named_rows.read(source, self.learner.dtype))]
        else:
            parts = [self.learner.margins(block) for block in read(source, options=self._lenient)]
        count = number_of_classes(self.learner)
        margins: NDArray[Any] = np.concatenate(parts) if parts else np.zeros((0, count or 1))
        return margins[:, 0] if count is None else margins

    def explain_one(self, row: Mapping[str, Any]) -> Explanation:
        """Return the contribution of each feature of a row, by name.

        >>> from forel.learner.learner import Learner
        >>> from forel.learner.settings import Settings
        >>> explanation = Model(Learner(16, Settings())).explain_one({"city": "Rome", "age": 31})
        >>> [(part.name, part.value) for part in explanation.contributions]
        [('city^Rome', 1.0), ('age', 31.0)]
        """
        return next(self.explain([row]))

    def explain(self, source: Any, **reading: Any) -> Iterator[Explanation]:
        """Yield the contributions of features to the prediction for each row of a source.

        ``reading`` are read options that differ from those of training.

        Weights of a mixture are averaged on the path from no feature to the row.
        """
        self._check_one()
        learner, named = self.learner, self.named_rows
        if named is not None:
            blocks: Iterator[Any] = iter([named.read(source, learner.dtype)])
            return explain(learner, self._array_link, blocks, lambda k: (named.name(k), False), self.classes)
        options = self._lenient.updated(reading)
        names = Names(options.bits)
        columns = {slot(column, bits=options.bits): column for column in self.extra.get("schema") or ()}

        def name(feature: int) -> tuple[str, bool]:
            if feature not in names:
                return columns.get(feature, str(feature)), False
            return names[feature], names.is_shared(feature)

        blocks = iter(read(source, options=options, names=names))
        return explain(learner, self._array_link, blocks, name, self.classes)

    def inspect(self, top: int = 20) -> Inspection:
        """Return the weights whose additions to a margin vary most, with names, and what experts contribute.

        >>> from forel.learner.learner import Learner
        >>> from forel.learner.settings import Settings
        >>> Model(Learner(16, Settings())).inspect().weights
        []
        """
        self._check_one()
        reading, learner = self.extra.get("reading", {}), self.learner
        bits = reading.get("bits") if isinstance(reading, Mapping) else None
        columns = {} if self.named_rows is None else self.named_rows.names
        schema = self.extra.get("schema") or {}
        moments = self.arrays.get(MOMENTS)
        weights = largest_weights(learner, self.names, schema, bits, self.classes, top, columns, moments)
        unsampled = "unit" if largest_values(learner) is None else "largest |value|"
        measure = unsampled if moments is None else "std. dev."
        if isinstance(learner, ServingModel):
            return Inspection(weights, None, measure)
        named = {**columns, **({slot(name, bits=bits): name for name in schema} if bits else {})}

        def name(place: int) -> str:
            known = self.names is not None and place in self.names
            return self.names[place] if known and self.names is not None else named.get(place, str(place))

        return Inspection(weights, learner.explain(), measure, column_curves(learner, name, top))

    @property
    def certificate(self) -> str | None:
        """The certificate of the last training run; of all rows if the model has learned since; None without one."""
        return None if (found := self._certificate) is None else found[0]

    @property
    def floor(self) -> dict[str, Any] | None:
        """The numbers behind the certificate; None without one, or without a floor."""
        return None if (found := self._certificate) is None else found[1]

    @property
    def _certificate(self) -> tuple[str, dict[str, Any] | None] | None:
        """The certificate and its numbers: those of the last training run, unless the model has learned since."""
        learner, stored = self.learner, self.extra.get("certificate")
        if isinstance(learner, ServingModel | KeyedModels) or not learner.certified:
            return None
        if isinstance(stored, Mapping) and stored.get("rounds") == learner.rounds:
            return str(stored.get("summary")), stored.get("floor")
        if learner.n_outputs > 1 and not learner.joint:
            return None
        floor = learner.loss_floor()
        if self.estimator is None:
            collisions = None if self.names is None else self.names.collisions
            floor = floor.of_hashed_features(learner.features, learner.used_slots, collisions)
        return floor.summary(), floor.to_json()

    def plot(self, top: int = 20, ax: Any = None) -> Any:
        """Plot the largest contributions of features to a margin as bars, and return matplotlib's axes."""
        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.subplots()[1]
        inspected = self.inspect(top)
        weights = inspected.weights[::-1]
        ax.barh([one.name or str(one.slot) for one in weights], [one.contribution for one in weights])
        ax.set_xlabel(f"weight times {inspected.measure}")
        return ax

    def plot_curves(self, top: int = 12, pairs: int = 4) -> Any:
        """Plot the curve of each column that varies most, and the strongest pairs; return matplotlib's figure."""
        if (curves := self.inspect().curves) is None:
            raise Unsupported("this model has no curves; train with features='curves' or 'pairs', or see plot()")
        return curves.plot(top, pairs)

    def save(self, path: Path) -> None:
        """Write the model to a file, and remove the checkpoint of its run."""
        save(path, self)
        self.remove_checkpoint()

    def remove_checkpoint(self) -> None:
        """Remove the checkpoint of the run that trained the model, once it is saved elsewhere."""
        if self.training is not None and self.training.checkpoint is not None:
            with suppress(FileNotFoundError):
                os.unlink(self.training.checkpoint)

    def best(self) -> "Model":
        """Return the model of the best setting alone, without what was measured of the mixture; itself if it is one.

        Experts on curves do not learn alone: :func:`forel.training.result.best_sentence` has the losses of both.
        """
        if self.learner.guarantee() is None:
            return self
        extra = {name: value for name, value in self.extra.items() if name not in MEASURED}
        return replace(self, learner=self.learner.select_setting(), extra=extra)

    def of_key(self, key: str) -> "Model":
        """Return the model of one key, if there is one for each, as :func:`forel.train` with ``by`` trains them."""
        if not isinstance(self.learner, KeyedModels):
            raise refuse("key", key, "none for one model")
        extra = {name: value for name, value in self.extra.items() if name in ("reading", "schema")}
        return Model(self.learner[key], extra, self.names)

    def _check_one(self) -> None:
        if isinstance(self.learner, KeyedModels):
            raise refuse("model", f"models by {self.learner.by}", ONE_KEY)

    @cached_property
    def _lenient(self) -> ReadOptions:
        """The options to read rows that may have no labels, and text in numeric columns."""
        return replace(self.read_options, unlabelled=True, strict=False)

    @cached_property
    def _reader(self) -> RowReader | None:
        """The reader of single rows; None if rows have crosses, or are not those of one model of hashed names."""
        if self.named_rows is not None or isinstance(self.learner, KeyedModels) or self._lenient.transform is not None:
            return None
        return RowReader(self._lenient, self._new_keys)

    def _row_margins(self, slots: list[int], values: list[float]) -> Any:
        """Return the margin of one row, or the margins of several classes."""
        if isinstance(self.learner, ServingModel):
            margins = self.learner.row_margins(slots, values)
        else:
            indptr, indices = np.array([0, len(slots)]), np.array(slots, np.int32)
            margins = self.learner.margins(CoalescedRows(indptr, indices, np.array(values, np.float32)))[0]
        return margins[0] if self._names is None else margins

    @cached_property
    def _names(self) -> tuple[str, ...] | None:
        return self.classes

    @cached_property
    def _new_keys(self) -> NewKeys | None:
        """What warns of keys that training did not have; None if those of training are unknown."""
        return NewKeys(schema, self._lenient) if (schema := self.extra.get("schema")) else None

    def _check_keys(self, row: Any) -> None:
        if (new := self._new_keys) is not None and isinstance(row, Mapping):
            for key, value in row.items():
                if not isinstance(value, list | tuple | Mapping):  # whose keys a schema does not have
                    new.check(key, stacklevel=4)

    @cached_property
    def named_rows(self) -> NamedRows | None:
        """How rows of an estimator or a river model are read; None for models of hashed names."""
        return named_rows(self.learner.features, self.estimator, self.extra.get("reading"), self.names)

    @cached_property
    def _array_link(self) -> Callable[[Any], Any]:
        link = class_link(self.learner)
        return self.settings.link if link is None else link

    @cached_property
    def _link(self) -> Callable[[Any], Any]:
        """The link of one margin; for the most common one, that of log-loss, without arrays."""
        return sigmoid_of_float if self._array_link == Probability() else self._array_link


def save(
    path: Path,
    model: Any,
    extra: Mapping[str, Any] | None = None,
    names: Names | None = None,
    arrays: Mapping[str, NDArray[np.float64]] | None = None,
) -> None:
    """Write a model to a file, which is replaced atomically; equal models give equal bytes.

    Parameters
    ----------
    path : the file
    model : a :class:`Model`, a learner, a serving model, a fitted estimator or a river model
    extra : JSON content to save with the model
    names : names of features by slot, as a reader records them; a serving model keeps those of its weights
    arrays : additional arrays of float64

    >>> import tempfile, pathlib
    >>> from forel.learner.learner import Learner
    >>> from forel.learner.settings import Settings
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.forel"
    >>> save(path, Learner(2, Settings()), extra={"labels": ["ham", "spam"]})
    >>> load(path).extra
    {'labels': ['ham', 'spam']}
    """
    with reading(model):
        content = model.__model__() if hasattr(model, "__model__") else Model(model)
        with reading(content.learner):
            write_model(
                path,
                content.learner,
                {**content.extra, **validated_extra(extra)},
                content.names if names is None else names,
                content.estimator,
                {**content.arrays, **(arrays or {})},
            )


def load(path: Path, loss: Any = None) -> Model:
    """Read a model from a file, to continue learning or to predict.

    ``loss`` is the function of a user-defined loss, which a file stores only by name. Loading a file runs no code from
    it. A file that is incomplete, damaged, of another program or of a later version raises a ``ModelFileError``.
    """
    return Model(*read_model(path, loss), path=path)


def as_model(model: Any) -> Model:
    """Return the model of a path, an estimator, a river model or a bare learner."""
    if isinstance(model, str | os.PathLike):
        return load(model)
    if not hasattr(model, "__model__") and not hasattr(model, "settings"):
        raise refuse(
            "model", type(model).__name__, "a path or a trained model, before the rows, as in predict(model, rows)"
        )
    return cast(Model, model.__model__()) if hasattr(model, "__model__") else Model(model)


def predict(model: Any, source: Any, **options: Any) -> Any:
    """Return the prediction of a model for each row of a source: :meth:`Model.predict` of a path or any model."""
    return as_model(model).predict(source, **options)


def evaluate(model: Any, source: Any, **options: Any) -> "Evaluation":
    """Measure a model on a source: :meth:`Model.evaluate` of a path or any model."""
    return as_model(model).evaluate(source, **options)


def _kind(learner: Any) -> str:
    if isinstance(learner, KeyedModels):
        return f"{len(learner):,} models by {learner.by}"
    if isinstance(learner, ServingModel):
        return "serving model, for predictions only"
    return str(learner.kind)


def _mapping(value: Any) -> Mapping[str, Any]:
    """Return a value of a file if it is an object; an empty one otherwise."""
    return value if isinstance(value, Mapping) else {}


def _first(names: Any) -> str | None:
    """Return the first of some names as text, and how many there are; None if there are none."""
    shown = ", ".join(list(map(str, names))[:SHOWN])
    return (f"{shown}, ... ({len(names):,} in all)" if len(names) > SHOWN else shown) or None
