"""Features divided among shards: the loss of batches, the time of a row and of a round, and the estimate of both.

Input: generated clicks of 39 features as VW text; one setting.
Output: progressive loss by rows of a batch, compared with learning in order; processor time of a row with shards in one
process, from which the cost of an entry follows; wall-clock time with two shards on a local Ray, and the estimate of
``forel.ray.cost`` with these constants; and the memory of a model of 2^33 slots.
"""

import argparse
import pathlib
import resource
import tempfile
import time

import forel
from forel.data.clicks import write_clicks
from forel.learner.sharding import Sharding
from forel.ray import RayShards, RayWorkers
from forel.ray.cost import Costs

SETTINGS = forel.Settings(alpha=0.1, l1=1.0)
FEATURES = 39


def timed(path, clock, **options):
    """Return the seconds of training, and the result."""
    start = clock()
    trained = forel.train(path, SETTINGS, progress=False, **options)
    return clock() - start, trained


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as folder:
        path = str(pathlib.Path(folder, "clicks.vw"))
        with open(path, "wb") as file:
            write_clicks(file, rows, "vw", seed=0)
        timed(path, time.process_time)  # compiles
        timed(path, time.process_time, feature_shards=Sharding(4))
        alone_seconds, alone = timed(path, time.process_time)
        print(f"{rows:,} rows in order: loss {alone.report.loss:.6f}, {1e6 * alone_seconds / rows:.2f} µs a row")
        for batch in (16, 64, 256, 512, 4096):
            seconds, trained = timed(path, time.process_time, feature_shards=Sharding(4, batch))
            print(
                f"4 shards, batches of {batch:,}: loss {trained.report.loss / alone.report.loss - 1:+.3%}, "
                f"{1e6 * seconds / rows:.2f} µs a row in one process"
            )
        read, _ = timed(path, time.process_time, feature_shards=Sharding(1, 4096))
        entry = (read - alone_seconds) / rows / FEATURES
        with RayWorkers("local", 2) as workers, RayShards() as shards:
            found = {}
            for batch in (4096, 64, 256, 1024):  # the first one starts actors
                found[batch], trained = timed(
                    path, time.perf_counter, cluster=workers, feature_shards=Sharding(2, batch, shards)
                )
        few, many = 1024, 64
        each = (found[many] - found[few]) / (rows / many - rows / few)
        print(f"entry {1e9 * entry:.0f} ns, round of two shards on Ray {1e3 * each:.2f} ms")
        costs = Costs(
            read=0, learn=0, slice=0, merge=0, row_bytes=328, coordinate_bytes=16, features=FEATURES, entry=entry,
            round=each, start=0,
        )  # fmt: skip
        for batch, seconds in found.items():
            estimate = costs.sharded(rows, 1, 2, batch).stages["rounds"]
            print(f"two shards on Ray, batches of {batch:,}: {seconds:.2f} s, estimated {estimate:.2f} s")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        seconds, trained = timed(path, time.perf_counter, bits=33, feature_shards=Sharding(16))
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(
            f"2^33 slots in 16 shards of one process: {seconds:.1f} s, {(after - before) / 1e6:.1f} GB more at most, "
            f"{trained.model.nonzeros:,} non-zero weights"
        )


if __name__ == "__main__":
    main()
