"""A real browser for the tests of pages: it loads a page, runs its scripts, and returns what they write."""

import html
import json
import re
import shutil
import subprocess

import pytest

BROWSERS = "chromium", "chromium-browser", "google-chrome"
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic",
    "--enable-logging=stderr", "--dump-dom", "--window-size=1400,1000",
)  # fmt: skip
HANGS = 600  # seconds; a browser starts slowly on a busy machine

needs_browser = pytest.mark.skipif(BROWSER is None, reason=f"needs a browser: {', '.join(BROWSERS)}")


def found_by(url, profile, *flags):
    """What a page writes as JSON into its element ``found``, and the lines that its scripts log."""
    line = [BROWSER, *FLAGS, f"--user-data-dir={profile}", *flags, url]
    done = subprocess.run(line, capture_output=True, text=True, timeout=HANGS, check=False)
    written = re.search(r'<pre id="found">(.*?)</pre>', done.stdout)
    assert written, f"the page wrote nothing: {done.stderr[-2000:]}"
    return json.loads(html.unescape(written[1])), [one for one in done.stderr.splitlines() if "CONSOLE" in one]
