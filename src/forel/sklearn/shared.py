"""What both estimators do: parameters as settings, validation, passes over rows, and fitted attributes."""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import partial, wraps
from operator import eq
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state, estimator_html_repr
from sklearn.utils.validation import (
    _check_feature_names_in,
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from forel.data.features.curves import FIRST, Curves
from forel.evidence import Coverage
from forel.learner.grid import default_grid, without_filters
from forel.learner.learner import Learner
from forel.learner.locking import SeqLock, reading
from forel.learner.rows import rows_of
from forel.learner.settings import Settings
from forel.losses.margin import Mixing
from forel.losses.vocabulary import synonym_hint
from forel.notebook import card
from forel.store.frame_features import NUMBER, FrameFeatures, array_frame, frame_of, present, words_frame
from forel.training.curves import checked_features, curves_of_rows
from forel.training.model import Model
from forel.training.statements import stored_coverage
from forel.validation import real, refuse, vector, whole

__all__ = ["KEPT", "OPTIONAL", "Estimator", "guard_of", "learns", "predicts"]

F = TypeVar("F", bound=Callable[..., Any])
OPTIONAL = ("alpha", "beta", "l1", "rate", "filters", "full_filters")  # None selects the default grid's value
# Parameters that are stored beside the settings.
KEPT = (
    "passes", "shuffle", "random_state", "warm_start", "lanes", "add_classes", "class_weight", "interval", "features",
)  # fmt: skip
PASSES, VISITS = 4, 20_000  # most passes by default, and rows learned from in all of them: more overfit noisy labels
SHUFFLE_BLOCK = 1 << 14  # rows copied at a time; the model does not depend on it


def guard_of(estimator: Any) -> SeqLock:
    """Return the estimator's guard, made by its first fit: constructors of scikit-learn only store parameters."""
    guard: SeqLock = vars(estimator).setdefault("_lock", SeqLock())
    return guard


def learns(method: F) -> F:
    """Decorate a method that trains an estimator: one call at a time."""

    @wraps(method)
    def guarded(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        with guard_of(self).writing():
            return method(self, *args, **kwargs)

    return guarded  # type: ignore[return-value]


def predicts(method: F) -> F:
    """Decorate a method that reads a consistent state of an estimator, in parallel with others."""

    @wraps(method)
    def guarded(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        guard = vars(self).get("_lock")
        return method(self, *args, **kwargs) if guard is None else guard.read(lambda: method(self, *args, **kwargs))

    return guarded  # type: ignore[return-value]


class Estimator(BaseEstimator):  # type: ignore[misc]
    """The base class of both estimators."""

    _losses: ClassVar[tuple[str, ...]]
    _label_options: ClassVar[dict[str, Any]] = {}  # of scikit-learn's validation

    def _store(self, given: dict[str, Any]) -> None:
        """Store the arguments of a constructor."""
        self.__dict__.update((name, value) for name, value in given.items() if name != "self")

    @learns
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Any:
        """Fit a new model in ``passes`` passes, or continue the present one with ``warm_start``."""
        return self._learn(X, y, sample_weight, bool(self.warm_start) and self.__sklearn_is_fitted__(), False)

    def _model_to_train(self, continues: bool, X: Any, classes: int | None, stream: bool) -> Learner:
        """Return the model to train: a new one, or the estimator's own if its settings have not changed."""
        settings, dtype = self._settings(), self._dtype()
        grown = replace(settings, filters=(), full_filters=())  # of two classes to which others were added
        default = settings
        settings = settings if classes is None else without_filters(settings)
        if not continues:
            curves = self._curves(X, default, classes, stream or not self.shuffle)
            return Learner(X.shape[1], settings, classes, dtype, bool(self.certified), curves=curves)
        model: Learner = self._model
        if classes is not None and model.settings == grown:
            settings = grown
        changed = [f.name for f in fields(Settings) if getattr(settings, f.name) != getattr(model.settings, f.name)]
        changed += ["dtype"] if dtype != model.dtype else []
        changed += ["certified"] if bool(self.certified) != model.certified else []
        if changed:
            # The state depends on the rates and penalties of all rounds so far.
            names = ", ".join(changed).replace("bias", "fit_intercept")
            raise ValueError(f"{names}: got another value than before, expected the same; fit again without warm_start")
        return model

    def _curves(self, X: Any, settings: Settings, classes: int | None, ordered: bool) -> Curves | None:
        """Return the curves of the first rows, as in :func:`forel.train`, or without an order of evenly spaced ones."""
        features, known = checked_features(self.features), vars(self).get("_next_frame_features")
        if features == "linear" or (features == "auto" and known is None and sparse.issparse(X)):
            return None
        rows = rows_of(X, X.shape[1], self._dtype())
        some = rows.take(np.arange(0, rows.number, 1 if ordered else -(-rows.number // FIRST))[:FIRST])
        columns = (
            range(X.shape[1]) if known is None else [known.numbers[k] for k, v in known.kinds.items() if v == NUMBER]
        )
        # Frames with missing values have an entry for each number that is there, and arrays none for zeros.
        return curves_of_rows(features, some, columns, settings, classes, zeros=known is None)

    def _settings(self) -> Settings:
        """Return the parameters as settings of one model, or of several to mix."""
        if isinstance(self.loss, str) and self.loss not in self._losses:
            others = "a loss such as forel.losses.Huber(2.0), or a function of margin and label"
            raise refuse("loss", self.loss, f"one of {', '.join(self._losses)}, {others}{synonym_hint(self.loss)}")
        given = {f.name: getattr(self, f.name) for f in fields(Settings) if hasattr(self, f.name)}
        return default_grid(**given, lanes=self.lanes, bias=bool(self.fit_intercept))

    def _dtype(self) -> np.dtype[Any]:
        """Return the dtype of the state."""
        try:
            dtype: np.dtype[Any] = np.dtype(self.dtype)
        except TypeError:
            raise refuse("dtype", self.dtype, "float32 or float64") from None
        if dtype not in (np.float32, np.float64):
            raise refuse("dtype", self.dtype, "float32 or float64")
        return dtype

    def _train(self, model: Learner, X: Any, labels: NDArray[Any], sample_weight: Any, stream: bool) -> None:
        """Train the model, in one pass in order if rows are a stream, and keep it only if no error occurs."""
        weight = None if sample_weight is None else importance_of(sample_weight, len(labels), stream)
        passes_made = 1 if stream else self._passes(model, X, len(labels))
        random = check_random_state(self.random_state) if not stream and self.shuffle else None
        if model.features < X.shape[1]:  # categories that are new
            model.add_features(X.shape[1])
        if passes_made > 1 or random is not None:
            X = rows_of(X, model.features, model.dtype)  # validated and converted once, for all passes
        level = vars(self).get("interval")
        coverage = vars(self).get("_coverage") if model is vars(self).get("_model") else None
        if level is not None and (coverage is None or coverage.level != level):
            coverage = Coverage(level)
        before, first = float(np.sum(model.loss)), 0.0
        learn: Any = model.learn if coverage is None else model.progress
        for number in range(passes_made):
            if number > 0:  # only rows of the first pass compare settings fairly
                learn = partial(model.progress, again=True)
            order = np.arange(len(labels)) if random is None else random.permutation(len(labels))
            for k in range(0, order.size, order.size if random is None else SHUFFLE_BLOCK):
                block: Any = slice(None) if random is None else order[k : k + SHUFFLE_BLOCK]
                rows, some = X if random is None else X.take(block), None if weight is None else weight[block]
                margins = learn(rows, labels[block], some)
                if coverage is not None and number == 0:
                    counts = slice(None) if some is None else some > 0
                    means = model.settings.link(np.asarray(margins, np.float64)[:, 0])
                    coverage.add(means[counts], np.asarray(labels[block], np.float64)[counts])
            # Only the first pass predicts rows before learning from them.
            first = float(np.sum(model.loss)) - before if number == 0 else first
        if model is not getattr(self, "_model", None):
            self._model, self._progress = model, (0.0, 0.0)
        total_loss, total_weight = self._progress
        self._progress = total_loss + first, total_weight + (len(labels) if weight is None else float(weight.sum()))
        if coverage is not None:
            self._coverage = coverage
        self.n_iter_ = passes_made
        self._frame_features = self.__dict__.pop("_next_frame_features", None)

    def _passes(self, model: Learner, X: Any, rows: int) -> int:
        """Return the number of passes: by default a few over few rows of columns, for default experts of log-loss."""
        if self.passes is not None:
            return whole("passes", self.passes, low=1)
        default = all(vars(self)[name] is None for name in (*OPTIONAL, "lanes"))
        columns = model.curves is not None or not sparse.issparse(X)  # others may have many rare features
        several = default and columns and self.shuffle and not self.certified
        if not several or model.settings.loss_function.mixing is not Mixing.BAYES:
            return 1
        return max(1, min(PASSES, VISITS // (rows * (model.classes or 1))))

    def _validated(self, X: Any, y: Any = "no_validation", reset: bool = False) -> Any:
        """Return X, or X and y, validated by scikit-learn; feature names and counts are set or checked."""
        known: FrameFeatures | None = None if reset else vars(self).get("_frame_features")
        learns = not isinstance(y, str)
        if learns:
            self._next_frame_features: FrameFeatures | None = None
        if known is not None or words_frame(X, missing=reset) is not None:
            return self._validated_frame(X, y, known, reset, learns)
        if isinstance(X, list) and X and isinstance(X[0], Mapping):
            expected = "a frame, an array or a sparse matrix; pandas.DataFrame(X) makes a frame"
            raise refuse("X", "a list of dicts", f"{expected}, and forel.train learns dicts")
        for name, given in (("X", X), ("y", y)):
            if isinstance(given, np.ma.MaskedArray):
                real(name, given)  # scikit-learn ignores the mask, and refuses complex numbers itself
        # float32 and float64 are not converted here, because the learner converts its own copy.
        dtypes, options = [self._dtype(), np.float32, np.float64], dict(self._label_options if learns else {})
        options |= {"accept_sparse": "csr", "dtype": dtypes, "ensure_all_finite": "allow-nan"}
        found = validate_data(self, X, y, reset=reset, **options)
        return (present(found[0]), found[1]) if learns else present(found)

    def _validated_frame(self, X: Any, y: Any, known: FrameFeatures | None, reset: bool, learns: bool) -> Any:
        """Return the rows of a frame with words, which decide the features in ``fit``, and y if it is given."""
        frame = frame_of(X)
        if frame is None and (array := array_frame(X)) is not None:
            # Of a model whose fit had an array with missing values; the number of columns is checked below.
            frame = array if known is None or all(map(eq, known.kinds, array.columns)) else None
        if frame is None:
            raise ValueError(f"X: got {type(X).__name__}, expected a frame with the columns of fit")
        if known is None and not reset:
            raise ValueError("X: got a frame with words, expected numbers as in fit; convert the words to numbers")
        validate_data(self, X, reset=reset, skip_check_array=True)
        if not len(frame):
            raise ValueError("X: got a frame without rows, expected at least one")
        features = FrameFeatures.of(frame) if known is None else known.extended(frame) if learns else known
        count = len(features.features) if known is None else max(self._model.features, len(features.features))
        rows = features.matrix(frame, count, self._dtype())
        if not learns:
            return rows
        self._next_frame_features = features
        y = check_array(y, ensure_2d=False, dtype=None, input_name="y", ensure_all_finite=not self._label_options)
        y = column_or_1d(y.astype(np.float64) if self._label_options else y, warn=True)
        check_consistent_length(X, y)
        return rows, y

    def _margins(self, X: Any) -> NDArray[Any]:
        """Return the margin of every row and model."""
        model = self._fitted
        return model.margins(self._validated(X))

    @property
    def _fitted(self) -> Learner:
        check_is_fitted(self)
        model: Learner = self._model
        return model

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    @property
    def coef_(self) -> Any:
        """The weights, those of the best setting for a mixture."""
        weights = np.ascontiguousarray(self._fitted.weights.T)
        return weights if hasattr(self, "classes_") else weights[0]

    @property
    def intercept_(self) -> NDArray[Any]:
        """The weight of the constant feature of each model; 0 without ``fit_intercept``."""
        return self._fitted.bias

    @property
    def t_(self) -> int:
        """The number of rows learned from, over all passes."""
        return int(self._fitted.rounds)

    @property
    def progressive_loss_(self) -> float:
        """The mean progressive loss of the first pass, summed over classes."""
        check_is_fitted(self)
        total_loss, total_weight = self._progress
        return total_loss / total_weight if total_weight else 0.0

    @property
    def guarantee_(self) -> Any:
        """The difference between the loss of a mixture and that of its best setting, and a bound on it."""
        found = self._fitted.guarantee()
        if found is None:
            raise AttributeError("guarantee_ needs a mixture of settings; leave out alpha, or give several values")
        return found

    @property
    def certificate_(self) -> Any:
        """The certificate of all rows and passes so far; a list with one for each class of several models."""
        model = self._fitted
        if not model.certified:
            raise AttributeError("certificate_ needs certified=True, from the first row on")
        with reading(model):
            proofs = [model.certificate(lane) for lane in range(1 if model.joint else model.n_outputs)]
        return proofs[0] if len(proofs) == 1 else proofs

    def explain_mixture(self) -> Any:
        """Return what each expert of the mixture contributes; None if there is one setting only."""
        return self._fitted.explain()

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the name of each weight of ``coef_``: columns, and categories of columns such as ``city^Rome``."""
        check_is_fitted(self)
        known: FrameFeatures | None = vars(self).get("_frame_features")
        return _check_feature_names_in(self, input_features) if known is None else np.array(known.names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        return tags

    def __model__(self) -> Model:
        """Return what is stored: the learner, and other parameters and attributes as JSON."""
        model = self._fitted
        if not isinstance(self.random_state, int | np.integer | None):
            expected = "a whole number or None, which can be stored; set_params(random_state=0) before saving"
            raise refuse("random_state", self.random_state, expected)
        known = vars(self)
        attributes: dict[str, Any] = {
            "class": type(self).__name__,
            **{name: plain(known[name]) for name in KEPT if name in known},
            "progress": [float(number) for number in self._progress],
            "n_iter": self.n_iter_,
            "feature_names": [str(n) for n in known["feature_names_in_"]] if "feature_names_in_" in known else None,
            "unset": [name for name in OPTIONAL if known[name] is None],
        }
        if known.get("_frame_features") is not None:
            attributes["columns"] = self._frame_features.to_json()
        if "classes_" in known:
            values = self.classes_.tolist()
            if self.classes_.dtype.kind not in "biufU" and not all(type(value) is str for value in values):
                expected = "numbers or text, which can be stored; encode the labels before fitting"
                raise refuse("classes_", values, expected)
            attributes["classes"] = {"dtype": self.classes_.dtype.str, "values": values}
        return Model(model, stored_coverage(known.get("_coverage")), estimator=attributes)

    def _html_repr(self) -> str:
        """Return scikit-learn's diagram for notebooks and, if fitted, the loss, guarantee and certificate."""
        diagram: str = estimator_html_repr(self)
        if not self.__sklearn_is_fitted__():
            return diagram
        model: Learner = self._model
        rows: list[tuple[str, object]] = [
            ("rows learned from", model.rounds),
            (f"progressive {model.settings.title}", self.progressive_loss_),
            ("guarantee", model.guarantee()),
            ("certificate", model.summary() if model.certified and (model.joint or model.n_outputs == 1) else None),
        ]
        return diagram + card(type(self).__name__, rows)


def importance_of(sample_weight: Any, count: int, stream: bool) -> NDArray[np.float64]:
    """Return non-negative sample weights, one for each row; all may be 0 only in ``partial_fit``."""
    given = np.asarray(real("sample_weight", sample_weight))
    weights = vector("sample_weight", np.full(count, given) if given.ndim == 0 else given, count)
    if weights.min() < 0:
        k = int(np.argmax(weights < 0))
        raise ValueError(f"sample_weight: got {weights[k]} in row {k}, expected numbers of at least 0")
    if not (stream or weights.any()):
        raise ValueError("sample_weight: got only zeros, expected a row with a weight above 0")
    return weights


def plain(value: Any) -> Any:
    """Return numbers of numpy as those of Python, and a dict as pairs, because keys of JSON are text."""
    if isinstance(value, Mapping):
        return [[plain(key), float(factor)] for key, factor in value.items()]
    return value.item() if isinstance(value, np.generic) else value
