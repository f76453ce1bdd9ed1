"""Peak memory of whole training processes, which does not grow with the number of rows.

Peer: Vowpal Wabbit ``--ftrl`` with the same settings, if its Python package is installed.
Input: VW files of 1,000,000 and 4,000,000 click-like rows in a temporary folder, 350 MB per million rows.
Output: the peak resident memory of each process, as reported by the system. A model file has every slot seen so far, so
writing it takes more memory with more rows, until all 2^22 slots have been seen.
"""

import argparse
import importlib.util
import itertools
import os
import pathlib
import subprocess
import sys
import tempfile

from train import forel, vw

from forel.data.clicks import write_clicks


def without_model(line):
    """Remove ``--model`` from a command."""
    place = line.index("--model")
    return line[:place] + line[place + 2 :]


def peak(line):
    """Peak resident memory of a process in MB."""
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            errors.seek(0)
            sys.exit(f"{' '.join(line)}: {errors.read().decode()}")
    process.returncode = 0  # wait4 has collected it
    return usage.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 4_000_000])
    options = parser.parse_args()
    peer = importlib.util.find_spec("vowpalwabbit") is not None
    if not peer:
        print("Vowpal Wabbit is not installed (pip install vowpalwabbit): no comparison")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        whole, part = folder / "whole.vw", folder / "part.vw"
        with whole.open("wb") as file:
            write_clicks(file, max(options.rows))
        runs = {
            "forel train, no model written": lambda path: without_model(forel(path, folder)),
            "forel train --model": lambda path: forel(path, folder),
            "… --certificate --report": lambda path: forel(
                path, folder, "--certificate", "--report", folder / "report.html"
            ),
            **({"Vowpal Wabbit --ftrl": lambda path: vw(path, folder)} if peer else {}),
        }
        for rows in sorted(options.rows):
            path = whole if rows == max(options.rows) else part
            if path == part:
                with whole.open("rb") as file, part.open("wb") as first:
                    first.writelines(itertools.islice(file, rows))
            print(f"\n{rows:,} rows, {path.stat().st_size / 1e6:,.0f} MB of text; peak memory")
            for label, line in runs.items():
                print(f"{label:36} {peak(line(path)):6.0f} MB", flush=True)


if __name__ == "__main__":
    main()
