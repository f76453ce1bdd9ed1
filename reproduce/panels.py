"""Losses over the scale of the rate, one panel per data set."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from forel.theory.plot.style import figure_of, legend_below, styled_axes

T = TypeVar("T")


def panels(measured: Mapping[str, T], plot: Callable[[Any, T], None], top: float, base: int = 10) -> Any:
    """Call ``plot`` for each data set on its own axes, with losses up to ``top``."""
    with styled_axes(None, (3.0 * len(measured) + 0.8, 4.0), columns=len(measured)) as first:
        for axes, (name, found) in zip(first.figure.axes, measured.items(), strict=True):
            plot(axes, found)
            axes.set_xscale("log", base=base)
            axes.set_title(name, loc="left")
            axes.set_xlabel("scale α of the rate")
        first.set_ylim(0.3, top)
        first.set_ylabel("progressive log-loss (nats)")
        legend_below(first)
        return figure_of(first)
