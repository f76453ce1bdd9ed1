"""The report of training: a page that parses, loads nothing, escapes everything, and has the numbers of the command."""

import html
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree.ElementTree import tostring

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from browser import found_by, needs_browser
from forel.cli.outputs import Page
from forel.data import read
from forel.data.clicks import write_clicks
from forel.learner.grid import default_grid
from forel.learner.rows import Rows
from forel.learner.settings import Settings
from forel.report import page, plots, write_report
from forel.report.plots import axis_for, linear_axis
from forel.training.history import Curve, History, certificate_values, mixture_weights
from forel.training.train import train

EVIL = "<script>alert('&\"')</script>"
VOID = {"meta", "link", "br"}


class Tree(HTMLParser):
    """The elements of a page in order, each with its attributes and text; raises for elements that are not nested."""

    def __init__(self, text):
        super().__init__()
        self.found, self.open = [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs), []))
        if tag not in VOID:
            self.open.append(self.found[-1])

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        for _, _, content in self.open:
            content.append(data)

    def all(self, name):
        return [(attributes, "".join(content)) for tag, attributes, content in self.found if tag == name]


def reported(rows, settings=None, **options):
    history = History(**({"proof": certificate_values} if options.get("certificate") else {}))
    trained = train(rows, settings or Settings(), bits=10, block_bytes=500, progress=history, **options)
    history.close()
    return trained, history


def assert_alone(text):
    """Assert that a page refers to nothing outside of itself, and runs nothing."""
    tree = Tree(text)
    assert not {tag for tag, *_ in tree.found} & {"script", "img", "iframe", "object", "embed", "base", "form"}
    for _, attributes, _ in tree.found:
        assert not [name for name in attributes if name.startswith("on") or name in ("src", "srcset", "xlink:href")]
        assert attributes.get("href", "data:,") == "data:,"
    assert not re.search(r"url\(|@import|https?:", tree.all("style")[0][1])


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A report by the command, the JSON beside it, and the page's text."""
    folder = tmp_path_factory.mktemp("report")
    with (folder / "a.vw").open("wb") as file:
        file.write(f"1 |{EVIL} {EVIL}:0.5\nnonsense\n".encode() * 400)
        write_clicks(file, 4000, seed=3)
    line = [sys.executable, "-m", "forel", "train", "a.vw", "--report", "r.html", "--json", "--certificate", "--names"]
    line += ["--holdout", "10", "--passes", "2", "--bits", "16", "--on-error", "skip", "--alpha", "0.3"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), (folder / "r.html").read_text("utf-8")


def test_figures_are_those_of_the_command(written):
    content, text = written
    values = {a["id"]: a["value"] for a, _ in Tree(text).all("data") if "id" in a}
    for column, key in (("progressive", "report"), ("held-out", "holdout")):
        for field in ("rows", "loss", "entropy", "auc", "calibration", "mean_label", "mean_prediction"):
            assert float(values[f"{column}-{field}"]) == content[key][field]
    assert float(values["pass-2-seen-before-loss"]) == content["passes"][1]
    assert html.escape(content["certificate"], quote=False) in text
    assert f"Weights that are not 0: {content['non_zero_weights']:,} of 65,536 slots" in text
    assert f"Skipped {content['malformed']:,} malformed example" in text
    assert "forel train a.vw --report r.html --json --certificate" in text


def test_every_figure_has_a_text_alternative(written):
    tree = Tree(written[1])
    decisions = ["Ranking: ROC", "Decisions: precision and recall"]
    titles = ["Loss over rows", *decisions, "Calibration", "Loss of other linear models"]
    headings = [text for _, text in tree.all("h2")]
    assert headings == ["Largest columns", *titles, "Largest contributions", "Problems", "Settings", "Command"]
    pictures = [text for attributes, text in tree.all("svg") if attributes.get("role") == "img"]
    assert [next(t for t in titles if text.startswith(t)) for text in pictures] == titles
    assert len(tree.all("desc")) == len(titles)
    assert len(tree.all("caption")) == len(tree.all("table"))
    assert all(a.get("aria-hidden") or a.get("role") == "img" for a, _ in tree.all("svg"))
    ((attributes, _),) = tree.all("html")
    assert attributes["lang"] == "en"


def test_residuals_are_those_of_evenly_spaced_rows_before_learning():
    rng = np.random.default_rng(0)
    rows = [{"x": x, "y": float(x + rng.normal())} for x in rng.normal(size=2500)]
    seen = []
    history = History()

    def record(progress):
        history(progress)
        seen.extend(zip(progress.block.labels.tolist(), progress.margins.tolist(), strict=True))

    train(rows, Settings("squared"), label="y", bits=8, block_bytes=2000, progress=record)
    assert history.sample == seen[::4]  # at most 1,000 of 2,500


def test_the_bound_is_plotted_from_where_it_is_below_the_loss():
    rows = [10, 20, 30, 40]
    curves = {
        "bound": Curve(rows, [4e6, 0.3, 0.9, 0.2]),
        "regret": Curve(rows, [1.0, 0.2, 0.1, 0.1]),
        "loss": Curve(rows, [0.7, 0.6, 0.5, 0.5]),
    }
    drawn = plots.regret(curves, "log-loss")
    again = plots.regret({name: Curve(one.rows[3:], one.values[3:]) for name, one in curves.items()}, "log-loss")
    assert tostring(drawn) == tostring(again)
    assert plots.regret({**curves, "bound": Curve(rows, [0.1, 0.1, 0.1, 7.0])}, "log-loss") is None
    assert plots.regret({"loss": curves["loss"]}, "log-loss") is None


@pytest.mark.parametrize("rows", [40, 4000])
def test_the_frontier_is_the_floor_by_norm_and_trivial_bounds_are_left_out(rows):
    rng = np.random.default_rng(0)
    data = [{"x": float(rng.normal()), "y": float(rng.random() < 0.4)} for _ in range(rows)]
    trained, history = reported(data, Settings(alpha=0.1), label="y", certificate=True)
    floor, found = trained.learner.loss_floor(loss=trained.report.loss * rows), trained.training.frontier
    assert (found.norm, found.scaled) == (floor.norm, False)
    assert found.loss == pytest.approx(trained.report.loss)
    assert all(value >= floor.at(norm) and value > 0 for norm, value in found.points)  # polished by a sample
    norms, floors = zip(*found.points, strict=True)
    assert list(norms) == sorted(norms)
    assert list(floors) == sorted(floors, reverse=True)
    headings = [text for _, text in Tree(page(trained, history)).all("h2")]
    assert "Loss of other linear models" in headings
    bound, loss = (history.curves["proof"][name].values[-1] for name in ("bound", "loss"))
    assert ("Regret and its bound" in headings) == (bound < loss)


def test_the_page_loads_nothing_and_has_no_scripts(written):
    assert_alone(written[1])
    assert EVIL not in written[1]
    names = [text for a, text in Tree(written[1]).all("th") if a.get("scope") == "row"]
    assert any(EVIL in name for name in names)


@pytest.fixture(scope="module")
def small():
    return reported([{"x": "a", "y": 1}, {"x": "b", "y": 0}] * 60, label="y", names=True)


class SameName(dict):
    """Names of all slots; none is shared."""

    def is_shared(self, slot):
        return False


@pytest.mark.usefixtures("interpreted")
def test_weights_of_experts_that_were_dropped_are_0_from_then_on(tmp_path):
    """Full-covariance filters are dropped with the 128th feature, in the middle of a run."""
    lines = "".join(f"{(k + 1) % 2} |a w{max(k, 40)}\n" for k in range(200))
    (tmp_path / "rows.vw").write_text(lines)
    history = History(shares=mixture_weights)
    trained = train(tmp_path / "rows.vw", default_grid(), bits=9, block_bytes=300, progress=history)
    history.close()
    curves = history.curves["shares"]
    lengths = {name: len(curve.rows) for name, curve in curves.items()}
    assert lengths["full filter, variance=1"] < lengths["mixer"]
    plot = tostring(plots.mixture(curves, "a guarantee"), encoding="unicode")
    assert "all others: " in plot
    assert "<svg" in page(trained, history)


@pytest.mark.usefixtures("interpreted")
def test_experts_of_a_mixture_are_listed_with_their_kinds():
    rows = [{"x": float(k % 3), "y": int(k % 3 > 0)} for k in range(60)]
    mixed, history = reported(rows, default_grid(), label="y")
    tree, found = Tree(page(mixed, history)), mixed.inspect().mixture
    text = [content for _, content in tree.all("section") if content.startswith("Experts")]
    assert len(text) == 1
    for one in (*found.expert_rows(), *found.kind_rows()):
        assert "".join(one) in text[0]
    assert found.guarantee in text[0]
    one, history = reported(rows, Settings(), label="y")
    assert not any(content.startswith("Experts") for _, content in Tree(page(one, history)).all("section"))


@settings(max_examples=30)
@given(name=st.text(min_size=1, max_size=12), command=st.text(min_size=1, max_size=8))
def test_any_name_is_text(small, name, command):
    trained, history = small
    evil = replace(trained, names=SameName.fromkeys(range(1 << 10), name))
    text = page(evil, history, source=[name], command=command)
    text.encode("utf-8")
    assert_alone(text)
    assert len(Tree(text).found) == len(Tree(page(trained, history, source=["a"], command="b")).found)


@pytest.mark.parametrize(
    ("loss", "titles"),
    [
        ("logistic", ["Loss over rows", "Ranking: ROC", "Decisions: precision and recall", "Calibration"]),
        ("hinge", ["Loss over rows", "Ranking: ROC", "Decisions: precision and recall"]),
        ("squared", ["Loss over rows", "Residuals"]),
    ],
)
def test_what_makes_no_sense_for_a_loss_is_left_out(loss, titles):
    rng = np.random.default_rng(0)
    rows = [{"x": x, "y": float(x + rng.normal() > 0)} for x in rng.normal(size=300)]
    text = page(*reported(rows, Settings(loss), label="y"))
    assert [title for _, title in Tree(text).all("h2")] == [
        "Largest columns",
        *titles,
        "Largest contributions",
        "Settings",
    ]
    verdicts = [text for a, text in Tree(text).all("p") if a.get("class") == "verdict"]
    assert len(verdicts) == (loss != "hinge")  # a hinge loss has no base rate
    assert all(one.startswith("Predictions ") and one.endswith("(progressive rows).") for one in verdicts)
    assert ("AUC" in text) == (loss != "squared")
    assert ("nats" in text) == (loss == "logistic")
    assert_alone(text)


def test_a_model_of_one_row_and_no_weights_has_a_page_too():
    text = page(*reported([{"x": 1.0, "y": 1.0}], Settings(l1=100.0), label="y"))
    assert "0 of 1,024 slots" in text
    assert not [a for a, _ in Tree(text).all("polyline") if "faint" not in a["class"]]
    assert_alone(text)


def test_remedies_are_options_of_the_command(tmp_path, interpreted):
    table = tmp_path / "t.csv"
    table.write_text("y,age\n" + "0,31\n1,45\n" * 10 + "1,old\n,3\n")
    written = Page(str(tmp_path / "r.html"), [str(table)], certified=False)
    trained = train(str(table), Settings(), bits=10, label="y", on_error="skip", progress=written.history)
    written.write(trained, stderr=True)
    shown = [text for _, text in Tree((tmp_path / "r.html").read_text()).all("li") if ", line " in text]
    assert "or use --categories age, or --missing for a mark" in shown[0]
    assert "--label names the column of labels, and --on-error skip leaves out rows without one" in shown[1]
    assert "on_error='skip'" in trained.training.problems.messages[1]


def test_slots_without_names_say_how_to_get_them(interpreted):
    rows = [{"city": "Rome", "y": 1}, {"city": "Oslo", "y": 0}] * 5
    for names in (False, True):
        trained, history = reported(rows, label="y", names=names)
        assert ("train with --names (in Python, names=True)" in page(trained, history)) != names


def test_a_place_that_cannot_be_written_to_is_refused_before_training(tmp_path):
    for path in (tmp_path, tmp_path / "nosuch" / "r.html"):
        line = [sys.executable, "-m", "forel", "train", "nosuch.vw", "--report", str(path)]
        done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2
        assert f"forel: --report: got {str(path)!r}, expected" in done.stderr


def test_training_without_learning_is_refused(tmp_path):
    line = [sys.executable, "-m", "forel", "train", "a.vw", "-t", "-i", "m.forel", "--report", str(tmp_path / "r.html")]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "Vowpal Wabbit's -t: forel does not have it" in done.stderr


def test_it_is_written_atomically(small, tmp_path):
    target = tmp_path / "r.html"
    target.write_text("before")
    trained, history = small
    write_report(target, trained, history)
    assert target.read_text().startswith("<!DOCTYPE html>")
    with pytest.raises(TypeError):
        write_report(target, trained, history, nosuch=1)
    assert os.listdir(tmp_path) == ["r.html"]


NUMBERS = st.floats(-1e9, 1e9).map(lambda x: float(f"{x:.6g}") if abs(x) > 1e-9 else 0.0)


@given(st.lists(NUMBERS, min_size=1, max_size=5))
def test_axes_show_all_numbers_between_ticks_that_differ(values):
    for axis in (linear_axis("", values), axis_for("", values), axis_for("", [abs(v) + 1e-3 for v in values])):
        places = [axis.position(v) for v, _ in axis.ticks]
        assert places == sorted(places)
        assert -1e-6 <= places[0] < places[-1] <= 1 + 1e-6
        assert 2 <= len(places) <= 8
        assert len({text for _, text in axis.ticks}) == len(places)
    assert all(-1e-6 <= linear_axis("", values).position(v) <= 1 + 1e-6 for v in values)


# What a browser makes of the page in frames of several widths, written into the page around them.
MEASURE = """
const found = [];
for (const frame of document.querySelectorAll("iframe")) {
  const inner = frame.contentDocument, root = inner.documentElement;
  const inside = (a, b) =>
    a.left >= b.left - 1 && a.right <= b.right + 1 && a.top >= b.top - 1 && a.bottom <= b.bottom + 1;
  const plots = [...inner.querySelectorAll("figure > svg")];
  found.push({
    width: root.clientWidth, needed: root.scrollWidth,
    plots: plots.map(plot => Math.round(plot.getBoundingClientRect().width)),
    clipped: plots.flatMap(plot => [...plot.querySelectorAll("text, polyline, circle")].filter(
      part => !inside(part.getBoundingClientRect(), plot.getBoundingClientRect())).map(part => part.outerHTML)),
    small: plots.flatMap(plot => [...plot.querySelectorAll("text")].filter(
      text => text.getBoundingClientRect().height < 13).map(text => text.textContent)),
    touching: plots.flatMap(plot => { const all = [...plot.querySelectorAll("text")]; return all.flatMap((one, k) =>
      all.slice(k + 1).filter(other => { const a = one.getBoundingClientRect(), b = other.getBoundingClientRect();
        return a.left < b.right && b.left < a.right && a.top + 3 < b.bottom && b.top + 3 < a.bottom;
      }).map(other => one.textContent + " and " + other.textContent)); }),
    loaded: frame.contentWindow.performance.getEntriesByType("resource").map(entry => entry.name),
  });
}
document.getElementById("found").textContent = JSON.stringify(found);
"""


CURVED = ("<i>&x", "skewed", "apart")


@pytest.fixture(scope="module")
def curved():
    """A model of curves without pairs, of one with pairs, and the pages of both."""
    rng = np.random.default_rng(3)
    table = np.stack([rng.normal(size=500), rng.lognormal(sigma=2, size=500), rng.uniform(size=500)], axis=1)
    table = table.astype(np.float32).astype(float)
    labels = np.sin(2 * table[:, 0]) + np.log(table[:, 1]) * (table[:, 2] > 0.5) + 0.1 * rng.normal(size=500)
    rows = [{**dict(zip(CURVED, row, strict=True)), "y": y} for row, y in zip(table.tolist(), labels, strict=True)]

    def made(features):
        history = History()
        model = train(rows, loss="squared", label="y", features=features, bits=10, names=True, progress=history)
        return model, page(model, history)

    return made("curves"), made("pairs")


def margins_of_expert(model, rows):
    """The margins of the expert whose curves are shown."""
    group, expert = model.learner.mixture.curve_experts, model.inspect().curves.expert
    block = next(iter(read(rows, bits=10)))
    return group.predict(Rows(*block.rows), None)[:, group.names.index(expert)]


def test_drawn_curves_are_differences_of_predictions(curved):
    """At each knot of a column, from margins of rows that differ in nothing else; and as far apart on the page."""
    model, text = curved[0]
    section = text.partition("Curves of columns")[2].partition("</section>")[0]
    figures = dict(re.findall(r"<figure><h3>(.*?)</h3>(.*?)</figure>", section, re.DOTALL))
    assert {html.unescape(name) for name in figures} == set(CURVED)
    for name, drawn in figures.items():
        dots = np.array(re.findall(r'cx="(.*?)" cy="(.*?)" r="2.*?data-x="(.*?)" data-y="(.*?)"', drawn), float)
        assert len(dots) > 4
        x, y, knots, values = dots.T
        row = dict.fromkeys(CURVED, 0.25)
        margins = margins_of_expert(model, [{**row, html.unescape(name): knot} for knot in knots])
        np.testing.assert_allclose(np.diff(margins), np.diff(values), atol=2e-6)
        assert abs(values.mean()) < 1e-9
        slope, offset = np.polyfit(values, y, 1)
        np.testing.assert_allclose(y, slope * values + offset, atol=0.01)
        assert slope < 0
        assert (np.diff(x) > 0).all()
        even = np.ptp(np.diff(x)) < 0.02
        assert even == (name == "skewed") == ("evenly spaced" in drawn)
        line = np.array([one.split(",") for one in re.search(r'points="(.*?)"', drawn)[1].split()], float)
        np.testing.assert_allclose(line, dots[:, :2], atol=0.006)


def test_captions_of_curves_have_six_digits_and_long_names_may_be_broken(interpreted):
    rng = np.random.default_rng(0)
    rows = [{"living_area": float(area), "price": 3000 * float(area)} for area in rng.uniform(30, 200, 300)]
    model = train(rows, loss="squared", label="price", features="curves", bits=6)
    section = page(model, History()).partition("Curves of columns")[2].partition("</section>")[0]
    assert "<h3>living_<wbr>area</h3>" in section
    assert re.search(r"std\. dev\. \d{2,3},\d{3}", section)
    assert not re.search(r"\d{4}\.", section.partition("<figcaption>")[2])


def test_drawn_pairs_are_what_predictions_of_two_columns_do_not_add_up_to(curved):
    model, text = curved[1]
    maps = text.partition("Strongest pairs")[2].partition("</section>")[0].split("<figure>")[1:]
    pairs = model.inspect().curves.pairs
    assert pairs[0].spread > 0.1
    assert {pairs[0].first, pairs[0].second} == {"skewed", "apart"}
    for pair, drawn in zip(pairs, maps, strict=True):
        cells = np.array(re.findall(r'data-value="(.*?)"', drawn), float)
        grid = cells.reshape(len(pair.first_knots), len(pair.second_knots))
        other = next(name for name in CURVED if name not in (pair.first, pair.second))
        rows = [{pair.first: a, pair.second: b, other: 0.25} for a in pair.first_knots for b in pair.second_knots]
        margins = margins_of_expert(model, rows).reshape(grid.shape)
        # What both add up to has no mixed differences, neither that of their curves nor that of the third column.
        mixed = margins - margins.mean(axis=0) - margins.mean(axis=1)[:, None] + margins.mean()
        np.testing.assert_allclose(mixed, grid, atol=1e-5)


def test_curves_and_pairs_add_up_to_predictions(curved):
    model, _ = curved[1]
    curves = model.inspect(top=9).curves
    by_name = {one.column: one for one in curves.columns}
    assert len(curves.pairs) == 3
    knots = {pair.first: pair.first_knots for pair in curves.pairs} | {
        pair.second: pair.second_knots for pair in curves.pairs
    }
    places = list(np.ndindex(*(len(knots[name]) for name in CURVED)))[::7]
    rows = [{name: knots[name][k] for name, k in zip(CURVED, place, strict=True)} for place in places]
    shown = []
    for row, place in zip(rows, places, strict=True):
        at = dict(zip(CURVED, place, strict=True))
        own = sum(np.interp(row[name], by_name[name].knots, by_name[name].values) for name in CURVED)
        shown.append(own + sum(pair.values[at[pair.first]][at[pair.second]] for pair in curves.pairs))
    margins = margins_of_expert(model, rows)
    np.testing.assert_allclose(np.diff(margins), np.diff(shown), atol=2e-5)


def test_curves_are_plotted_as_on_the_page(curved, small):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    model = curved[1][0]
    figure, found = model.plot_curves(top=2, pairs=1), model.inspect().curves
    FigureCanvasAgg(figure).draw()
    first, second, pair = [ax for ax in figure.axes if ax.axison][:3]
    assert [first.get_title(), second.get_title()] == [one.column for one in found.columns[:2]]
    np.testing.assert_allclose(first.lines[0].get_ydata(), found.columns[0].centered)
    assert (pair.get_xlabel(), pair.get_ylabel()) == (found.pairs[0].first, found.pairs[0].second)
    with pytest.raises(ValueError, match="no curves; train with features"):
        small[0].plot_curves()
    assert "Curves of columns" not in page(*small)


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("curves", [False, True])
def test_the_page_fits_a_desktop_and_a_phone_browser(written, curved, curves, tmp_path):
    text = curved[1][1] if curves else written[1]
    frames = "".join(
        f'<iframe style="border: 0; width: {width}px; height: 900px" srcdoc="{html.escape(text)}"></iframe>'
        for width in (1280, 390)
    )
    around = f"<!DOCTYPE html><meta charset=utf-8>{frames}<pre id=found></pre>"
    (tmp_path / "around.html").write_text(f"{around}<script>onload = () => {{ {MEASURE} }}</script>", "utf-8")
    (desktop, phone), logged = found_by((tmp_path / "around.html").as_uri(), tmp_path / "profile")
    assert not logged
    assert (desktop["width"], phone["width"]) == (1280, 390)
    for seen in (desktop, phone):
        assert seen["needed"] == seen["width"]
        assert len(seen["plots"]) == text.count("<figure") >= 3
        assert min(seen["plots"]) > (130 if curves else 300)
        assert seen["clipped"] == seen["touching"] == seen["small"] == seen["loaded"] == []
