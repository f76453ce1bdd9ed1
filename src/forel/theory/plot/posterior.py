"""Plot the weights of experts over rounds."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from forel.theory.plot.style import COLORS, GREY, figure_of, label_axes, label_line_ends, styled_axes
from forel.validation import matrix, whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["posterior"]

POINTS = 400  # resolution of the plot


def posterior(weights: ArrayLike, names: Sequence[str], most: int = 5, ax: "Axes | None" = None) -> "Figure":
    r"""Draw the weights $w_{t,k}$ over rounds as areas that add up to 1, named with the weights at the end.

    Parameters
    ----------
    weights : one row per round, and one more for the final weights
    names : of the experts, the columns
    most : number of experts to show, those with most weight over all rounds; the others are one grey area
    ax : the axes to draw on; None for a new figure

    >>> figure = posterior([[0.5, 0.5], [0.8, 0.2], [0.95, 0.05]], ["up", "down"])
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['up: 0.950', 'down: 0.050']

    Survey: section 3.6
    """
    most = min(whole("most", most, low=1), len(COLORS))
    rows = matrix("weights", weights, len(names))
    T = len(rows) - 1
    starts = np.unique(np.linspace(0, T, min(T + 1, POINTS)).astype(int))
    means = np.add.reduceat(rows, starts) / np.diff(starts, append=T + 1)[:, None]  # of each stretch
    order = np.argsort(-rows.mean(axis=0), kind="stable")
    shown = np.sort(order[:most])
    bands = [(names[k], np.array([k]), COLORS[i]) for i, k in enumerate(shown)]
    if shown.size < len(names):
        rest = np.setdiff1d(np.arange(len(names)), shown)
        bands.append((f"{rest.size} others", rest, GREY))
    with styled_axes(ax) as axes:
        base, ends = np.zeros(starts.size), []
        for name, members, color in bands:
            top = base + means[:, members].sum(axis=1)
            axes.fill_between(starts + 1, base, top, color=color, alpha=0.7, linewidth=0, label=name)
            last = float(rows[-1, members].sum())
            size = f"{last:.3f}" if last >= 0.0005 or last == 0 else "below 0.001"
            ends.append((f"{name}: {size}", T + 1, float(base[-1] + top[-1]) / 2, color))
            base = top
        axes.set(xlim=(1, T + 1), ylim=(0, 1))
        label_axes(axes, "weight $w_{t,k}$")
        label_line_ends(axes, ends)
        return figure_of(axes)
