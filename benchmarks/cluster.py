"""Training with files read on a local Ray of two workers, against one process; and the constants of a larger cluster.

Input: generated clicks of 39 features as VW text in gzip and as Parquet, four files each.
Output: wall-clock medians in turns and their ratio, on two cores, in a process that is connected to a running Ray; the
same of whole commands, which start, connect and leave; processor seconds of each stage; the loss of four
shards that are merged every 1,000 rows, against learning in order, on one distribution and on files of different true
weights, which are sudden changes; the estimate of ``forel.ray.cost`` for the
same run in one process; and its estimates for larger clusters.
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
from forel.data.regroup import slice_rows
from forel.learner.factory import make_learner
from forel.learner.grid import default_grid
from forel.learner.merge_states import learn_shard, merge, restore, slice_of
from forel.learner.rows import CoalescedRows
from forel.ray import RayWorkers
from forel.ray.cost import Costs
from forel.training.shards import WARM_UP, Merging

FILES, EVERY, SHARDS = 4, 1000, 4


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
    """Return the constants of reading and learning these files."""
    list(read(files[0], **options))  # compiles
    seconds, blocks = processor_seconds(lambda: list(read(files, **options)))
    block = concatenate(blocks)
    rows, labels = len(block), np.maximum(block.labels, 0)
    model = make_learner(1 << 22, settings, certified=True)
    model.progress(CoalescedRows(*block.rows), labels, block.importance)  # compiles, and touches the model's memory
    learned, _ = processor_seconds(lambda: model.progress(CoalescedRows(*block.rows), labels, block.importance))
    parts, sliced, coordinates = [], 0.0, 0
    for k in range(20):
        some = slice_rows(block, k * EVERY, (k + 1) * EVERY)
        spent, (_, part) = processor_seconds(
            lambda some=some: learn_shard(model, CoalescedRows(*some.rows), np.maximum(some.labels, 0), some.importance)
        )
        sliced += spent - EVERY * learned / rows
        coordinates += part.slots.size
        parts.append(part)
    groups = [parts[k : k + SHARDS] for k in range(0, len(parts), SHARDS)]
    merge(model, groups[0])  # compiles
    before = slice_of(model, np.unique(np.concatenate([part.slots for part in parts])))
    merging = 0.0
    for group in groups:
        spent, _ = processor_seconds(lambda group=group: restore(model, merge(model, group)))
        merging += spent
        restore(model, before)  # shards continue the same state
    lanes = model.linear._lanes
    return Costs(
        read=seconds / rows,
        learn=learned / rows,
        slice=max(sliced, 0.0) / (3 * coordinates),
        merge=merging / coordinates,
        row_bytes=sum(a.nbytes for a in (*block.rows, block.labels, block.importance)) / rows,
        coordinate_bytes=lanes.layout.nbytes(1),
        features=block.indices.size / rows,
        distinct=coordinates / (20 * EVERY * block.indices.size / rows),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--data", type=pathlib.Path, help="only compare losses on real data in this folder")
    arguments = parser.parse_args()
    if arguments.data is not None:
        compare_real(arguments.data)
        return
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
        print("\nprocessor time of a row in µs, and bytes")
        for name, paths in files.items():
            options = {} if name == "gzip VW" else {"label": "click"}
            for which, chosen in settings.items():
                costs = measure(paths[:1], options, chosen)
                print(
                    f"{name}, {which}: read {1e6 * costs.read:.2f}, learn {1e6 * costs.learn:.2f}, "
                    f"copy {1e6 * costs.slice:.3f} and merge {1e6 * costs.merge:.3f} a coordinate, "
                    f"{costs.row_bytes:.0f} bytes a row, {costs.coordinate_bytes} a coordinate, "
                    f"{costs.distinct:.0%} of features distinct"
                )
        clicks = pathlib.Path(folder, "clicks.vw")
        with clicks.open("wb") as file:
            write_clicks(file, arguments.rows, "vw", seed=0)
        for which, chosen in settings.items():
            measured = measure(files["gzip VW"][:1], {}, chosen)
            compare([str(clicks)], f"{which}, one file", chosen, measured)
            compare(files["gzip VW"], f"{which}, files of different true weights", chosen, measured)
        time_lanes(files["gzip VW"][0])
        extrapolate(costs)


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


def compare(paths, which, settings, costs):
    """Print the loss of shards, and the estimate of the time of learning them."""
    seconds, alone = processor_seconds(lambda: forel.train(paths, settings, certified=True))
    spent, shards = processor_seconds(
        lambda: forel.train(paths, settings, certified=True, merge=Merging(EVERY, SHARDS))
    )
    print(f"\n{SHARDS} shards merged every {EVERY:,} rows, {alone.rows:,} rows, {which}")
    print(
        f"loss {shards.report.loss:.5f}, in order {alone.report.loss:.5f}: {shards.report.loss / alone.report.loss:.4f}"
    )
    estimate = costs.merged(alone.rows, 1, 1, SHARDS, EVERY)
    predicted = estimate.stages["learn and merge"] - alone.rows * costs.learn
    print(f"more processor time than in order: {spent - seconds:.1f} s, estimated {predicted:.1f} s")


def time_lanes(path, rows=20_000):
    """Print the processor time of a row in grids of settings, which share one read of it."""
    block = slice_rows(concatenate(read(path, bits=16)), 0, rows)
    labels = np.maximum(block.labels, 0)
    for lanes in (16, 64, 256):
        model = make_learner(1 << 16, default_grid(lanes=lanes))
        model.linear.progress(CoalescedRows(*block.rows), labels, block.importance)  # compiles
        spent = [
            processor_seconds(lambda m=model: m.linear.progress(CoalescedRows(*block.rows), labels, block.importance))[
                0
            ]
            for _ in range(5)
        ]
        print(f"{lanes} settings: {1e6 * min(spent) / len(block):.2f} µs a row")


REAL = {
    "a9a.svm.gz": {},
    "elec2.csv.gz": {"label": "class"},
    "bike_sharing.csv.gz": {"label": "cnt", "loss": "squared"},
}
SHARDINGS = [(EVERY, shards, w) for w in (WARM_UP, 0) for shards in (2, 8, 64)] + [
    (32, 64, WARM_UP),
    (250, 64, WARM_UP),
]


def compare_real(folder):
    """Print the loss of shards on real data, relative to learning in order, with and without the rows before each."""
    print("data, rows; 2, 8 and 64 shards with 128 rows before each; without; 64 shards of 32 and of 250 rows with")
    for name, given in REAL.items():
        options = {name: value for name, value in given.items() if name != "loss"} | {"bits": 16}
        experts = default_grid(loss=given.get("loss", "logistic"))
        alone = forel.train(folder / name, experts, certified=True, **options).report
        ratios = [
            forel.train(folder / name, experts, merge=Merging(every, shards, warm_up=w), **options).report.loss
            / alone.loss
            for every, shards, w in SHARDINGS
        ]
        print(f"| {name.split('.')[0]} | {alone.rows:,} | " + " | ".join(f"{ratio:.3f}" for ratio in ratios) + " |")


def extrapolate(costs):
    """Print estimates for larger clusters."""
    print("\nestimates, hours: rows; alone; read by 64; 64 shards of 10,000 rows on 64 machines")
    for rows in (10**9, 10**10, 10**11, 10**12):
        runs = costs.alone(rows), costs.exact(rows, 64), costs.merged(rows, 64, 64, 64, 10_000)
        print(f"{rows:.0e}  " + "  ".join(f"{run.seconds / 3600:9.2f} ({run.bottleneck})" for run in runs))


if __name__ == "__main__":
    main()
