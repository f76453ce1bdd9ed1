"""Figures: their content, where they are drawn, and that nothing is cut off or left open."""

import subprocess
import sys

import matplotlib
import numpy as np
import pytest
from matplotlib import style
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

from forel.experts import FixedShare, mix
from forel.theory import plot
from forel.theory.algorithms import FTRL
from forel.theory.analysis.adversaries import alternating, worst_linear
from forel.theory.analysis.game import play
from forel.theory.analysis.streams import random_linear, switching
from forel.theory.geometries import Euclidean
from forel.theory.plot.style import GREY
from forel.theory.rates import Constant, InverseSqrt
from forel.theory.sets import Box, HalfSpace, Reals, Simplex, intersect, l1_ball, l2_ball
from forel.validation import Unsupported

SETS = {
    "box": Box(-1, [1, 0.5]),
    "L1 ball": l1_ball(1.0),
    "L2 ball": l2_ball(1.0, center=[0.2, 0.0]),
    "simplex": Simplex(),
    "half-space": HalfSpace([1.0, 1.0], 0.2),
    "intersection": intersect(Box(-1, 1), HalfSpace([1.0, 1.0], 0.2)),
    "all": Reals(),
}


def game(n=2, rounds=30, feasible=SETS["L2 ball"], eta=0.3):
    return play(FTRL(Constant(eta), Euclidean(), feasible=feasible), switching(n, rounds, 10, seed=3))


def advice(rounds=60, n=3):
    names = [f"forecaster {k}" for k in range(n)]
    right = np.arange(rounds)[:, None] * n // rounds == np.arange(n)
    return mix(np.where(right, 0.9, 0.2), np.ones(rounds), rule=FixedShare(), names=names)


def posterior(mixed, most=5):
    return plot.posterior(mixed.weights, mixed.names, most)


def texts(figure):
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def pictures():
    trace, line = game(), game(1, feasible=Box(-1, 1))
    many = {f"rate {eta}": game(eta=eta) for eta in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)}
    return {
        "regret": lambda: plot.regret(trace, [0.0, 0.0], bound=np.arange(30.0)),
        "one round": lambda: plot.regret(game(rounds=1), [0.0, 0.0], bound=[1.0]),
        "compare": lambda: plot.compare(many, [0.0, 0.0]),
        "decomposition": lambda: plot.decomposition(1.0, np.full(30, 0.1), -np.ones(30)),
        "one term": lambda: plot.decomposition(1.0, [1.0], -1.0),
        "line": lambda: plot.path(line),
        "plane": lambda: plot.path(trace),
        "figure 4": plot.figure_4,
        "posterior": lambda: posterior(advice()),
        "one expert": lambda: posterior(advice(1, 1)),
        "many experts": lambda: posterior(advice(n=12)),
    }


@pytest.mark.parametrize("name", pictures())
@pytest.mark.parametrize("dark", [False, True])
def test_no_text_is_cut_off_small_or_invisible_and_no_two_labels_touch(name, dark):
    with style.context("dark_background" if dark else "default"):
        figure = pictures()[name]()
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        assert to_rgb(figure.get_facecolor()) == ((0, 0, 0) if dark else (1, 1, 1))
    whole = figure.bbox
    written = [t for axes in figure.axes for t in (*axes.texts, axes.title, axes.xaxis.label, axes.yaxis.label)]
    boxes = []
    for text in (t for t in written if t.get_text()):
        box = Text.get_window_extent(text, canvas.get_renderer())  # without the leader
        assert whole.x0 <= box.x0, text
        assert box.x1 <= whole.x1, text
        assert whole.y0 <= box.y0, text
        assert box.y1 <= whole.y1, text
        assert text.get_fontsize() >= 9
        assert to_rgb(text.get_color()) == ((1, 1, 1) if dark else (0, 0, 0))
        boxes.append(box)
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    assert all(axes.get_xlabel() and axes.get_ylabel() for axes in figure.axes)


def test_regret_draws_regret_and_bound_with_their_last_values():
    trace = game()
    figure = plot.regret(trace, [0.5, 0.5], bound=np.linspace(1, 2000, 30))
    regret, bound = figure.axes[0].lines[:2]
    assert regret.get_xdata().tolist() == list(range(1, 31))
    assert regret.get_ydata() == pytest.approx(trace.regrets(np.array([0.5, 0.5])))
    assert bound.get_ydata()[-1] == 2000
    last = f"{trace.regret(np.array([0.5, 0.5])):.3g}".replace("-", "−")
    assert set(texts(figure)) == {f"regret: {last}", "bound: 2,000"}


def test_labels_are_next_to_their_lines_where_there_is_space():
    figure = plot.regret(game(), [0.0, 0.0], bound=np.full(30, 50.0))
    figure.draw_without_rendering()
    (axes,) = figure.axes
    for text in axes.texts:
        beside = axes.transData.inverted().transform(axes.transAxes.transform(text.get_position()))
        assert beside[1] == pytest.approx(text.xy[1], abs=1.5)
        assert text.get_position()[0] > 1


def test_compare_draws_games_of_different_lengths_in_different_colors_and_dashes():
    games = {str(i): game(rounds=10 + i) for i in range(12)}
    figure = plot.compare(games, [0.0, 0.0])
    lines = figure.axes[0].lines[:12]
    assert [line.get_label() for line in lines] == list(games)
    assert [line.get_xdata()[-1] for line in lines] == [10 + i for i in range(12)]
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 12
    assert all(text.get_position()[1] <= 1 for text in figure.axes[0].texts)


def test_decomposition_has_the_bound_above_and_the_regret_below():
    stability, remainder = np.array([1.0, 2.0, 3.0]), np.array([-0.5, -1.0, 0.0])
    (axes,) = plot.decomposition([1.0, 1.0, 2.0], stability, remainder).axes
    areas = [area.get_datalim(axes.transData) for area in axes.collections]
    assert [(box.y0, box.y1) for box in areas] == [(0, 2), (1, 8), (1.5, 8)]
    assert axes.lines[0].get_ydata().tolist() == [1.5, 3.0, 8.0]
    assert "remainder: 0" in texts(plot.decomposition(1.0, stability, -1e-15))
    assert sorted(texts(axes.figure)) == ["regret: 8", "regularization: 2", "remainder: 0", "stability: 6"]


def test_path_in_one_dimension_shows_the_points_and_the_edges_that_are_near():
    trace = play(FTRL(InverseSqrt(1.0), Euclidean(), feasible=Box(-1, 40)), random_linear(1, 30))
    figure = plot.path(trace)
    points, *edges = figure.axes[0].lines
    assert points.get_ydata().tolist() == trace.points[:, 0].tolist()
    assert [edge.get_ydata()[0] for edge in edges] == [-1]
    assert texts(figure) == ["edge of X"]
    assert texts(plot.path(trace, Reals())) == []


@pytest.mark.parametrize("name", SETS)
def test_path_in_the_plane_outlines_the_set(name):
    feasible = SETS[name]
    trace = game(feasible=feasible)
    (axes,) = plot.path(trace).axes
    assert axes.get_aspect() == 1
    assert [text.get_text() for text in axes.texts] == ["$x_{1}$", "$x_{31}$"]
    drawn = [np.column_stack(line.get_data()) for line in axes.lines]
    assert any(np.array_equal(points, trace.points) for points in drawn)
    edges = [points for line, points in zip(axes.lines, drawn, strict=True) if line.get_color() == GREY]
    assert len(edges) == (name != "all")
    for point in (p for edge in edges for p in edge):
        assert feasible.contains(point)
        inside = axes.viewLim.contains(*point)
        step = 1e-3 * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])
        assert not inside or not all(feasible.contains(point + d) for d in step)
    for corner in {"box": [[-1, -1], [1, 0.5]], "L1 ball": [[1, 0], [0, -1]], "simplex": np.eye(2)}.get(name, []):
        assert np.linalg.norm(edges[0] - corner, axis=1).min() < 1e-12


def test_path_cuts_off_a_set_far_larger_than_the_path():
    (axes,) = plot.path(game(feasible=l2_ball(1000.0))).axes
    assert np.ptp(axes.get_xlim()) < 20
    assert not [line for line in axes.lines if line.get_color() == GREY]


def test_path_of_a_point_that_never_moves():
    trace = play(FTRL(Constant(1e-300), Euclidean(), feasible=l2_ball(1.0)), worst_linear(), rounds=3, n=2)
    (axes,) = plot.path(trace, Reals()).axes
    assert np.ptp(axes.get_xlim()) > 0
    still = play(FTRL(Constant(1.0), Euclidean(), feasible=Box(0, 0)), alternating(), rounds=3, n=2)
    assert plot.path(still)


def test_posterior_stacks_the_weights_and_names_them_at_the_end():
    mixed = advice()
    (axes,) = posterior(mixed).axes
    assert [area.get_label() for area in axes.collections] == list(mixed.names)
    below = np.zeros(61)
    for k, area in enumerate(axes.collections):
        (outline,) = area.get_paths()
        top = {x: max(y for a, y in outline.vertices if a == x) for x in range(1, 62)}
        below += mixed.weights[:, k]
        assert [top[x] for x in range(1, 62)] == pytest.approx(below)
    ends = [f"{name}: {w:.3f}" for name, w in zip(mixed.names, mixed.posterior, strict=True)]
    assert texts(axes.figure) == ends
    assert axes.get_ylim() == (0, 1)


def test_posterior_groups_the_experts_of_least_weight():
    mixed = advice(5000, 12)
    (axes,) = posterior(mixed, most=2).axes
    assert len(axes.collections) == 3
    assert axes.collections[2].get_label() == "10 others"
    top = axes.collections[2].get_paths()[0].vertices
    assert len(top) < 900
    assert top[:, 1].max() == pytest.approx(1.0)
    last = dict(zip(mixed.names, mixed.posterior, strict=True))
    shown = [text.split(": ") for text in texts(axes.figure)]
    assert shown[0][1] == "below 0.001"
    assert float(shown[2][1]) == pytest.approx(1 - sum(last[name] for name, _ in shown[:2]), abs=5e-3)


def test_figure_4_shows_the_points_of_both_algorithms():
    figure = plot.figure_4()
    for axes, zeros in zip(figure.axes, ([13, 14, 15, 16], [13, 14]), strict=True):
        mirror, native = (line.get_ydata() for line in axes.lines[:2])
        assert [line.get_label() for line in axes.lines[:2]] == ["Mirror Descent", "Native FTRL"]
        assert {"Mirror Descent", "Native FTRL"} < {text.get_text() for text in axes.texts}
        assert set(mirror[1:]) == {2.625, -2.625}
        assert [t for t in range(13, 16 + (len(zeros) > 2)) if native[t - 1] == 0] == zeros
    assert figure.axes[1].lines[1].get_ydata()[14] == 4.875
    left, right = (" ".join(t.split()) for t in texts(figure) if t.startswith("As in"))
    assert "Native FTRL is exactly 0 from round 13 on" in left
    assert "between −2.625 and 2.625" in left
    assert "is 0 in rounds 13 and 14" in right
    assert "leaves 0 in round 15 for 4.875" in right


def test_figures_are_drawn_on_the_given_axes():
    figure = Figure()
    axes = figure.subplots(2, 2).ravel()
    trace = game()
    assert plot.regret(trace, [0.0, 0.0], ax=axes[0]) is figure
    assert plot.compare({"a": trace}, [0.0, 0.0], ax=axes[1]) is figure
    assert plot.decomposition(1.0, [1.0, 1.0], 0.0, ax=axes[2]) is figure
    assert plot.path(trace, ax=axes[3]) is figure
    assert all(part.lines for part in axes)
    assert plot.figure_4(Figure().subplots(1, 2)).axes[1].lines
    part = figure.add_subfigure(axes[0].get_gridspec()[0, 0])
    assert plot.regret(trace, [0.0, 0.0], ax=part.subplots()) is figure


def test_saving_makes_room_between_panels(tmp_path):
    figure = Figure(figsize=(8, 3))
    left, right = figure.subplots(1, 2)
    plot.regret(game(), [0.0, 0.0], ax=left)
    plot.save(figure, tmp_path / "a.png")
    renderer = FigureCanvasAgg(figure).get_renderer()
    (label,) = left.texts
    assert label.get_window_extent(renderer).x1 < right.get_tightbbox(renderer).x0


@pytest.mark.parametrize("suffix", [".png", ".SVG", ".pdf"])
def test_saving_twice_gives_the_same_file(tmp_path, suffix):
    first, second = (plot.save(plot.regret(game(), [0.0, 0.0]), tmp_path / f"{i}{suffix}").read_bytes() for i in (1, 2))
    assert first == second
    assert first.startswith({".png": b"\x89PNG", ".SVG": b"<?xml", ".pdf": b"%PDF"}[suffix])


def test_saved_files_have_150_dots_an_inch_and_a_background(tmp_path):
    image = Image.open(plot.save(plot.regret(game(), [0.0, 0.0]), str(tmp_path / "a.png")))
    assert image.info["dpi"] == pytest.approx((150, 150), abs=0.1)
    assert image.convert("RGBA").getpixel((0, 0)) == (255, 255, 255, 255)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plot.save(Figure(), "a.gif"), r"path: got 'a.gif', expected a name that ends in .png, .svg, .pdf"),
        (lambda: plot.regret(game(), [0.0]), r"x: got shape \(1,\), expected a vector of length 2"),
        (lambda: plot.regret(game(), [0.0, 0.0], [1.0]), r"bound: got shape \(1,\), expected a vector of length 30"),
        (lambda: plot.compare({}, [0.0]), r"traces: got {}, expected at least one game"),
        (lambda: plot.decomposition([1.0], [1.0, 1.0], 0.0), r"regularization: got shape \(1,\), expected .* length 2"),
        (lambda: plot.decomposition(1.0, [1.0, np.nan], 0.0), r"stability: got nan at index 1"),
        (lambda: plot.path(game(3, feasible=Reals())), r"trace: got points of dimension 3, expected 1 or 2"),
        (lambda: posterior(advice(), most=0), "most: got 0, expected a whole number of at least 1"),
        (lambda: plot.figure_4([Figure().subplots()]), r"ax: got '1 axes', expected two"),
    ],
)
def test_invalid_arguments_raise(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    figure = plot.figure_4()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for call in (plot.figure_4, lambda: plot.regret(game(), [0.0, 0.0]), lambda: plot.save(figure, "a.png")):
        with pytest.raises(Unsupported, match=r"this needs matplotlib; install the extra: pip install 'forel\[plot\]'"):
            call()


def test_the_module_loads_without_matplotlib_and_never_touches_pyplot():
    code = (
        "import sys; from forel.theory import plot; assert 'matplotlib' not in sys.modules; plot.figure_4(); "
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_style_ends_with_the_picture():
    before = dict(matplotlib.rcParams)
    plot.figure_4()
    assert dict(matplotlib.rcParams) == before
