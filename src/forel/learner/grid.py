r"""Settings for those who do not want to choose: a few learning rates, and two penalties, to be mixed.

Rates are scale-free, $\eta_{t,i} = \alpha / (s_{t,i}(\beta s_{t,i} + \sqrt{n_{t,i}}))$, so that units of features do
not matter and α is in units of margins. ``docs/guide/no_tuning.md`` tells how the grid was chosen, and on which data.
"""

from typing import Any

import numpy as np

from forel.learner.settings import Settings
from forel.validation import whole

__all__ = ["LANES", "default_grid"]

LANES = 16
BETA = 0.01
PENALTIES = (0.1, 1.0)  # of losses whose slope is at most 1, so that a number means the same on all data
SPAN = (0.05, 20.0)
ENOUGH = 8  # rates
NUMBERS = (0.01, 1000.0)  # of margins that predict numbers in any unit


def default_grid(
    alpha: Any = None, beta: Any = None, l1: Any = None, rate: Any = None, lanes: int = LANES, **others: Any
) -> Settings:
    """Return settings where None means: as is best for most.

    Parameters
    ----------
    alpha : of one model; None for a grid of ``lanes`` settings
    beta, l1, rate : of one model 1, 0 and "adagrad" unless said; of a grid they are the same for all where said
    lanes : how many settings
    others : as in :class:`forel.learner.settings.Settings`

    >>> default_grid(alpha=0.5).names, default_grid(lanes=4).names
    (('',), ('alpha=0.224, l1=0.1', 'alpha=0.224, l1=1', 'alpha=4.47, l1=0.1', 'alpha=4.47, l1=1'))
    """
    if alpha is not None:
        unless: dict[str, Any] = {"beta": 1.0, "l1": 0.0, "rate": "adagrad"}
        said = {name: value for name, value in (("beta", beta), ("l1", l1), ("rate", rate)) if value is not None}
        return Settings(alpha=alpha, **{**unless, **said, **others})
    count = whole("lanes", lanes, low=1)
    plain = Settings(others.get("loss", "logistic")).loss_function.link.unitless
    given = (0.0,) if not plain else PENALTIES if count > 1 else PENALTIES[-1:]
    penalties = given if l1 is None else (l1,)
    low, high = SPAN if plain else NUMBERS
    rates = -(-count // len(penalties))
    # The ends belong to the grid only where enough of it is left for the middle.
    places = np.linspace(0, 1, rates) if rates >= ENOUGH else (np.arange(rates) + 0.5) / rates
    alphas = low * (high / low) ** places
    pairs = [(float(a), p) for a in alphas for p in penalties][:count]
    return Settings(
        alpha=tuple(a for a, _ in pairs),
        l1=tuple(p for _, p in pairs) if len(penalties) > 1 else penalties[0],
        beta=BETA if beta is None else beta,
        rate="scale_free" if rate is None else rate,
        **others,
    )
