"""The page for teaching: its numbers are those of the theory, its code plays the game that it shows."""

import contextlib
import html.parser
import http.client
import importlib.resources
import io
import json
import re
import signal
import subprocess
import sys
import threading
from urllib.parse import parse_qsl, urlencode

import numpy as np
import pytest
from typer.testing import CliRunner

from browser import found_by, needs_browser
from forel.cli.app import app
from forel.lab import answer
from forel.lab import server as module
from forel.lab.code import parse
from forel.lab.parts import GROUPS, MOST
from forel.lab.server import LabServer
from forel.losses import Linear
from forel.theory import (
    FTRL,
    Constant,
    Diagonal,
    DiagonalAdaGrad,
    ElasticNet,
    Entropy,
    Euclidean,
    EveryRound,
    InverseSqrt,
    MirrorDescent,
    Once,
    QuadraticBound,
    Simplex,
    Trace,
    Unregularized,
    bound,
    l1,
    l1_ball,
    l2_ball,
    linf_ball,
    play,
    strong_ftrl_lemma,
)
from forel.theory.algorithms import CoinBetting, Squint
from forel.theory.analysis.adversaries import alternating, spikes, worst_linear
from forel.theory.analysis.streams import experts, quadratics, random_linear

MOVES = [[1.0, -0.25], [0.5, 0.5], [-1.0, 0.75]]

# Query, the same game written out, and the comparator; None for the best, which no point of the set may beat.
GAMES = {
    "default": (
        {}, lambda: play(FTRL(InverseSqrt(1.0, 1.0), Euclidean(), feasible=l2_ball(1.0)), random_linear(2, 50)),
    ),
    "you": (
        {"adversary": "you", "moves": "1,-0.25;0.5,0.5;-1,0.75", "rate": "constant", "rate.eta": "0.5",
         "feasible": "box"},
        lambda: play(FTRL(Constant(0.5), Euclidean(), feasible=linf_ball(1.0)), [Linear(g) for g in MOVES]),
    ),
    "adagrad": (
        {"rate": "diagonal", "rate.offset": "0.5", "geometry": "diagonal", "center": "point", "hint": "last",
         "feasible": "box", "feasible.radius": "0.7", "adversary": "spikes", "adversary.period": "4", "rounds": "30"},
        lambda: play(
            FTRL(DiagonalAdaGrad(1.0, 0.5), Diagonal(), "played", feasible=linf_ball(0.7), hint=lambda t, g: g),
            spikes(1.0, 4), rounds=30, n=2,
        ),
    ),
    "late": (
        {"delay": "late", "delay.delay": "3", "adversary": "alternating", "feasible": "reals", "rate.scale": "0.25",
         "n": "3", "rounds": "20"},
        lambda: play(FTRL(InverseSqrt(0.25, 1.0), Euclidean()), alternating(1.0), rounds=20, n=3, delays=3),
    ),
    "hedge": (
        {"geometry": "entropy", "feasible": "simplex", "adversary": "experts", "seed": "7", "n": "4"},
        lambda: play(FTRL(InverseSqrt(1.0, 1.0), Entropy(), feasible=Simplex()), experts(4, 50, seed=7, gap=0.1)),
    ),
    "sparse": (
        {"penalty": "elastic", "penalty.l1": "0.05", "weights": "once", "center": "point", "adversary": "worst"},
        lambda: play(
            FTRL(InverseSqrt(1.0, 1.0), Euclidean(), "played", penalty=ElasticNet(0.05, 0.1), weights=Once(),
                 feasible=l2_ball(1.0)),
            worst_linear(), rounds=50, n=2,
        ),
    ),
    "mirror": (
        {"algorithm": "mirror", "penalty": "l1", "feasible": "diamond", "feasible.radius": "2"},
        lambda: play(
            MirrorDescent(InverseSqrt(1.0, 1.0), Euclidean(), l1(0.1), EveryRound(), l1_ball(2.0)), random_linear(2, 40)
        ),
    ),
    "leader": (
        {"rate": "none", "surrogate": "quadratic", "center": "point", "adversary": "quadratics"},
        lambda: play(
            FTRL(Unregularized(), Euclidean(), "played", QuadraticBound(), feasible=l2_ball(1.0)), quadratics(2, 50)
        ),
    ),
    "coins": (
        {"algorithm": "coins", "endowment": "each"},
        lambda: play(CoinBetting(per_coordinate=True), random_linear(2, 50)),
    ),
    "squint": ({"algorithm": "squint", "adversary": "experts"}, lambda: play(Squint(), experts(2, 50, gap=0.1))),
}  # fmt: skip
GAMES["mirror"][0]["rounds"] = "40"


@pytest.mark.parametrize("name", GAMES)
def test_every_number_is_that_of_the_theory(name):
    query, direct = GAMES[name]
    found, trace = answer(query), direct()
    x = np.array(found["comparator"])
    for key, expected in (("points", trace.points), ("gradients", trace.gradients), ("losses", trace.values)):
        np.testing.assert_array_equal(found[key], expected, key)
    np.testing.assert_array_equal(found["regret"], trace.regrets(x))
    assert trace.algorithm.feasible.contains(x)
    if name not in ("you", "late", "coins"):  # elsewhere the best of a ball of radius 1
        assert trace.regret(x) == pytest.approx(trace.worst_regret(trace.algorithm.feasible), abs=1e-6)
    limit = bound(trace, x, "losses")
    assert found["bound"]["result"] == limit.result
    assert found["bound"].get("void", "") == limit.void
    if limit.void:
        assert set(found["bound"]) == {"result", "void"}
    else:
        np.testing.assert_array_equal(found["bound"]["over_rounds"], limit.over_rounds)
    if name in ("coins", "squint"):
        assert "no objective" in found["lemma"]["void"]
        return
    for t in range(1, trace.rounds + 1):
        parts = strong_ftrl_lemma(Trace(trace.algorithm, trace.states[: t + 1], trace.losses[:t]), x, "losses")
        expected = {
            "regularization": parts.regularization,
            "stability": parts.stability.sum(),
            "bound": parts.bound,
            "remainder": parts.remainder,
            "regret": parts.regret,
        }
        shown = {key: found["lemma"][key][t - 1] for key in expected}
        assert shown == pytest.approx(expected, rel=1e-9, abs=1e-9), t


def run(code):
    names, printed = {}, io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, names)
    return names, printed.getvalue()


def games():
    """Queries of a game for each part, each with what it needs."""
    needs = {
        ("rate", "diagonal"): {"geometry": "diagonal", "feasible": "box"},
        ("rate", "matrix"): {"geometry": "matrix", "feasible": "reals"},
        ("rate", "free"): {"geometry": "diagonal", "adversary": "examples", "feasible": "box"},
        ("rate", "curved"): {"surrogate": "quadratic"},
        ("rate", "none"): {"surrogate": "quadratic", "adversary": "quadratics"},
        ("geometry", "diagonal"): {"rate": "diagonal", "feasible": "box"},
        ("geometry", "matrix"): {"rate": "matrix", "feasible": "reals"},
        ("geometry", "entropy"): {"feasible": "simplex"},
        ("geometry", "pnorm"): {"feasible": "reals"},
        ("surrogate", "newton"): {"rounds": "8"},
        ("surrogate", "exact"): {"adversary": "examples", "rounds": "4"},
        ("algorithm", "vaw"): {"adversary": "labels"},
        ("ridge", "ridge"): {"algorithm": "vaw", "adversary": "labels"},
        ("adversary", "orthogonal"): {"n": "3"},
        ("adversary", "you"): {"moves": "1,0;-0.5,2"},
        ("comparator", "given"): {"point": "0.25,-0.5"},
        ("endowment", "one"): {"algorithm": "coins"},
        ("endowment", "each"): {"algorithm": "coins"},
        ("penalty", "l2"): {"feasible": "reals"},
    }
    for name, group in GROUPS.items():
        for part in group.parts:
            yield pytest.param(
                {"rounds": "12"} | needs.get((name, part.key), {}) | {name: part.key}, id=f"{name}-{part.key}"
            )


@pytest.mark.parametrize("query", list(games()))
def test_the_code_plays_the_game_that_is_shown(query):
    found = answer(query)
    names, printed = run(found["code"])
    np.testing.assert_array_equal(names["trace"].points, found["points"])
    np.testing.assert_array_equal(names["x"], found["comparator"])
    assert f"regret {found['regret'][-1]:.6g}\n" in printed
    assert (found["bound"].get("text") or f"void, because {found['bound']['void']}") in printed
    assert ("lemma " in printed) == ("void" not in found["lemma"])
    assert all(len(line) <= 120 for line in found["code"].splitlines())
    assert answer(found["settings"]) == found  # the state is whole


def test_random_games_have_a_true_bound_or_a_sentence():
    sentences: list[str] = []
    rng, outcomes = np.random.default_rng(0), {"bound": 0, "void": 0, "refused": 0}
    names = [name for name in GROUPS if name not in ("endowment", "delay", "ridge")]
    for _ in range(150):
        query = {name: str(rng.choice([part.key for part in GROUPS[name].parts])) for name in names}
        groups = GROUPS["algorithm"][query["algorithm"]].groups
        kept = ("algorithm", "adversary", "comparator", *groups)
        query = {name: key for name, key in query.items() if name in kept} | {"rounds": str(rng.integers(1, 10))}
        if query["adversary"] == "you":
            query["moves"] = ";".join(f"{a:.2f},{b:.2f}" for a, b in rng.normal(size=(4, 2)))
        if query["comparator"] == "given":
            query["point"] = "0.5,0.5"
        try:
            found = answer(query)
        except ValueError as error:
            sentences.append(str(error))
            outcomes["refused"] += 1
            continue
        json.dumps(found, allow_nan=False)
        if "void" in found["bound"]:
            assert found["bound"]["void"]
            assert set(found["bound"]) == {"result", "void"}
            outcomes["void"] += 1
            continue
        outcomes["bound"] += 1
        limit = np.array(found["bound"]["over_rounds"])
        assert (np.array(found["regret"]) <= limit + 1e-7 * (1 + abs(limit))).all(), query
    assert min(outcomes.values()) > 5
    assert all(": " in sentence or " the " in sentence for sentence in sentences), sentences


def test_the_reader_moves_first_against_the_first_point():
    found = answer({"adversary": "you", "feasible": "simplex", "geometry": "entropy"})
    assert found["points"] == [[0.5, 0.5]]
    assert found["gradients"] == []
    assert "bound" not in found
    names, _ = run(found["code"])
    np.testing.assert_array_equal(names["algorithm"].play(names["algorithm"].init(2)), found["points"][0])


@pytest.fixture(scope="module")
def server():
    with LabServer(0) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def get(server, path, method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=60)
    with contextlib.closing(connection):
        connection.request(method, path, headers=headers)
        reply = connection.getresponse()
        return reply.status, reply.headers, reply.read()


def test_the_server_answers_with_the_game(server):
    query = {"adversary": "you", "moves": "1,0;0.5,-0.5", "center": "point"}
    status, headers, body = get(server, "/play?" + urlencode(query))
    assert status == 200
    assert json.loads(body) == answer(query)
    assert headers["Content-Type"] == "application/json"
    assert headers["Access-Control-Allow-Origin"] is None
    groups = json.loads(get(server, "/parts")[2])["groups"]
    assert {name: [part["key"] for part in group["parts"]] for name, group in groups.items()} == {
        name: [part.key for part in group.parts] for name, group in GROUPS.items()
    }


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("rate=fast", "rate: got 'fast', expected sqrt or"),
        ("rate.scale=-1", "rate.scale: got '-1', expected a number from 1e-06 to 1e+06"),
        ("rate.scale=nan", "rate.scale: got 'nan'"),
        ("rounds=1e9", f"rounds: got '1e9', expected a whole number from 1 to {MOST['rounds']}"),
        ("rounds=2.5", "rounds: got '2.5', expected a whole number"),
        ("n=9", "n: got '9', expected a whole number from 1 to 8"),
        ("n=", "n: got ''"),
        ("rate.eta=1", "rate.eta: this game has no such parameter; it has algorithm, rate,"),
        ("moves=1,2", "moves: this game has no such parameter"),
        ("adversary=you&moves=1,2,3", "moves: got '1,2,3', expected 2 numbers"),
        ("adversary=you&moves=1,__import__('os')", "moves: got"),
        ("adversary=you&moves=" + "1,0;" * 301, "moves: got '301 gradients', expected at most 300"),
        ("comparator=given&point=inf,0", "point: got"),
        ("seed=1&seed=2", "query: got 'seed=1&seed=2', expected each parameter once"),
        ("seed=" + "1" * 20_000, "query: got '20005 characters', expected at most 16384"),
        ("rate=diagonal", "use geometry=Diagonal(), or a scalar rate"),
        ("geometry=entropy", "simplex"),
        ("rate=matrix&geometry=matrix&feasible=diamond", "rounds: got 50, expected at most 40: each round"),
        ("surrogate=exact&adversary=examples", "rounds: got 50, expected at most 12"),
        ("algorithm=vaw", "examples, such as Example, whose features the algorithm can observe"),
        ("delay=late&center=point", "delays: these need FTRL around x_1"),
        ("rate=none&feasible=reals", "the objective has no minimum"),
        ("adversary=orthogonal&center=point&rate=diagonal&geometry=diagonal&feasible=box", "orthogonal"),
    ],
)  # fmt: skip
def test_what_cannot_be_played_is_answered_with_a_sentence(server, query, sentence):
    status, _, body = get(server, "/play?" + query)
    assert status == 400
    assert sentence in json.loads(body)["error"]


def test_other_hosts_paths_and_methods_are_refused(server):
    assert server.server_address[0] == "127.0.0.1"
    port = server.server_address[1]
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1:1", "", f"localhost:{port}.evil.example"):
        assert get(server, "/play", Host=host)[0] == 403
    assert get(server, "/play", Host=f"localhost:{port}")[0] == 200
    for path, status in (("/", 200), ("/play", 403), ("/parts", 403)):  # a link elsewhere may lead to the page
        assert get(server, path, **{"Sec-Fetch-Site": "cross-site"})[0] == status
    assert get(server, "/../lab/page.html")[0] == 404
    assert get(server, "/", "POST")[0] == 501


class Page(html.parser.HTMLParser):
    VOID = ("meta", "input", "link", "br")

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.links, self.labels = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.links += [attributes[name] for name in ("src", "href") if name in attributes]
        self.labels += attributes.get("aria-labelledby", "").split()
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_well_formed_and_loads_nothing(server):
    status, headers, body = get(server, "/")
    text = body.decode()
    assert status == 200
    assert text == importlib.resources.files("forel.lab").joinpath("page.html").read_text("utf-8")
    page = Page(text)
    assert page.open == []
    assert len(set(page.ids)) == len(page.ids)
    assert set(page.labels) <= set(page.ids)
    assert page.links == ["data:,"]
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg\b)", text)
    assert set(re.findall(r'\$\("([\w-]+)"\)', text)) <= {*page.ids}
    assert "default-src 'none'" in headers["Content-Security-Policy"]


def test_the_command_serves_until_it_is_interrupted():
    line = [sys.executable, "-m", "forel", "lab", "--port", "0"]
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as process:
        try:
            port = int(re.search(r"ready on http://127\.0\.0\.1:(\d+)/; Ctrl-C stops", process.stderr.readline())[1])
            connection = http.client.HTTPConnection("localhost", port, timeout=60)
            with contextlib.closing(connection):
                connection.request("GET", "/play?rounds=3")
                assert len(json.loads(connection.getresponse().read())["regret"]) == 3
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 130
        finally:
            process.kill()


def test_a_port_that_is_taken_is_named(server):
    port = str(server.server_address[1])
    done = CliRunner().invoke(app, ["lab", "--port", port])
    assert done.exit_code == 2
    assert f"--port: got {port}, expected one that can be opened, or 0 for any" in done.output


# In frames of two widths: drags the gradient, plays one more with the keyboard, chooses parts that do not fit together,
# then parts that do, and measures the page.
DRIVE = """
const settled = async () => { for (let k = 0; k < 40; k++) await new Promise(done => setTimeout(done, 25)); };
const choose = async (name, value) => { $(name).value = value; $(name).dispatchEvent(new Event("change")); await settled(); };
async function drive() {
  await settled();
  const at = (x, y) => ({pointerId: 1, bubbles: true, clientX: x, clientY: y});
  const box = $("points").getBoundingClientRect();
  $("handle").dispatchEvent(new PointerEvent("pointerdown", at(0, 0)));
  dispatchEvent(new PointerEvent("pointermove", at(box.left + box.width / 4, box.top + box.height / 2)));
  dispatchEvent(new PointerEvent("pointerup", at(0, 0)));
  await settled();
  for (const key of ["ArrowUp", "Enter"]) $("handle").dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
  await settled();
  await choose("rate", "diagonal");
  const refused = $("error").textContent;
  await choose("geometry", "diagonal");
  await choose("feasible", "box");
  const root = document.documentElement;
  return {
    width: root.clientWidth, needed: root.scrollWidth, search: location.search, error: $("error").textContent, refused,
    verdict: $("verdict").textContent, code: $("code").textContent,
    small: [...document.querySelectorAll("svg text")].filter(
      text => text.getBoundingClientRect().height < 9).map(text => text.textContent),
    plots: ["points", "regret", "lemma"].map(id => $(id).children.length),
    unnamed: [...document.querySelectorAll("input, select, button")].filter(
      one => !(one.labels && one.labels.length) && !one.ariaLabel && !one.textContent).map(one => one.outerHTML),
  };
}
onload = async () => {
  if (top !== self) return;
  const found = [];
  for (const width of [1280, 390]) {
    const frame = document.createElement("iframe");
    Object.assign(frame, {src: location.href, style: `border: 0; width: ${width}px; height: 900px`});
    document.body.append(frame);
    await new Promise(done => frame.onload = done);
    found.push(await frame.contentWindow.drive());
  }
  document.body.append(Object.assign(document.createElement("pre"), {id: "found", textContent: JSON.stringify(found)}));
};
"""  # noqa: E501


@pytest.mark.slow
@needs_browser
def test_the_page_is_played_in_a_desktop_and_a_phone_browser(tmp_path, monkeypatch):
    framed = module.POLICY.replace("frame-ancestors 'none'", "frame-ancestors 'self'; frame-src 'self'")
    monkeypatch.setattr(module, "POLICY", framed)
    with LabServer(0) as server:
        server.page = server.page.replace(b"</body>", f"<script>{DRIVE}</script></body>".encode())
        threading.Thread(target=server.serve_forever, daemon=True).start()
        flag = "--virtual-time-budget=60000"
        (desktop, phone), logged = found_by(server.url + "?adversary=you", tmp_path / "profile", flag)
        server.shutdown()
    assert not [one for one in logged if "Uncaught" in one]
    assert (desktop["width"], phone["width"]) == (1280, 390)
    for seen in (desktop, phone):
        assert seen["needed"] == seen["width"]
        assert "use geometry=Diagonal()" in seen["refused"]
        assert seen["error"] == ""
        assert seen["unnamed"] == seen["small"] == []
        assert min(seen["plots"]) > 3
        query = dict(parse_qsl(seen["search"][1:]))
        assert len(query["moves"].split(";")) == 2
        assert seen["code"] == answer(query)["code"]
        assert "DiagonalAdaGrad" in seen["code"]
        assert seen["verdict"].startswith("After round 2: regret")


def test_the_table_and_settings_agree():
    for name, group in GROUPS.items():
        assert len({part.key for part in group.parts}) == len(group.parts), name
        for part in group.parts:
            assert set(part.groups) <= set(GROUPS)
    assert parse({}).settings["rounds"] == "50"
