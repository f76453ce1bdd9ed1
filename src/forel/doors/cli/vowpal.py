"""What Vowpal Wabbit's own flags mean: its squared loss is the squared error, and its constant is a feature."""

from collections.abc import Mapping
from typing import Any

import typer

__all__ = ["as_in_vowpal_wabbit"]

SQUARED = ("squared", "classic")  # VW's names of (p − y)², without and with its own updates for importances


def as_in_vowpal_wabbit(
    given: Mapping[str, Any], spelled: Mapping[str, Any], ftrl: bool, said: list[str]
) -> tuple[dict[str, Any], list[str], bool]:
    """Return the settings that were said in either spelling, their names, and whether the constant is a feature.

    Without an alpha, settings are mixed that VW has no flags for, and nothing changes.

    Parameters
    ----------
    given : settings by their names here
    spelled : those that were said by flags of VW, None for others
    ftrl : whether the flag that VW calls its algorithm by is there
    said : the names of those among ``given`` that were said

    >>> given = {"loss": "logistic", "alpha": None, "bias": True}
    >>> as_in_vowpal_wabbit(given, {"loss": "squared", "alpha": 0.5}, False, [])
    ({'loss': 'squared_error', 'alpha': 0.5, 'bias': False}, ['loss', 'alpha'], True)
    """
    flags = {name: value for name, value in spelled.items() if value is not None}
    twice = next((name for name in flags if name in said), None)
    if twice is not None:
        raise typer.BadParameter(f"is said twice, once as VW spells it; say --{twice} once", param_hint=f"--{twice}")
    settings = {**given, **flags}
    names = [*said, *flags]
    same = (ftrl or bool(flags)) and settings["alpha"] is not None
    if settings["loss"] in SQUARED:
        settings["loss"] = "squared_error" if same else "squared"
    constant = same and bool(settings["bias"])
    return {**settings, "bias": settings["bias"] and not constant}, names, constant
