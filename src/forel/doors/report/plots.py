"""The plots of a report, each a figure with a caption; None if there are no data."""

from collections.abc import Mapping

from forel.doors.report.axes import even, fitting
from forel.doors.report.chart import Marks, chart, legend
from forel.learner.loss_floor import Frontier
from forel.markup import Element, tag
from forel.training.history import Curve
from forel.training.metrics import Report

__all__ = ["calibration", "frontier", "losses", "mixture", "proof", "weights"]

LINES = ("line one", "line two", "line three")

LOOKS = {
    "average": ("average so far", "line one"),
    "since": ("since the point before", "line two"),
    "held out": ("held out, so far", "line three"),
    "regret": ("regret at worst", "line one"),
    "bound": ("bound", "line two"),
}


def losses(curves: Mapping[str, Curve], unit: str) -> Element | None:
    """Return the plot of the loss over rows."""
    title, said = "Loss over rows", "Each row is predicted before it is learned from, so this is what new rows cost."
    return _over_rows(title, said, curves, ("average", "since", "held out"), f"average {unit}")


def proof(curves: Mapping[str, Curve], unit: str) -> Element | None:
    """Return the plot of regret and its bound from where the bound stays below the loss itself; None if nowhere."""
    bound, losses = curves.get("bound", Curve()), curves.get("loss", Curve())
    loss = dict(zip(losses.rows, losses.values, strict=True))
    above = [
        row for row, value in zip(bound.rows, bound.values, strict=True) if not value < abs(loss.get(row, 0.0))
    ]  # fmt: skip
    first = above[-1] + 1 if above else 0
    if not bound.rows or bound.rows[-1] < first:
        return None
    curves = {name: _since(curve, first) for name, curve in curves.items()}
    said = (
        "Regret is how much better any fixed model no larger than the learned one could have done on these rows, at "
        "most; the bound is how much better the theorem allows that model to have done."
    )
    return _over_rows("Regret and its bound", said, curves, ("regret", "bound"), f"{unit}, per row", (0.0,))


def frontier(found: Frontier | None, unit: str, summary: str) -> Element | None:
    """Return the plot of the certified loss by norm, with the learned model and the progressive loss."""
    if found is None:
        return None
    title, name = "What other linear models could do", "scaled norm" if found.scaled else "norm"
    said = (
        "The curve is a lower bound on the loss of every fixed linear model of at most that norm. Where it is close to "
        f"the progressive loss, only better features help. Certificate: {summary}."
    )
    norms = [norm for norm, _ in found.points]
    ends = min(norms[0], found.norm), max(norms[-1], found.norm)
    marks = [
        Marks(f"progressive loss: {found.loss:.4f}", "line two", [(end, found.loss) for end in ends], dots=False),
        Marks("certified floor", "line three", found.points, dots=False),
        Marks(f"learned model: {name} {found.norm:.4g}", "line one", [(found.norm, found.loss)], line=False),
    ]
    x, y = fitting(name, ends), even(f"average {unit}", [found.loss, *(floor for _, floor in found.points)])
    return _figure(title, said, chart(title, said, x, y, marks), marks)


def mixture(curves: Mapping[str, Curve], words: str) -> Element | None:
    """Return the plot of the largest weights of a mixture's settings over rows, and of the sum of all others."""
    found = {name: curve for name, curve in curves.items() if curve.rows}
    if not found:
        return None
    most = sorted(found, key=lambda name: -(found[name].values[-1] + max(found[name].values)))[: len(LINES)]
    rows = found[most[0]].rows
    marks = [
        Marks(f"{name}: {found[name].values[-1]:.3f}", look, list(zip(rows, found[name].values, strict=True)), True)
        for name, look in zip(most, LINES, strict=False)
    ]
    rest = [sum(curve.values[k] for name, curve in found.items() if name not in most) for k in range(len(rows))]
    marks.append(Marks(f"all others: {rest[-1]:.3f}", "line faint", list(zip(rows, rest, strict=True))))
    x, y = fitting("rows learned from", [float(row) for row in rows]), even("weight in the mixture", [0.0, 1.0])
    said = f"Every row's prediction is mixed from all settings by what each has lost so far: {words}."
    return _figure("Settings that were mixed", said, chart("Settings that were mixed", said, x, y, marks), marks)


def calibration(report: Report) -> Element | None:
    """Return the calibration plot: labels against predictions, by deciles of predictions."""
    if not report.table:
        return None
    points = [(bucket.predicted, bucket.actual) for bucket in report.table]
    every = [0.0, *(value for pair in points for value in pair)]
    x, y = even("predicted probability", every), even("share of positives", every)
    top = x.ticks[-1][0]
    marks = [
        Marks("perfect", "line faint", [(0, 0), (top, top)], dots=False),
        Marks("a tenth", "line one", points, False),
    ]
    said = "Rows in order of their predictions, in ten parts: dots on the line are probabilities that came true."
    columns = ("rows, by importance", "predicted", "actual")
    lines = [(f"{b.weight:,.6g}", f"{b.predicted:.4f}", f"{b.actual:.4f}") for b in report.table]
    body = [tag("tr", *(tag("td", cell) for cell in line)) for line in lines]
    caption = tag("caption", "Predicted and actual, by tenths")
    table = tag("table", caption, tag("tr", *(tag("th", name, scope="col") for name in columns)), *body)
    plot = chart("Calibration", said, x, y, marks)
    return _figure("Calibration", said, plot, marks, tag("details", tag("summary", "As a table"), _scrolled(table)))


def weights(largest: list[tuple[str, float]]) -> Element | None:
    """Return the bar chart of the largest weights."""
    if not largest:
        return None
    reach = max(abs(weight) for _, weight in largest)
    rows = []
    for name, weight in largest:
        width = 50 * abs(weight) / reach
        bar = tag("rect", x=50 - width if weight < 0 else 50.0, y=1, width=width, height=8)
        bar.set("class", "down" if weight < 0 else "up")
        middle = tag("line", x1=50, x2=50, y1=0, y2=10, class_="middle")
        look = {"viewBox": "0 0 100 10", "preserveAspectRatio": "none", "class_": "bar", "aria_hidden": "true"}
        number = tag("data", f"{weight:+.4f}".replace("-", "−"), value=repr(weight))
        rows.append(
            tag(
                "tr", tag("th", name, scope="row"), tag("td", tag("svg", bar, middle, **look), class_="wide"),
                tag("td", number),
            )
        )  # fmt: skip
    caption = tag("caption", "The largest weights: to the right, a feature speaks for a larger prediction")
    head = tag(
        "tr", tag("th", "feature", scope="col"), tag("th", "−  0  +", scope="col"), tag("th", "weight", scope="col")
    )
    return _scrolled(tag("table", caption, head, *rows, id="weights"))


def _since(curve: Curve, first: int) -> Curve:
    """Return the part of a curve from a row on."""
    kept = [(row, value) for row, value in zip(curve.rows, curve.values, strict=True) if row >= first]
    return Curve([row for row, _ in kept], [value for _, value in kept])


def _over_rows(
    title: str, said: str, curves: Mapping[str, Curve], names: tuple[str, ...], label: str, also: tuple[float, ...] = ()
) -> Element | None:
    """Return curves as a figure; the numbers in ``also`` extend its range."""
    found = {name: curves[name] for name in names if name in curves and curves[name].rows}
    if not found:
        return None
    marks = []
    for name, curve in found.items():
        called, look = LOOKS[name]
        points = list(zip(curve.rows, curve.values, strict=True))
        marks.append(
            Marks(f"{called}: {curve.values[-1]:.4f}".replace(": -", ": −"), look, points, dots=len(points) <= 12)
        )
    x = fitting("rows learned from", [float(row) for curve in found.values() for row in curve.rows])
    y = fitting(label, [*also, *(value for curve in found.values() for value in curve.values)])
    lasts = "; ".join(f"{one.name} after {one.points[-1][0]:,} rows" for one in marks)
    return _figure(title, said, chart(title, f"{label} over rows learned from. {lasts}.", x, y, marks), marks)


def _figure(title: str, said: str, plot: Element, marks: list[Marks], *more: Element) -> Element:
    return tag("figure", tag("h2", title), plot, legend(marks), tag("figcaption", said), *more)


def _scrolled(table: Element) -> Element:
    return tag("div", table, class_="scroll", tabindex="0", role="region", aria_label="table")
