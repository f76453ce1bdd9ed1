"""Photograph forel's pages in a browser: reports, a server's dashboard, the lab and the site.

``python -m website.screenshots build/screenshots [--only report,site]`` writes ``NAME_WIDTH_SCHEME.png``, 1280 and 390
pixels wide, in the light and the dark scheme. A page that is wider than the screen, or whose script fails, is an error.
Data are bundled or generated; servers listen on loopback, and end with the command.
"""

import argparse
import base64
import contextlib
import functools
import http.server
import itertools
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDTHS, SCHEMES, TALLEST = {1280: 900, 390: 844}, ("light", "dark"), 6000
SITE = ("index.html", "start/practitioner/index.html", "guide/serve/index.html", "theory/algorithms/index.html")
MOST, SECONDS = 900, 45  # of the command; how long visitors come to the dashboard


class Browser:
    """A browser without a window, spoken to over its pipe in the DevTools protocol."""

    def __init__(self, program: str, folder: str) -> None:
        line = [program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe"]
        line += [f"--user-data-dir={folder}/profile", "--no-first-run", "about:blank"]
        shell = ["sh", "-c", 'exec "$0" "$@" 3<&0 4>&1', *line]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(shell, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
        self.numbers, self.events, self.rest = itertools.count(1), list[dict[str, Any]](), b""

    def call(self, method: str, session: str = "", **parameters: Any) -> Any:
        """Call a method, and return its result; events that come before it are kept."""
        number, write = next(self.numbers), self.process.stdin
        assert write is not None
        asked = {"id": number, "method": method, "params": parameters} | ({"sessionId": session} if session else {})
        write.write(json.dumps(asked).encode() + b"\0")
        write.flush()
        while True:
            said = self._message()
            if said.get("id") == number:
                if "error" in said:
                    raise RuntimeError(f"{method}: {said['error']['message']}")
                return said["result"]
            self.events.append(said)

    def open(self, url: str, width: int, scheme: str) -> str:
        """Open a page in a window of its own, and return its session."""
        context = self.call("Target.createBrowserContext")["browserContextId"]  # so that no page's storage is shared
        target = self.call("Target.createTarget", url="about:blank", newWindow=True, browserContextId=context)[
            "targetId"
        ]
        session: str = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Runtime.enable", session)
        self._size(session, width, WIDTHS[width])
        self.call("Emulation.setEmulatedMedia", session, features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Page.navigate", session, url=url)
        return session

    def run(self, session: str, code: str) -> Any:
        """Return the value of an expression in a page, a promise's when it is settled."""
        found = self.call("Runtime.evaluate", session, expression=code, awaitPromise=True, returnByValue=True)
        return found["result"].get("value")

    def shoot(self, session: str, path: pathlib.Path, width: int) -> list[str]:
        """Write an image of a whole page, and return what is wrong with it."""
        self.run(
            session, "new Promise(done => document.readyState === 'complete' ? done() : addEventListener('load', done))"
        )
        self.run(session, "new Promise(done => setTimeout(done, 700))")
        needed, height = self.run(session, "(e => [e.scrollWidth, e.scrollHeight])(document.documentElement)")
        self._size(session, width, min(height, TALLEST))
        self.call("Page.bringToFront", session)
        image = self.call("Page.captureScreenshot", session, format="png")["data"]
        path.write_bytes(base64.b64decode(image))
        mine = [one for one in self.events if one.get("sessionId") == session]
        failed = [
            one["params"]["exceptionDetails"]["text"] for one in mine if one["method"] == "Runtime.exceptionThrown"
        ]
        return failed + ([f"needs {needed} pixels"] if needed > width else [])

    def close(self) -> None:
        """End the browser."""
        with contextlib.suppress(OSError, RuntimeError):
            self.call("Browser.close")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        self.process.kill()
        self.process.wait()

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self.rest:
            assert self.process.stdout is not None
            part = os.read(self.process.stdout.fileno(), 1 << 16)
            if not part:
                raise RuntimeError("the browser has ended")
            self.rest += part
        said, _, self.rest = self.rest.partition(b"\0")
        found: dict[str, Any] = json.loads(said)
        return found

    def _size(self, session: str, width: int, height: int) -> None:
        given = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", session, **given)


def reports(folder: pathlib.Path) -> dict[str, str]:
    """Write reports of classes, of numbers and of a comparison, and return their addresses."""
    draw = random.Random(3)
    with open(folder / "homes.csv", "w", encoding="utf-8") as file:
        file.write("area,rooms,town,garden,price\n")
        for _ in range(4000):
            area, town, garden = draw.uniform(30, 200), draw.choice(("Aach", "Bonn", "Celle")), draw.random() < 0.4
            price = 1200 * area * (1 + len(town) / 10) + 25000 * garden + draw.gauss(0, 20000)
            file.write(f"{area:.1f},{max(1, round(area / 25 + draw.gauss(0, 0.6)))},{town},{garden},{price:.0f}\n")
    forel(folder, "dev", "sample", "tumours")
    for name, label, *data in (("classes", "diagnosis", "tumours.csv"),
                               ("numbers", "price", "homes.csv", "--loss", "squared")):  # fmt: skip
        page = ("--model", f"{name}.forel", "--report", f"{name}.html")
        forel(folder, "train", *data, "--label", label, "--names", "--quiet", *page)
    slow = ("--label", "diagnosis", "--alpha", "0.001", "--model", "slow.forel", "--quiet")
    forel(folder, "train", "tumours.csv", *slow)
    forel(folder, "compare", "slow.forel", "classes.forel", "tumours_test.csv", "--report", "comparison.html")
    found = {"report_classes": "classes", "report_numbers": "numbers", "comparison": "comparison"}
    return {name: (folder / f"{page}.html").as_uri() for name, page in found.items()}


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files, and prints nothing."""

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextlib.contextmanager
def site(folder: str) -> Iterator[dict[str, str]]:
    """Serve a site that was built while in this context; yield addresses of pages."""
    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            url = f"http://127.0.0.1:{server.server_port}"
            yield {f"site_{page.split('/')[-2] if '/' in page else 'start'}": f"{url}/{page}" for page in SITE}
        finally:
            server.shutdown()


def forel(folder: pathlib.Path, *line: str) -> None:
    """Run a command of forel in a folder."""
    program = [sys.executable, "-m", "forel", *line]
    done = subprocess.run(program, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder)
    if done.returncode:
        sys.exit(f"forel {' '.join(line)}\n{done.stdout}")


@contextlib.contextmanager
def running(folder: str, *line: str) -> Iterator[Iterator[str]]:
    """Run a Python program while in this context; yield the lines that it prints."""
    environment = os.environ | {"PYTHONUNBUFFERED": "1", "TMPDIR": folder}
    process = subprocess.Popen([sys.executable, *line], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, env=environment)  # fmt: skip
    assert process.stdout is not None
    try:
        yield iter(process.stdout)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def address(lines: Iterator[str]) -> str:
    """Return the first address in what a program prints."""
    for line in lines:
        for word in line.split():
            if word.startswith("http://"):
                return word.rstrip(";,.")
    sys.exit("no address was printed")


def _late(*_: object) -> None:
    sys.exit(f"not done after {MOST} seconds")


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the images, and say what is wrong with the pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", default="report,dashboard,lab,site", help="some of report, dashboard, lab and site")
    parser.add_argument("--site", default="build/site", help="the folder of the site")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGALRM, _late)
    signal.alarm(MOST)
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        sys.exit(f"no browser is installed: {', '.join(BROWSERS)}")
    options.folder.mkdir(parents=True, exist_ok=True)
    kinds, wrong = options.only.split(","), list[str]()
    with contextlib.ExitStack() as stack:
        temporary = stack.enter_context(tempfile.TemporaryDirectory(prefix="forel-", ignore_cleanup_errors=True))
        browser = Browser(program, temporary)
        stack.callback(browser.close)

        def shoot(pages: dict[str, str], wait: Callable[[], None] = lambda: None) -> None:
            views = [(name, width, scheme) for name in pages for width in WIDTHS for scheme in SCHEMES]
            tabs = [browser.open(pages[name], width, scheme) for name, width, scheme in views]
            wait()
            for (name, width, scheme), tab in zip(views, tabs, strict=True):
                path = options.folder / f"{name}_{width}_{scheme}.png"
                wrong.extend(f"{path.name}: {one}" for one in browser.shoot(tab, path, width))
                print(path, flush=True)

        if "report" in kinds:
            shoot(reports(pathlib.Path(temporary)))
        if "site" in kinds:
            with site(options.site) as pages:
                shoot(pages)
        if "lab" in kinds:
            with running(temporary, "-m", "forel", "lab", "--port", "0") as lines:
                url = address(lines)
                shoot({"lab": url, "lab_you": url + "?adversary=you"})
        if "dashboard" in kinds:
            line = ("examples/loop.py", "--port", "0", "--leave-open", "--seconds", str(SECONDS))
            with running(temporary, *line) as lines:
                shoot({"dashboard": address(lines)}, lambda: print(next(one for one in lines if "stays open" in one)))
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
