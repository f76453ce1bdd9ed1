"""``forel lab``: a local page on which online learning is assembled, played and seen."""

import webbrowser
from typing import TYPE_CHECKING

from forel.cli.errors import errors_as_messages
from forel.cli.printing import say

if TYPE_CHECKING:
    from forel.lab.server import LabServer


def lab(*, port: int = 8090, browser: bool = False) -> None:
    """Open a page for teaching: play against online learners.

    Points in their set, regret under its bound, the Strong FTRL Lemma and the
    code of the game. Nothing is loaded from elsewhere.

    Examples:
      forel lab
      forel lab --port 0 --browser

    Options
    -------
    port : Of this machine alone; 0 for any that is free.
    browser : Open the page in a browser.
    """
    with errors_as_messages():
        from forel.lab.server import serve
        from forel.validation import number

        def ready(server: "LabServer") -> None:
            say(f"forel: ready on {server.url}; Ctrl-C stops")
            if browser:
                webbrowser.open(server.url)

        serve(int(number("port", port, "0 to 65535", 0, 65535)), ready)
