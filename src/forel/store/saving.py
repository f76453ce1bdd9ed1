"""Saving and loading models, with their extra content, names and estimators."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data import Names, ReadOptions, read
from forel.data.features.class_names import padded_names
from forel.learner.contributions import MixtureExplanation
from forel.learner.keyed import ONE_KEY, KeyedModels
from forel.learner.locking import reading
from forel.learner.settings import Settings
from forel.losses.links import Probability
from forel.losses.sigmoid import sigmoid_of_float
from forel.notebook import card, plain
from forel.store.atomic import Path
from forel.store.calibration import Calibration, calibration_of, calibration_state
from forel.store.classes import class_link, number_of_classes
from forel.store.container import ChunkedArray
from forel.store.explaining import Explanation, explain
from forel.store.files import ModelFile, open_file, write_file
from forel.store.header import damaged, settings_from_json, validated_extra
from forel.store.keyed import block_margins, pack_keyed, unpack_keyed
from forel.store.learners import LEARNERS, pack_learner, unpack_learner
from forel.store.named_rows import NamedRows, named_rows
from forel.store.named_weights import NamedWeight, largest_weights
from forel.store.row_scores import NewKeys, RowScorer
from forel.store.serving import ServingModel, pack_serving, unpack_serving
from forel.store.stored_names import pack_names, unpack_names
from forel.store.summary import summary
from forel.validation import refuse

__all__ = ["Stored", "load", "save"]

EXTRA_ARRAY = "beside."  # prefix of additional arrays in a file
NOT_HASHED = (
    "got a scikit-learn estimator or a river model with columns of its own, expected one of hashed names; "
    "forel.load(path).predict_many(rows) predicts frames, dicts or arrays"
)
# The reader of each kind of model, from an open file and a user-defined loss.
UNPACK: dict[str, Callable[[ModelFile, Any], Any]] = {
    **dict.fromkeys(LEARNERS, unpack_learner),
    "serving": lambda file, loss: unpack_serving(file),
    "keyed": unpack_keyed,
}


@dataclass(frozen=True, eq=False, repr=False)
class Stored:
    """The content of a model file.

    Parameters
    ----------
    model : a learner or a serving model
    extra : content that was saved with it
    names : names of features by slot, if they were saved
    estimator : parameters of the scikit-learn estimator that the model is of, as JSON
    arrays : additional arrays by name
    path : of the file, if it was loaded from one
    """

    model: Any
    extra: dict[str, Any] = field(default_factory=dict)
    names: Names | None = None
    estimator: dict[str, Any] | None = None
    arrays: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    path: Path | None = None

    def __stored__(self) -> "Stored":
        return self

    def __repr__(self) -> str:
        return plain("Stored model", summary(self))

    def _repr_html_(self) -> str:
        return card("Stored model", summary(self))

    @property
    def settings(self) -> Settings:
        """The settings that the model was trained with."""
        settings = self.model.settings
        return settings_from_json(settings) if isinstance(settings, Mapping) else settings

    @property
    def calibration(self) -> Calibration | None:
        """The calibration of margins, which predictions use; None for a model without one."""
        return calibration_of(self.extra)

    @property
    def read_options(self) -> ReadOptions:
        """The read options of the model's training, for data to predict."""
        stored = self.extra.get("reading", {})
        if self.named_rows is not None:
            raise ValueError(f"model: {NOT_HASHED}")
        if not stored:  # a learner by itself
            stored = {"bits": max(1, (self.model.features - 1).bit_length())}
        options = ReadOptions.from_json(stored, owner="model")
        if "bits" not in stored:
            raise damaged("read options without the field 'bits'")
        if self.model.features < 1 << options.bits:
            raise damaged(f"read options of {options.bits} bits for a model of {self.model.features:,} features")
        return options.updated({"slices": (self.model.by,)}) if isinstance(self.model, KeyedModels) else options

    @property
    def classes(self) -> tuple[str, ...] | None:
        """The names of several classes, which are 0, 1, ... if none were stored; None for one margin.

        >>> from forel.learner.learner import Learner
        >>> Stored(Learner(4, Settings("softmax"), classes=2)).classes
        ('0', '1')
        """
        count = number_of_classes(self.model)
        if count is None:
            return None
        named = self.read_options.classes if self.named_rows is None else tuple(map(str, self.named_rows.classes))
        return padded_names(named, count) if named and isinstance(named, tuple) else tuple(map(str, range(count)))

    def predict_one(self, row: Mapping[str, Any]) -> float | str:
        """Return the prediction for one row: a probability or a mean, the margin for hinge losses, or a class.

        A probability is that of the positive label, for estimators and river models of the second class.

        Parameters
        ----------
        row : values by the names of columns, as in dicts that :func:`forel.data.read` takes; labels are ignored. For an
            estimator that was fitted with arrays, a sequence of values

        >>> from forel.learner.learner import Learner
        >>> from forel.learner.settings import Settings
        >>> Stored(Learner(16, Settings())).predict_one({"city": "Rome", "age": 31})
        0.5
        """
        if self.classes is not None or self.named_rows is not None:
            self._check_keys(row)
            found = self.predict_many([row])[0]
            return float(found) if self.classes is None else str(found)
        scorer = self._scorer
        margin = None if scorer is None else scorer.margin(row)
        if margin is None:
            self._check_keys(row)
            return float(self._link(self.margins([row])[0]))
        return float(self._link(margin if self._calibration is None else self._calibration.margins(margin)))

    def predict_many(self, rows: Any) -> NDArray[Any]:
        """Return the prediction for each row of a table, file or list of dicts, as :func:`forel.data.read` takes it.

        For estimators and river models, of a frame, a list of dicts, or an array if the columns had no names.
        """
        names, margins = self.classes, self.margins(rows)
        if names is not None:
            return np.asarray(np.array(names)[margins.argmax(axis=1)])
        return np.asarray(self._array_link(margins), np.float64)

    def explain_one(self, row: Mapping[str, Any]) -> Explanation:
        """Return the contribution of each feature of a row, by name.

        >>> from forel.learner.learner import Learner
        >>> from forel.learner.settings import Settings
        >>> explanation = Stored(Learner(16, Settings())).explain_one({"city": "Rome", "age": 31})
        >>> [(part.name, part.value) for part in explanation.contributions]
        [('city^Rome', 1.0), ('age', 31.0)]
        """
        return next(self.explain([row]))

    def explain_mixture(self) -> MixtureExplanation | None:
        """Return what each expert of a mixture contributes; None for one model, and for a serving model."""
        return None if isinstance(self.model, ServingModel) else self.model.explain()

    def explain(self, source: Any, **reading: Any) -> Iterator[Explanation]:
        """Yield the contributions of features to the prediction for each row of a source.

        ``reading`` are read options that differ from those of training.

        Weights of a mixture are averaged on the path from no feature to the row.
        """
        self._check_one()
        model, named = self.model, self.named_rows
        if named is not None:
            blocks: Iterator[Any] = iter([named.read(source, model.dtype)])
            return explain(model, self._array_link, blocks, lambda k: (named.name(k), False), self.classes)
        options = self._lenient.updated(reading)
        names = Names(options.bits)

        def name(feature: int) -> tuple[str, bool]:
            if names is None or feature not in names:
                return str(feature), False
            return names[feature], names.is_shared(feature)

        blocks = iter(read(source, options=options, names=names))
        return explain(model, self._array_link, blocks, name, self.classes, self.calibration)

    def largest_weights(self, top: int = 20) -> list[NamedWeight]:
        """Return the weights that usually add most to a margin, with names, whatever the units of features.

        >>> from forel.learner.learner import Learner
        >>> from forel.learner.settings import Settings
        >>> Stored(Learner(16, Settings())).largest_weights()
        []
        """
        self._check_one()
        reading, classes = self.extra.get("reading", {}), self.classes
        bits = reading.get("bits") if isinstance(reading, Mapping) else None
        columns = {} if self.named_rows is None else self.named_rows.names
        return largest_weights(self.model, self.names, self.extra.get("schema") or {}, bits, classes, top, columns)

    def of_key(self, key: str) -> "Stored":
        """Return the model of one key, if there is one for each, as :func:`forel.train` with ``by`` trains them."""
        if not isinstance(self.model, KeyedModels):
            raise refuse("key", key, "none for one model")
        if key not in self.model:
            expected = f"one of the {len(self.model)} keys, such as {self.model.keys[0]!r}"
            raise refuse(self.model.by, key, expected)
        extra = {name: value for name, value in self.extra.items() if name in ("reading", "schema")}
        if (numbers := self.model.calibration(key)) is not None:
            extra["calibration"] = calibration_state(numbers)[1]
        return Stored(self.model[key], extra, self.names)

    def _check_one(self) -> None:
        if isinstance(self.model, KeyedModels):
            raise refuse("model", f"models by {self.model.by}", ONE_KEY)

    @cached_property
    def _lenient(self) -> ReadOptions:
        """The options to read rows that may have no labels, and text in numeric columns."""
        return replace(self.read_options, unlabelled=True, strict=False)

    @cached_property
    def _scorer(self) -> RowScorer | None:
        """The scorer of single rows; None if weights may change, or rows have crosses."""
        model, options = self.model, self._lenient
        if not isinstance(model, ServingModel) or model.mixture is not None:
            return None
        if options.transform is not None:
            return None
        return RowScorer(model.weight_at, float(model.bias[0]), options, self._new_keys)

    @cached_property
    def _new_keys(self) -> NewKeys | None:
        """What warns of keys that training did not have; None if those of training are unknown."""
        return NewKeys(schema, self._lenient) if (schema := self.extra.get("schema")) else None

    def _check_keys(self, row: Any) -> None:
        if (new := self._new_keys) is not None and isinstance(row, Mapping):
            for key in row:
                new.check(key, stacklevel=4)

    @cached_property
    def named_rows(self) -> NamedRows | None:
        """How rows of an estimator or a river model are read; None for models of hashed names."""
        return named_rows(self.model.features, self.estimator, self.extra.get("reading"), self.names)

    def margins(self, source: Any) -> NDArray[Any]:
        """Return the margins of the rows of a source, with a column for each of several classes."""
        if self.named_rows is not None:
            parts = [self.model.margins(self.named_rows.read(source, self.model.dtype))]
        else:
            parts = [block_margins(self.model, block) for block in read(source, options=self._lenient)]
        count = number_of_classes(self.model)
        margins: NDArray[Any] = np.concatenate(parts) if parts else np.zeros((0, count or 1))
        margins = margins if self._calibration is None else self._calibration.margins(margins)
        return margins[:, 0] if count is None else margins

    @cached_property
    def _calibration(self) -> Calibration | None:
        return self.calibration

    @cached_property
    def _array_link(self) -> Callable[[Any], Any]:
        link = class_link(self.model)
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
    model : a :class:`forel.learner.learner.Learner`, a fitted estimator, a
        river model, or the result of :func:`forel.train`, :func:`load` or :func:`forel.store.serving_model`
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
        stored = model.__stored__() if hasattr(model, "__stored__") else Stored(model)
        with reading(stored.model):
            header, parts = _pack(stored.model)
            names = stored.names if names is None else names
            header |= {
                "extra": {**stored.extra, **validated_extra(extra)},
                "estimator": stored.estimator,
                "bits": None if names is None else names.bits,
            }
            kept = stored.model.slots if isinstance(stored.model, ServingModel) else None
            name_arrays = {} if names is None else pack_names(names, kept)
            others = {**stored.arrays, **(arrays or {})}
            extra_arrays = {EXTRA_ARRAY + name: np.asarray(array, np.float64) for name, array in others.items()}
            write_file(path, header, {**parts, **name_arrays, **extra_arrays})


def _pack(model: Any) -> tuple[dict[str, Any], Mapping[str, NDArray[Any] | ChunkedArray]]:
    """Return the header and the arrays of a model."""
    if isinstance(model, ServingModel):
        return pack_serving(model)
    if isinstance(model, KeyedModels):
        return pack_keyed(model)
    if getattr(model, "kind", None) in LEARNERS:
        return pack_learner(model)
    expected = "a forel.Learner, a fitted estimator, or a forel.store.ServingModel"
    raise refuse("model", type(model).__name__, expected)


def load(path: Path, loss: Any = None) -> Stored:
    """Read a model from a file, to continue learning or to predict.

    ``loss`` is the function of a user-defined loss, which a file stores only by name. Loading a file runs no code from
    it. A file that is incomplete, damaged, of another program or of a later version raises a ``ModelFileError``.
    """
    with open_file(path) as file:
        header = file.header
        model = UNPACK[header["kind"]](file, loss)
        if not isinstance(header["extra"], dict) or not isinstance(header["estimator"], dict | None):
            raise damaged("the header has invalid values")
        names = None if header["bits"] is None else unpack_names(file, header["bits"])
        extra = file.names(EXTRA_ARRAY)
        arrays = {name.removeprefix(EXTRA_ARRAY): file.array(name, np.float64, file.shape(name)) for name in extra}
        if file.used != set(header["checks"]):
            raise damaged("there are unexpected arrays")
        return Stored(model, header["extra"], names, header["estimator"], arrays, path)
