"""The page: settings, metrics, plots, experts, the largest weights, malformed examples, and the command."""

import math
import os
from collections.abc import Sequence
from dataclasses import asdict
from importlib.resources import files
from typing import Any

from forel.markup import Element, counted, html, number_text, table, tag
from forel.report import plots
from forel.report.curves import curves
from forel.store.atomic import atomic_writer
from forel.training.history import History
from forel.training.model import Model
from forel.training.result import Score, scores, time_sentence, verdict
from forel.training.slices import SliceTable

__all__ = ["document", "page", "write_report"]

MAX_WEIGHTS = 20
SLOT = "slot "  # before the number of a feature without a name
UNNAMED = "To show the names of features in place of their slots, train with --names (in Python, names=True)."
# The titles of metrics of slices; that of the loss is its own.
OF_SLICES = {"rows": "rows", "loss": "", "auc": "AUC", "calibration": "calibration ratio", "accuracy": "accuracy"}


def write_report(path: str | os.PathLike[str], trained: Model, history: History | None = None, **about: Any) -> None:
    """Write a report to a file atomically; the arguments are those of :func:`page`."""
    text = page(trained, history, **about)
    with atomic_writer(path) as write:
        write(text)


def page(
    trained: Model, history: History | None = None, *, source: Sequence[str] = (), command: str = "", version: str = ""
) -> str:
    """Return a report as the text of an HTML page.

    Parameters
    ----------
    trained, history : the result of training, and the curves recorded during it, without which there are no such plots
    source : the files
    command : the command that trained the model
    version : of forel

    >>> from forel.training.train import train
    >>> history = History()
    >>> clicks = [{"site": "<news>", "click": 1}, {"site": "shop", "click": 0}] * 50
    >>> text = page(train(clicks, label="click", bits=10, names=True, progress=history), history)
    >>> "site^&lt;news&gt;" in text, "<script" in text, "http" in text
    (True, False, False)
    """
    run, loss, measured = trained.training, trained.learner.settings.title, scores(trained)
    main = tag(
        "main",
        tag("h1", "Training report"),
        *_verdict(trained, measured),
        None if run.leak is None else tag("p", f"Warning: {run.leak}.", class_="warning"),
        tag("p", _lead(trained, source)),
        _metrics(measured, loss),
        *(tag("p", f"{one}.") for one in measured),
        _columns(trained),
        curves(trained),
        tag("div", *_figures(trained, history or History()), class_="figures"),
        *(_slices(one, loss) for one in run.slices),
        _contributions(trained),
        _experts(trained),
        _problems(trained),
        tag("section", tag("h2", "Settings"), _settings(trained, source)),
        tag("section", tag("h2", "Command"), tag("pre", command)) if command else None,
        tag("footer", f"forel {version}".strip()),
    )
    return document("Training report", main)


def document(title: str, main: Element) -> str:
    """Return a page as text, without scripts or external resources."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("link", rel="icon", href="data:,"),  # so that browsers do not request one
        tag("style", (files("forel.report") / "style.css").read_text("utf-8")),
    )
    return "<!DOCTYPE html>\n" + html(tag("html", head, tag("body", main), lang="en")) + "\n"


def _verdict(trained: Model, measured: Sequence[Score]) -> list[Element]:
    """Return what to read first: how good predictions of new rows are, and what other weights could reach."""
    last = measured[-1] if measured[-1].name.startswith("held out") else measured[0]
    found = verdict(last.report)
    sentences = [] if found is None else [f"{found} ({last.name} rows)."]
    reachable = (trained.training.floor or {}).get("verdict")
    sentences += [reachable] if reachable else []
    return [tag("p", " ".join(sentences), class_="verdict")] if sentences else []


def _lead(trained: Model, source: Sequence[str]) -> str:
    run, passes = trained.training, len(trained.training.passes)
    where = f" from {', '.join(source)}" if source else ""
    times = f", {passes} times" if passes > 1 else ""
    time = time_sentence(run.seconds, run.compiling, passes * run.rows)
    return f"{counted(run.rows, 'row')}{where}{times}, in {time}."


def _number(value: float) -> str | None:
    """Return a number with all digits; None for one that is undefined."""
    return None if math.isnan(value) else repr(value)


def _metrics(measured: Sequence[Score], loss: str) -> Element:
    """Return the table of metrics, with a column for each score."""
    each = [(one, {title: (field, text) for field, title, text in one.report.lines(loss)}) for one in measured]
    rows: list[list[str | Element]] = []
    for title in each[0][1]:
        rows.append([title])
        for one, lines in each:
            field, text = lines.get(title, ("", ""))
            identifier = f"{one.name} {field}".replace(",", "").replace(" ", "-")
            rows[-1].append(
                tag("data", text, value=_number(getattr(one.report, field)), id=identifier) if field else ""
            )
    return table("Metrics", ["", *(one.name for one in measured)], rows)


def _figures(trained: Model, history: History) -> list[Element | None]:
    """Return the plots; the certificate is a sentence where it has no curve."""
    run, loss, curves = trained.training, trained.learner.settings.title, history.curves
    unit = loss if trained.report.entropy is None else f"{loss} (nats)"
    report = trained.report
    figures = [
        plots.losses(curves["loss"], unit),
        plots.roc(report),
        plots.precision_recall(report),
        plots.calibration(report),
        plots.residuals(history.sample) if report.rmse is not None else None,
    ]
    guarantee = trained.learner.guarantee()
    if curves.get("shares") and guarantee is not None:
        figures.append(plots.mixture(curves["shares"], str(guarantee)))
    if run.frontier is not None:
        figures.append(plots.frontier(run.frontier, unit, run.certificate or ""))
    elif run.certificate is not None:
        caption = tag("figcaption", f"Certificate: {run.certificate}.")
        figures.append(tag("figure", tag("h2", "Certificate"), caption))
    return [*figures, plots.regret(curves.get("proof", {}), unit)]


def _experts(trained: Model) -> Element | None:
    found = trained.inspect().mixture
    if found is None:
        return None
    attributes = {"class_": "scroll", "tabindex": "0", "role": "region", "aria_label": "table"}
    tables = (tag("div", one, **attributes) for one in found.tables())
    notes = (tag("p", note) for note in found.notes)
    return tag("section", tag("h2", "Experts"), tag("p", f"{found.headline}."), *tables, *notes)


def _slices(found: SliceTable, loss: str) -> Element:
    """Return the section of a column; ``loss`` is the title of the loss."""
    reports = [{field: text for field, _, text in one.report.lines(loss)} for one in found.slices]
    fields = [field for field in OF_SLICES if any(field in report for report in reports)]
    rows: list[list[str | Element]] = []
    for one, texts in zip(found.slices, reports, strict=True):
        shown = {field: tag("data", texts[field], value=_number(getattr(one.report, field))) for field in texts}
        rows.append([one.value, *(shown.get(field, "") for field in fields)])
    columns = [found.column, *(OF_SLICES[field] or loss for field in fields)]
    shown_table = table(f"Progressive metrics by {found.column}", columns, rows)
    return tag("section", tag("h2", f"By {found.column}"), shown_table)


def _contributions(trained: Model) -> Element:
    """Return the section of the features that add most to a margin, with a bar for each."""
    nonzero, slots = trained.learner.nonzeros, trained.learner.features
    named = "" if trained.names is None else f"; names of {counted(len(trained.names), 'feature')} are known"
    sparsity = f"Weights that are not 0: {nonzero:,} of {counted(slots, 'slot')} ({nonzero / slots:.2%}){named}."
    found = sorted(trained.inspect(MAX_WEIGHTS).weights, key=lambda one: (-one.contribution, one.slot))
    longest = max((abs(one.contribution) for one in found), default=0.0) or 1.0
    rows = []
    for one in found:
        name, width = one.name or f"{SLOT}{one.slot}", 50 * abs(one.contribution) / longest
        sign, left = ("down", 50 - width) if one.contribution < 0 else ("up", 50.0)
        bar = tag("rect", x=left, y=1, width=width, height=8, class_=sign)
        middle = tag("line", x1=50, x2=50, y1=0, y2=10, class_="middle")
        style = {"viewBox": "0 0 100 10", "preserveAspectRatio": "none", "class_": "bar", "aria_hidden": "true"}
        signed = ("−" if one.contribution < 0 else "+") + number_text(abs(one.contribution), decimals=4)
        value = tag("data", signed, value=repr(one.contribution))
        label = name if one.label is None else f"{name}, {one.label}"
        rows.append((label, tag("svg", bar, middle, **style), value))
    text = "Standard deviation of what features add to a margin; values above average increase it where it is positive"
    return tag(
        "section",
        tag("h2", "Largest contributions"),
        tag("p", sparsity),
        table(text, ("feature", "−  0  +", "contribution"), rows, id="weights") if rows else None,
        tag("p", UNNAMED) if any(label.startswith(SLOT) for label, *_ in rows) else None,
    )


def _columns(trained: Model) -> Element | None:
    """Return the table of the columns whose features add most to a margin."""
    columns = trained.training.columns[:MAX_WEIGHTS]
    if not columns:
        return None
    four = "{:.4f}".format
    rows = [
        (
            one.column,
            f"{one.features:,}",
            number_text(one.spread, decimals=4),
            "" if one.alone is None else four(one.alone),
        )
        for one in columns
    ]
    alone = "AUC" if trained.report.auc is not None else "squared correlation with labels"
    caption = f"Standard deviation of what columns add to a margin, over a sample of the rows; alone: the {alone} of it"
    shown = table(caption, ("column", "features", "std. dev.", "alone"), rows)
    return tag("section", tag("h2", "Largest columns"), shown)


def _problems(trained: Model) -> Element | None:
    found = trained.training.problems
    if not found.count:
        return None
    text = f"Skipped {counted(found.count, 'malformed example')}, such as:"
    messages = tag("ul", *(tag("li", message) for message in found.messages))
    return tag("section", tag("h2", "Problems"), tag("p", text), messages)


def _settings(trained: Model, source: Sequence[str]) -> Element:
    own, passes = trained.learner.settings, trained.training.passes
    described = {name: own.describe(name) for name in ("filters", "full_filters")}
    settings = {**asdict(own), "loss": own.loss_function.name, **described}
    # Kinds of columns are detected while reading, and not an option.
    reading = {name: value for name, value in trained.extra["reading"].items() if name != "kinds"}
    facts = {**settings, **reading, "passes": len(passes), "files": ", ".join(source) or None}
    if len(passes) > 1:
        facts["loss in each pass"] = ", ".join(number_text(report.loss, decimals=6) for report in passes)
    rows = [(name.replace("_", " "), str(value)) for name, value in facts.items() if value is not None]
    return table("Settings and options", (), rows, class_="facts")
