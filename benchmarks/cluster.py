"""Training with files read on a local Ray of two workers, against one process.

Input: generated clicks of 39 features as VW text in gzip and as Parquet, four files each.
Output: wall-clock medians in turns and their ratio, on two cores, in a process that is connected to a running Ray; the
same of whole commands, which start, connect and leave; processor time of a row read and learned.
"""

import argparse
import gzip
import io
import pathlib
import statistics
import sys
import tempfile
import time

import numpy as np
import pyarrow.csv
import pyarrow.parquet
from timing import median_ratio, run_process, time_in_turns, without_preparation

import forel
from forel.data import concatenate, read
from forel.data.clicks import write_clicks
from forel.learner.grid import default_grid
from forel.learner.learner import Learner
from forel.learner.rows import CoalescedRows
from forel.ray import RayWorkers

FILES = 4


def write(folder, rows):
    """Write four files of each format."""
    found = {"gzip VW": [], "Parquet": []}
    for k in range(FILES):
        text, table = io.BytesIO(), io.BytesIO()
        write_clicks(text, rows // FILES, "vw", seed=k)
        write_clicks(table, rows // FILES, "csv", seed=k)
        (folder / f"{k}.vw.gz").write_bytes(gzip.compress(text.getvalue(), 6))
        table.seek(0)
        pyarrow.parquet.write_table(pyarrow.csv.read_csv(table), folder / f"{k}.parquet")
        found["gzip VW"].append(str(folder / f"{k}.vw.gz"))
        found["Parquet"].append(str(folder / f"{k}.parquet"))
    return found


def processor_seconds(function):
    """Return processor seconds of a call in this process, and its result."""
    start = time.process_time()
    result = function()
    return time.process_time() - start, result


def measure(files, options, settings):
    """Return the processor seconds of a row, read and learned."""
    list(read(files[0], **options))  # compiles
    seconds, blocks = processor_seconds(lambda: list(read(files, **options)))
    block = concatenate(blocks)
    rows, labels = len(block), np.maximum(block.labels, 0)
    model = Learner(1 << 22, settings, certified=True)
    model.progress(CoalescedRows(*block.rows), labels, block.importance)  # compiles, and touches the model's memory
    learned, _ = processor_seconds(lambda: model.progress(CoalescedRows(*block.rows), labels, block.importance))
    return seconds / rows, learned / rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    settings = {"one setting": forel.Settings(alpha=0.1, l1=1.0), "default experts": default_grid()}
    with tempfile.TemporaryDirectory() as folder:
        files = write(pathlib.Path(folder), arguments.rows)
        begun = time.perf_counter()
        with RayWorkers("local", 2) as workers:
            print(f"Ray started in {time.perf_counter() - begun:.1f} s")
            time_commands(files["gzip VW"], arguments.repeats)
            for name, paths in files.items():
                options = {} if name == "gzip VW" else {"label": "click"}
                for which, chosen in settings.items():
                    runs = {
                        "alone": without_preparation(lambda p=paths, c=chosen, o=options: forel.train(p, c, **o)),
                        "Ray": without_preparation(
                            lambda p=paths, c=chosen, o=options: forel.train(p, c, cluster=workers, **o)
                        ),
                    }
                    time_in_turns(runs, 1)  # compiles, and starts workers
                    seconds = time_in_turns(runs, arguments.repeats)
                    shown = ", ".join(f"{side} {statistics.median(s):.2f} s" for side, s in seconds.items())
                    ratio = median_ratio(seconds["Ray"], seconds["alone"])
                    print(f"{name}, {which}: {shown}; with Ray {ratio:.2f} times as long")
        print("\nprocessor time of a row in µs")
        for name, paths in files.items():
            options = {} if name == "gzip VW" else {"label": "click"}
            for which, chosen in settings.items():
                reading, learning = measure(paths[:1], options, chosen)
                print(f"{name}, {which}: read {1e6 * reading:.2f}, learn {1e6 * learning:.2f}")


def time_commands(paths, repeats):
    """Print the times of commands that train one setting: alone, on this Ray, and on one that they start."""
    import ray

    address = ray.get_runtime_context().gcs_address
    train = [sys.executable, "-m", "forel", "train", *paths, "--alpha", "0.1", "--l1", "1", "--quiet"]
    commands = {
        "forel train": train,
        "with a running Ray": [*train, "--ray", address, "--workers", "2"],
        "with --ray local": [*train, "--ray", "local", "--workers", "2"],
    }
    runs = {
        name: without_preparation(lambda name=name, command=command: run_process(name, command))
        for name, command in commands.items()
    }
    time_in_turns(runs, 1)  # compiles
    seconds = time_in_turns(runs, repeats)
    print("commands: " + ", ".join(f"{name} {statistics.median(each):.2f} s" for name, each in seconds.items()))


if __name__ == "__main__":
    main()
