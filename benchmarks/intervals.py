"""Share of buckets that 90 % intervals of the default mixture cover, as ``forel.training.coverage`` defines it.

Input: the real data sets of ``quality.py`` and bike_sharing from ``FOREL_DATA``, shuffled. Half of the rows are learned
from, a quarter calibrates the factor of standard errors, and the last quarter measures coverage.
Output: a Markdown table: with intervals of width 0, as they are, and calibrated.
"""

import argparse
import pathlib
import tempfile
from functools import partial

import numpy as np
import quality
import regression_sets

import forel
from forel.learner.grid import default_grid
from forel.training.coverage import coverage


def one(examples, loss, folder):
    """Number of buckets, coverages of widths 0 and 1, the scale, and coverage with it."""
    rows = np.array(list(examples), dtype=object)
    np.random.default_rng(0).shuffle(rows)
    half, rest = len(rows) // 2, len(rows) * 3 // 4
    paths = [folder / name for name in ("learned", "calibration", "measured")]
    for path, part in zip(paths, (rows[:half], rows[half:rest], rows[rest:]), strict=True):
        path.write_text("".join(part))
    model = forel.train(paths[0], default_grid(loss=loss), format="vw")
    scale = coverage(model, paths[1], format="vw").scale
    raw, calibrated = (coverage(model, paths[2], scale=s, format="vw") for s in (1.0, max(scale, 1e-6)))
    return raw.needed.size, raw.covered(0.0), raw.covered(), scale, calibrated.covered()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.parse_args()
    found = [name for name in quality.SETS if any(quality.DATA.glob(f"{name}.*"))]
    sets = {name: (partial(quality.lines, name), "logistic") for name in found if name != "rcv1_small"}
    series = regression_sets.sets(quality.DATA).items()
    sets |= {name: (lines, "squared") for name, lines in series if name.startswith("bike")}
    print("| data | buckets | width 0 | intervals | scale | calibrated |\n|---|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for name, (lines, loss) in sets.items():
            count, none, raw, scale, calibrated = one(lines(), loss, pathlib.Path(folder))
            print(f"| {name} | {count} | {none:.3f} | {raw:.3f} | {scale:.2f} | {calibrated:.3f} |", flush=True)


if __name__ == "__main__":
    main()
