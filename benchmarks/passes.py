"""Later passes from the cache of parsed rows, and the cost of checkpoints.

Peers: passes that parse the text again, and a pass without checkpoints.
Input: one VW file of 500,000 click-like rows in a temporary folder, three passes; the first turn compiles
and is dropped.
Output: medians of each pass in turns, and ratios of later passes to the first and to passes over text.
"""

import argparse
import pathlib
import statistics
import tempfile
import time

from forel.data.clicks import write_clicks
from forel.learner.settings import Settings
from forel.training.train import train

SETTINGS, PASSES = Settings(l1=1.0), 3


def timed(path, passes, **options):
    """Seconds of each pass of one training run."""
    ends = []

    def each(moment):
        del ends[moment.pass_number - 1 :]
        ends.append(time.perf_counter())

    start = time.perf_counter()
    train(path, SETTINGS, passes=passes, progress=each, **options)
    return [end - begun for begun, end in zip([start, *ends], ends, strict=False)]


def text_again(path):
    """Seconds of runs that each parse the text and start from the model of the previous one."""
    stored, seconds = None, []
    for _ in range(PASSES):
        start = time.perf_counter()
        stored = train(path, SETTINGS, model=stored)
        seconds.append(time.perf_counter() - start)
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        path, checkpoint = folder / "all.vw", folder / "m.checkpoint"
        with path.open("wb") as file:
            write_clicks(file, options.rows)
        runs = {
            "text again": lambda: text_again(path),
            "cache": lambda: timed(path, PASSES),
            "one pass": lambda: timed(path, 1),
            "with checkpoints": lambda: timed(path, 1, checkpoint=checkpoint, checkpoint_every=options.rows // 10),
        }
        found = {name: [] for name in runs}
        for _ in range(options.repeats + 1):
            for name, run in runs.items():
                found[name].append(run())
        size, kept = path.stat().st_size / 1e6, checkpoint.stat().st_size / 1e6
    middle = {name: [statistics.median(k) for k in zip(*every[1:], strict=True)] for name, every in found.items()}
    print(f"\n{options.rows:,} rows, {size:.0f} MB of VW text, medians of {options.repeats} runs in turns\n")
    for name, seconds in middle.items():
        print(f"{name:18}" + "".join(f" {took:8.3f} s" for took in seconds))
    later, parsed = (statistics.mean(middle[name][1:]) for name in ("cache", "text again"))
    print(
        f"\na later pass takes {later / middle['cache'][0]:.2f} of the first and {later / parsed:.2f} of one over text"
    )
    each = (middle["with checkpoints"][0] - middle["one pass"][0]) / 10
    print(f"a checkpoint ({kept:.0f} MB at the end) takes {each:.3f} s")


if __name__ == "__main__":
    main()
