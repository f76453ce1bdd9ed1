"""Settings of a linear learner: loss, algorithm, rate, penalty and constraint, as in the survey's family."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import DTypeLike, NDArray

from forel.learner.experts import MIXERS, Filter, FullFilter, Mixer
from forel.learner.layout import ORDINARY, Lane
from forel.losses import Labels, MarginLoss
from forel.losses.custom import Function
from forel.losses.labels import uses_signs
from forel.losses.margin import Mixing
from forel.losses.vocabulary import resolve
from forel.validation import Unsupported, constants, number, refuse, whole

if TYPE_CHECKING:
    from forel.theory.algorithms import FTRL, MirrorDescent

__all__ = ["Settings"]

Algorithm = Literal["proximal", "centered", "mirror", "filter"]
RateName = Literal["adagrad", "scale_free"]

MAX_PARAMETER = {"float32": 1e18, "float64": 1e150}  # so that strengths stay in range
MIN_POSITIVE = float(np.finfo(np.float64).tiny)
LANE_PARAMETERS = ("alpha", "beta", "l1", "l2", "radius", "memory")  # may be sequences


@dataclass(frozen=True)
class Settings:
    r"""The settings of a linear learner, with rates such as $\eta_{t,i} = \alpha/(\beta + \sqrt{\sum g_{s,i}^2})$.

    Parameters
    ----------
    loss : a loss of ``forel.losses`` by name, such as "logistic" or "squared_hinge", as an object, such as
        ``Quantile(0.9)``, or a function of margin and label that returns value and slope and is convex in the margin.
        Its attribute ``labels``, if it has one, is the domain of labels, such as ``Choice((-1, 1))``; without it, two
        classes are coded 0 and 1. Further attributes are in :class:`forel.losses.custom.Custom`
    algorithm : "proximal" (FTRL-Proximal), "centered" (dual averaging), "mirror" (gradient descent, FOBOS), or
        "filter" (a diagonal Gaussian filter: a mean and a variance of every weight), for log-loss and squared loss
    rate : "adagrad", or "scale_free" (independent of the units of features)
    alpha, beta : parameters of the rate; a filter has no rate, and these are its variance and shrinkage, as in
        :class:`forel.learner.experts.Filter`
    l1, l2 : weights of the penalty λ1‖x‖₁ + (λ2/2)‖x‖²
    penalty_weight : "once" (as in the ad-click paper) or "every" round (the survey's composite objective)
    radius : constrains each weight to [−radius, radius]; None for no constraint
    bias : whether to add a constant feature, without a penalty
    filters : Gaussian filters that learn in addition to FTRL-Proximal with scale-free rates, in one lane each, the last
    full_filters : Gaussian filters with all covariances, further experts of a mixture with ``filters`` for streams with
        fewer than 128 features, as in :class:`forel.learner.experts.FullFilter`
    memory : of algorithm="filter", as in :class:`forel.learner.experts.Filter`
    seed : seed of the stochastic rounding of float32 sums; certificates assume that rows do not depend on it

    alpha, beta, l1, l2, radius and memory may be sequences: one lane for each entry, all learned in one pass.

    >>> Settings(alpha=[0.1, 1.0], l1=0.5).n_settings
    2

    Survey: sections 3.4, 5 and 6
    """

    loss: str | MarginLoss | Function = "logistic"
    algorithm: Algorithm = "proximal"
    rate: RateName = "adagrad"
    alpha: float | tuple[float, ...] = 0.1
    beta: float | tuple[float, ...] = 1.0
    l1: float | tuple[float, ...] = 0.0
    l2: float | tuple[float, ...] = 0.0
    penalty_weight: Literal["once", "every"] = "once"
    radius: float | tuple[float, ...] | None = None
    bias: bool = True
    filters: tuple[Filter, ...] = ()
    memory: float | tuple[float, ...] = 1.0
    full_filters: tuple[FullFilter, ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        _choice("algorithm", self.algorithm, get_args(Algorithm))
        _choice("rate", self.rate, get_args(RateName))
        resolve(self.loss)  # raises for what is not a loss
        object.__setattr__(self, "filters", tuple(Filter(*one) for one in self.filters))
        object.__setattr__(self, "full_filters", tuple(FullFilter(*one) for one in self.full_filters))
        if self.algorithm == "filter" or self.filters:
            self._check_filters()
        if self.full_filters and not self.filters:
            raise refuse("full_filters", self.full_filters, "none without filters")
        for one in self.full_filters:
            number("variance", one.variance, "a number from 1e-6 to 1e6", low=1e-6, high=1e6)
            number("memory", one.memory, "a number from 0.5 to 1", low=0.5, high=1.0)
        _choice("penalty_weight", self.penalty_weight, ("once", "every"))
        for name in LANE_PARAMETERS:
            value = getattr(self, name)
            if value is None and name == "radius":
                continue
            strict = name in ("alpha", "radius", "memory")
            expected = "positive numbers" if strict else "numbers of at least 0"
            checked = constants(name, value, expected, low=MIN_POSITIVE if strict else 0.0)
            if name == "memory":
                self._check_memory(np.append(checked, [one.memory for one in self.filters]))
            object.__setattr__(self, name, tuple(checked.tolist()) if isinstance(checked, np.ndarray) else checked)
        if whole("seed", self.seed) >= 1 << 53:
            raise refuse("seed", self.seed, "a whole number below 2⁵³")
        object.__setattr__(self, "seed", int(self.seed))
        lengths = {len(v) for v in self._per_lane() if isinstance(v, tuple)}
        if len(lengths) > 1:
            names = "alpha, beta, l1, l2, radius, memory"
            raise refuse(names, sorted(lengths), "sequences of one length, with one entry per lane")

    def _check_filters(self) -> None:
        """Raise for options that filters do not have, and set the rate of a filter, which uses scales of features."""
        loss = self.loss_function
        if loss.joint or loss.mixing is Mixing.CONVEX:
            raise refuse("loss", loss.name, "logistic or squared, whose curvature filters use")
        if self.filters:
            constants("filters", [one.variance for one in self.filters], "positive variances", low=MIN_POSITIVE)
            constants("filters", [one.shrinkage for one in self.filters], "shrinkages of at least 0", low=0.0)
            if (self.algorithm, self.rate) != ("proximal", "scale_free"):
                raise refuse("filters", self.filters, "none, unless algorithm='proximal' and rate='scale_free'")
            return
        object.__setattr__(self, "rate", "scale_free")
        for name, none in (("l1", 0), ("l2", 0), ("radius", None), ("penalty_weight", "once")):
            if getattr(self, name) != none:
                raise refuse(name, getattr(self, name), f"{none} where algorithm='filter', whose prior is its penalty")

    def _check_memory(self, memory: NDArray[np.float64]) -> None:
        if not ((memory > 0) & (memory <= 1)).all():
            raise refuse("memory", memory.tolist(), "numbers above 0 and at most 1")
        if memory.min() < 1 and self.loss_function.mixing is not Mixing.EXP_CONCAVE:
            # A confident row of log-loss has no curvature: it would be forgotten for, and add nothing.
            raise ValueError(f"memory: got {memory.tolist()}; memory < 1 needs loss='squared'")
        if self.algorithm != "filter" and self.memory != 1:
            raise ValueError(f"memory: got {self.memory}; memory is only used by algorithm='filter'")

    def _per_lane(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in LANE_PARAMETERS)

    @property
    def first_filter(self) -> int:
        """The number of lanes before those of ``filters``."""
        return next((len(v) for v in self._per_lane() if isinstance(v, tuple)), 1)

    @property
    def n_settings(self) -> int:
        """The number of models that learn from the same rows."""
        return self.first_filter + len(self.filters)

    @property
    def mixers(self) -> tuple[Mixer, ...]:
        """The mixers of a mixture with filters."""
        return MIXERS[self.loss_function.mixing] if self.filters else ()

    @property
    def fixed_share_expert(self) -> bool:
        """Whether fixed share over all other experts is one more expert of a mixture."""
        return bool(self.filters) and self.loss_function.mixing is Mixing.BAYES

    @property
    def n_experts(self) -> int:
        """The number of experts of a mixture before any leaves it."""
        return self.n_settings + len(self.full_filters) + len(self.mixers) + self.fixed_share_expert

    @property
    def names(self) -> tuple[str, ...]:
        """The names of lanes: the parameters in which they differ.

        >>> Settings(alpha=[0.1, 1.0], l1=0.5).names
        ('alpha=0.1', 'alpha=1')
        >>> Settings(rate="scale_free", filters=[(0.3, 0.0)]).names
        ('alpha=0.1', 'filter, variance=0.3, shrinkage=0')
        """
        several = {n: getattr(self, n) for n in LANE_PARAMETERS if isinstance(getattr(self, n), tuple)}
        differing = {n: values for n, values in several.items() if len(set(values)) > 1} or several
        differing = differing or ({"alpha": (self.alpha,)} if self.filters else {})
        lanes = range(self.first_filter)
        names = tuple(", ".join(f"{n}={values[k]:.3g}" for n, values in differing.items()) for k in lanes)
        return names + tuple(f"filter, {_described(one)}" for one in self.filters)

    def reference(self, n: int) -> "FTRL | MirrorDescent":
        """Return the algorithm of ``forel.theory`` that these settings are, with the bias after n other weights.

        >>> Settings(alpha=0.5, l1=0.1).reference(3).penalty
        ElasticNet(l1=array([0.1, 0.1, 0.1, 0. ]), l2=array([0., 0., 0., 0.]))

        Survey: sections 3.4, 5 and 6
        """
        from forel.theory.algorithms import FTRL, MirrorDescent
        from forel.theory.geometries import Diagonal
        from forel.theory.penalties import ElasticNet
        from forel.theory.rates import DiagonalAdaGrad, ScaleFree
        from forel.theory.sets import Box, Reals
        from forel.theory.weights import EveryRound, Once

        if self.algorithm == "filter" or self.n_experts > 1:
            raise Unsupported("reference: the survey's family has no Gaussian filters, and one setting at a time")
        alpha, beta, l1, l2, radius, _ = (v[0] if isinstance(v, tuple) else v for v in self._per_lane())
        free = np.append(np.ones(n), np.zeros(int(self.bias)))
        penalty, region = ElasticNet(l1 * free, l2 * free), Reals() if radius is None else Box(-radius, radius)
        weights = Once() if self.penalty_weight == "once" else EveryRound()
        rate = ScaleFree(alpha, beta) if self.rate == "scale_free" else DiagonalAdaGrad(alpha, beta=beta)
        if self.algorithm == "mirror":
            return MirrorDescent(rate, Diagonal(), penalty, weights, region)
        proximal = self.algorithm == "proximal"
        return FTRL(
            rate, Diagonal(), "played" if proximal else "first", penalty=penalty, weights=weights, feasible=region
        )

    def describe(self, name: str) -> str:
        """Return one of the settings as text, as a range where lanes differ in it.

        >>> Settings(alpha=[0.1, 1.0]).describe("alpha"), Settings().describe("rate")
        ('0.1 to 1', 'adagrad')
        """
        value = getattr(self, name)
        if name == "full_filters":
            return "; ".join(one.name for one in self.full_filters) or "none"
        if name == "filters":
            return "; ".join(map(_described, self.filters)) or "none"
        return f"{min(value):.3g} to {max(value):.3g}" if isinstance(value, tuple) else str(value)

    @property
    def summary(self) -> str:
        """The most important settings in one line; of a mixture, the number of its experts.

        >>> Settings(alpha=[0.1, 1.0]).summary
        'loss=logistic, 2 experts'
        """
        if self.n_settings > 1:
            return f"loss={self.describe('loss')}, {self.n_experts} experts"
        names = "loss", "algorithm", "rate", "alpha", "beta", "l1", "l2"
        return ", ".join(f"{name}={self.describe(name)}" for name in names)

    def only(self, lane: int) -> "Settings":
        """Return the settings of one lane.

        >>> Settings(alpha=[0.1, 1.0], l1=0.5).only(1).alpha
        1.0
        """
        if lane >= self.first_filter:
            one = self.filters[lane - self.first_filter]
            own: dict[str, Any] = {"alpha": one.variance, "beta": one.shrinkage, "memory": one.memory}
            return Settings(self.loss, "filter", bias=self.bias, seed=self.seed, **own)
        values = {n: v[lane] for n in LANE_PARAMETERS if isinstance(v := getattr(self, n), tuple)}
        return replace(self, filters=(), full_filters=(), **values)

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__)  # while it is copied, other threads may add cached properties

    @cached_property
    def loss_function(self) -> MarginLoss:
        """The loss as an object; ``loss`` may also be its name or a function.

        >>> Settings("quantile").loss_function
        Quantile(q=0.5)
        """
        return resolve(self.loss)

    @property
    def labels(self) -> Labels:
        """The domain of the labels."""
        return self.loss_function.labels

    @property
    def signed(self) -> bool:
        """Whether two classes are coded −1 and 1 rather than 0 and 1.

        >>> Settings("hinge").signed, Settings("logistic").signed
        (True, False)
        """
        return uses_signs(self.labels)

    @property
    def link(self) -> Callable[[Any], Any]:
        """The function from margins to reported predictions: the link of the loss, or the margin for signed labels.

        >>> float(Settings("logistic").link(0.0)), float(Settings("hinge").link(0.25))
        (0.5, 0.25)
        """
        return np.asarray if self.signed else self.loss_function.link

    @property
    def title(self) -> str:
        """The name of the average loss in tables.

        >>> Settings("squared").title, Settings("softmax").title
        ('mean squared error / 2', 'log-loss')
        """
        return self.loss_function.title

    @property
    def least(self) -> float:
        """A lower bound on the loss of any prediction; minus infinity where there is none."""
        return self.loss_function.least

    @cached_property
    def noise_key(self) -> int:
        """The seed as the key of the rounding noise, a signed 64-bit integer; 0 for seed 0.

        >>> Settings().noise_key, Settings(seed=1).noise_key
        (0, -5451962507482445012)
        """
        key = self.seed
        for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):  # a bijection in which every bit depends on all bits
            key = (key ^ (key >> 33)) * factor % (1 << 64)
        key ^= key >> 33
        return key - (1 << 64) if key >> 63 else key

    def shape(self, dtype: DTypeLike) -> Any:
        """Return the shape parameter of the loss in the type of the model; 0 if it has none."""
        kind: Any = np.dtype(dtype).type
        return kind(self.loss_function.parameter(dtype))

    def parameters(self, lanes: int, dtype: DTypeLike) -> NDArray[Any]:
        """Return the parameters of the kernels, a row each and a column for each lane, in the order of ``Lane``."""
        largest = np.finfo(dtype).max
        radius = largest if self.radius is None else np.minimum(self.radius, largest)
        fourth = 1 - np.asarray(self.memory) if self.algorithm == "filter" else self.l2
        columns = Lane(1 / np.asarray(self.alpha), self.beta, self.l1, fourth, radius)
        filters = [Lane(1 / f.variance, f.shrinkage, 0, 1 - f.memory, largest) for f in self.filters]
        rows = np.column_stack([[np.resize(row, self.first_filter) for row in columns], *map(np.transpose, filters)])
        with np.errstate(over="ignore"):
            parameters = np.array([np.resize(row, lanes) for row in rows]).astype(dtype)
        limit = MAX_PARAMETER[np.dtype(dtype).name]
        if self.rate == "scale_free":  # whose strengths grow with the scale of a feature
            limit /= ORDINARY[1]  # the largest scale in its unit
        if not np.delete(parameters, Lane._fields.index("radius"), axis=0).max() <= limit:
            raise ValueError(
                f"alpha, beta, l1, l2: got {self.alpha, self.beta, self.l1, self.l2}, expected 1/alpha and the others "
                f"to be at most {limit:g}, so that strengths are within the range of {np.dtype(dtype)}"
            )
        return parameters


def _described(one: Filter) -> str:
    """Return the parameters of a filter as text."""
    memory = "" if one.memory == 1 else f", memory={one.memory:.4g}"
    return f"variance={one.variance:.3g}, shrinkage={one.shrinkage:.3g}{memory}"


def _choice(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise refuse(name, value, f"one of {', '.join(allowed)}")
