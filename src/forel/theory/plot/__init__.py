"""Pictures of games: regret and its bound, paths, the survey's figure 4. Needs the extra ``plot``.

Every function draws on the axes it is given, or on a figure of its own, and returns the figure, ready to :func:`save`.
Nothing global changes, and no window opens. Colours of text and background are those of matplotlib's current style, so
that a dark style gives a dark picture; those of lines are such that all eyes can tell them apart.
"""

from forel.theory.plot.canvas import save, save_both
from forel.theory.plot.example import l1_figure
from forel.theory.plot.games import compare, decomposition, regret
from forel.theory.plot.paths import path

__all__ = ["compare", "decomposition", "l1_figure", "path", "regret", "save", "save_both"]
