"""The plots of the report as SVG: losses, regret, the certified floor, mixtures and calibration.

The style sheet of the page has the colors.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from forel.learner.loss_floor import Frontier
from forel.markup import Element, counted, number_text, table, tag
from forel.training.history import Curve
from forel.training.metrics import Report, format_auc

__all__ = [
    "Axis", "Series", "axis_for", "calibration", "figure", "frontier", "linear_axis", "log_axis", "losses", "mixture",
    "precision_recall", "regret", "residuals", "roc", "tick_text",
]  # fmt: skip

LOG_RATIO = 10.0  # an axis is logarithmic from this ratio of its ends on
# Narrow, so that text is as large as that of the page on phones and on half a desktop screen.
WIDTH, HEIGHT = 420.0, 280.0
LEFT, RIGHT, TOP, BOTTOM = 52.0, 20.0, 30.0, 46.0
MAX_DOTTED = 12  # points of a curve whose points are dots
LINE_STYLES = ("line one", "line two", "line three")
ROWS = "rows learned from"
MAX_RESIDUALS = 300  # dots of a plot


@dataclass(frozen=True)
class Axis:
    """An axis: its label, the numbers at its ends, its ticks with their text, and whether it is logarithmic."""

    label: str
    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    logarithmic: bool = False

    def position(self, value: float) -> float:
        """Return the position of a number, from 0 to 1."""
        if self.logarithmic:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def linear_axis(label: str, values: Iterable[float], steps: int = 5) -> Axis:
    """Return a linear axis around some numbers, from the first to the last of about the given number of ticks.

    >>> linear_axis("loss", [0.52, 0.69]).ticks
    [(0.5, '0.50'), (0.55, '0.55'), (0.6, '0.60'), (0.65, '0.65'), (0.7, '0.70')]
    """
    numbers = list(values)
    low, high = min(numbers), max(numbers)
    rough = ((high - low) or abs(high) or 1.0) / steps
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(k * power for k in (1, 2, 5, 10) if k * power >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    digits = -math.floor(math.log10(step) + 1e-9)
    at_ticks = [float(f"{k * step:.12g}") for k in range(first, max(last, first + 1) + 1)]
    ticks = [(v, tick_text(v, digits)) for v in at_ticks]
    return Axis(label, at_ticks[0], at_ticks[-1], ticks)


def log_axis(label: str, low: float, high: float) -> Axis:
    """Return a logarithmic axis, with ticks at powers of ten, and at multiples of 2 and 5 if these are few.

    >>> [text for _, text in log_axis("rows", 2_900, 180_000).ticks]
    ['5k', '10k', '20k', '50k', '100k']
    >>> [text for _, text in log_axis("regret", 0.02, 0.3).ticks]
    ['0.02', '0.05', '0.1', '0.2']
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for leading in ((1,), (1, 2, 5)):
        values = [float(f"{k}e{p}") for p in powers for k in leading]
        in_range = [v for v in values if low <= v * (1 + 1e-9) and v <= high * (1 + 1e-9)]
        if len(in_range) >= 3:
            break
    return Axis(label, low, high, [(v, tick_text(v)) for v in in_range[:: math.ceil(len(in_range) / 7)]], True)


def axis_for(label: str, values: Iterable[float]) -> Axis:
    """Return a logarithmic axis for positive numbers with a wide range, and a linear one otherwise."""
    numbers = list(values)
    low, high = min(numbers), max(numbers)
    return log_axis(label, low, high) if low > 0 and high >= LOG_RATIO * low else linear_axis(label, numbers)


def tick_text(value: float, digits: int = 0) -> str:
    """Return the text of a number at a tick, with a fixed number of decimals if it is from 1 to 6.

    >>> [tick_text(v) for v in (0.00002, 0.5, -3.0, 2500, 20_000, 5e6, 1e9)]
    ['2e-05', '0.5', '−3', '2.5k', '20k', '5M', '1G']
    """
    size, unit = next(((s, u) for s, u in ((1e9, "G"), (1e6, "M"), (1e3, "k")) if abs(value) >= s), (1.0, ""))
    text = f"{value:.{digits}f}" if 0 < digits <= 6 else f"{value / size:.10g}{unit}"
    return text.replace("-", "−", value < 0)


@dataclass(frozen=True)
class Series:
    """A series of points, with or without a line; ``style`` is a class of the style sheet."""

    name: str
    style: str
    points: Sequence[tuple[float, float]]
    line: bool = True
    dots: bool = True


def figure(
    title: str, text: str, x: Axis, y: Axis, series: Sequence[Series], *more: Element, description: str | None = None
) -> Element:
    """Return a plot with its legend and caption; the description, the text by default, is for screen readers."""
    title_text, described = tag("title", title), tag("desc", text if description is None else description)
    plot = tag("svg", title_text, described, *_drawn(x, y, series), viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}", role="img")
    keys = []
    for one in series:
        sample = tag("line", x1=0, x2=26, y1=7, y2=7) if one.line else tag("circle", cx=13, cy=7, r=4)
        sample.set("class", one.style)
        keys.append(tag("li", tag("svg", sample, viewBox="0 0 26 14", class_="key", aria_hidden="true"), one.name))
    legend = tag("ul", *keys, class_="legend")
    return tag("figure", tag("h2", title), plot, legend, tag("figcaption", text), *more)


def _drawn(x: Axis, y: Axis, series: Sequence[Series]) -> list[Element]:
    """Return the lines of a grid, the series, and the labels of axes."""

    def to_x(value: float) -> float:
        return LEFT + x.position(value) * (WIDTH - LEFT - RIGHT)

    def to_y(value: float) -> float:
        return HEIGHT - BOTTOM - y.position(value) * (HEIGHT - TOP - BOTTOM)

    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    grid = [tag("line", x1=LEFT, x2=right, y1=to_y(v), y2=to_y(v)) for v, _ in y.ticks]
    grid += [tag("line", x1=to_x(v), x2=to_x(v), y1=bottom, y2=bottom + 5) for v, _ in x.ticks]
    drawn = [tag("g", *grid, class_="grid")]
    for one in series:
        positions = [(to_x(a), to_y(b)) for a, b in one.points]
        if one.line and len(positions) > 1:
            drawn.append(tag("polyline", points=" ".join(f"{a:.2f},{b:.2f}" for a, b in positions), class_=one.style))
        if one.dots:
            for (a, b), (u, v) in zip(positions, one.points, strict=True):
                tooltip = f"{v:.4g} at {u:,}" if isinstance(u, int) else f"{v:.4g} at {u:.4g}"
                drawn.append(tag("circle", tag("title", tooltip), cx=a, cy=b, r=3, class_=one.style))
    drawn += [tag("text", text, x=LEFT - 7, y=to_y(v) + 4.5, text_anchor="end") for v, text in y.ticks]
    drawn += [tag("text", text, x=to_x(v), y=bottom + 20, text_anchor="middle") for v, text in x.ticks]
    drawn.append(tag("text", y.label, x=2, y=15, class_="name"))
    drawn.append(tag("text", x.label, x=(LEFT + right) / 2, y=HEIGHT - 6, text_anchor="middle", class_="name"))
    return drawn


def losses(curves: Mapping[str, Curve], unit: str) -> Element | None:
    """Return the plot of the loss over rows."""
    text = "Each row is predicted before the model learns from it, so this is the loss of unseen rows."
    names = {"average": "average", "since": "since the previous point", "held out": "held out"}
    return _over_rows("Loss over rows", text, curves, names, f"average {unit}")


def regret(curves: Mapping[str, Curve], unit: str) -> Element | None:
    """Return the plot of regret and its bound, from where the bound stays below the loss on; None if nowhere."""
    bound, loss = (dict(_points(curves.get(name, Curve()))) for name in ("bound", "loss"))
    first = max((row + 1 for row, value in bound.items() if not value < abs(loss.get(row, 0.0))), default=0)
    if not any(row >= first for row in bound):
        return None
    after = {name: [point for point in _points(curve) if point[0] >= first] for name, curve in curves.items()}
    shown = {name: Curve([row for row, _ in points], [value for _, value in points]) for name, points in after.items()}
    text = (
        "The regret is an upper limit on how much better any fixed model of at most the norm of the learned one could "
        "have done on these rows; the bound is the limit that the theorem guarantees."
    )
    names = {"regret": "largest regret", "bound": "bound"}
    return _over_rows("Regret and its bound", text, shown, names, f"{unit}, per row", (0.0,))


def frontier(shown: Frontier | None, unit: str, summary: str) -> Element | None:
    """Return the plot of the certified loss by norm, with the learned model and the progressive loss."""
    if shown is None:
        return None
    name = "scaled norm" if shown.scaled else "norm"
    text = (
        "The curve is a lower bound on the loss of every fixed linear model of at most that norm. Where it is close to "
        f"the progressive loss, only better features help. Certificate: {summary}."
    )
    norms, model = [norm for norm, _ in shown.points], (shown.norm, shown.loss)
    ends = min(norms[0], shown.norm), max(norms[-1], shown.norm)
    loss = f"progressive loss: {number_text(shown.loss, decimals=4)}"
    series = [
        Series(loss, "line two", [(end, shown.loss) for end in ends], dots=False),
        Series("certified floor", "line three", shown.points, dots=False),
        Series(f"learned model: {name} {shown.norm:.4g}", "line one", [model], line=False),
    ]
    x, y = axis_for(name, ends), linear_axis(f"average {unit}", [shown.loss, *(floor for _, floor in shown.points)])
    return figure("Loss of other linear models", text, x, y, series)


def mixture(curves: Mapping[str, Curve], guarantee: str) -> Element | None:
    """Return the plot of the largest weights of a mixture over rows, and of the sum of all others."""
    rows = sorted({row for curve in curves.values() for row in curve.rows})
    if not rows:
        return None
    # Curves of experts that were dropped end there: their weight is 0 from then on.
    points = {name: dict(_points(curve)) for name, curve in curves.items()}
    shown = {name: [weights.get(row, 0.0) for row in rows] for name, weights in points.items()}
    top = sorted(shown, key=lambda name: -(shown[name][-1] + max(shown[name])))[: len(LINE_STYLES)]
    series = [
        Series(f"{name}: {shown[name][-1]:.3f}", style, list(zip(rows, shown[name], strict=True)))
        for name, style in zip(top, LINE_STYLES, strict=False)
    ]
    rest = [sum(values[k] for name, values in shown.items() if name not in top) for k in range(len(rows))]
    series.append(Series(f"all others: {rest[-1]:.3f}", "line faint", list(zip(rows, rest, strict=True))))
    text = f"Each prediction is a mixture of all experts, weighted by their losses so far: {guarantee}."
    y = linear_axis("weight in the mixture", [0.0, 1.0])
    return figure("Weights of the mixture", text, axis_for(ROWS, map(float, rows)), y, series)


def calibration(report: Report) -> Element | None:
    """Return the calibration plot: labels against predictions, by deciles of predictions, also as a table."""
    if not report.table:
        return None
    points = [(bucket.predicted, bucket.actual) for bucket in report.table]
    values = [0.0, *(value for pair in points for value in pair)]
    x, y = linear_axis("predicted probability", values), linear_axis("share of positives", values)
    perfect = Series("perfect", "line faint", [(0, 0), (x.high, x.high)], dots=False)
    series = [perfect, Series("decile", "line one", points, line=False)]
    text = "Deciles of the predictions. A dot on the line is a mean prediction equal to the share of positives."
    columns = "rows, by importance", "predicted", "actual"
    rows = [(number_text(b.weight), f"{b.predicted:.4f}", f"{b.actual:.4f}") for b in report.table]
    as_table = table("Predicted and actual, by decile", columns, rows)
    return figure("Calibration", text, x, y, series, tag("details", tag("summary", "As a table"), as_table))


def roc(report: Report) -> Element | None:
    """Return the ROC curve."""
    if report.thresholds is None:
        return None
    points = [(1.0, 1.0), *((one.false_alarms, one.recall) for one in report.thresholds.points()), (0.0, 0.0)]
    x, y = linear_axis("part of the negative rows that is flagged", [0.0, 1.0]), linear_axis("recall", [0.0, 1.0])
    series = [
        Series("model", "line one", points, dots=False),
        Series("by chance", "line faint", [(0.0, 0.0), (1.0, 1.0)], dots=False),
    ]
    text = "Each point is a threshold; rows at or above it are flagged."
    if report.auc is not None:
        text += f" The area below the curve is the AUC, {format_auc(report.auc, report.auc_error or 0.0)}."
    return figure("Ranking: ROC", text, x, y, series)


def precision_recall(report: Report) -> Element | None:
    """Return the curve of precision and recall, with a table of thresholds."""
    if report.thresholds is None:
        return None
    found = [one for one in report.thresholds.points() if one.flagged]
    rate = found[0].positives / found[0].rows
    x, y = linear_axis("recall", [0.0, 1.0]), linear_axis("precision", [0.0, 1.0])
    best = report.thresholds.best("f1")
    series = [
        Series("model", "line one", [(one.recall, one.precision) for one in found], dots=False),
        Series(f"best F1: {best.f1:.3f} at {best.value:.3g}", "line two", [(best.recall, best.precision)], line=False),
        Series("flagging all", "line faint", [(0.0, rate), (1.0, rate)], dots=False),
    ]
    costs = (10, 5, 2, 1, 0.5)
    chosen = {f"a miss costs {cost} false alarms": report.thresholds.best(f"cost:{cost}") for cost in costs}
    rows = [
        (rule, f"{one.value:.4g}", number_text(one.flagged), f"{one.precision:.4f}", f"{one.recall:.4f}")
        for rule, one in {**chosen, "best F1": best}.items()
    ]
    thresholds = table("Thresholds for decisions", ("if", "threshold", "flagged", "precision", "recall"), rows)
    text = "Precision is the part of flagged rows that is positive, recall the part of positive rows that is flagged."
    return figure("Decisions: precision and recall", text, x, y, series, thresholds)


def residuals(sample: Sequence[tuple[float, float]]) -> Element | None:
    """Return labels minus predictions over predictions."""
    points = [(prediction, label - prediction) for label, prediction in sample]
    points = [point for point in points if all(map(math.isfinite, point))]
    if len(points) < MAX_DOTTED:
        return None
    x = linear_axis("prediction", [first for first, _ in points])
    y = linear_axis("label minus prediction", [0.0, *(second for _, second in points)])
    series = [
        Series("row", "line one", points[:: math.ceil(len(points) / MAX_RESIDUALS)], line=False),
        Series("no error", "line faint", [(x.low, 0.0), (x.high, 0.0)], dots=False),
    ]
    spread = sorted(abs(second) for _, second in points)
    half, most = (number_text(spread[min(int(part * len(spread)), len(spread) - 1)]) for part in (0.5, 0.9))
    text = f"Evenly spaced rows, each predicted before it was learned from: half are within {half}, 90 % within {most}."
    return figure("Residuals", text, x, y, series)


def _points(curve: Curve) -> list[tuple[int, float]]:
    return list(zip(curve.rows, curve.values, strict=True))


def _over_rows(
    title: str,
    text: str,
    curves: Mapping[str, Curve],
    names: Mapping[str, str],
    label: str,
    include: Sequence[float] = (),
) -> Element | None:
    """Return the named curves as a figure, whose range includes the numbers in ``include``."""
    series = []
    for (key, name), style in zip(names.items(), LINE_STYLES, strict=False):
        points = _points(curves.get(key, Curve()))
        if points:
            last = f"{name}: {number_text(points[-1][1], decimals=4)}".replace(": -", ": −")
            series.append(Series(last, style, points, dots=len(points) <= MAX_DOTTED))
    if not series:
        return None
    x = axis_for(ROWS, [float(row) for one in series for row, _ in one.points])
    y = axis_for(label, [*include, *(value for one in series for _, value in one.points)])
    last_values = "; ".join(f"{one.name} after {counted(int(one.points[-1][0]), 'row')}" for one in series)
    description = f"{label} over rows learned from. {last_values}."
    return figure(title, text, x, y, series, description=description)
