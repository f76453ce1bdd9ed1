"""The common style of all plots: colors, axes, labels at line ends, and saving to files."""

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forel.validation import Unsupported, refuse

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "COLORS",
    "GREY",
    "MARKER_LIMIT",
    "figure_of",
    "format_number",
    "label_axes",
    "label_line_ends",
    "legend_below",
    "save",
    "save_both",
    "styled_axes",
]

REMEDY = "install the extra: pip install 'forel[plot]'"
# Okabe and Ito's colors, without black and yellow, each of which vanishes on some background.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
GREY = "#888888"  # grey that shows on white and on black
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
MARKER_LIMIT = 40  # with more rounds, points have no markers


def save(figure: "Figure", path: str | Path) -> Path:
    """Write a figure to a file, cropped to its content: PNG (150 dpi), SVG or PDF, by the name's suffix.

    >>> import tempfile
    >>> from forel.theory.plot import figure_4
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(figure_4(), folder + "/figure4.svg").name
    'figure4.svg'

    Survey: figure 4
    """
    target = Path(path)
    if target.suffix.lower() not in FORMATS:
        raise refuse("path", str(path), f"a name that ends in {', '.join(FORMATS)}")
    with _matplotlib().rc_context(STYLE):
        if figure.get_layout_engine() is None:
            figure.set_layout_engine("constrained")  # leaves space between panels for their labels
        figure.savefig(target, dpi=150, bbox_inches="tight", metadata=FORMATS[target.suffix.lower()])
    return target


# Colors of a dark page: what dark_background does, less black.
DARK: dict[str, Any] = dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), "#1e2129")


def save_both(draw: "Callable[[], Figure]", path: str | Path) -> tuple[Path, Path]:
    """Draw twice and write two files, for light and for dark pages: ``name.svg`` and ``name_dark.svg``.

    Parameters
    ----------
    draw : returns the figure; called under each of the two styles
    path : of the light one

    >>> import tempfile
    >>> from forel.theory.plot import figure_4
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [file.name for file in save_both(figure_4, folder + "/figure4.svg")]
    ['figure4.svg', 'figure4_dark.svg']

    Survey: figure 4
    """
    _matplotlib()
    from matplotlib import style

    light = Path(path)
    with style.context("default"):
        save(draw(), light)
    with style.context(["dark_background", DARK]):
        return light, save(draw(), light.with_stem(f"{light.stem}_dark"))


@contextmanager
def styled_axes(ax: "Axes | None", size: tuple[float, float] = (6.4, 3.6), columns: int = 1) -> Iterator["Axes"]:
    """Yield the axes to draw on, in forel's style for the duration of the block."""
    with _matplotlib().rc_context(STYLE):
        if ax is None:
            from matplotlib.figure import Figure

            ax = Figure(figsize=size, layout="constrained").subplots(1, columns, sharey=True, squeeze=False)[0, 0]
        yield ax


def figure_of(axes: "Axes") -> "Figure":
    """Return the top-level figure of the axes."""
    figure: Figure = axes.figure.figure  # also from within a part of a figure
    return figure


def label_axes(axes: "Axes", ylabel: str) -> None:
    """Label the axes: rounds, with integer ticks, and ``ylabel``."""
    from matplotlib.ticker import MaxNLocator

    axes.set(xlabel="round t", ylabel=ylabel)
    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10], min_n_ticks=1))


def label_line_ends(axes: "Axes", ends: Sequence[tuple[str, float, float, Any]]) -> None:
    """Label each line to the right of its end, moved up or down where labels would overlap."""
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


def legend_below(axes: "Axes", columns: int = 3) -> None:
    """Draw one legend below the whole figure, where it covers nothing."""
    handles, labels = axes.get_legend_handles_labels()
    figure_of(axes).legend(handles, labels, frameon=False, loc="outside lower center", ncols=columns)


def format_number(value: float, scale: float = 0.0) -> str:
    """Return a number with three digits; rounding errors relative to ``scale`` are 0."""
    value = 0.0 if abs(value) <= 1e-12 * abs(scale) else value
    digits = f"{value + 0.0:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return digits.replace("-", "\N{MINUS SIGN}")


def _matplotlib() -> Any:
    if importlib.util.find_spec("matplotlib") is None:
        raise Unsupported(f"this needs matplotlib; {REMEDY}")
    import matplotlib

    return matplotlib
