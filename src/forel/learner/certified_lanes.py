"""Which lanes of a mixture with filters certificates are computed from.

Any slopes are a point of the dual problem, so that a few lanes are enough. Their sums of gradients follow the scale at
the end of each record, where they need no further cache line.
"""

from forel.learner.settings import Settings

__all__ = ["COUNT", "bounded_lanes", "certified_lanes"]

COUNT = 3  # with the scale, four numbers for each coordinate


def certified_lanes(settings: Settings) -> tuple[int, ...]:
    """Return the lanes whose sums of gradients are kept; for settings with filters at most three, in order.

    They are the lanes of the middle rate, or of the two middle ones, of the filter with the smallest variance, and
    of the middle filter in the order of the settings; then of others, if these are fewer. Small rates and large
    variances have large losses on short streams, and the extremes are far from the best model on long ones.

    >>> certified_lanes(Settings(alpha=(0.05, 0.3, 1.5, 20), rate="scale_free", filters=[(10, 1), (0.3,), (0.03,)]))
    (1, 2, 6)
    >>> certified_lanes(Settings(alpha=(0.1, 0.5, 2.0, 9.0)))
    (0, 1, 2, 3)
    """
    lanes, rates = range(settings.n_settings), settings.first_filter
    if not settings.filters:
        return tuple(lanes)
    alphas = settings.alpha if isinstance(settings.alpha, tuple) else (settings.alpha,) * rates
    by_rate = sorted(range(rates), key=lambda lane: alphas[lane])
    least = min(range(len(settings.filters)), key=lambda k: settings.filters[k].variance)
    preferred = [by_rate[(rates - 1) // 2], by_rate[rates // 2], rates + least, rates + len(settings.filters) // 2]
    return tuple(sorted(list(dict.fromkeys((*preferred, *lanes)))[:COUNT]))


def bounded_lanes(settings: Settings) -> tuple[int, ...]:
    """Return those of the certified lanes whose regret has a bound, which filters do not have."""
    return tuple(lane for lane in certified_lanes(settings) if lane < settings.first_filter)
