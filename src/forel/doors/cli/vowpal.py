"""Options in Vowpal Wabbit's spelling: its squared loss is the squared error, and its constant is a feature."""

from collections.abc import Mapping
from typing import Any

import typer

__all__ = ["translate_vw_options"]

SQUARED = ("squared", "classic")  # VW's names of (p − y)², with and without importance-invariant updates


def translate_vw_options(
    chosen: Mapping[str, Any], vw: Mapping[str, Any], ftrl: bool, explicit: list[str]
) -> tuple[dict[str, Any], list[str], bool]:
    """Return settings in forel's names, the names of those that were given, and whether the constant is a feature.

    Without an alpha, forel mixes settings, for which VW has no options, and nothing changes.

    Parameters
    ----------
    chosen : settings by forel's names
    vw : settings given in VW's spelling, None for others
    ftrl : whether the option that selects VW's FTRL is given
    explicit : the names of those among ``chosen`` that were given

    >>> chosen = {"loss": "logistic", "alpha": None, "bias": True}
    >>> translate_vw_options(chosen, {"loss": "squared", "alpha": 0.5}, False, [])
    ({'loss': 'squared_error', 'alpha': 0.5, 'bias': False}, ['loss', 'alpha'], True)
    """
    given = {name: value for name, value in vw.items() if value is not None}
    twice = next((name for name in given if name in explicit), None)
    if twice is not None:
        raise typer.BadParameter(f"is given twice, once in VW's spelling; give --{twice} once", param_hint=f"--{twice}")
    settings = {**chosen, **given}
    names = [*explicit, *given]
    as_in_vw = (ftrl or bool(given)) and settings["alpha"] is not None
    if settings["loss"] in SQUARED:
        settings["loss"] = "squared_error" if as_in_vw else "squared"
    constant = as_in_vw and bool(settings["bias"])
    return {**settings, "bias": settings["bias"] and not constant}, names, constant
