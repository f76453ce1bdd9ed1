"""Classification and regression as scikit-learn estimators.

Classification is one model for two classes, and one for each of more classes. In regression the margin is the
prediction, or its logarithm for counts.
"""

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, unique_labels

from forel.losses.links import Exponential, Identity, Link, Probability, Sign, SoftmaxLink
from forel.losses.sigmoid import in_blocks, log_normalized, log_normalized_sigmoid, log_sigmoid
from forel.losses.vocabulary import VOCABULARY, built_in
from forel.sklearn.shared import Estimator, importance_of, learns, predicts
from forel.training.curves import DEFAULT, Features
from forel.training.label_order import LabelOrder, LabelOrderWarning, Remedies
from forel.validation import refuse

__all__ = ["FTRLClassifier", "FTRLRegressor"]


def _losses(*links: type) -> tuple[str, ...]:
    return tuple(name for name, loss in VOCABULARY.items() if isinstance(loss.link, links))


def _has_probabilities(estimator: Any) -> bool:
    loss = built_in(estimator.loss)
    if loss is None or not loss.link.probabilities:
        known = [repr(name) for name in FTRLClassifier._losses if VOCABULARY[name].link.probabilities]
        raise AttributeError(f"loss={estimator.loss!r} has no probabilities; use loss={' or '.join(known)}")
    return True


class FTRLClassifier(ClassifierMixin, Estimator):  # type: ignore[misc]
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
    passes : number of passes of ``fit``; ``partial_fit`` makes one, in the order of the rows. None for one, and for up
        to four over fewer than 20,000 rows of dense arrays or frames with the default experts of log-loss, unless
        ``shuffle`` is false
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
    features : what experts of the default mixture learn from columns of frames and dense arrays: "linear" for values as
        they are, "curves" for further experts on piecewise-linear curves, "pairs" for those on curves and products of
        two columns; "auto" for "pairs" where there are enough rows. Knots come from the rows of the first fit, from
        the first 2,000 if they are learned in order

    Two classes have one model; with more, each class has a model against the rest. A sample weight multiplies the loss
    of its row.

    Frames may have columns of words and categories, which have a weight for each category, as
    ``get_feature_names_out`` names them, and of dates, with the features that :func:`forel.train` gives them: hour,
    weekday and month as categories, and the years since 2020. What is missing or unknown adds nothing to a margin: NaN,
    None and other categories. Curves have a feature for missing values of a frame or dense array that has words, dates
    or missing values in ``fit``; in sparse matrices and others NaN is 0 to them.

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

    _losses = _losses(Probability, Sign, SoftmaxLink)

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
        passes: int | None = None,
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
        features: Features = DEFAULT,
    ) -> None:
        self._store(locals())

    @learns
    def partial_fit(
        self, X: Any, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> "FTRLClassifier":
        """Continue learning from each row in order; the first call needs all ``classes``, or ``add_classes``."""
        continues = self.__sklearn_is_fitted__()
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
        return self._learn(X, y, sample_weight, continues, True, known)

    def _learn(
        self, X: Any, y: Any, sample_weight: Any, continues: bool, stream: bool, classes: Any = None
    ) -> "FTRLClassifier":
        X, y = self._validated(X, y, reset=not continues)
        if y.dtype.kind not in "biuSU":  # always valid as classes; other types need a check of the values
            check_classification_targets(y)
        before: Any = self.classes_ if continues else None
        if classes is None:
            classes = before if continues else np.unique(y)
        if classes.size < 2:
            raise ValueError(f"y: got one class, {classes.tolist()}, expected at least two")
        labels = _encode(y, classes)
        if self.class_weight is not None:
            factors = compute_class_weight(self.class_weight, classes=classes, y=y)[labels]
            given = 1.0 if sample_weight is None else importance_of(sample_weight, len(y), stream)
            sample_weight = given * factors
        loss = built_in(self.loss)
        several = classes.size if classes.size > 2 or (loss is not None and loss.joint) else None
        if continues and not np.array_equal(classes, before):
            model = self._model.with_classes(classes.size, np.searchsorted(classes, before).tolist())
        else:
            model = self._model_to_train(continues, X, several, stream)
        if several is None and model.settings.signed:
            labels = 2 * labels - 1
        self._train(model, X, labels, sample_weight, stream)
        self.classes_: NDArray[Any] = classes
        if not stream and not self.shuffle:
            order = LabelOrder()
            order.add(labels)
            if (message := order.warning(several, Remedies("shuffle=True", None, None))) is not None:
                warnings.warn(message, LabelOrderWarning, stacklevel=4)
        return self

    @predicts
    def decision_function(self, X: Any) -> NDArray[Any]:
        """Return the margin of the second of two classes, or a column of margins for each class."""
        margins = self._margins(X)
        if margins.shape[1] == 1:
            return margins[:, 0]
        # Two classes with a margin each, as in softmax, compare by the difference.
        return margins[:, 1] - margins[:, 0] if margins.shape[1] == 2 else margins

    @predicts
    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class with the largest margin for each row."""
        margins = self._margins(X)
        best = margins.argmax(axis=1) if margins.shape[1] > 1 else (margins[:, 0] > 0).astype(np.intp)
        predicted: NDArray[Any] = self.classes_[best]
        return predicted

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    @predicts
    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the logarithm of the probability of each class, finite for margins of any size."""
        margins = self._margins(X).astype(np.float64, copy=False)
        if margins.shape[1] == 1:  # probabilities of two classes sum to 1
            return log_sigmoid(np.hstack([-margins, margins]))
        if self._model.mixture is not None:  # margins of a mixture of several classes are log-probabilities
            return margins
        # Probabilities of one-against-rest models are normalized.
        return in_blocks(log_normalized if self._model.softmax_margins else log_normalized_sigmoid, margins)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    @predicts
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class, with a row for each example."""
        probabilities: NDArray[np.float64] = np.exp(self.predict_log_proba(X))
        return probabilities


def _encode(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[Any]:
    """Return the index of each label among the sorted classes."""
    indices = np.minimum(np.searchsorted(classes, y), classes.size - 1)
    unknown = classes[indices] != y
    if np.any(unknown):
        new = np.unique(y[unknown]).tolist()
        raise ValueError(f"y: got the new class {new[0]!r}, expected one of the classes {classes.tolist()}")
    return indices


class FTRLRegressor(RegressorMixin, Estimator):  # type: ignore[misc]
    r"""A linear regression learned online, $\eta_{t,i} = \alpha/(\beta + \sqrt{\sum g_{s,i}^2})$, one rate per feature.

    Parameters
    ----------
    loss : "squared", "absolute", "huber", "quantile", "epsilon_insensitive" or "poisson" (counts, whose mean is the
        exponential of the margin), one of ``forel.losses`` such as ``Quantile(0.9)``, or a function of margin and
        label that returns value and slope

    interval : the fraction of labels that ``predict(X, interval=...)`` should cover, such as 0.9; None for no intervals

    The other parameters, sample weights and frames with words are those of :class:`FTRLClassifier`.

    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [1.0, 3.0, 5.0, 7.0]
    >>> FTRLRegressor(alpha=1.0, passes=100).fit(X, y).predict([[4.0]]).round(2)
    array([9.], dtype=float32)
    >>> X = np.arange(2000)[:, None] % 7
    >>> model = FTRLRegressor(alpha=1.0, interval=0.9).fit(X, 2.0 * X[:, 0] + np.sin(np.arange(2000)))
    >>> predictions, ends = model.predict(X[:1], interval=0.9)
    >>> bool(ends[0, 0] < 0 < ends[0, 1])
    True

    Survey: section 3.4
    """

    _losses = _losses(Identity, Exponential)
    _label_options = {"y_numeric": True}  # noqa: RUF012

    def __init__(
        self,
        alpha: Any = None,
        beta: Any = None,
        l1: Any = None,
        l2: float = 0.0,
        algorithm: str = "proximal",
        rate: str | None = None,
        loss: Any = "squared",
        penalty_weight: str = "once",
        radius: float | None = None,
        fit_intercept: bool = True,
        passes: int | None = None,
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
        interval: float | None = None,
        features: Features = DEFAULT,
    ) -> None:
        self._store(locals())

    @learns
    def partial_fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "FTRLRegressor":
        """Continue learning from each row in order."""
        return self._learn(X, y, sample_weight, self.__sklearn_is_fitted__(), True)

    def _learn(self, X: Any, y: Any, sample_weight: Any, continues: bool, stream: bool) -> "FTRLRegressor":
        X, y = self._validated(X, y, reset=not continues)
        self._train(self._model_to_train(continues, X, None, stream), X, y, sample_weight, stream)
        return self

    @predicts
    def predict(self, X: Any, interval: float | None = None) -> Any:
        """Return the prediction for each row; with the ``interval`` of the constructor, also its ends, in two columns.

        The intervals cover this fraction of the rows of every stream, up to a bound, if rows are predicted and then
        learned by ``partial_fit``. The half width is that after the last row that was learned.
        """
        margins = self._margins(X)[:, 0]
        link: Link = self._model.settings.loss_function.link
        found = link(margins, margins.dtype)
        return found if interval is None else (found, self.__model__().intervals(found, interval))
