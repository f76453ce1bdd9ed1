"""The plots of the report: losses, regret, mixtures, calibration, contributions, and metrics by slices."""

from collections.abc import Mapping

from forel.learner.loss_floor import Frontier
from forel.markup import Element, counted, number_text, tag
from forel.report.chart import Series, axis_for, chart, legend, linear_axis
from forel.training.history import Curve
from forel.training.metrics import Report
from forel.training.slices import SliceTable

__all__ = ["calibration", "frontier", "losses", "mixture", "regret", "slice_section", "weights"]

LINE_STYLES = ("line one", "line two", "line three")
LABELS = {
    "average": ("average", "line one"),
    "since": ("since the previous point", "line two"),
    "held out": ("held out", "line three"),
    "regret": ("largest regret", "line one"),
    "bound": ("bound", "line two"),
}
TITLES = {"rows": "rows", "loss": "", "auc": "AUC", "calibration": "calibration ratio", "accuracy": "accuracy"}
WIDTH, HEIGHT, MARGIN = 100.0, 20.0, 2.0


def losses(curves: Mapping[str, Curve], unit: str) -> Element | None:
    """Return the plot of the loss over rows."""
    text = "Each row is predicted before the model learns from it, so this is the loss of unseen rows."
    return _over_rows("Loss over rows", text, curves, ("average", "since", "held out"), f"average {unit}")


def regret(curves: Mapping[str, Curve], unit: str) -> Element | None:
    """Return the plot of regret and its bound, from where the bound stays below the loss on; None if nowhere."""
    bound, losses = curves.get("bound", Curve()), curves.get("loss", Curve())
    loss = dict(zip(losses.rows, losses.values, strict=True))
    above = [
        row for row, value in zip(bound.rows, bound.values, strict=True) if not value < abs(loss.get(row, 0.0))
    ]  # fmt: skip
    first = above[-1] + 1 if above else 0
    if not bound.rows or bound.rows[-1] < first:
        return None
    curves = {name: _since(curve, first) for name, curve in curves.items()}
    text = (
        "The regret is an upper limit on how much better any fixed model of at most the norm of the learned one could "
        "have done on these rows; the bound is the limit that the theorem guarantees."
    )
    return _over_rows("Regret and its bound", text, curves, ("regret", "bound"), f"{unit}, per row", (0.0,))


def frontier(shown: Frontier | None, unit: str, summary: str) -> Element | None:
    """Return the plot of the certified loss by norm, with the learned model and the progressive loss."""
    if shown is None:
        return None
    title, name = "Loss of other linear models", "scaled norm" if shown.scaled else "norm"
    text = (
        "The curve is a lower bound on the loss of every fixed linear model of at most that norm. Where it is close to "
        f"the progressive loss, only better features help. Certificate: {summary}."
    )
    norms = [norm for norm, _ in shown.points]
    ends = min(norms[0], shown.norm), max(norms[-1], shown.norm)
    series = [
        Series(
            f"progressive loss: {number_text(shown.loss, decimals=4)}",
            "line two",
            [(end, shown.loss) for end in ends],
            dots=False,
        ),
        Series("certified floor", "line three", shown.points, dots=False),
        Series(f"learned model: {name} {shown.norm:.4g}", "line one", [(shown.norm, shown.loss)], line=False),
    ]
    x, y = axis_for(name, ends), linear_axis(f"average {unit}", [shown.loss, *(floor for _, floor in shown.points)])
    return _figure(title, text, chart(title, text, x, y, series), series)


def mixture(curves: Mapping[str, Curve], guarantee: str) -> Element | None:
    """Return the plot of the largest weights of a mixture over rows, and of the sum of all others."""
    rows = sorted({row for curve in curves.values() for row in curve.rows})
    if not rows:
        return None
    # Curves of experts that were dropped end there: their weight is 0 from then on.
    points = {name: dict(zip(curve.rows, curve.values, strict=True)) for name, curve in curves.items()}
    shown = {name: [weights.get(row, 0.0) for row in rows] for name, weights in points.items()}
    top = sorted(shown, key=lambda name: -(shown[name][-1] + max(shown[name])))[: len(LINE_STYLES)]
    series = [
        Series(f"{name}: {shown[name][-1]:.3f}", style, list(zip(rows, shown[name], strict=True)), True)
        for name, style in zip(top, LINE_STYLES, strict=False)
    ]
    rest = [sum(values[k] for name, values in shown.items() if name not in top) for k in range(len(rows))]
    series.append(Series(f"all others: {rest[-1]:.3f}", "line faint", list(zip(rows, rest, strict=True))))
    x, y = axis_for("rows learned from", [float(row) for row in rows]), linear_axis("weight in the mixture", [0.0, 1.0])
    text = f"Each prediction is a mixture of all experts, weighted by their losses so far: {guarantee}."
    return _figure("Weights of the mixture", text, chart("Weights of the mixture", text, x, y, series), series)


def calibration(report: Report) -> Element | None:
    """Return the calibration plot: labels against predictions, by deciles of predictions."""
    if not report.table:
        return None
    points = [(bucket.predicted, bucket.actual) for bucket in report.table]
    values = [0.0, *(value for pair in points for value in pair)]
    x, y = linear_axis("predicted probability", values), linear_axis("share of positives", values)
    end = x.ticks[-1][0]
    series = [
        Series("perfect", "line faint", [(0, 0), (end, end)], dots=False),
        Series("decile", "line one", points, False),
    ]
    text = "Deciles of the predictions. A dot on the line is a mean prediction equal to the share of positives."
    columns = ("rows, by importance", "predicted", "actual")
    lines = [(number_text(b.weight), f"{b.predicted:.4f}", f"{b.actual:.4f}") for b in report.table]
    body = [tag("tr", *(tag("td", cell) for cell in line)) for line in lines]
    caption = tag("caption", "Predicted and actual, by decile")
    table = tag("table", caption, tag("tr", *(tag("th", name, scope="col") for name in columns)), *body)
    plot = chart("Calibration", text, x, y, series)
    return _figure("Calibration", text, plot, series, tag("details", tag("summary", "As a table"), _scrolled(table)))


def weights(largest: list[tuple[str, float]]) -> Element | None:
    """Return the bar chart of the largest contributions to a margin."""
    if not largest:
        return None
    largest_weight = max(abs(weight) for _, weight in largest) or 1.0
    rows = []
    for name, weight in largest:
        width = 50 * abs(weight) / largest_weight
        bar = tag("rect", x=50 - width if weight < 0 else 50.0, y=1, width=width, height=8)
        bar.set("class", "down" if weight < 0 else "up")
        middle = tag("line", x1=50, x2=50, y1=0, y2=10, class_="middle")
        style = {"viewBox": "0 0 100 10", "preserveAspectRatio": "none", "class_": "bar", "aria_hidden": "true"}
        value = tag("data", f"{weight:+.4f}".replace("-", "−"), value=repr(weight))
        rows.append(
            tag(
                "tr", tag("th", name, scope="row"), tag("td", tag("svg", bar, middle, **style), class_="wide"),
                tag("td", value),
            )
        )  # fmt: skip
    text = "Standard deviation of what features add to a margin; values above average increase it where it is positive"
    caption = tag("caption", text)
    head = tag(
        "tr",
        tag("th", "feature", scope="col"),
        tag("th", "−  0  +", scope="col"),
        tag("th", "contribution", scope="col"),
    )
    return _scrolled(tag("table", caption, head, *rows, id="weights"))


def _since(curve: Curve, first: int) -> Curve:
    """Return the part of a curve from a row on."""
    points = [(row, value) for row, value in zip(curve.rows, curve.values, strict=True) if row >= first]
    return Curve([row for row, _ in points], [value for _, value in points])


def _over_rows(
    title: str,
    text: str,
    curves: Mapping[str, Curve],
    names: tuple[str, ...],
    label: str,
    include: tuple[float, ...] = (),
) -> Element | None:
    """Return curves as a figure, whose range includes the numbers in ``include``."""
    shown = {name: curves[name] for name in names if name in curves and curves[name].rows}
    if not shown:
        return None
    series = []
    for name, curve in shown.items():
        label_text, style = LABELS[name]
        points = list(zip(curve.rows, curve.values, strict=True))
        series.append(
            Series(
                f"{label_text}: {number_text(curve.values[-1], decimals=4)}".replace(": -", ": −"),
                style,
                points,
                dots=len(points) <= 12,
            )
        )
    x = axis_for("rows learned from", [float(row) for curve in shown.values() for row in curve.rows])
    y = axis_for(label, [*include, *(value for curve in shown.values() for value in curve.values)])
    last_values = "; ".join(f"{one.name} after {counted(int(one.points[-1][0]), 'row')}" for one in series)
    return _figure(title, text, chart(title, f"{label} over rows learned from. {last_values}.", x, y, series), series)


def _figure(title: str, text: str, plot: Element, series: list[Series], *more: Element) -> Element:
    return tag("figure", tag("h2", title), plot, legend(series), tag("figcaption", text), *more)


def _scrolled(table: Element) -> Element:
    return tag("div", table, class_="scroll", tabindex="0", role="region", aria_label="table")


def slice_section(found: SliceTable, loss: str) -> Element:
    """Return the section of a column; ``loss`` is the title of the loss."""
    reports = [{field: text for field, _, text in one.report.lines(loss)} for one in found.slices]
    fields = [field for field in TITLES if any(field in report for report in reports)]
    heads = [found.column, *(TITLES[field] or loss for field in fields)]
    body = []
    for one, report in zip(found.slices, reports, strict=True):
        numbers = (
            tag("td", tag("data", report[field], value=repr(getattr(one.report, field))) if field in report else None)
            for field in fields
        )
        body.append(tag("tr", tag("th", one.value, scope="row"), *numbers))
    head = tag("tr", *(tag("th", name, scope="col") for name in heads))
    caption = tag("caption", f"Progressive metrics by {found.column}")
    table = tag("table", caption, head, *body)
    return tag("section", tag("h2", f"By {found.column}"), _scrolled(table))
