"""A learning loop: clicks are predicted as they come, and their outcomes arrive late.

``python examples/loop.py [--seconds 60] [--port 8080] [--leave-open]``

A server runs as a process of its own. Visitors are predicted; whether one clicked is reported seconds later, and of one
in ten it never is. In the middle the server is killed, and comes back with everything it acknowledged.
After two thirds the taste of the visitors changes: an alarm says so, and since which row. A challenger that learns
faster is added at the start, and promoted when the test shows that it is better. The page of the server shows all of
it live; ``--leave-open`` keeps it until Ctrl-C.
"""

import argparse
import heapq
import math
import random
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any

from forel.log import replay
from forel.serve import Client

SITES, ADS = [f"site{k}" for k in range(12)], [f"ad{k}" for k in range(30)]
RATE, DELAY, LOST, WAIT = 25, 1.0, 0.1, "10s"  # visitors in a step; mean delay; never reported; when they are dropped


def start(folder: str, port: int, *options: str) -> tuple[Any, str]:
    """Start a server, and return its process and address."""
    line = [sys.executable, "-m", "forel", "serve", folder, "--port", str(port), "--wait", WAIT]
    process = subprocess.Popen([*line, "--promote-at", "0.01", *options], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    said = [process.stderr.readline().strip(), process.stderr.readline().strip()]
    print("\n".join(said), flush=True)
    return process, said[1].split()[3].rstrip(";")


def end(server: Any, client: Client) -> None:
    """Wait for the end of a server, and close what is open."""
    server.wait()
    server.stderr.close()
    client.close()


class Visitors:
    """Visitors with tastes, and the outcomes that are still to be reported."""

    def __init__(self, seed: int = 5) -> None:
        self.random, self.count, self.late = random.Random(seed), 0, list[tuple[float, str, int]]()
        self.change()

    def change(self) -> None:
        """Change what visitors of each site like."""
        self.taste = {(site, ad): self.random.gauss(-1.0, 3.0) for site in SITES for ad in ADS}

    def some(self, now: float) -> tuple[list[str], list[dict[str, Any]]]:
        """Return ids and rows of visitors, and note who will click, and when that is reported."""
        ids, rows = list[str](), list[dict[str, Any]]()
        for _ in range(RATE):
            site, ad = self.random.choice(SITES), self.random.choice(ADS)
            ids.append(f"view-{self.count}")
            rows.append({"site": site, "ad": ad, "both": f"{site} {ad}"})
            self.count += 1
            clicked = int(self.random.random() < 1 / (1 + math.exp(-self.taste[site, ad])))
            if self.random.random() > LOST:
                heapq.heappush(self.late, (now + self.random.expovariate(1 / DELAY), ids[-1], clicked))
        return ids, rows

    def outcomes(self, now: float) -> list[tuple[str, int]]:
        """Return the outcomes that have become known."""
        found = list[tuple[str, int]]()
        while self.late and self.late[0][0] <= now:
            found.append(heapq.heappop(self.late)[1:])
        return found


def main() -> None:
    """Run the loop, and say what happens."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--leave-open", action="store_true")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="forel-loop-")
    server, url = start(folder, options.port, "--alpha", "0.01", "--bits", "18", "--certificate")
    print(f"its page: {url}", flush=True)
    client, visitors, began = Client(url, retries=40), Visitors(), time.time()
    client.change(add="faster", settings={"alpha": 0.3})
    killed = changed = False
    served, told, alarms = "initial", 0.0, list[str]()
    while (now := time.time()) < began + options.seconds:
        part = (now - began) / options.seconds
        if part > 1 / 3 and not killed:
            server.send_signal(signal.SIGKILL)
            end(server, client)
            print(f"{now - began:5.1f} s: killed", flush=True)
            server, url = start(folder, int(url.rpartition(":")[2]))
            client, killed = Client(url, retries=40), True
        if part > 2 / 3 and not changed:
            visitors.change()
            changed = True
            print(f"{now - began:5.1f} s: visitors like other things now", flush=True)
        client.predict_many(*reversed(visitors.some(now)))
        client.learn_many(visitors.outcomes(now))
        if now > told + 2:
            told, found = now, client.model()
            if found["served"] != served:
                served = found["served"]
                print(f"{now - began:5.1f} s: {served} was promoted: it is better at level 1 %", flush=True)
            if found["alarms"]["found"] != alarms:
                alarms = found["alarms"]["found"]
                print(f"{now - began:5.1f} s: {found['alarms']['sentence']}", flush=True)
        time.sleep(0.02)
    found = client.model()
    print(f"{found['rows']:,} outcomes learned, {found['waiting']:,} wait; loss as served "
          f"{found['loss']['as_served']:.4f}, cost of delay {found['loss']['cost_of_delay']:.4f}")  # fmt: skip
    if options.leave_open:
        print(f"{url} stays open until Ctrl-C", flush=True)
        signal.sigwait([signal.SIGINT])
    server.terminate()
    end(server, client)
    print(f"the replay of the log has learned {replay(folder).rows:,} rows")


if __name__ == "__main__":
    main()
