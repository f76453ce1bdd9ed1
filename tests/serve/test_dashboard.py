"""The page of a server: what it shows, in a browser and in a small model of one; the stream that it listens to."""

import asyncio
import html
import json
import re
import shutil
import subprocess
from importlib.resources import files

import numpy as np
import pytest

from browser import found_by, needs_browser

PAGE = files("forel.serve").joinpath("dashboard.html").read_text("utf-8")
HOSTILE = "<img src=x onerror=console.error(1)>"
NODE = shutil.which("node")
# Enough of a document to run the page's script; a number that is not one must not get into a drawing.
DOCUMENT = """
class E {
  constructor() { this.children = []; this.dataset = {}; this.said = "" }
  append(...c) { this.children.push(...c) } replaceChildren(...c) { this.children = c }
  setAttribute(k, v) { if (/NaN|undefined|Infinity/.test(v)) throw Error(`${v} in ${k}`) }
  set textContent(v) { this.said = String(v) }
  get textContent() { return this.said + this.children.map(c => c.textContent ?? c).join(" ") }
}
const ids = { state: new E(), ask: new E(), main: new E() };
globalThis.document = { getElementById: k => ids[k], createElement: () => new E(), createElementNS: () => new E(),
  body: new E() };
"""


@pytest.fixture(scope="module")
def states(tmp_path_factory):
    """States of servers: with nothing learned, with a mixture and a challenger, and with classes."""
    from forel.learner.grid import default_grid
    from forel.learner.kernels import kernel
    from forel.learner.settings import Settings

    from .conftest import new_model, running, settled

    async def main(model, labels, path, challenger=False):
        async with running(path, model) as (server, client):
            found = [(await client.get("/v1/model"))[1]]
            if challenger:
                await client.post("/v1/models", {"add": "other", "settings": {"alpha": 0.1}})
            ids = [f"{HOSTILE}{k}" for k in range(60)]
            rows = [{"site": f"s{k % 3}", "age": k} for k in range(60)]
            await client.post("/v1/predict", {"rows": rows, "ids": ids})
            outcomes = [{"id": name, "label": labels[k % 2]} for k, name in enumerate(ids[:40])]
            await client.post("/v1/learn", {"outcomes": outcomes})
            await settled(server)
            return [*found, (await client.get("/v1/model"))[1]]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "kernel", kernel.uncompiled_kernel)
        folder = tmp_path_factory.mktemp("states")
        mixture = new_model(default_grid(full_filters=()), certified=True)
        classes = new_model(Settings("softmax", alpha=0.5), {"classes": ("a", HOSTILE)}, classes=2)
        found = asyncio.run(main(mixture, [1, 0], folder / "a", challenger=True))
        return [*found, *asyncio.run(main(classes, ["a", HOSTILE], folder / "b"))]


def script(states):
    """The page's script, showing states instead of listening."""
    code = PAGE.partition("<script>")[2].partition("</script>")[0]
    assert code.count('listen("");') == 1
    escaped = [json.dumps(one).replace("<", "\\u003c") for one in states]
    return code.replace('listen("");', "".join(f"show({one});" for one in escaped))


def run_by_node(states):
    """Run the script, and return the text of the state and of the rest of the page."""
    last = "console.log(JSON.stringify([ids.state.textContent, ids.main.textContent]))"
    code = DOCUMENT + script(states) + last
    return json.loads(subprocess.run([NODE, "-"], input=code, capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(NODE is None, reason="needs node to run the page's script")
def test_every_state_is_shown_as_text(states):
    state, shown = run_by_node(states[:2])
    assert state == "initial: 40 rows learned"
    for part in (
        f"{HOSTILE}39",
        "What was served had an average loss of",
        "no fixed model of at most a norm has",
        "no alarm for drift",
        "mixer",
    ):
        assert part in shown
    against = states[1]["models"][1]["against_served"]
    assert against["sentence"] in shown
    assert "for initial; 40 or more decides" in shown
    low, high = against["interval"]
    assert low < 0 < high
    assert all(value < np.log(40) for value in against["log_e_values"].values())
    assert re.search(r"site\^s\d [+−]\d", shown), "names of features that were read lately"
    assert run_by_node(states[2:])[0] == "initial: 40 rows learned"


@pytest.mark.slow
@needs_browser
def test_the_page_fits_a_desktop_and_a_phone_browser(states, tmp_path):
    head, _, rest = PAGE.partition("<script>")
    page = f"{head}<script>{script(states[:2])}</script>{rest.partition('</script>')[2]}"
    frames = "".join(
        f'<iframe style="border: 0; width: {width}px; height: 900px" srcdoc="{html.escape(page)}"></iframe>'
        for width in (1280, 390)
    )
    measure = """onload = () => { const found = [...document.querySelectorAll("iframe")].map(frame => {
      const inner = frame.contentDocument, root = inner.documentElement;
      return { width: root.clientWidth, needed: root.scrollWidth, images: inner.querySelectorAll("img").length,
        state: inner.getElementById("state").textContent,
        drawn: inner.querySelectorAll("polyline, rect, circle").length,
        loaded: frame.contentWindow.performance.getEntriesByType("resource").length } });
      document.getElementById("found").textContent = JSON.stringify(found) }"""
    around = f"<!DOCTYPE html><meta charset=utf-8>{frames}<pre id=found></pre><script>{measure}</script>"
    (tmp_path / "around.html").write_text(around, "utf-8")
    seen_by_width, logged = found_by((tmp_path / "around.html").as_uri(), tmp_path / "profile")
    assert not logged
    for seen in seen_by_width:
        assert seen["needed"] == seen["width"]
        assert (seen["images"], seen["loaded"], seen["state"]) == (0, 0, "initial: 40 rows learned")
        assert seen["drawn"] > 8


def test_the_page_needs_no_other_site_and_listens_to_a_stream(tmp_path, serving, interpreted):
    assert not re.search(r"(?:src|href)=|https?://(?!www\.w3\.org)", PAGE)

    async def main():
        async with serving.running(tmp_path / "a", serving.model()) as (server, client):
            status, page = await client.get("/")
            assert (status, page.decode()) == (200, PAGE)
            stream = await serving.connection(server.port).open()
            stream.writer.write(b"GET /events HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert b"text/event-stream" in await stream.reader.readuntil(b"\r\n\r\n")
            for _ in range(2):
                server.api.publish()
                found = await stream.reader.readuntil(b"\n\n")
                assert json.loads(found.removeprefix(b"data: "))["served"] == "initial"
            stream.writer.close()
            await asyncio.sleep(0.01)
            server.api.publish()
            assert not server.api.streams

    asyncio.run(main())
