r"""The default experts of a mixture: a few learning rates and penalties, and Gaussian filters.

Rates are scale-free, $\eta_{t,i} = \alpha / (s_{t,i}(\beta s_{t,i} + \sqrt{n_{t,i}}))$, so that units of features do
not matter and α has the unit of margins. ``docs/guide/no_tuning.md`` describes how the grid was chosen, on which data.
"""

from typing import Any, NamedTuple

import numpy as np

from forel.learner.experts import Filter, FullFilter
from forel.learner.settings import Settings
from forel.losses.margin import Mixing
from forel.losses.vocabulary import resolve
from forel.validation import whole

__all__ = ["EXPERTS", "LANES", "Experts", "default_grid", "without_filters"]

LANES = 16  # of a grid without filters
BETA = 0.01


class Experts(NamedTuple):
    """Rates with an L1 penalty each, and the filters mixed with them."""

    alphas: tuple[float, ...]
    penalties: tuple[float, ...] | float
    filters: tuple[Filter, ...]
    full_filters: tuple[FullFilter, ...]


# By the rule that mixes them. Filters of squared loss do not depend on the unit of the labels; rates are far apart
# because they do.
EXPERTS = {
    Mixing.BAYES: Experts(
        (0.05, 0.3, 1.5, 20.0),
        (0.1, 1.0, 0.1, 0.1),
        (Filter(10.0, 1.0), Filter(0.3, 1.0), Filter(0.3), Filter(0.03)),
        (FullFilter(1.0), FullFilter(30.0, 0.9999)),
    ),
    Mixing.EXP_CONCAVE: Experts(
        (1.0, 30.0, 1000.0),
        0.0,
        (
            Filter(0.3),
            Filter(3.0),
            Filter(3.0, memory=0.99),
            Filter(3.0, memory=0.95),
            Filter(30.0, memory=0.9),
        ),
        (FullFilter(10.0), FullFilter(10.0, 0.999)),
    ),
}
PENALTIES = (0.1, 1.0)  # for losses of unitless margins only: a penalty has the unit of a slope
UNITLESS_ALPHAS = (0.05, 20.0)  # smallest and largest
SCALED_ALPHAS = (0.01, 1000.0)  # for margins in the unit of the labels
MIN_WITH_ENDS = 8  # a grid of at least this many rates includes both ends


def default_grid(
    alpha: Any = None,
    beta: Any = None,
    l1: Any = None,
    rate: Any = None,
    lanes: int | None = None,
    filters: Any = None,
    full_filters: Any = None,
    **others: Any,
) -> Settings:
    """Return settings with defaults for those that are None.

    Without ``alpha``, the settings for log-loss of two classes and for squared loss are FTRL-Proximal settings and
    Gaussian filters, eight in all, which are mixed together with mixers of them. With any option that filters do not
    have, and for other losses, they are a grid of ``lanes`` FTRL-Proximal settings.

    Parameters
    ----------
    alpha : the rate parameter of one model; None for several
    beta, l1, rate : by default 1, 0 and "adagrad" for one model; in a grid a given value applies to all settings
    lanes : the number of settings in a grid; None for 16 in a grid without filters
    filters : filters to mix with the settings, as in :class:`forel.learner.settings.Settings`; None for the default
    others : further arguments of :class:`forel.learner.settings.Settings`

    >>> default_grid(alpha=0.5).names, default_grid(lanes=2).names, default_grid().n_settings
    (('',), ('l1=0.1', 'l1=1'), 8)
    """
    if alpha is not None:
        defaults: dict[str, Any] = {"beta": 1.0, "l1": 0.0, "rate": "adagrad"}
        given = {name: value for name, value in (("beta", beta), ("l1", l1), ("rate", rate)) if value is not None}
        return Settings(
            alpha=alpha, filters=filters or (), full_filters=full_filters or (), **{**defaults, **given, **others}
        )
    defaults_only = all(one is None for one in (beta, l1, rate, lanes, filters))
    experts = _experts(Settings(rate="scale_free", **others)) if defaults_only else None
    if experts is not None:
        own: dict[str, Any] = {"alpha": experts.alphas, "l1": experts.penalties, "filters": experts.filters}
        own["full_filters"] = experts.full_filters if full_filters is None else full_filters
        return Settings(beta=BETA, rate="scale_free", **own, **others)
    count = LANES if lanes is None else whole("lanes", lanes, low=1)
    unitless = resolve(others.get("loss", Settings.loss)).link.unitless
    default_penalties = (0.0,) if not unitless else PENALTIES if count > 1 else PENALTIES[-1:]
    penalties = default_penalties if l1 is None else (l1,)
    low, high = UNITLESS_ALPHAS if unitless else SCALED_ALPHAS
    rates = -(-count // len(penalties))
    # A small grid covers the middle of the range.
    places = np.linspace(0, 1, rates) if rates >= MIN_WITH_ENDS else (np.arange(rates) + 0.5) / rates
    alphas = low * (high / low) ** places
    pairs = [(float(a), p) for a in alphas for p in penalties][:count]
    return Settings(
        alpha=tuple(a for a, _ in pairs),
        l1=tuple(p for _, p in pairs) if len(penalties) > 1 else penalties[0],
        beta=BETA if beta is None else beta,
        rate="scale_free" if rate is None else rate,
        filters=filters or (),
        full_filters=full_filters or (),
        **others,
    )


def without_filters(settings: Settings) -> Settings:
    """Return settings without filters, for several classes: a grid replaces one with filters.

    >>> without_filters(default_grid()).n_settings
    16
    """
    if not settings.filters:
        return settings
    return default_grid(lanes=LANES, loss=settings.loss, bias=settings.bias, seed=settings.seed)


def _experts(settings: Settings) -> Experts | None:
    """Return the experts of a loss of one margin; None if settings other than the rate are not the defaults."""
    loss = settings.loss_function
    defaults = Settings(settings.loss, rate="scale_free", bias=settings.bias, seed=settings.seed)
    return EXPERTS.get(loss.mixing) if settings == defaults and not loss.joint else None
