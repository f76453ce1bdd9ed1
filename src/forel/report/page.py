"""The page: settings, metrics, plots, experts, the largest weights, malformed examples, and the command."""

import os
from collections.abc import Sequence
from dataclasses import asdict
from importlib.resources import files
from typing import Any

from forel.learner.settings import Settings
from forel.markup import Element, counted, html, number_text, tag
from forel.report import plots
from forel.store.atomic import atomic_writer
from forel.training.history import History
from forel.training.metrics import Report
from forel.training.model import Model
from forel.training.scores import scores, time_sentence

__all__ = ["page", "write_report"]

MAX_WEIGHTS = 20
SLOT = "slot "  # before the number of a feature without a name
UNNAMED = "To show the names of features in place of their slots, train with --names (in Python, names=True)."


def write_report(path: str | os.PathLike[str], trained: Model, history: History, **about: Any) -> None:
    """Write a report to a file atomically; the arguments are those of :func:`page`."""
    text = page(trained, history, **about)
    with atomic_writer(path) as write:
        write(text)


def page(trained: Model, history: History, *, source: Sequence[str] = (), command: str = "", version: str = "") -> str:
    """Return a report as the text of an HTML page.

    Parameters
    ----------
    trained, history : the result of training, and the curves recorded during it
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
    settings = trained.learner.settings
    measured = scores(trained)
    largest = _largest(trained)
    unit = f"{settings.title} (nats)" if trained.report.entropy is not None else settings.title
    figures = [
        plots.losses(history.curves["loss"], unit),
        plots.calibration(trained.report),
        _mixture(trained, history),
        *_proof(trained, history, unit),
    ]
    main = tag(
        "main",
        tag("h1", "Training report"),
        tag("p", _lead(trained, source)),
        _measures({one.name: one.report for one in measured}, settings.title),
        *(tag("p", f"{one}.") for one in measured),
        tag("p", f"Warning: {trained.training.leak}.") if trained.training.leak is not None else None,
        tag("div", *figures, class_="figures"),
        _experts(trained),
        *(plots.slice_section(table, settings.title) for table in trained.training.slices),
        tag(
            "section",
            tag("h2", "Largest contributions"),
            tag("p", _sparsity(trained)),
            plots.weights(largest),
            tag("p", UNNAMED) if any(label.startswith(SLOT) for label, _ in largest) else None,
        ),
        _columns(trained),
        _problems(trained),
        tag("section", tag("h2", "Settings"), _settings(trained, source)),
        tag("section", tag("h2", "Command"), tag("pre", command)) if command else None,
        tag("footer", f"forel {version}".strip()),
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", "Training report"),
        tag("link", rel="icon", href="data:,"),  # so that browsers do not request one
        tag("style", (files("forel.report") / "style.css").read_text("utf-8")),
    )
    return "<!DOCTYPE html>\n" + html(tag("html", head, tag("body", main), lang="en")) + "\n"


def _lead(trained: Model, source: Sequence[str]) -> str:
    passes = len(trained.training.passes)
    where = f" from {', '.join(source)}" if source else ""
    times = f", {passes} times" if passes > 1 else ""
    time = time_sentence(trained.training.seconds, trained.training.compiling, passes * trained.training.rows)
    return f"{counted(trained.training.rows, 'row')}{where}{times}, in {time}."


def _measures(columns: dict[str, Report], loss: str) -> Element:
    each = {column: {name: (f, text) for f, name, text in r.lines(loss)} for column, r in columns.items()}
    body = []
    for name in next(iter(each.values())):
        cells = []
        for column, report in columns.items():
            field, text = each[column].get(name, ("", ""))
            value = repr(getattr(report, field)) if field else ""
            identifier = f"{column} {field}".replace(",", "").replace(" ", "-")
            cells.append(tag("td", tag("data", text, value=value, id=identifier)))
        body.append(tag("tr", tag("th", name, scope="row"), *cells))
    head = tag("tr", tag("td"), *(tag("th", column, scope="col") for column in columns))
    caption = tag("caption", "Metrics")
    return tag(
        "div", tag("table", caption, head, *body), class_="scroll", tabindex="0", role="region", aria_label="table"
    )


def _mixture(trained: Model, history: History) -> Element | None:
    curves, guarantee = history.curves.get("shares"), trained.learner.guarantee()
    return plots.mixture(curves, str(guarantee)) if curves and guarantee is not None else None


def _experts(trained: Model) -> Element | None:
    found = trained.inspect().mixture
    if found is None:
        return None
    tables = (
        tag("div", one, class_="scroll", tabindex="0", role="region", aria_label="table") for one in found.tables()
    )
    notes = (tag("p", note) for note in found.notes)
    return tag("section", tag("h2", "Experts"), tag("p", f"{found.headline}."), *tables, *notes)


def _proof(trained: Model, history: History, unit: str) -> list[Element | None]:
    curves = history.curves.get("proof")
    frontier = plots.frontier(trained.training.frontier, unit, trained.training.certificate or "")
    if frontier is None and trained.training.certificate is not None:
        text = f"Certificate: {trained.training.certificate}."
        frontier = tag("figure", tag("h2", "Certificate"), tag("figcaption", text))
    return [frontier, plots.regret(curves, unit) if curves else None]


def _sparsity(trained: Model) -> str:
    nonzero, slots = trained.learner.nonzeros, trained.learner.features
    named = f"; names of {counted(len(trained.names), 'feature')} are known" if trained.names is not None else ""
    return f"Weights that are not 0: {nonzero:,} of {counted(slots, 'slot')} ({nonzero / slots:.2%}){named}."


def _largest(trained: Model) -> list[tuple[str, float]]:
    found = sorted(trained.inspect(MAX_WEIGHTS).weights, key=lambda one: (-one.contribution, one.slot))
    names = [one.name or f"{SLOT}{one.slot}" for one in found]
    labels = [name if one.label is None else f"{name}, {one.label}" for name, one in zip(names, found, strict=True)]
    return [(label, one.contribution) for label, one in zip(labels, found, strict=True)]


def _columns(trained: Model) -> Element | None:
    """Return the table of the columns whose features add most to a margin."""
    columns = trained.training.columns[:MAX_WEIGHTS]
    if not columns:
        return None
    titles = "column", "features", "std. dev. of its contribution", "alone"
    lines = (
        (one.column, f"{one.features:,}", f"{one.spread:.4f}", "" if one.alone is None else f"{one.alone:.4f}")
        for one in columns
    )
    body = (tag("tr", tag("th", first, scope="row"), *(tag("td", cell) for cell in rest)) for first, *rest in lines)
    alone = "AUC" if trained.report.auc is not None else "squared correlation with labels"
    caption = tag("caption", f"What columns add to a margin, over a sample of the rows; alone: the {alone} of it")
    table = tag("table", caption, tag("tr", *(tag("th", one, scope="col") for one in titles)), *body)
    return tag(
        "section",
        tag("h2", "Largest columns"),
        tag("div", table, class_="scroll", tabindex="0", role="region", aria_label="table"),
    )


def _problems(trained: Model) -> Element | None:
    if not trained.training.problems.count:
        return None
    messages = (tag("li", message) for message in trained.training.problems.messages)
    text = f"Skipped {counted(trained.training.problems.count, 'malformed example')}, such as:"
    return tag("section", tag("h2", "Problems"), tag("p", text), tag("ul", *messages))


def _settings(trained: Model, source: Sequence[str]) -> Element:
    own = trained.learner.settings
    described = {name: own.describe(name) for name in ("filters", "full_filters")}
    settings = {**asdict(own), "loss": _loss_name(own), **described}
    # Kinds of columns are detected while reading, and not an option.
    reading = {name: value for name, value in trained.extra["reading"].items() if name != "kinds"}
    facts = {**settings, **reading, "passes": len(trained.training.passes), "files": ", ".join(source) or None}
    if len(trained.training.passes) > 1:
        facts["loss in each pass"] = ", ".join(
            number_text(report.loss, decimals=6) for report in trained.training.passes
        )
    rows = (
        tag("tr", tag("th", name.replace("_", " "), scope="row"), tag("td", str(value)))
        for name, value in facts.items()
        if value is not None
    )
    table = tag("table", tag("caption", "Settings and options"), *rows, class_="facts")
    return tag("div", table, class_="scroll", tabindex="0", role="region", aria_label="table")


def _loss_name(settings: Settings) -> str:
    return str(settings.loss_function.name)
