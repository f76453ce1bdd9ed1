"""Peak memory of whole processes, from a VW file to a model: it does not grow with the rows. Beside Vowpal Wabbit.

Files of click-like rows are written to a temporary folder, 350 MB for a million rows. A process's peak is what the
system says of it when it has ended. New categories go on coming, and the file of a model has every slot that was seen,
so that putting it together takes a little more room, until all 2^22 slots were seen.
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
    """Return a command that learns, and writes nothing."""
    place = line.index("--model")
    return line[:place] + line[place + 2 :]


def peak(line):
    """Return the most memory that a process held, in MB."""
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=said)
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            said.seek(0)
            sys.exit(f"{' '.join(line)}: {said.read().decode()}")
    process.returncode = 0  # it was waited for here
    return usage.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 4_000_000])
    options = parser.parse_args()
    peer = importlib.util.find_spec("vowpalwabbit") is not None
    if not peer:
        print("Vowpal Wabbit is not there (pip install vowpalwabbit), and not compared with")
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
