"""Code of both estimators: settings from parameters, validation, passes, and fitted attributes.

Functions instead of a base class; both classes use those whose first argument is an estimator as methods.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import wraps
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_random_state, estimator_html_repr
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from forel.learner.grid import default_grid, without_filters
from forel.learner.learner import Learner
from forel.learner.locking import SeqLock, reading
from forel.learner.rows import rows_of
from forel.learner.settings import Settings
from forel.losses.vocabulary import synonym_hint
from forel.notebook import card
from forel.sklearn.inputs import dtype_of, validate
from forel.store.frame_features import FrameFeatures
from forel.training.model import Model
from forel.validation import real, refuse, vector, whole

F = TypeVar("F", bound=Callable[..., Any])
OPTIONAL = ("alpha", "beta", "l1", "rate", "filters", "full_filters")  # None selects the default grid's value
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


def settings_of(estimator: Any, losses: tuple[str, ...]) -> Settings:
    """Return the estimator's parameters as settings of one model, or of several to mix."""
    if isinstance(estimator.loss, str) and estimator.loss not in losses:
        others = (
            f"a loss such as forel.losses.Huber(2.0), or a function of margin and label{synonym_hint(estimator.loss)}"
        )
        raise refuse("loss", estimator.loss, f"one of {', '.join(losses)}, {others}")
    shared = {f.name: getattr(estimator, f.name) for f in fields(Settings) if hasattr(estimator, f.name)}
    return default_grid(**shared, lanes=estimator.lanes, bias=bool(estimator.fit_intercept))


def model_to_train(
    estimator: Any, losses: tuple[str, ...], continues: bool, features: int, classes: int | None = None
) -> Learner:
    """Return the model to train: a new one, or the estimator's own if its settings have not changed."""
    settings, dtype = settings_of(estimator, losses), dtype_of(estimator)
    grown = replace(settings, filters=(), full_filters=())  # of a model of two classes to which others were added
    settings = settings if classes is None else without_filters(settings)
    if continues and classes is not None and estimator._model.settings == grown:
        settings = grown
    if not continues:
        return Learner(features, settings, classes, dtype, bool(estimator.certified))
    model: Learner = estimator._model
    changed = [f.name for f in fields(Settings) if getattr(settings, f.name) != getattr(model.settings, f.name)]
    changed += ["dtype"] if dtype != model.dtype else []
    changed += ["certified"] if bool(estimator.certified) != model.certified else []
    if changed:
        # The state depends on the rates and penalties of all rounds so far.
        names = ", ".join(changed).replace("bias", "fit_intercept")
        raise ValueError(f"{names}: got another value than before, expected the same; fit again without warm_start")
    return model


def train(
    estimator: Any,
    model: Learner,
    X: Any,
    labels: NDArray[Any],
    sample_weight: Any,
    passes: int | None,
) -> None:
    """Train the model, in one pass in order if ``passes`` is None, and keep it only if no error occurs."""
    weight = None if sample_weight is None else importance_of(sample_weight, len(labels), stream=passes is None)
    passes_made = 1 if passes is None else whole("passes", passes, low=1)
    random = check_random_state(estimator.random_state) if passes is not None and estimator.shuffle else None
    if model.features < X.shape[1]:  # categories that are new
        model.add_features(X.shape[1])
    if passes_made > 1 or random is not None:
        X = rows_of(X, model.features, model.dtype)  # validated and converted once, for all passes
    before, first = float(np.sum(model.loss)), 0.0
    for number in range(passes_made):
        # Only rows of the first pass compare settings fairly.
        learn = model.relearn if number > 0 else model.learn
        if random is None:
            learn(X, labels, weight)
        else:
            order = random.permutation(len(labels))
            for block in (order[k : k + SHUFFLE_BLOCK] for k in range(0, order.size, SHUFFLE_BLOCK)):
                learn(X.take(block), labels[block], None if weight is None else weight[block])
        # Only the first pass predicts rows before learning from them.
        first = float(np.sum(model.loss)) - before if number == 0 else first
    if model is not getattr(estimator, "_model", None):
        estimator._model, estimator._progress, estimator._sparse = model, (0.0, 0.0), False
    total_loss, total_weight = estimator._progress
    estimator._progress = total_loss + first, total_weight + (len(labels) if weight is None else float(weight.sum()))
    estimator.n_iter_ = passes_made
    estimator._frame_features = vars(estimator).pop("_next_frame_features", None)


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


def margins(estimator: Any, X: Any) -> NDArray[Any]:
    """Return the margin of every row and lane."""
    check_is_fitted(estimator)
    X = validate(estimator, X)
    model: Learner = estimator._model
    return model.margins(X)


def likeliest(estimator: Any, X: Any) -> NDArray[np.intp]:
    """Return the number of the class with the largest margin of each row."""
    check_is_fitted(estimator)
    X = validate(estimator, X)
    model: Learner = estimator._model
    margins = model.margins(X)
    return margins.argmax(axis=1) if margins.shape[1] > 1 else (margins[:, 0] > 0).astype(np.intp)


def coef(estimator: Any) -> Any:
    """The weights, those of the best setting for a mixture; a CSR array after ``sparsify``."""
    check_is_fitted(estimator)
    weights = estimator._shaped(np.ascontiguousarray(estimator._model.weights.T))
    return sparse.csr_array(weights) if estimator._sparse else weights


def intercept(estimator: Any) -> NDArray[Any]:
    """The weight of the constant feature of each model; 0 without ``fit_intercept``."""
    check_is_fitted(estimator)
    model: Learner = estimator._model
    return model.bias


def rounds(estimator: Any) -> int:
    """The number of rows learned from, over all passes."""
    check_is_fitted(estimator)
    return int(estimator._model.rounds)


def progressive_loss(estimator: Any) -> float:
    """The mean progressive loss of the first pass, summed over classes."""
    check_is_fitted(estimator)
    total_loss, total_weight = estimator._progress
    return total_loss / total_weight if total_weight else 0.0


def guarantee(estimator: Any) -> Any:
    """The difference between the loss of a mixture and that of its best setting, and a bound on it."""
    check_is_fitted(estimator)
    found = estimator._model.guarantee()
    if found is None:
        raise AttributeError("guarantee_ needs a mixture of settings; leave out alpha, or give several values")
    return found


def explain_mixture(self: Any) -> Any:
    """Return what each expert of the mixture contributes; None if there is one setting only."""
    check_is_fitted(self)
    model: Learner = self._model
    return model.explain()


def certificate(estimator: Any) -> Any:
    """The certificate of all rows and passes so far; a list with one for each class if there are several models."""
    check_is_fitted(estimator)
    model: Learner = estimator._model
    if not model.certified:
        raise AttributeError("certificate_ needs certified=True, from the first row on")
    with reading(model):
        proofs = [model.certificate(lane) for lane in range(1 if model.joint else model.n_outputs)]
    return proofs[0] if len(proofs) == 1 else proofs


def get_feature_names_out(self: Any, input_features: Any = None) -> NDArray[Any]:
    """Return the name of each weight of ``coef_``: columns, and categories of columns such as ``city^Rome``."""
    check_is_fitted(self)
    known: FrameFeatures | None = vars(self).get("_frame_features")
    return _check_feature_names_in(self, input_features) if known is None else np.array(known.names, dtype=object)


def sparsify(self: Any) -> Any:
    """Convert ``coef_`` to a CSR array; learning is not affected."""
    check_is_fitted(self)
    self._sparse = True
    return self


def densify(self: Any) -> Any:
    """Convert ``coef_`` to a dense array."""
    check_is_fitted(self)
    self._sparse = False
    return self


def is_fitted(self: Any) -> bool:
    """Return whether the estimator is fitted."""
    return hasattr(self, "_model")


def stored(self: Any) -> Model:
    """Return what is stored of an estimator: its learner, and its other parameters and attributes as JSON."""
    check_is_fitted(self)
    if not isinstance(self.random_state, int | np.integer | None):
        expected = "a whole number or None, which can be stored; set_params(random_state=0) before saving"
        raise refuse("random_state", self.random_state, expected)
    attributes: dict[str, Any] = {
        "passes": int(self.passes),
        "shuffle": bool(self.shuffle),
        "random_state": None if self.random_state is None else int(self.random_state),
        "warm_start": bool(self.warm_start),
        "progress": [float(number) for number in self._progress],
        "sparse": bool(self._sparse),
        "n_iter": int(self.n_iter_),
        "feature_names": [str(n) for n in self.feature_names_in_] if hasattr(self, "feature_names_in_") else None,
        "class": type(self).__name__,
        **({} if vars(self).get("_frame_features") is None else {"columns": self._frame_features.to_json()}),
        "lanes": None if self.lanes is None else int(self.lanes),
        "unset": [name for name in OPTIONAL if getattr(self, name) is None],
    }
    if hasattr(self, "classes_"):
        attributes["classes"] = pack_classes(self.classes_)
        if self.add_classes:
            attributes["add_classes"] = True
        if self.class_weight is not None:
            named = isinstance(self.class_weight, str)
            attributes["class_weight"] = self.class_weight if named else pack_factors(self.class_weight)
    return Model(self._model, estimator=attributes)


def notebook_html(self: Any) -> str:
    """Return scikit-learn's diagram for notebooks and, if fitted, the loss, guarantee and certificate."""
    diagram: str = estimator_html_repr(self)
    if not is_fitted(self):
        return diagram
    model: Learner = self._model
    rows: list[tuple[str, object]] = [
        ("rows learned from", model.rounds),
        (f"progressive {model.settings.title}", progressive_loss(self)),
        ("guarantee", model.guarantee()),
        ("certificate", model.summary() if model.certified and (model.joint or model.n_outputs == 1) else None),
    ]
    return diagram + card(type(self).__name__, rows)


def pack_factors(class_weight: Mapping[Any, float]) -> list[list[Any]]:
    """Return the factors of classes as JSON: pairs, because keys of JSON are text."""
    return [[k.item() if isinstance(k, np.generic) else k, float(v)] for k, v in class_weight.items()]


def pack_classes(classes: NDArray[Any]) -> dict[str, Any]:
    """Return the classes of a classifier as JSON: dtype and values."""
    values = classes.tolist()
    if classes.dtype.kind not in "biufU" and not (classes.dtype.kind == "O" and all(type(v) is str for v in values)):
        raise refuse("classes_", values, "numbers or text, which can be stored; encode the labels before fitting")
    return {"dtype": classes.dtype.str, "values": values}
