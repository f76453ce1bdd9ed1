"""Starting and stopping a server: its folder, sockets, clocks and signals."""

import asyncio
import contextlib
import ipaddress
import os
import signal
import ssl
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np

from forel.learner.rows import CoalescedRows
from forel.log import Folder
from forel.log.champion import Contest, Event, new_comparison
from forel.log.records import pack_rows
from forel.serve.api import Api
from forel.serve.connection import Limits, Site
from forel.serve.http import LOOPBACK, Http
from forel.serve.intake import Intake
from forel.serve.lines import Lines
from forel.serve.models import check_served
from forel.serve.service import Service, Waiting
from forel.training.model import Model
from forel.validation import refuse

__all__ = ["ServeOptions", "Server", "serve"]

CLOCK, SLOW = 0.05, 20  # seconds between looks at what waited too long, and looks for which others are due once


@dataclass(frozen=True)
class ServeOptions:
    """How a folder is served.

    Parameters
    ----------
    host, port : of HTTP; port 0 for any that is free
    vw_port : of the protocol of VW's daemon; None for none
    token : that requests have to bear; required for addresses that others reach
    cert, key : files for TLS
    waiting, limits : what waits, and what a client may use
    every : rows learned between checkpoints
    retain : seconds for which the log is kept; None for ever
    level : of the comparison of models; None for that of the folder, 0.05 at first
    promote : whether a challenger that is better by that test is promoted by itself
    stream : URL of a topic in Kafka to learn from; None for none
    """

    host: str = "127.0.0.1"
    port: int = 8080
    vw_port: int | None = None
    token: str | None = None
    cert: str | None = None
    key: str | None = None
    waiting: Waiting = field(default_factory=Waiting)
    limits: Limits = field(default_factory=Limits)
    every: int = 100_000
    retain: float | None = None
    level: float | None = None
    promote: bool = False
    stream: str | None = None

    def __post_init__(self) -> None:
        if not loopback(self.host) and not self.token:
            raise refuse("host", self.host, "127.0.0.1, or a token (--token-file) that requests have to bear")
        if self.vw_port is not None and not loopback(self.host):
            raise refuse("vw_port", self.vw_port, f"none with host {self.host}: that protocol has no token")
        if (self.cert is None) != (self.key is None):
            raise refuse("cert, key", self.cert or self.key, "both, or none")


def loopback(host: str) -> bool:
    """Return whether only this machine reaches an address.

    >>> loopback("localhost"), loopback("::1"), loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Server:
    """A running server.

    Parameters
    ----------
    path : the folder of its log and models
    model : to begin with; None where the folder has one
    options : how it is served
    """

    def __init__(self, path: str | os.PathLike[str], model: Model | None = None, options: ServeOptions | None = None):
        self.path, self.first, self.options = Path(path), model, options or ServeOptions()
        if model is not None:
            check_served(model)

    async def start(self) -> "Server":
        """Recover, compile, and listen; return the server itself."""
        options = self.options
        self.folder = Folder(self.path, self.first, keep=options.retain is not None)
        self.service = Service(
            self.folder, options.waiting, options.limits.features, options.every, options.promote, options.retain
        )
        if options.waiting.negative:
            self.service.coding.label(0)  # raises where there is no negative
        if options.level not in (None, self.folder.contest.level):
            self.service.control({"level": options.level}, lambda statuses: None)
        self._warm()
        self.intake = None if options.stream is None else Intake(self.service, options.stream)
        self.api = Api(self.service, options.limits)
        hosts = () if options.token else (*LOOPBACK, options.host)
        self.site = Site(self.api.handle, options.limits, options.token, hosts)
        tls = None
        if options.cert is not None:
            tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            tls.load_cert_chain(options.cert, options.key)
        loop = asyncio.get_running_loop()
        self.sockets = [await loop.create_server(lambda: Http(self.site), options.host, options.port, ssl=tls)]
        self.port = self.sockets[0].sockets[0].getsockname()[1]
        self.vw_port = None
        if options.vw_port is not None:
            made = partial(Lines, self.service, self.site)
            lines = await loop.create_server(made, options.host, options.vw_port, ssl=tls)
            self.sockets.append(lines)
            self.vw_port = lines.sockets[0].getsockname()[1]
        self._clock = loop.create_task(self._tick())
        return self

    def _warm(self) -> None:
        """Compile what requests need before the first one arrives."""
        model, coding, rows = self.service.model, self.service.coding, self.service.rows.of_lines(b"|a b\n")
        packed, margins = pack_rows(CoalescedRows(*rows[:3])), self.service.margins(CoalescedRows(*rows[:3]))
        label = coding.label((coding.classes or (1,))[0])
        contest = Contest(replace(model, learner=model.learner.copy()))
        contest.learn([Event(0, 0.0, [packed], np.array([label]), np.ones(1, np.float32), margins)])
        new_comparison(model, 0.05).add([0.5], [0.5])

    async def _tick(self) -> None:
        """Settle what waited too long, close idle connections, and publish numbers."""
        for number in count(1):
            await asyncio.sleep(CLOCK)
            try:
                self.service.expire()  # often, so that negatives come between positives, and not all at once
                self.service.schedule_learning()
                if number % SLOW == 0:
                    self.site.sweep()
                    self.api.publish()
            except Exception:  # a defect: the clock goes on
                traceback.print_exc()

    @property
    def url(self) -> str:
        """The address of the page."""
        scheme, host = "http" if self.options.cert is None else "https", self.options.host
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{self.port}"

    async def stop(self) -> None:
        """Stop listening, answer what was asked, learn what was recorded, and save."""
        for one in self.sockets:
            one.close()
        self._clock.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._clock
        if self.intake is not None:
            await asyncio.to_thread(self.intake.close)
        self.service.flush()
        self.service.close()
        for connection in list(self.site.connections):
            connection.transport.close()


def serve(
    path: str | os.PathLike[str], model: Model | None = None, options: ServeOptions | None = None,
    ready: Callable[[Server], None] | None = None,
) -> None:  # fmt: skip
    """Serve a folder until the process is asked to stop.

    Parameters
    ----------
    path, model, options : as in :class:`Server`
    ready : called when it listens
    """

    async def main() -> None:
        server = await Server(path, model, options).start()
        done, loop = asyncio.Event(), asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, done.set)
        if ready is not None:
            ready(server)
        await done.wait()
        await server.stop()

    if sys.platform == "win32":
        asyncio.run(main())
    else:
        import uvloop

        uvloop.run(main())
