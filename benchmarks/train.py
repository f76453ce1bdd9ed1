"""Whole processes, from a VW file to a model.

Peer: Vowpal Wabbit ``--ftrl`` from its Python package, if installed, with the same alpha, beta, L1 and bits.
Input: VW files of 2,000,000 click-like rows in a temporary folder, one for each shape of ``shapes.py``, and their first
halves, which separate the cost of a row from the cost of starting a process.
Output: medians in turns of wall-clock and CPU seconds, the time per additional row, and ratios, for one setting and for
the default experts. Run it on an idle machine.
"""

import argparse
import importlib.util
import itertools
import json
import pathlib
import random
import re
import statistics
import sys
import tempfile
import time

from shapes import SHAPES
from timing import median_ratio, run_process

BITS, ALPHA, BETA, L1 = 22, 0.1, 1.0, 1.0
SHORT, ONE_SETTING = 3, ("forel", "forel, a half", "forel, certified")  # runs per turn of commands with one setting
DEFAULT = "forel, default"
PEER = """
import sys
from vowpalwabbit import Workspace
Workspace(sys.argv[1]).finish()
"""


def forel(path, folder, *more):
    """Command that trains forel on a file with the settings of Vowpal Wabbit."""
    return mixture(path, folder, "--alpha", ALPHA, "--beta", BETA, "--l1", L1, *more)


def mixture(path, folder, *more):
    """Command that trains forel on a file, with a mixture of settings unless one is given."""
    line = (sys.executable, "-m", "forel", "train", path, "--model", folder / "m.forel", "--bits", BITS, "--json")
    return [str(word) for word in (*line, *more)]


def vw(path, folder):
    """Command that trains Vowpal Wabbit on a file."""
    options = (
        f"--ftrl -d {path} -f {folder / 'm.vw'} -b {BITS} --ftrl_alpha {ALPHA} --ftrl_beta {BETA} --l1 {L1} "
        "--loss_function logistic --no_stdin"
    )
    return [sys.executable, "-c", PEER, options]


def loss_of(done):
    """Progressive loss printed by a process."""
    if done.stdout.startswith("{"):
        return json.loads(done.stdout)["report"]["loss"]
    return float(re.search(r"average loss = ([\d.]+)", done.stderr)[1])


def timed(runs, repeats):
    """Wall-clock seconds, CPU seconds and the last loss of each command, all run in turns.

    Short commands run several times per turn and their median counts: the difference of two of them is small compared
    with the time to start a process, which varies.
    """
    seconds, used, losses = {name: [] for name in runs}, {name: [] for name in runs}, {}
    times = {name: SHORT if name in ONE_SETTING else 1 for name in runs}
    order, rng = [name for name in runs for _ in range(times[name])], random.Random(0)
    for _ in range(repeats + 1):
        turn = {name: [] for name in runs}
        # Random order, so that the aftermath of one process, such as freeing memory, affects all others alike.
        rng.shuffle(order)
        for name in order:
            done, wall, cpu = run_process(name, runs[name])
            turn[name].append((wall, cpu))
            losses[name] = loss_of(done)
        for name, took in turn.items():
            for kept, one in zip((seconds, used), zip(*took, strict=True), strict=True):
                kept[name].append(statistics.median(one))
    # The first turn compiles and reads the file into memory.
    later = lambda each: {name: kept[1:] for name, kept in each.items()}  # noqa: E731
    return later(seconds), later(used), losses


def compare(shape, folder, options):
    """Time all commands on a file of one shape, and print medians and ratios."""
    path, part = folder / "all.vw", folder / "part.vw"
    start = time.perf_counter()
    SHAPES[shape](path, options.rows)
    took = time.perf_counter() - start
    few = options.rows // 2
    with path.open("rb") as file, part.open("wb") as first:
        first.writelines(itertools.islice(file, few))
    size = path.stat().st_size / 1e6
    print(f"\nshape {shape}: {options.rows:,} rows, {size:.0f} MB, written in {took:.1f} s")
    runs = {"forel": forel(path, folder), "forel, a half": forel(part, folder), DEFAULT: mixture(path, folder)}
    if options.certified:
        runs["forel, certified"] = forel(path, folder, "--certificate")
    runs |= {f"forel, {k} mixed": mixture(path, folder, "--lanes", k) for k in options.lanes}
    peer = importlib.util.find_spec("vowpalwabbit") is not None
    if peer:
        runs |= {"VW": vw(path, folder), "VW, a half": vw(part, folder)}
    else:
        print("Vowpal Wabbit is not installed (pip install vowpalwabbit): no comparison")
    seconds, used, losses = timed(runs, options.repeats)
    print(f"medians of {options.repeats} processes in turns\n")
    middle = statistics.median
    for name, took in seconds.items():
        rest = f"{middle(used[name]):8.3f} s CPU   progressive log-loss {losses[name]:.6f}"
        print(f"{name:18} {middle(took):8.3f} s   {rest}")
    # Differences within a turn, so that a slow phase of the machine affects both parts.
    row = {
        side: middle(map(float.__sub__, seconds[side], seconds[f"{side}, a half"])) / (options.rows - few)
        for side in (("forel", "VW") if peer else ("forel",))
    }
    for side, took in row.items():
        print(f"{side + ', per added row':18} {1e6 * took:8.3f} µs")
    if peer:
        print(f"\nforel is {median_ratio(seconds['VW'], seconds['forel']):.1f} times as fast on the file, ", end="")
        print(f"{row['VW'] / row['forel']:.1f} times per added row, ", end="")
        print(f"and uses {median_ratio(used['VW'], used['forel']):.1f} times less CPU time")
        for name in (DEFAULT, *(f"forel, {k} mixed" for k in options.lanes)):
            ratios = (median_ratio(times["VW"], times[name]) for times in (seconds, used))
            print(
                "{} is {:.2f} times as fast as one setting of VW, with {:.2f} times less CPU time".format(name, *ratios)
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", nargs="*", choices=SHAPES, default=list(SHAPES), help="shapes of lines")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--certified", action="store_true", help="also with --certificate")
    parser.add_argument("--lanes", type=int, nargs="*", default=[], help="also grids with these numbers of settings")
    options = parser.parse_args()
    for shape in options.shape:
        with tempfile.TemporaryDirectory() as name:
            compare(shape, pathlib.Path(name), options)


if __name__ == "__main__":
    main()
