"""Throughput and latency of a server on the loopback interface, with the load generator on the same cores.

``python benchmarks/serve.py [--seconds 3] [--bits 18]``

Rows have 39 features, as those of Criteo. Every case runs a new server as a process. Printed are events per second, the
processor time of the server for each event, that of the load generator, and latencies at the client. Processor time
depends less on what else the machine does than rates do.
"""

import argparse
import asyncio
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

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


async def answer(reader):
    head = await reader.readuntil(b"\r\n\r\n")
    assert head[9:12] == b"200", head
    return await reader.readexactly(int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0]))


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


async def http(server, bodies, seconds, clients, rows=1, outcomes=None):
    """Requests of several clients, each of which waits for its answer."""
    waits, count, end = [], [0], time.perf_counter() + seconds

    async def client(number):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        k = number
        while (started := time.perf_counter()) < end:
            writer.write(bodies(k))
            await answer(reader)
            if outcomes is not None:
                started = time.perf_counter()
                writer.write(outcomes(k))
                await answer(reader)
            waits.append(time.perf_counter() - started)
            count[0] += rows
            k += clients
        writer.close()

    await asyncio.gather(*(client(k) for k in range(clients)))
    return count[0], waits


def cases(rows, labelled):
    """Names, and functions of a server and seconds."""
    single = [request("/v1/predict", {"row": row}) for row in rows[:2000]]
    many = [request("/v1/predict", {"rows": rows[k : k + 1000]}) for k in range(0, 8000, 1000)]

    def named(k):
        return request("/v1/predict", {"row": rows[k % len(rows)], "id": f"r{k}"})

    def outcome(k):
        return request("/v1/learn", {"id": f"r{k}", "label": k % 2})

    return {
        "VW lines, pipelined, predict": lambda s, t: pipelined(s, rows, t),
        "VW lines, pipelined, predict and learn": lambda s, t: pipelined(s, labelled, t),
        "VW lines, one at a time": lambda s, t: single_lines(s, rows, t),
        "HTTP, one row, 16 clients": lambda s, t: http(s, lambda k: single[k % len(single)], t, 16),
        "HTTP, 1,000 rows": lambda s, t: http(s, lambda k: many[k % len(many)], t, 2, 1000),
        "HTTP, row with id, then its outcome, 256 clients": lambda s, t: http(s, named, t, 256, outcomes=outcome),
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--bits", type=int, default=18)
    options = parser.parse_args()
    rows, labelled = lines(20_000, False), lines(20_000, True)
    print(f"load of the machine {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
    print(f"{'':50}{'':>9} {'events/s':>10} {'server µs':>10} {'client µs':>10} {'p50 µs':>8} {'p99 µs':>8}")
    for name, run in cases(rows, labelled).items():
        for one in (True, False):
            with Server(options.bits, one) as server:
                asyncio.run(run(server, 0.3))  # connections, and memory of arrays
                server_before, own_before, started = server.seconds, time.process_time(), time.perf_counter()
                count, waits = asyncio.run(run(server, options.seconds))
                took = time.perf_counter() - started
                used, own = server.seconds - server_before, time.process_time() - own_before
            kind = "one" if one else "default"
            quantiles = np.quantile(waits, [0.5, 0.99]) * 1e6 if waits else [np.nan, np.nan]
            figures = count / took, 1e6 * used / count, 1e6 * own / count, *quantiles
            shown = " ".join(f"{value:>{width},.1f}" for value, width in zip(figures, (10, 10, 10, 8, 8), strict=True))
            print(f"{name:50}{kind:>9} {shown}", flush=True)


if __name__ == "__main__":
    main()
