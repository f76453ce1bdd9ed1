"""Metrics by the values of a column, as a section of the report: a table, and small plots over time."""

from forel.markup import Element, tag
from forel.training.ranking import format_auc
from forel.training.slices import Period, Slice, SliceTable

__all__ = ["slice_section"]

TITLES = {"rows": "rows", "loss": "", "auc": "AUC", "calibration": "calibration ratio", "accuracy": "accuracy"}
WIDTH, HEIGHT, MARGIN = 100.0, 20.0, 2.0


def slice_section(found: SliceTable, loss: str, suffix: str = "") -> Element:
    """Return the section of a column; ``loss`` is the title of the loss, ``suffix`` the end of the section's."""
    reports = [{field: text for field, _, text in one.report.lines(loss)} for one in found.slices]
    fields = [field for field in TITLES if any(field in report for report in reports)]
    heads = [found.column, *(TITLES[field] or loss for field in fields), f"{loss} over time"]
    highest = max((p.loss for one in found.slices for p in one.periods if p.loss is not None), default=0.0)
    body = []
    for one, report in zip(found.slices, reports, strict=True):
        numbers = (
            tag("td", tag("data", report[field], value=repr(getattr(one.report, field))) if field in report else None)
            for field in fields
        )
        body.append(tag("tr", tag("th", one.value, scope="row"), *numbers, tag("td", _curve(one, highest))))
    head = tag("tr", *(tag("th", name, scope="col") for name in heads))
    caption = tag("caption", f"Progressive metrics by {found.column}; all plots have the same scale, from 0")
    table = tag("table", caption, head, *body)
    periods = tag("details", tag("summary", "By period, as a table"), _scrolled(_periods(found, loss)))
    return tag("section", tag("h2", f"By {found.column}{suffix}"), _scrolled(table), periods)


def _curve(one: Slice, highest: float) -> Element:
    """Return the loss of a value in each period that has rows, on a scale from 0 to ``highest``."""
    reach, last = WIDTH - 2 * MARGIN, max(len(one.periods) - 1, 1)
    points = [
        (MARGIN + reach * k / last, HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * (p.loss / highest if highest > 0 else 0))
        for k, p in enumerate(one.periods)
        if p.loss is not None
    ]
    losses = ", ".join("none" if p.loss is None else f"{p.loss:.4f}" for p in one.periods)
    line = tag("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in points), class_="line one")
    size = {"viewBox": f"0 0 {WIDTH:g} {HEIGHT:g}", "width": f"{WIDTH:g}", "height": f"{HEIGHT:g}"}
    return tag("svg", tag("title", losses), line, role="img", **size)


def _periods(found: SliceTable, loss: str) -> Element:
    heads = [found.column, "", *(f"up to row {end:,}" for end in found.ends)]
    body = []
    for one in found.slices:
        for name, title in (("loss", loss), ("calibration", TITLES["calibration"]), ("auc", TITLES["auc"])):
            if getattr(one.report, name) is None:
                continue
            cells = (tag("td", _text(period, name)) for period in one.periods)
            body.append(tag("tr", tag("th", one.value, scope="row"), tag("th", title, scope="row"), *cells))
    caption = tag("caption", "Each period alone")
    return tag("table", caption, tag("tr", *(tag("th", name, scope="col") for name in heads)), *body)


def _text(period: Period, name: str) -> str:
    value = getattr(period, name)
    if value is None:
        return ""
    return format_auc(value, period.auc_error or 0.0) if name == "auc" else f"{value:.4f}"


def _scrolled(table: Element) -> Element:
    return tag("div", table, class_="scroll", tabindex="0", role="region", aria_label="table")
