"""Plots over rounds: regret, its bound, and their decomposition."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from forel.theory.analysis.game import Trace
from forel.theory.plot.style import (
    COLORS,
    GREY,
    MARKER_LIMIT,
    figure_of,
    format_number,
    label_axes,
    label_line_ends,
    styled_axes,
)
from forel.validation import Vector, floats, refuse, vector

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["compare", "decomposition", "regret"]


def regret(trace: Trace, comparator: ArrayLike, bound: ArrayLike | None = None, ax: "Axes | None" = None) -> "Figure":
    r"""Draw the regret $\sum_{s \le t} f_s(x_s) - f_s(x^*)$ after every round.

    Parameters
    ----------
    trace : a game that was played
    comparator : x*
    bound : a bound on the regret after every round
    ax : the axes to draw on; a new figure by default

    >>> from forel.theory.algorithms import FTRL
    >>> from forel.theory.analysis.adversaries import alternating
    >>> from forel.theory.analysis.game import play
    >>> from forel.theory.geometries import Euclidean
    >>> from forel.theory.rates import Constant
    >>> trace = play(FTRL(Constant(0.1), Euclidean()), alternating(), rounds=20, n=1)
    >>> figure = regret(trace, [0.0], bound=0.1 * np.arange(1, 21))
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['regret: 1', 'bound: 2']

    Survey: section 1
    """
    curves = {"regret": trace.regrets(vector("comparator", comparator))}
    if bound is not None:
        curves["bound"] = vector("bound", bound, trace.rounds)
    return _curves(curves, ax)


def compare(traces: Mapping[str, Trace], comparator: ArrayLike, ax: "Axes | None" = None) -> "Figure":
    r"""Draw the regrets of several games against one comparator.

    Parameters
    ----------
    traces : the games by the names to write at their lines
    comparator : x*
    ax : the axes to draw on; a new figure by default

    >>> from forel.theory.algorithms import FTRL
    >>> from forel.theory.analysis.game import play
    >>> from forel.theory.analysis.streams import regression
    >>> from forel.theory.geometries import Euclidean
    >>> from forel.theory.rates import Constant
    >>> losses = regression(n=2, rounds=50)
    >>> games = {f"η = {eta}": play(FTRL(Constant(eta), Euclidean()), losses) for eta in (0.01, 0.1)}
    >>> [line.get_label() for line in compare(games, [0.0, 0.0]).axes[0].lines[:2]]
    ['η = 0.01', 'η = 0.1']

    Survey: section 1
    """
    if not traces:
        raise refuse("traces", traces, "at least one game")
    x = vector("comparator", comparator)
    return _curves({name: trace.regrets(x) for name, trace in traces.items()}, ax)


def decomposition(
    regularization: ArrayLike, stability: ArrayLike, remainder: ArrayLike, ax: "Axes | None" = None
) -> "Figure":
    r"""Draw regret as $r_{0:t}(x^*)$, plus the sum of stability terms, minus the slack of the inequality.

    The upper edge is the bound; the lower edge of the hatched part is the regret.

    Parameters
    ----------
    regularization : the first term after every round, or one number if it stays the same
    stability : each round's own term
    remainder : regret less bound after every round, at most 0
    ax : the axes to draw on; a new figure by default

    >>> figure = decomposition(1.0, [0.5, 0.5, 0.5], [-0.2, -0.1, 0.0])
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['regularization: 1', 'stability: 1.5', 'remainder: 0', 'regret: 2.5']

    Survey: Lemma 5
    """
    steps = np.cumsum(vector("stability", stability))
    T = steps.size
    base, rest = (_over_rounds(*named, T) for named in (("regularization", regularization), ("remainder", remainder)))
    rounds, top = np.arange(1, T + 1), base + steps
    with styled_axes(ax) as axes:
        ink = axes.xaxis.label.get_color()
        axes.fill_between(rounds, base, color=COLORS[0], alpha=0.6, linewidth=0)
        axes.fill_between(rounds, base, top, color=COLORS[5], alpha=0.6, linewidth=0)
        axes.fill_between(rounds, top + rest, top, facecolor="none", edgecolor=ink, hatch="///", linewidth=0)
        axes.plot(rounds, top + rest, color=ink)
        axes.margins(x=0)
        label_axes(axes, "bound and regret (units of loss)")
        ends = [
            (f"regularization: {format_number(base[-1])}", base[-1] / 2, COLORS[0]),
            (f"stability: {format_number(steps[-1])}", base[-1] + steps[-1] / 2, COLORS[5]),
            (f"remainder: {format_number(rest[-1], top[-1])}", top[-1] + rest[-1] / 2, GREY),
            (f"regret: {format_number(top[-1] + rest[-1])}", top[-1] + rest[-1], ink),
        ]
        label_line_ends(axes, [(text, T, float(y), color) for text, y, color in ends])
        return figure_of(axes)


def _curves(curves: Mapping[str, Vector], ax: "Axes | None") -> "Figure":
    with styled_axes(ax) as axes:
        ends = []
        for i, (name, values) in enumerate(curves.items()):
            color, dashes = COLORS[i % len(COLORS)], ("-", "--", ":", "-.")[i // len(COLORS) % 4]
            marker = "o" if values.size <= MARKER_LIMIT else None
            axes.plot(np.arange(1, values.size + 1), values, dashes, color=color, marker=marker, label=name)
            ends.append((f"{name}: {format_number(values[-1])}", values.size, float(values[-1]), color))
        axes.axhline(0, color=GREY, linewidth=0.8, zorder=0)
        axes.margins(x=0.02)
        label_axes(axes, "regret (units of loss)")
        label_line_ends(axes, ends)
        return figure_of(axes)


def _over_rounds(name: str, values: ArrayLike, rounds: int) -> Vector:
    array = floats(name, values, "numbers")
    return vector(name, np.full(rounds, array) if array.ndim == 0 else array, rounds)
