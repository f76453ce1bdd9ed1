"""The points of a game and the set around them, in one or two dimensions."""

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from forel.theory.analysis.game import Trace
from forel.theory.argmin import Argmin
from forel.theory.geometries import Euclidean
from forel.theory.plot.style import COLORS, GREY, MARKER_LIMIT, figure_of, label_axes, label_line_ends, styled_axes
from forel.theory.sets import FeasibleSet
from forel.validation import Matrix, Unsupported, Vector

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["path"]


def path(trace: Trace, feasible: FeasibleSet | None = None, ax: "Axes | None" = None) -> "Figure":
    r"""Draw the points $x_1, \dots, x_{T+1}$: over rounds in one dimension, in the plane in two, and X around them.

    A set much larger than the path is clipped at the edge of the plot.

    Parameters
    ----------
    trace : a game in one or two dimensions
    feasible : X, the algorithm's own if not given
    ax : the axes to draw on; a new figure by default

    >>> from forel.theory.algorithms import FTRL
    >>> from forel.theory.analysis.adversaries import worst_linear
    >>> from forel.theory.analysis.game import play
    >>> from forel.theory.rates import Constant
    >>> from forel.theory.sets import l2_ball
    >>> trace = play(FTRL(Constant(0.5), Euclidean(), feasible=l2_ball(1.0)), worst_linear(), rounds=9, n=2)
    >>> [text.get_text() for text in path(trace).axes[0].texts]
    ['$x_{1}$', '$x_{10}$']

    Survey: section 2.4
    """
    points, around = trace.points, trace.algorithm.feasible if feasible is None else feasible
    n = points.shape[1]
    if n > 2:
        raise Unsupported(f"trace: got points of dimension {n}, expected 1 or 2; draw single columns of trace.points")
    with styled_axes(ax, (6.4, 3.6) if n == 1 else (4.8, 4.8)) as axes:
        if n == 1:
            _draw_over_rounds(axes, points[:, 0], around)
        else:
            _draw_in_the_plane(axes, points, around)
        return figure_of(axes)


def _draw_over_rounds(axes: "Axes", x: Vector, feasible: FeasibleSet) -> None:
    axes.plot(np.arange(1, x.size + 1), x, color=COLORS[0], marker="o" if x.size <= MARKER_LIMIT else None)
    span = float(np.ptp(x)) or np.inf
    edges = (-feasible.support(np.array([-1.0])), feasible.support(np.array([1.0])))
    seen = [edge for edge in edges if np.isfinite(edge) and np.abs(x - edge).min() <= span]
    for edge in seen:
        axes.axhline(edge, color=GREY, linestyle="--", linewidth=1, zorder=0)
    axes.margins(x=0.02)
    label_axes(axes, "point $x_t$")
    label_line_ends(axes, [("edge of X", x.size, edge, GREY) for edge in seen])


def _draw_in_the_plane(axes: "Axes", points: Matrix, feasible: FeasibleSet) -> None:
    from matplotlib.patheffects import withStroke

    low, high = points.min(axis=0), points.max(axis=0)
    span = float((high - low).max())
    ends = np.array([[sign * feasible.support(sign * e) for e in np.eye(2)] for sign in (-1.0, 1.0)])
    if np.isfinite(ends).all() and (span == 0 or np.ptp(ends, axis=0).max() <= 5 * span):
        low, high = np.minimum(low, ends[0]), np.maximum(high, ends[1])
    middle, half = (low + high) / 2, 0.6 * (float((high - low).max()) or 1.0)
    if not all(feasible.contains(middle + half * np.array(corner)) for corner in product((-1, 1), repeat=2)):
        edge = _edge(feasible, middle, 3 * half)
        axes.fill(*edge.T, facecolor=GREY, alpha=0.15, zorder=0)
        axes.plot(*edge.T, color=GREY, linewidth=2.5, alpha=0.6, zorder=0)
    axes.plot(*points.T, color=COLORS[0], marker="o" if len(points) <= MARKER_LIMIT else None, linewidth=1.6)
    for i, way, color in ((0, 1, COLORS[2]), (len(points) - 1, -1, COLORS[1])):
        axes.plot(*points[i], "o", color=color, markersize=7)
        # The label is placed away from the path.
        moves = points[i] - points[::way]
        away = next((move / np.hypot(*move) for move in moves if move.any()), np.full(2, -0.7 * way))
        halo = [withStroke(linewidth=3, foreground=axes.get_facecolor())]
        look: dict[str, Any] = {"size": 12, "ha": "center", "va": "center", "path_effects": halo}
        axes.annotate(f"$x_{{{i + 1}}}$", points[i], tuple(17 * away), textcoords="offset points", **look)
    axes.set(xlim=middle[0] + [-half, half], ylim=middle[1] + [-half, half], aspect="equal")
    axes.set(xlabel="first coordinate", ylabel="second coordinate")


def _edge(feasible: FeasibleSet, middle: Vector, radius: float) -> Matrix:
    """Return the edge of a set in the plane: a circle around the visible region, projected onto the set.

    Where the set extends beyond the circle, the circle remains, outside the visible part.
    """
    angles = np.linspace(0, 2 * np.pi, 121)
    circle = middle + radius * np.column_stack([np.cos(angles), np.sin(angles)])
    project = Argmin(Euclidean(), feasible=feasible)
    return np.array([project(-u, 1.0) for u in circle])
