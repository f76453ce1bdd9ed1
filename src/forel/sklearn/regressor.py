"""Regression: the margin is the prediction, or its logarithm for counts."""

from typing import Any

from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin

from forel.losses.links import Exponential, Identity, Link
from forel.losses.vocabulary import VOCABULARY
from forel.sklearn import shared
from forel.sklearn.inputs import validate

__all__ = ["FTRLRegressor"]

LOSSES = tuple(name for name, loss in VOCABULARY.items() if isinstance(loss.link, Identity | Exponential))


class FTRLRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    r"""A linear regression learned online, $\eta_{t,i} = \alpha/(\beta + \sqrt{\sum g_{s,i}^2})$, one rate per feature.

    Parameters
    ----------
    alpha : scale of the rate, for one model; a tuple for several models, which are mixed; None to mix the
        settings of :func:`forel.learner.grid.default_grid`
    beta : damping of the first steps; None for 1, or 0.01 if ``alpha`` is None
    l1, l2 : weights of the penalty λ1‖x‖₁ + (λ2/2)‖x‖²; ``l1=None`` is 0, or part of the grid if ``alpha`` is None
    algorithm : "proximal" (FTRL-Proximal), "centered" (dual averaging), "mirror" (gradient descent, FOBOS), or
        "filter" (a Gaussian filter with prior variance alpha and shrinkage beta)
    rate : "adagrad" or "scale_free" (scale-invariant); None for the first, or the second if ``alpha`` is None
    loss : "squared", "absolute", "huber", "quantile", "epsilon_insensitive" or "poisson" (counts, whose mean is the
        exponential of the margin), one of ``forel.losses`` such as ``Quantile(0.9)``, or a function of margin and
        label that returns value and slope
    penalty_weight : "once" (as in the ad-click paper) or "every" round (the survey's composite objective)
    radius : weights stay in [−radius, radius]; None for no bound
    fit_intercept : whether to add a constant feature, which is not penalized
    passes : number of passes of ``fit``; ``partial_fit`` makes one, in the order of the rows
    shuffle : whether ``fit`` shuffles the rows before each pass, for rows that are sorted
    random_state : seed of the order of rows; the same rows give the same model unless it is None
    dtype : "float32", or "float64" for twice the memory and more digits
    warm_start : whether ``fit`` continues the present model
    filters : Gaussian filters to mix with the other settings, variance, shrinkage and memory each, as in
        :class:`forel.learner.experts.Filter`; None for none
    memory : of algorithm="filter", below 1 for streams that drift
    full_filters : filters with all covariances, for few features, as in :class:`forel.learner.experts.FullFilter`
    seed : seed of the noise with which float32 sums are rounded; certificates assume that rows do not depend on it
    certified : whether to keep what ``certificate_`` needs, a bound on how much better a fixed model could have done
    lanes : number of settings of a grid to mix if ``alpha`` is None; None for the default. ``guarantee_`` compares the
        mixture with the best expert, and ``coef_`` are the weights of the best setting

    A sample weight multiplies a row's loss.

    Frames may have columns of words and categories, which have a weight for each category, as
    ``get_feature_names_out`` names them. Categories that are missing or unknown add nothing to a margin.

    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [1.0, 3.0, 5.0, 7.0]
    >>> FTRLRegressor(alpha=1.0, passes=100).fit(X, y).predict([[4.0]]).round(2)
    array([9.], dtype=float32)

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
        loss: Any = "squared",
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

    @shared.learns
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "FTRLRegressor":
        """Fit a new model in ``passes`` passes, or continue the present one with ``warm_start``."""
        return self._learn(X, y, sample_weight, bool(self.warm_start) and shared.is_fitted(self), self.passes)

    @shared.learns
    def partial_fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "FTRLRegressor":
        """Continue learning from each row in order."""
        return self._learn(X, y, sample_weight, shared.is_fitted(self), None)

    def _learn(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, continues: bool, passes: int | None
    ) -> "FTRLRegressor":
        X, y = validate(self, X, y, reset=not continues, y_numeric=True)
        model = shared.model_to_train(self, LOSSES, continues, X.shape[1])
        shared.train(self, model, X, y, sample_weight, passes)
        return self

    @shared.predicts
    def predict(self, X: Any) -> NDArray[Any]:
        """Return the prediction for each row."""
        margins = shared.margins(self, X)[:, 0]
        link: Link = self._model.settings.loss_function.link
        return link(margins, margins.dtype)

    def _shaped(self, weights: NDArray[Any]) -> NDArray[Any]:
        first: NDArray[Any] = weights[0]
        return first

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
