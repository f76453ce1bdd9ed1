"""Whole processes, from a table to a model: forel train beside datatable, same alpha, beta, L1 and number of slots.

One table of click-like rows, 39 columns of words, is written as CSV, and the same as Parquet by pyarrow. Both sides are
processes by wall clock, in turns. datatable gets two threads, reads the CSV with its own reader, which is the best it
has, and does not read Parquet at all: forel's Parquet is compared with datatable's CSV. Nothing else should run
meanwhile; processor seconds, of all threads together, tell more where that cannot be had.
"""

import argparse
import importlib.util
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

from train import ALPHA, BETA, BITS, INSTALLED, L1

from forel.data.clicks import write_clicks

PEER = f"""
import sys
import datatable
from datatable.models import Ftrl
datatable.options.nthreads = 2
frame = datatable.fread(sys.argv[1])
label = frame[:, datatable.as_type(datatable.f.click, datatable.bool8)]
del frame["click"]
Ftrl(alpha={ALPHA}, beta={BETA}, lambda1={L1}, lambda2=0.0, nbins=1 << {BITS}, nepochs=1).fit(frame, label)
"""


def forel(path):
    """Return the command that trains forel on a table."""
    settings = ("--label", "click", "--alpha", ALPHA, "--beta", BETA, "--l1", L1, "--bits", BITS, "--json")
    return [str(word) for word in (sys.executable, "-m", "forel", "train", path, *settings)]


def timed(runs, repeats):
    """Return the median wall clock and processor seconds of each command, all of them in turns."""
    seconds = {name: [] for name in runs}
    for _ in range(repeats + 1):
        for name, line in runs.items():
            before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            done = subprocess.run(line, capture_output=True, text=True, check=False, env=INSTALLED)
            wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
            if done.returncode:
                sys.exit(f"{name}: {done.stderr}")
            seconds[name].append((wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
    # The first turn compiles, and brings the files into memory.
    return {
        name: [statistics.median(column) for column in zip(*kept[1:], strict=True)] for name, kept in seconds.items()
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    import pyarrow.csv
    import pyarrow.parquet

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        text, packed = folder / "clicks.csv", folder / "clicks.parquet"
        with text.open("wb") as file:
            write_clicks(file, options.rows, "csv")
        pyarrow.parquet.write_table(pyarrow.csv.read_csv(text), packed)
        sizes = " and ".join(f"{path.stat().st_size / 1e6:.0f} MB of {path.suffix[1:]}" for path in (text, packed))
        print(f"\n{options.rows:,} rows of 39 categories, {sizes}")
        runs = {"forel, CSV": forel(text), "forel, Parquet": forel(packed)}
        peer = importlib.util.find_spec("datatable") is not None
        if peer:
            runs["datatable, CSV"] = [sys.executable, "-c", PEER, str(text)]
        else:
            print("datatable is not there (pip install datatable), and not compared with")
        seconds = timed(runs, options.repeats)
    print(f"medians of {options.repeats} processes in turns\n")
    for name, (wall, used) in seconds.items():
        print(f"{name:16} {wall:8.3f} s   {used:8.3f} s of processors")
    if peer:
        for name in ("forel, CSV", "forel, Parquet"):
            wall, used = (theirs / ours for theirs, ours in zip(seconds["datatable, CSV"], seconds[name], strict=True))
            print(f"{name} is {wall:.1f} times as fast, with {used:.1f} times less of processors")


if __name__ == "__main__":
    main()
