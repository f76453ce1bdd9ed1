"""Whole processes, from a table to a model.

Peer: datatable's ``fread`` and ``Ftrl.fit`` with two threads and the same alpha, beta, L1 and number of slots, if
installed. It does not read Parquet, so forel's Parquet is compared with its CSV.
Input: 2,000,000 click-like rows with 39 string columns, as CSV and as Parquet, in a temporary folder.
Output: medians in turns of wall-clock and CPU seconds, and ratios. Run it on an idle machine; otherwise compare CPU
seconds.
"""

import argparse
import importlib.util
import pathlib
import statistics
import sys
import tempfile

from timing import run_process
from train import ALPHA, BETA, BITS, L1

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
    """Command that trains forel on a table."""
    settings = ("--label", "click", "--alpha", ALPHA, "--beta", BETA, "--l1", L1, "--bits", BITS, "--json")
    return [str(word) for word in (sys.executable, "-m", "forel", "train", path, *settings)]


def timed(runs, repeats):
    """Median wall-clock and CPU seconds of each command, all run in turns."""
    seconds = {name: [] for name in runs}
    for _ in range(repeats + 1):
        for name, command in runs.items():
            _, wall, used = run_process(name, command)
            seconds[name].append((wall, used))
    # The first turn compiles and reads the files into memory.
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
            print("datatable is not installed (pip install datatable): no comparison")
        seconds = timed(runs, options.repeats)
    print(f"medians of {options.repeats} processes in turns\n")
    for name, (wall, used) in seconds.items():
        print(f"{name:16} {wall:8.3f} s   {used:8.3f} s CPU")
    if peer:
        for name in ("forel, CSV", "forel, Parquet"):
            wall, used = (theirs / ours for theirs, ours in zip(seconds["datatable, CSV"], seconds[name], strict=True))
            print(f"{name} is {wall:.1f} times as fast and uses {used:.1f} times less CPU time")


if __name__ == "__main__":
    main()
