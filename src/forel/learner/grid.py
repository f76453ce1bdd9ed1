r"""The default grid of settings, to be mixed: a few learning rates, and two penalties.

Rates are scale-free, $\eta_{t,i} = \alpha / (s_{t,i}(\beta s_{t,i} + \sqrt{n_{t,i}}))$, so that units of features do
not matter and α has the unit of margins. ``docs/guide/no_tuning.md`` describes how the grid was chosen, on which data.
"""

from typing import Any

import numpy as np

from forel.learner.settings import Settings
from forel.losses.vocabulary import resolve
from forel.validation import whole

__all__ = ["LANES", "default_grid"]

LANES = 16
BETA = 0.01
PENALTIES = (0.1, 1.0)  # for losses of unitless margins only: a penalty has the unit of a slope
UNITLESS_ALPHAS = (0.05, 20.0)  # smallest and largest
SCALED_ALPHAS = (0.01, 1000.0)  # for margins in the unit of the labels
WITH_ENDS = 8  # the number of rates from which on the grid includes both ends


def default_grid(
    alpha: Any = None,
    beta: Any = None,
    l1: Any = None,
    rate: Any = None,
    lanes: int = LANES,
    filters: Any = None,
    **others: Any,
) -> Settings:
    """Return settings with defaults for those that are None.

    Parameters
    ----------
    alpha : of one model; None for a grid of ``lanes`` settings
    beta, l1, rate : by default 1, 0 and "adagrad" for one model; in a grid a given value applies to all settings
    lanes : the number of settings in a grid
    filters : mixed with the settings, as in :class:`forel.learner.settings.Settings`; None for none
    others : as in :class:`forel.learner.settings.Settings`

    >>> default_grid(alpha=0.5).names, default_grid(lanes=4).names
    (('',), ('alpha=0.224, l1=0.1', 'alpha=0.224, l1=1', 'alpha=4.47, l1=0.1', 'alpha=4.47, l1=1'))
    """
    if alpha is not None:
        defaults: dict[str, Any] = {"beta": 1.0, "l1": 0.0, "rate": "adagrad"}
        given = {name: value for name, value in (("beta", beta), ("l1", l1), ("rate", rate)) if value is not None}
        return Settings(alpha=alpha, filters=filters or (), **{**defaults, **given, **others})
    count = whole("lanes", lanes, low=1)
    unitless = resolve(others.get("loss", Settings.loss)).link.unitless
    usual = (0.0,) if not unitless else PENALTIES if count > 1 else PENALTIES[-1:]
    penalties = usual if l1 is None else (l1,)
    low, high = UNITLESS_ALPHAS if unitless else SCALED_ALPHAS
    rates = -(-count // len(penalties))
    # A small grid is better spent on the middle.
    places = np.linspace(0, 1, rates) if rates >= WITH_ENDS else (np.arange(rates) + 0.5) / rates
    alphas = low * (high / low) ** places
    pairs = [(float(a), p) for a in alphas for p in penalties][:count]
    return Settings(
        alpha=tuple(a for a, _ in pairs),
        l1=tuple(p for _, p in pairs) if len(penalties) > 1 else penalties[0],
        beta=BETA if beta is None else beta,
        rate="scale_free" if rate is None else rate,
        filters=filters or (),
        **others,
    )
