"""The survey's one-dimensional example with an L1 penalty, its figure 4."""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from forel.theory.algorithms import FTRL, Algorithm, MirrorDescent
from forel.theory.analysis.adversaries import l1_example, l1_example_alternating
from forel.theory.analysis.game import play
from forel.theory.geometries import Euclidean
from forel.theory.penalties import l1
from forel.theory.plot.style import COLORS, GREY, figure_of, label_axes, label_line_ends, styled_axes
from forel.theory.rates import Constant
from forel.theory.sets import Box
from forel.theory.weights import EveryRound
from forel.validation import refuse

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["figure_4"]

L1_PANELS = {
    "Alternating gradients": (
        l1_example_alternating,
        "As in appendix D: Mirror Descent alternates between −2.625 and 2.625. "
        "Native FTRL is exactly 0 from round 13 on.",
    ),
    "Gradients that answer the point": (
        l1_example,
        "As in section 6.2: Mirror Descent does the same. Native FTRL is 0 in rounds 13 and 14, "
        "is answered −G both times, and leaves 0 in round 15 for 4.875.",
    ),
}


def figure_4(ax: "Sequence[Axes] | None" = None) -> "Figure":
    r"""Draw figure 4: Mirror Descent and Native FTRL with the penalty $\frac12|x|$, G = 11 and T = 16.

    The gradients of the left panel alternate, as in appendix D; those of the right answer $x_t$, as in section 6.2.

    Parameters
    ----------
    ax : the two axes to draw on; a new figure by default

    >>> [axes.get_title(loc="left") for axes in figure_4().axes]
    ['Alternating gradients', 'Gradients that answer the point']

    Survey: section 6.2, figure 4 and appendix D
    """
    rate, penalty, around = Constant(2 / 16**0.5), l1(0.5), Box(-22, 22)
    players: dict[str, Algorithm] = {
        "Mirror Descent": MirrorDescent(rate, Euclidean(), penalty, EveryRound(), around),
        "Native FTRL": FTRL(rate, Euclidean(), penalty=penalty, weights=EveryRound(), feasible=around),
    }
    if ax is not None and len(ax) != 2:
        raise refuse("ax", f"{len(ax)} axes", "two")
    with styled_axes(None if ax is None else ax[0], (11, 4.6), columns=2) as first:
        pair = first.figure.axes if ax is None else ax
        for axes, (title, (adversary, sentence)) in zip(pair, L1_PANELS.items(), strict=True):
            for color, marker, (name, player) in zip(COLORS, "os", players.items(), strict=False):
                x = play(player, adversary(11.0, 0.5), rounds=16, n=1).points[:-1, 0]
                axes.plot(np.arange(1, 17), x, color=color, marker=marker, label=name)
            axes.axhline(0, color=GREY, linewidth=0.8, zorder=0)
            axes.set_title(title, loc="left")
            label_axes(axes, "point $x_t$")
            axes.set_xticks(range(1, 17, 2))
            below = textwrap.fill(sentence, 54)
            axes.annotate(below, (0, 0), (0, -42), "axes fraction", "offset points", va="top", annotation_clip=False)
        for axes in pair:  # now that both panels have their common scale
            lasts = [float(np.asarray(line.get_ydata())[-1]) for line in axes.lines[:2]]
            label_line_ends(
                axes, [(name, 16, y, color) for name, y, color in zip(players, lasts, COLORS, strict=False)]
            )
        return figure_of(first)
