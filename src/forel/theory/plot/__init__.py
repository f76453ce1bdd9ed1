"""Plots: regret and its bound, paths, weights of experts, the survey's figure 4. Needs the extra ``plot``.

Every function draws on the given axes, or on a new figure, and returns the figure, ready to :func:`save`.
No global state changes, and no window opens. Colors of text and background are those of matplotlib's current style, so
that a dark style gives a dark figure; line colors are safe for color-blind readers.
"""

from forel.theory.plot.figure_4 import figure_4
from forel.theory.plot.paths import path
from forel.theory.plot.posterior import posterior
from forel.theory.plot.regret_curves import compare, decomposition, regret
from forel.theory.plot.style import save, save_both

__all__ = ["compare", "decomposition", "figure_4", "path", "posterior", "regret", "save", "save_both"]
