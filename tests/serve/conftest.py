"""Servers for tests: in the process of the test, or as a process that can be killed."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import asynccontextmanager, suppress

import pytest

pytest.importorskip("msgspec", reason="the extra serve is not installed")
pytest.importorskip("httptools", reason="the extra serve is not installed")

from forel.data import ReadOptions
from forel.learner.learner import Learner
from forel.learner.settings import Settings
from forel.serve import ServeOptions, Server
from forel.training.model import Model

BITS = 10


def new_model(settings=None, reading=None, **options):
    return Model(
        Learner(1 << BITS, settings or Settings(alpha=0.5), **options),
        {"reading": ReadOptions(bits=BITS, **(reading or {})).stored},
    )


OPEN = []  # what connections of a test write to


class Connection:
    """One connection to a server, which sends bytes and reads answers."""

    def __init__(self, port):
        self.port = port

    async def open(self):
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        OPEN.append(self.writer)
        return self

    async def send(self, method, path, body=None, kind="application/json", headers=""):
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {kind}\r\n{headers}"
        self.writer.write(f"{head}content-length: {len(data)}\r\n\r\n".encode() + data)
        return await self.answer()

    async def answer(self):
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        size = int(head.lower().split("content-length:")[1].split("\r\n")[0])
        content = await self.reader.readexactly(size)
        is_json = "application/json" in head
        return int(head[9:12]), json.loads(content) if is_json else content

    async def post(self, path, body, **more):
        return await self.send("POST", path, body, **more)

    async def get(self, path):
        return await self.send("GET", path)


async def close_all():
    """Close all connections of a test."""
    for writer in OPEN:
        writer.close()
        with suppress(ConnectionError, RuntimeError):  # of the loop of a test that failed
            await writer.wait_closed()
    OPEN.clear()


@asynccontextmanager
async def running(path, model=None, **options):
    server = await Server(path, model, ServeOptions(port=0, **options)).start()
    connection = await Connection(server.port).open()
    try:
        yield server, connection
    finally:
        await server.stop()
        await close_all()


async def settled(server):
    """Wait until everything recorded is learned."""
    while server.service.todo or server.service.unacknowledged:
        await asyncio.sleep(0.001)


class Process:
    """``forel serve`` as a process."""

    def __init__(self, folder, *options):
        command = [sys.executable, "-m", "forel", "serve", str(folder), "--port", "0", *options]
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        self.lines = []
        limit = threading.Timer(120, self.process.kill)
        limit.start()
        while not any("ready on" in line for line in self.lines):
            line = self.process.stderr.readline()
            assert line, (self.lines, "the server did not start")
            self.lines.append(line)
        limit.cancel()
        self.port = int(self.lines[-1].split("http://127.0.0.1:")[1].split(",")[0].split(";")[0])
        vw = self.lines[-1].partition("VW on port ")[2].split(";")[0]
        self.vw_port = int(vw) if vw else None

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        code = self.process.wait(60)
        self.process.stderr.close()
        return code


@pytest.fixture
def serving():
    """Return :func:`running`, :func:`new_model`, :func:`settled` and :class:`Process`, whose processes are ended."""

    class Serving:
        model = staticmethod(new_model)
        running = staticmethod(running)
        settled = staticmethod(settled)
        connection = Connection
        close = staticmethod(close_all)

        def process(self, *arguments):
            self.started.append(Process(*arguments))
            return self.started[-1]

    found = Serving()
    found.started = []
    yield found
    for one in found.started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()
            one.process.stderr.close()
