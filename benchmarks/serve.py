"""Throughput and latency of a server on the loopback interface, with the load generator on the same cores.

``python benchmarks/serve.py [--seconds 3] [--bits 18]``

Rows have 39 features, as those of Criteo. Every case runs a new server as a process. Printed are events per second, the
processor time of the server for each event, that of the load generator, and latencies at the client. Processor time
depends less on what else the machine does than rates do. Outcomes are of rows that were predicted before time is
measured, and it is measured until they are learned.
"""

import argparse
import asyncio
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.request

import numpy as np
import uvloop

FEATURES, VOCABULARY = 39, 50_000
TICKS = os.sysconf("SC_CLK_TCK")


def lines(count, labelled, seed=0):
    """Rows of VW text."""
    rng = np.random.default_rng(seed)
    words = rng.zipf(1.3, (count, FEATURES)) % VOCABULARY
    labels = rng.integers(0, 2, count) * 2 - 1
    rows = [" ".join(f"|f{k} {word:x}" for k, word in enumerate(row)) for row in words.tolist()]
    return [f"{label} {row}" if labelled else row for label, row in zip(labels.tolist(), rows, strict=True)]


class Server:
    """A server process, and the processor time that it has used."""

    def __init__(self, bits, one_setting):
        self.folder = tempfile.TemporaryDirectory()
        options = ["--bits", str(bits), "--vw-port", "0", "--port", "0", *(["--alpha", "0.1"] if one_setting else [])]
        command = [sys.executable, "-m", "forel", "serve", self.folder.name, *options]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        line = ""
        while "ready on" not in line:
            line = self.process.stderr.readline()
            if not line:
                raise SystemExit("the server did not start")
        self.port = int(line.split("127.0.0.1:")[1].split(",")[0])
        self.vw_port = int(line.split("VW on port ")[1].split(";")[0])

    @property
    def seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def model(self):
        """What the server knows about its models."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/v1/model") as found:
            return json.load(found)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.terminate()
        self.process.wait()
        self.process.stderr.close()
        self.folder.cleanup()


def request(path, body):
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {len(data)}"
    return head.encode() + b"\r\n\r\n" + data


async def pipelined(server, rows, seconds):
    """Lines in blocks of 64 kB; the next block is sent while the answer of the last one is read."""
    text, size = [row.encode() for row in rows], 200
    blocks = [b"\n".join(text[k : k + size]) + b"\n" for k in range(0, len(text) - size, size)]
    reader, writer = await asyncio.open_connection("127.0.0.1", server.vw_port)
    done, waits, end, k, ahead = 0, [], time.perf_counter() + seconds, 0, 16
    sent = 0
    while time.perf_counter() < end:
        while sent - done < ahead * size:
            writer.write(blocks[k % len(blocks)])
            sent, k = sent + size, k + 1
        started = time.perf_counter()
        for found in (await reader.read(1 << 18)).split(b"\n")[:-1]:
            done += 1
            del found
        waits.append(time.perf_counter() - started)
    writer.close()
    return done, []


async def single_lines(server, rows, seconds):
    """One line at a time."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.vw_port)
    waits, end, k = [], time.perf_counter() + seconds, 0
    while (started := time.perf_counter()) < end:
        writer.write(rows[k % len(rows)].encode() + b"\n")
        await reader.readuntil(b"\n")
        waits.append(time.perf_counter() - started)
        k += 1
    writer.close()
    return k, waits


class Caller(asyncio.Protocol):
    """A client that waits for each answer; it only looks for the end of answers, so that it costs little itself."""

    def __init__(self, requests, waits, end):
        self.requests, self.waits, self.end = requests, waits, end
        self.done, self.found = asyncio.get_running_loop().create_future(), b""

    def connection_made(self, transport):
        self.transport = transport
        self.send()

    def send(self):
        self.started = time.perf_counter()
        data = next(self.requests, None) if self.started < self.end else None
        if data is None:
            self.transport.close()
            self.done.set_result(None)
        else:
            self.transport.write(data)

    def data_received(self, data):
        self.found += data
        head = self.found.find(b"\r\n\r\n") + 4
        if head > 3:
            assert self.found[9:12] == b"200", self.found
            at = self.found.find(b"content-length: ") + 16
            if len(self.found) == head + int(self.found[at : self.found.index(b"\r", at)]):
                self.waits.append(time.perf_counter() - self.started)
                self.found = b""
                self.send()


async def http(server, requests, seconds, clients, rows=1):
    """Requests of several clients, each of which waits for its answer."""
    waits, loop, end = [], asyncio.get_running_loop(), time.perf_counter() + seconds
    made = [await loop.create_connection(lambda: Caller(requests, waits, end), "127.0.0.1", server.port)
            for _ in range(clients)]  # fmt: skip
    await asyncio.gather(*(protocol.done for _, protocol in made))
    return len(waits) * rows, waits


class Outcomes:
    """Outcomes by id, of rows that were predicted before time is measured."""

    def __init__(self, rows, batch=1):
        self.rows, self.batch, self.predicted, self.sent = rows, batch, 0, 0

    async def prepare(self, server, count):
        """Let a server predict rows with ids."""

        def requests(k):
            rows = [self.rows[(k + j) % len(self.rows)] for j in range(1000)]
            return request("/v1/predict", {"rows": rows, "ids": [f"r{k + j}" for j in range(1000)]})

        first, self.predicted = self.predicted, self.predicted + count
        await http(server, (requests(k) for k in range(first, first + count, 1000)), 1e9, 2)

    def requests(self):
        """Yield requests with outcomes."""
        while self.sent + self.batch <= self.predicted:
            ids = range(self.sent, self.sent + self.batch)
            self.sent += self.batch
            if self.batch == 1:
                yield request("/v1/learn", {"id": f"r{ids[0]}", "label": ids[0] % 2})
            else:
                yield request("/v1/learn", {"outcomes": [{"id": f"r{k}", "label": k % 2} for k in ids]})

    async def measured(self, server, seconds, clients):
        """Tell the outcomes, and wait until they are learned."""
        found = await http(server, self.requests(), seconds, clients, self.batch)
        while server.model()["queue"]:
            await asyncio.sleep(0.1)
        return found


def cases(rows, labelled):
    """Names, and functions of a server and seconds, and what comes before them."""
    single = [request("/v1/predict", {"row": row}) for row in rows[:2000]]
    many = [request("/v1/predict", {"rows": rows[k : k + 1000]}) for k in range(0, 8000, 1000)]

    def of_server(run):
        return lambda server: (None, lambda seconds: run(server, seconds))

    def outcomes(batch, clients, rate):
        def of_server(server):
            found = Outcomes(rows, batch)
            return (lambda seconds: found.prepare(server, int(rate * seconds)),
                    lambda seconds: found.measured(server, seconds, clients))  # fmt: skip

        return of_server

    return {
        "VW lines, pipelined, predict": of_server(lambda s, t: pipelined(s, rows, t)),
        "VW lines, pipelined, predict and learn": of_server(lambda s, t: pipelined(s, labelled, t)),
        "VW lines, one at a time": of_server(lambda s, t: single_lines(s, rows, t)),
        "HTTP, one row, 16 clients": of_server(lambda s, t: http(s, itertools.cycle(single), t, 16)),
        "HTTP, 1,000 rows": of_server(lambda s, t: http(s, itertools.cycle(many), t, 2, 1000)),
        "HTTP, outcomes by id on the disk, 256 clients": outcomes(1, 256, 50_000),
        "HTTP, outcomes by id on the disk, 100 at a time": outcomes(100, 8, 100_000),
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--bits", type=int, default=18)
    parser.add_argument("--only", default="", help="cases whose name has this")
    options = parser.parse_args()
    rows, labelled = lines(20_000, False), lines(20_000, True)
    print(f"load of the machine {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
    print(f"{'':50}{'':>9} {'events/s':>10} {'server µs':>10} {'client µs':>10} {'p50 µs':>8} {'p99 µs':>8}")
    for name, case in cases(rows, labelled).items():
        if options.only not in name:
            continue
        for one in (True, False):
            with Server(options.bits, one) as server:
                before, measured = case(server)
                for seconds in (0.3, options.seconds):  # the first one for connections, and memory of arrays
                    if before is not None:
                        uvloop.run(before(seconds))
                    server_before, own_before, started = server.seconds, time.process_time(), time.perf_counter()
                    count, waits = uvloop.run(measured(seconds))
                    took = time.perf_counter() - started
                used, own = server.seconds - server_before, time.process_time() - own_before
            kind = "one" if one else "default"
            quantiles = np.quantile(waits, [0.5, 0.99]) * 1e6 if waits else [np.nan, np.nan]
            figures = count / took, 1e6 * used / count, 1e6 * own / count, *quantiles
            shown = " ".join(f"{value:>{width},.1f}" for value, width in zip(figures, (10, 10, 10, 8, 8), strict=True))
            print(f"{name:50}{kind:>9} {shown}", flush=True)


if __name__ == "__main__":
    main()
