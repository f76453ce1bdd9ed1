"""Classification: one model for two classes, one model for each of more classes."""

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, unique_labels

from forel.learner.learner import Learner
from forel.losses.links import Probability, Sign, SoftmaxLink
from forel.losses.sigmoid import in_blocks, log_normalized, log_normalized_sigmoid, log_sigmoid
from forel.losses.vocabulary import VOCABULARY, built_in
from forel.sklearn import shared
from forel.sklearn.inputs import validate
from forel.training.label_order import LabelOrder, LabelOrderWarning, Remedies
from forel.validation import refuse

__all__ = ["FTRLClassifier"]

LOSSES = tuple(n for n, loss in VOCABULARY.items() if isinstance(loss.link, Probability | Sign | SoftmaxLink))
PROBABILITIES = tuple(name for name in LOSSES if VOCABULARY[name].link.probabilities)


def _has_probabilities(estimator: Any) -> bool:
    loss = built_in(estimator.loss)
    if loss is None or not loss.link.probabilities:
        known = " or ".join(repr(name) for name in PROBABILITIES)
        raise AttributeError(f"loss={estimator.loss!r} has no probabilities; use loss={known}")
    return True


F = TypeVar("F", bound=Callable[..., Any])
# Typed here, because scikit-learn has no types.
_with_probabilities: Callable[[F], F] = available_if(_has_probabilities)


class FTRLClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""A linear classifier learned online, $\eta_{t,i} = \alpha/(\beta + \sqrt{\sum g_{s,i}^2})$, one rate per feature.

    Parameters
    ----------
    alpha : scale of the rate, for one model; a tuple for several models, which are mixed; None to mix the
        settings of :func:`forel.learner.grid.default_grid`
    beta : damping of the first steps; None for 1, or 0.01 if ``alpha`` is None
    l1, l2 : weights of the penalty λ1‖x‖₁ + (λ2/2)‖x‖²; ``l1=None`` is 0, or part of the grid if ``alpha`` is None
    algorithm : "proximal" (FTRL-Proximal), "centered" (dual averaging), "mirror" (gradient descent, FOBOS), or
        "filter" (a Gaussian filter with prior variance alpha and shrinkage beta)
    rate : "adagrad" or "scale_free" (scale-invariant); None for the first, or the second if ``alpha`` is None
    loss : "logistic", "hinge", "squared_hinge", "softmax" (all classes in one loss), or a function of margin and
        label (0 or 1) that returns value and slope
    penalty_weight : "once" (as in the ad-click paper) or "every" round (the survey's composite objective)
    radius : weights stay in [−radius, radius]; None for no bound
    fit_intercept : whether to add a constant feature, which is not penalized
    passes : number of passes of ``fit``; ``partial_fit`` makes one, in the order of the rows
    shuffle : whether ``fit`` shuffles the rows before each pass, for rows that are sorted
    random_state : seed of the order of rows; the same rows give the same model unless it is None
    dtype : "float32", or "float64" for twice the memory and more digits
    warm_start : whether ``fit`` continues the present model
    class_weight : a dict of classes to factors of the loss of their rows, 1 for classes that it does not have;
        "balanced" for factors inverse to the frequencies of classes in the rows of ``fit``; None for 1
    filters : Gaussian filters to mix with the other settings, variance, shrinkage and memory each, as in
        :class:`forel.learner.experts.Filter`; None for none
    memory : of algorithm="filter", below 1 for streams that drift
    full_filters : filters with all covariances, for few features, as in :class:`forel.learner.experts.FullFilter`
    seed : seed of the noise with which float32 sums are rounded; certificates assume that rows do not depend on it
    certified : whether to keep what ``certificate_`` needs, a bound on how much better a fixed model could have done
    add_classes : whether ``partial_fit`` takes classes that it did not know. The model of a new class starts then, the
        others keep what they learned, and ``progressive_loss_`` begins again
    lanes : number of settings of a grid to mix if ``alpha`` is None; None for the default. ``guarantee_`` compares the
        mixture with the best expert, and ``coef_`` are the weights of the best setting

    Two classes have one model; with more, each class has a model against the rest. A sample weight multiplies the loss
    of its row.

    Frames may have columns of words and categories, which have a weight for each category, as
    ``get_feature_names_out`` names them. Categories that are missing or unknown add nothing to a margin.

    >>> X, y = np.eye(2, dtype=np.float32), ["ham", "spam"]
    >>> model = FTRLClassifier(alpha=1.0, passes=10).fit(X, y)
    >>> model.predict(X)
    array(['ham', 'spam'], dtype='<U4')
    >>> model.predict_proba(X).round(1)
    array([[0.8, 0.2],
           [0.2, 0.8]])
    >>> print(FTRLClassifier(lanes=4, passes=10).fit(X, y).guarantee_.against)  # the default grid
    the best of 4 settings over 2 rows, which is alpha=0.224, l1=0.1

    Survey: section 3.4
    """

    def __init__(
        self,
        alpha: Any = None,
        beta: Any = None,
        l1: Any = None,
        l2: float = 0.0,
        algorithm: str = "proximal",
        rate: str | None = None,
        loss: Any = "logistic",
        penalty_weight: str = "once",
        radius: float | None = None,
        fit_intercept: bool = True,
        passes: int = 1,
        shuffle: bool = True,
        random_state: Any = 0,
        dtype: Any = "float32",
        warm_start: bool = False,
        certified: bool = False,
        lanes: int | None = None,
        seed: int = 0,
        filters: Any = None,
        memory: Any = 1.0,
        full_filters: Any = None,
        class_weight: Any = None,
        add_classes: bool = False,
    ) -> None:
        self.alpha = alpha
        self.beta = beta
        self.l1 = l1
        self.l2 = l2
        self.algorithm = algorithm
        self.rate = rate
        self.loss = loss
        self.penalty_weight = penalty_weight
        self.radius = radius
        self.fit_intercept = fit_intercept
        self.passes = passes
        self.shuffle = shuffle
        self.random_state = random_state
        self.dtype = dtype
        self.warm_start = warm_start
        self.certified = certified
        self.lanes = lanes
        self.seed = seed
        self.filters = filters
        self.memory = memory
        self.full_filters = full_filters
        self.class_weight = class_weight
        self.add_classes = add_classes

    @shared.learns
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "FTRLClassifier":
        """Fit a new model in ``passes`` passes, or continue the present one with ``warm_start``."""
        continues = bool(self.warm_start) and shared.is_fitted(self)
        return self._learn(X, y, self.classes_ if continues else None, sample_weight, continues, self.passes)

    @shared.learns
    def partial_fit(
        self, X: Any, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> "FTRLClassifier":
        """Continue learning from each row in order; the first call needs all ``classes``, or ``add_classes``."""
        continues = shared.is_fitted(self)
        if classes is None and not continues and not self.add_classes:
            raise ValueError("classes: got None, expected all classes at the first call of partial_fit")
        if isinstance(self.class_weight, str):
            expected = "a dict or None for partial_fit, which does not see all rows"
            raise refuse("class_weight", self.class_weight, expected)
        before: Any = self.classes_ if continues else None
        known = before if classes is None else unique_labels(classes)
        if self.add_classes:
            known = unique_labels(*(one for one in (known, before, y) if one is not None))
        elif continues and not np.array_equal(known, self.classes_):
            raise refuse("classes", classes, f"{self.classes_.tolist()}, as at the start")
        return self._learn(X, y, known, sample_weight, continues, None)

    def _learn(
        self, X: Any, y: Any, classes: Any, sample_weight: ArrayLike | None, continues: bool, passes: int | None
    ) -> "FTRLClassifier":
        X, y = validate(self, X, y, reset=not continues)
        if y.dtype.kind not in "biuSU":  # always valid as classes; other types need a check of the values
            check_classification_targets(y)
        classes = np.unique(y) if classes is None else classes
        if classes.size < 2:
            raise ValueError(f"y: got one class, {classes.tolist()}, expected at least two")
        labels = _encode(y, classes)
        if self.class_weight is not None:
            factors = compute_class_weight(self.class_weight, classes=classes, y=y)[labels]
            given = 1.0 if sample_weight is None else shared.importance_of(sample_weight, len(y), passes is None)
            sample_weight = given * factors
        loss = built_in(self.loss)
        several = classes.size if classes.size > 2 or (loss is not None and loss.joint) else None
        before: Any = vars(self)["classes_"] if continues else classes
        if not np.array_equal(classes, before):
            places: Any = np.searchsorted(classes, before)
            model = self._model.with_classes(classes.size, places.tolist())
        else:
            model = shared.model_to_train(self, LOSSES, continues, X.shape[1], several)
        if several is None and model.settings.signed:
            labels = 2 * labels - 1
        shared.train(self, model, X, labels, sample_weight, passes)
        self.classes_ = classes
        if passes is not None and not self.shuffle:
            order = LabelOrder()
            order.add(labels)
            if (message := order.warning(several, Remedies("shuffle=True", None, None))) is not None:
                warnings.warn(message, LabelOrderWarning, stacklevel=4)
        return self

    @shared.predicts
    def decision_function(self, X: Any) -> NDArray[Any]:
        """Return the margin of the second of two classes, or a column of margins for each class."""
        margins = shared.margins(self, X)
        if margins.shape[1] == 1:
            return margins[:, 0]
        # Two classes with a margin each, as in softmax, compare by the difference.
        return margins[:, 1] - margins[:, 0] if margins.shape[1] == 2 else margins

    @shared.predicts
    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class with the largest margin for each row."""
        best = shared.likeliest(self, X)
        predicted: NDArray[Any] = self.classes_[best]
        return predicted

    @_with_probabilities
    @shared.predicts
    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the logarithm of the probability of each class, finite for margins of any size."""
        margins = shared.margins(self, X).astype(np.float64, copy=False)
        model: Learner = self._model
        if margins.shape[1] == 1:  # probabilities of two classes sum to 1
            return log_sigmoid(np.hstack([-margins, margins]))
        if model.mixture is not None:  # margins of a mixture of several classes are log-probabilities
            return margins
        # Probabilities of one-against-rest models are normalized.
        return in_blocks(log_normalized if model.softmax_margins else log_normalized_sigmoid, margins)

    @_with_probabilities
    @shared.predicts
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class, with a row for each example."""
        probabilities: NDArray[np.float64] = np.exp(self.predict_log_proba(X))
        return probabilities

    def _shaped(self, weights: NDArray[Any]) -> NDArray[Any]:
        return weights

    coef_ = property(shared.coef)
    intercept_ = property(shared.intercept)
    t_ = property(shared.rounds)
    progressive_loss_ = property(shared.progressive_loss)
    certificate_ = property(shared.certificate)
    guarantee_ = property(shared.guarantee)
    explain_mixture = shared.explain_mixture
    get_feature_names_out = shared.get_feature_names_out
    sparsify = shared.sparsify
    densify = shared.densify
    __sklearn_is_fitted__ = shared.is_fitted
    __model__ = shared.stored
    _html_repr = shared.notebook_html

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _encode(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[Any]:
    """Return the index of each label among the sorted classes."""
    indices = np.minimum(np.searchsorted(classes, y), classes.size - 1)
    unknown = classes[indices] != y
    if np.any(unknown):
        new = np.unique(y[unknown]).tolist()
        raise ValueError(f"y: got the new class {new[0]!r}, expected one of the classes {classes.tolist()}")
    return indices
