"""Whole processes, from a VW file to a model: forel train beside Vowpal Wabbit, same alpha, beta, L1 and bits.

One file of click-like rows is written to a temporary folder. Both sides are processes by wall clock, in turns; each is
also timed on the first half of the rows, so that what a row costs can be told from what a start costs. Vowpal Wabbit
is run from its Python package; without it only forel is timed. Nothing else should run meanwhile.
"""

import argparse
import importlib.util
import itertools
import json
import os
import pathlib
import random
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

from forel.data.clicks import write_clicks

BITS, ALPHA, BETA, L1 = 22, 0.1, 1.0, 1.0
SHORT = 3  # times that forel's one setting is run in each turn
# Modules come compiled, as they do where a package is installed.
INSTALLED = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
PEER = """
import sys
from vowpalwabbit import Workspace
Workspace(sys.argv[1]).finish()
"""


def forel(path, folder, *more):
    """Return the command that trains forel on a file, with Vowpal Wabbit's settings."""
    return mixture(path, folder, "--alpha", ALPHA, "--beta", BETA, "--l1", L1, *more)


def mixture(path, folder, *more):
    """Return the command that trains forel on a file, with settings that are mixed unless one is given."""
    line = (sys.executable, "-m", "forel", "train", path, "--model", folder / "m.forel", "--bits", BITS, "--json")
    return [str(word) for word in (*line, *more)]


def vw(path, folder):
    """Return the command that trains Vowpal Wabbit on a file."""
    options = (
        f"--ftrl -d {path} -f {folder / 'm.vw'} -b {BITS} --ftrl_alpha {ALPHA} --ftrl_beta {BETA} --l1 {L1} "
        "--loss_function logistic --no_stdin"
    )
    return [sys.executable, "-c", PEER, options]


def loss_of(done):
    """Return the progressive loss that a process told."""
    if done.stdout.startswith("{"):
        return json.loads(done.stdout)["report"]["loss"]
    return float(re.search(r"average loss = ([\d.]+)", done.stderr)[1])


def timed(runs, repeats):
    """Return the seconds, of the clock and of processors, and the last loss of each command, all in turns.

    In a turn, short commands are run a few times, and the median taken: a difference of two of them is small beside
    what starting a process takes, which varies.
    """
    seconds, used, losses = {name: [] for name in runs}, {name: [] for name in runs}, {}
    times = {name: 1 if name.startswith("VW") or name.endswith("mixed") else SHORT for name in runs}
    order, chance = [name for name in runs for _ in range(times[name])], random.Random(0)
    for _ in range(repeats + 1):
        turn = {name: [] for name in runs}
        # What a process leaves behind, such as memory to be given back, is not always the same one's to bear.
        chance.shuffle(order)
        for name in order:
            before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            done = subprocess.run(runs[name], capture_output=True, text=True, check=False, env=INSTALLED)
            took = time.perf_counter() - start
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            turn[name].append((took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
            if done.returncode:
                sys.exit(f"{name}: {done.stderr}")
            losses[name] = loss_of(done)
        for name, took in turn.items():
            for kept, one in zip((seconds, used), zip(*took, strict=True), strict=True):
                kept[name].append(statistics.median(one))
    # The first turn compiles, and brings the file into memory.
    later = lambda each: {name: kept[1:] for name, kept in each.items()}  # noqa: E731
    return later(seconds), later(used), losses


def ratio(slow, fast):
    """Return how many times as long one side took as the other: the median of the ratios of each turn."""
    return statistics.median(theirs / mine for theirs, mine in zip(slow, fast, strict=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--lanes", type=int, nargs="*", default=[4, 8, 16, 32], help="how many settings to mix")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        path, part = folder / "all.vw", folder / "part.vw"
        start = time.perf_counter()
        with path.open("wb") as file:
            truth = write_clicks(file, options.rows)
        took = time.perf_counter() - start
        few = options.rows // 2
        with path.open("rb") as file, part.open("wb") as first:
            first.writelines(itertools.islice(file, few))
        size = path.stat().st_size / 1e6
        print(f"\n{options.rows:,} rows, {size:.0f} MB, written in {took:.1f} s; the truth's log-loss {truth.loss:.4f}")
        runs = {"forel": forel(path, folder), "forel, a half": forel(part, folder)}
        runs["forel, certified"] = forel(path, folder, "--certificate")
        runs |= {f"forel, {k} mixed": mixture(path, folder, "--lanes", k) for k in options.lanes}
        peer = importlib.util.find_spec("vowpalwabbit") is not None
        if peer:
            runs |= {"VW": vw(path, folder), "VW, a half": vw(part, folder)}
        else:
            print("Vowpal Wabbit is not there (pip install vowpalwabbit), and not compared with")
        seconds, used, losses = timed(runs, options.repeats)
    print(f"medians of {options.repeats} processes in turns\n")
    middle = statistics.median
    for name, took in seconds.items():
        told = f"{middle(used[name]):8.3f} s of processors   progressive log-loss {losses[name]:.6f}"
        print(f"{name:18} {middle(took):8.3f} s   {told}")
    # Within a turn, so that a machine that is slow for a while is so for both parts of a difference.
    row = {
        side: middle(map(float.__sub__, seconds[side], seconds[f"{side}, a half"])) / (options.rows - few)
        for side in (("forel", "VW") if peer else ("forel",))
    }
    for side, took in row.items():
        print(f"{side + ', each added row':18} {1e6 * took:8.3f} µs")
    if peer:
        print(f"\nforel is {ratio(seconds['VW'], seconds['forel']):.1f} times as fast whole, ", end="")
        print(f"{row['VW'] / row['forel']:.1f} times for each added row, ", end="")
        print(f"and takes {ratio(used['VW'], used['forel']):.1f} times less of processors")
        for k in options.lanes:
            share = ratio(seconds[f"forel, {k} mixed"], seconds["VW"])
            print(f"{k} settings mixed take {share:.2f} of Vowpal Wabbit's time for one")


if __name__ == "__main__":
    main()
