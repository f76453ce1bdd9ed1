"""Pictures of games: regret, its bound and their parts, paths, and the survey's figure 4. Needs the extra ``plot``.

Every function draws on the axes it is given, or on a figure of its own, and returns the figure, ready to :func:`save`.
Nothing global changes, and no window opens. Colours of text and background are those of matplotlib's current style, so
that a dark style gives a dark picture; those of lines are such that all eyes can tell them apart.
"""

import importlib.util
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from forel.algorithms import FTRL, Algorithm, MirrorDescent
from forel.analysis.adversaries import l1_example, l1_example_alternating
from forel.analysis.game import Trace, play
from forel.argmin import Argmin
from forel.checks import Matrix, Unsupported, Vector, floats, refuse, vector
from forel.geometries import Euclidean
from forel.penalties import l1
from forel.rates import Constant
from forel.sets import Box, FeasibleSet
from forel.weights import EveryRound

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["compare", "decomposition", "l1_figure", "path", "regret", "save"]

REMEDY = "install the extra: pip install 'forel[plot]'"
# Okabe and Ito's colours, without black and yellow, each of which vanishes on some background.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
FAINT = "#888888"  # grey that shows on white and on black
STYLE: dict[str, Any] = {
    "font.size": 11,
    "axes.labelsize": 11,
    "axes.titlesize": 12,
    "xtick.labelsize": 10,
    "ytick.labelsize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.8,
    "lines.markersize": 4,
    "savefig.transparent": False,
    "savefig.facecolor": "auto",
    "svg.hashsalt": "forel",  # the same picture gives the same file
}
FORMATS = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
FEW = 40  # up to so many rounds, each gets a marker
L1_PANELS = {
    "Alternating gradients": (
        l1_example_alternating,
        "As in appendix D: Mirror Descent goes back and forth between −2.625 and 2.625 for ever. "
        "Native FTRL is exactly 0 from round 13 on.",
    ),
    "Gradients that answer the point": (
        l1_example,
        "As in section 6.2: Mirror Descent does the same. Native FTRL is 0 in rounds 13 and 14, "
        "is answered −G both times, and leaves 0 in round 15 for 4.875.",
    ),
}


def regret(trace: Trace, comparator: ArrayLike, bound: ArrayLike | None = None, ax: "Axes | None" = None) -> "Figure":
    r"""Draw the regret $\sum_{s \le t} f_s(x_s) - f_s(x^*)$ after every round.

    Parameters
    ----------
    trace : a game that was played
    comparator : x*
    bound : what a theorem allows after every round
    ax : where to draw, a new figure if not given

    >>> from forel.analysis.adversaries import alternating
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
    ax : where to draw, a new figure if not given

    >>> from forel.analysis.streams import regression
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
    r"""Draw regret as $r_{0:t}(x^*)$, plus stability summed up, less what the inequality gives away.

    The upper edge is the bound; the lower edge of the hatched part is the regret.

    Parameters
    ----------
    regularization : the first term after every round, or one number if it stays the same
    stability : each round's own term
    remainder : regret less bound after every round, at most 0
    ax : where to draw, a new figure if not given

    >>> figure = decomposition(1.0, [0.5, 0.5, 0.5], [-0.2, -0.1, 0.0])
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['regularization: 1', 'stability: 1.5', 'remainder: 0', 'regret: 2.5']

    Survey: Lemma 5
    """
    steps = np.cumsum(vector("stability", stability))
    T = steps.size
    base, rest = (_over_rounds(*named, T) for named in (("regularization", regularization), ("remainder", remainder)))
    rounds, top = np.arange(1, T + 1), base + steps
    with _drawing(ax) as axes:
        ink = axes.xaxis.label.get_color()
        axes.fill_between(rounds, base, color=COLORS[0], alpha=0.6, linewidth=0)
        axes.fill_between(rounds, base, top, color=COLORS[5], alpha=0.6, linewidth=0)
        axes.fill_between(rounds, top + rest, top, facecolor="none", edgecolor=ink, hatch="///", linewidth=0)
        axes.plot(rounds, top + rest, color=ink)
        axes.margins(x=0)
        _name_axes(axes, "bound and regret (units of loss)")
        ends = [
            (f"regularization: {_short(base[-1])}", base[-1] / 2, COLORS[0]),
            (f"stability: {_short(steps[-1])}", base[-1] + steps[-1] / 2, COLORS[5]),
            (f"remainder: {_short(rest[-1], top[-1])}", top[-1] + rest[-1] / 2, FAINT),
            (f"regret: {_short(top[-1] + rest[-1])}", top[-1] + rest[-1], ink),
        ]
        _label_ends(axes, [(text, T, float(y), color) for text, y, color in ends])
        return _figure(axes)


def path(trace: Trace, feasible: FeasibleSet | None = None, ax: "Axes | None" = None) -> "Figure":
    r"""Draw the points $x_1, \dots, x_{T+1}$: over rounds in one dimension, in the plane in two, and X around them.

    A set that is many times as large as the path is cut off at the edge of the picture.

    Parameters
    ----------
    trace : a game in one or two dimensions
    feasible : X, the algorithm's own if not given
    ax : where to draw, a new figure if not given

    >>> from forel.analysis.adversaries import worst_linear
    >>> from forel.sets import l2_ball
    >>> trace = play(FTRL(Constant(0.5), Euclidean(), feasible=l2_ball(1.0)), worst_linear(), rounds=9, n=2)
    >>> [text.get_text() for text in path(trace).axes[0].texts]
    ['$x_{1}$', '$x_{10}$']

    Survey: section 2.4
    """
    points, around = trace.points, trace.algorithm.feasible if feasible is None else feasible
    n = points.shape[1]
    if n > 2:
        raise Unsupported(f"trace: got points of dimension {n}, expected 1 or 2; draw single columns of trace.points")
    with _drawing(ax, (6.4, 3.6) if n == 1 else (4.8, 4.8)) as axes:
        if n == 1:
            _draw_over_rounds(axes, points[:, 0], around)
        else:
            _draw_in_the_plane(axes, points, around)
        return _figure(axes)


def l1_figure(ax: "Sequence[Axes] | None" = None) -> "Figure":
    r"""Draw figure 4: Mirror Descent and Native FTRL with the penalty $\frac12|x|$, G = 11 and T = 16.

    The gradients of the left panel alternate, as in appendix D; those of the right answer $x_t$, as in section 6.2.

    Parameters
    ----------
    ax : where to draw, two axes; a new figure if not given

    >>> [axes.get_title(loc="left") for axes in l1_figure().axes]
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
    with _drawing(None if ax is None else ax[0], (11, 4.6), columns=2) as first:
        pair = first.figure.axes if ax is None else ax
        for axes, (title, (adversary, sentence)) in zip(pair, L1_PANELS.items(), strict=True):
            for color, marker, (name, player) in zip(COLORS, "os", players.items(), strict=False):
                x = play(player, adversary(11.0, 0.5), rounds=16, n=1).points[:-1, 0]
                axes.plot(np.arange(1, 17), x, color=color, marker=marker, label=name)
            axes.axhline(0, color=FAINT, linewidth=0.8, zorder=0)
            axes.set_title(title, loc="left")
            _name_axes(axes, "point $x_t$")
            axes.set_xticks(range(1, 17, 2))
            below = textwrap.fill(sentence, 54)
            axes.annotate(below, (0, 0), (0, -42), "axes fraction", "offset points", va="top", annotation_clip=False)
        for axes in pair:  # now that both panels have their common scale
            lasts = [float(np.asarray(line.get_ydata())[-1]) for line in axes.lines[:2]]
            _label_ends(axes, [(name, 16, y, color) for name, y, color in zip(players, lasts, COLORS, strict=False)])
        return _figure(first)


def save(figure: "Figure", path: str | Path) -> Path:
    """Write a figure to a file, cut to what is drawn: PNG (150 dpi), SVG or PDF, by the name's suffix.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(l1_figure(), folder + "/figure4.svg").name
    'figure4.svg'

    Survey: figure 4
    """
    target = Path(path)
    if target.suffix.lower() not in FORMATS:
        raise refuse("path", str(path), f"a name that ends in {', '.join(FORMATS)}")
    with _matplotlib().rc_context(STYLE):
        if figure.get_layout_engine() is None:
            figure.set_layout_engine("constrained")  # makes room between panels for what is written beside them
        figure.savefig(target, dpi=150, bbox_inches="tight", metadata=FORMATS[target.suffix.lower()])
    return target


def _matplotlib() -> Any:
    if importlib.util.find_spec("matplotlib") is None:
        raise Unsupported(f"this needs matplotlib; {REMEDY}")
    import matplotlib

    return matplotlib


@contextmanager
def _drawing(ax: "Axes | None", size: tuple[float, float] = (6.4, 3.6), columns: int = 1) -> Iterator["Axes"]:
    """Give the axes to draw on, in our style, which ends with the block."""
    with _matplotlib().rc_context(STYLE):
        if ax is None:
            from matplotlib.figure import Figure

            ax = Figure(figsize=size, layout="constrained").subplots(1, columns, sharey=True, squeeze=False)[0, 0]
        yield ax


def _figure(axes: "Axes") -> "Figure":
    figure: Figure = axes.figure.figure  # also from within a part of a figure
    return figure


def _curves(curves: Mapping[str, Vector], ax: "Axes | None") -> "Figure":
    with _drawing(ax) as axes:
        ends = []
        for i, (name, values) in enumerate(curves.items()):
            color, dashes = COLORS[i % len(COLORS)], ("-", "--", ":", "-.")[i // len(COLORS) % 4]
            marker = "o" if values.size <= FEW else None
            axes.plot(np.arange(1, values.size + 1), values, dashes, color=color, marker=marker, label=name)
            ends.append((f"{name}: {_short(values[-1])}", values.size, float(values[-1]), color))
        axes.axhline(0, color=FAINT, linewidth=0.8, zorder=0)
        axes.margins(x=0.02)
        _name_axes(axes, "regret (units of loss)")
        _label_ends(axes, ends)
        return _figure(axes)


def _draw_over_rounds(axes: "Axes", x: Vector, feasible: FeasibleSet) -> None:
    axes.plot(np.arange(1, x.size + 1), x, color=COLORS[0], marker="o" if x.size <= FEW else None)
    span = float(np.ptp(x)) or np.inf
    edges = (-feasible.support(np.array([-1.0])), feasible.support(np.array([1.0])))
    seen = [edge for edge in edges if np.isfinite(edge) and np.abs(x - edge).min() <= span]
    for edge in seen:
        axes.axhline(edge, color=FAINT, linestyle="--", linewidth=1, zorder=0)
    axes.margins(x=0.02)
    _name_axes(axes, "point $x_t$")
    _label_ends(axes, [("edge of X", x.size, edge, FAINT) for edge in seen])


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
        axes.fill(*edge.T, facecolor=FAINT, alpha=0.15, zorder=0)
        axes.plot(*edge.T, color=FAINT, linewidth=2.5, alpha=0.6, zorder=0)
    axes.plot(*points.T, color=COLORS[0], marker="o" if len(points) <= FEW else None, linewidth=1.2)
    for i, way, color in ((0, 1, COLORS[2]), (len(points) - 1, -1, COLORS[1])):
        axes.plot(*points[i], "o", color=color, markersize=7)
        # The name goes where the path does not.
        moves = points[i] - points[::way]
        away = next((move / np.hypot(*move) for move in moves if move.any()), np.full(2, -0.7 * way))
        halo = [withStroke(linewidth=3, foreground=axes.get_facecolor())]
        look: dict[str, Any] = {"size": 12, "ha": "center", "va": "center", "path_effects": halo}
        axes.annotate(f"$x_{{{i + 1}}}$", points[i], tuple(17 * away), textcoords="offset points", **look)
    axes.set(xlim=middle[0] + [-half, half], ylim=middle[1] + [-half, half], aspect="equal")
    axes.set(xlabel="first coordinate", ylabel="second coordinate")


def _edge(feasible: FeasibleSet, middle: Vector, radius: float) -> Matrix:
    """Return the edge of a set in the plane: a circle around what is to be seen, projected onto the set.

    Where the set goes on beyond the circle, the circle stays, out of sight.
    """
    angles = np.linspace(0, 2 * np.pi, 121)
    circle = middle + radius * np.column_stack([np.cos(angles), np.sin(angles)])
    project = Argmin(Euclidean(), feasible=feasible)
    return np.array([project(-u, 1.0) for u in circle])


def _name_axes(axes: "Axes", ylabel: str) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set(xlabel="round t", ylabel=ylabel)
    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10], min_n_ticks=1))


def _label_ends(axes: "Axes", ends: Sequence[tuple[str, float, float, Any]]) -> None:
    """Write each line's name to the right of its end, moved up or down where names would touch."""
    axes.autoscale_view()
    to_fraction = axes.transData + axes.transAxes.inverted()
    gap = 1.35 * STYLE["font.size"] / (axes.get_window_extent().height * 72 / axes.figure.dpi)
    order = sorted(ends, key=lambda end: end[2])
    places = [float(to_fraction.transform((x, y))[1]) for _, x, y, _ in order]
    for i in range(1, len(places)):
        places[i] = max(places[i], places[i - 1] + gap)
    for i in reversed(range(len(places))):
        places[i] = min(places[i], 1 - gap * (len(places) - 1 - i))
    for (text, x, y, color), place in zip(order, places, strict=True):
        leader = {"arrowstyle": "-", "color": color, "linewidth": 1.2, "relpos": (0, 0.5), "shrinkA": 1, "shrinkB": 1}
        axes.annotate(text, (x, y), (1.04, place), "data", "axes fraction", leader, annotation_clip=False, va="center")


def _over_rounds(name: str, values: ArrayLike, rounds: int) -> Vector:
    array = floats(name, values, "numbers")
    return vector(name, np.full(rounds, array) if array.ndim == 0 else array, rounds)


def _short(value: float, scale: float = 0.0) -> str:
    """Return three digits; what is only rounding next to ``scale`` is 0."""
    value = 0.0 if abs(value) <= 1e-12 * abs(scale) else value
    short = f"{value + 0.0:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return short.replace("-", "\N{MINUS SIGN}")
