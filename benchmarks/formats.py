"""Throughput of reading text in blocks.

Peer: scikit-learn's ``load_svmlight_file``, which also keeps the matrix.
Input: VW text and svmlight files of click-like lines, 39 features each, in a temporary folder; opening is timed.
Output: medians in turns, MB/s, and the ratio for svmlight.
"""

import argparse
import gzip
import os
import pathlib
import tempfile

import numpy as np
from sklearn.datasets import load_svmlight_file
from timing import medians, without_preparation

from forel.data import read

PER_ROW, FEATURES = 39, 1 << 22


def write(folder, rows, seed=0):
    """Write both files, and the VW file gzipped: every third VW feature and all svmlight features have a value."""
    rng = np.random.default_rng(seed)
    vw, svmlight = folder / "clicks.vw", folder / "clicks.svm"
    with vw.open("w") as one, svmlight.open("w") as two:
        for _ in range(rows):
            label = 2 * int(rng.integers(0, 2)) - 1
            ids = (FEATURES ** rng.random(PER_ROW)).astype(np.int64)
            values = rng.random(PER_ROW)
            words = (f"|{chr(97 + k % 26)} f{i}" + (f":{v:.3g}" if k % 3 == 0 else "") for k, (i, v) in
                     enumerate(zip(ids, values, strict=True)))  # fmt: skip
            one.write(f"{label} {' '.join(words)}\n")
            pairs = zip(np.unique(ids), values, strict=False)
            two.write(f"{label} {' '.join(f'{i}:{v:.4g}' for i, v in pairs)}\n")
    packed = folder / "clicks.vw.gz"
    packed.write_bytes(gzip.compress(vw.read_bytes(), 6))
    return vw, packed, svmlight


def count(path, **options):
    """Number of examples in a file, read to its end."""
    return sum(len(block) for block in read(path, **options))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        vw, packed, svmlight = write(pathlib.Path(name), options.rows)
        sizes = {path: os.path.getsize(path) / 1e6 for path in (vw, svmlight)}
        runs = {
            "forel, VW": (vw, lambda: count(vw)),
            "forel, VW, names kept": (vw, lambda: count(vw, names=True)),
            "forel, VW, -q ab": (vw, lambda: count(vw, interactions=["ab"])),
            "forel, VW, -q a: (116 features)": (vw, lambda: count(vw, interactions=["a:"])),
            "forel, VW, gzip": (vw, lambda: count(packed)),
            "forel, svmlight": (svmlight, lambda: count(svmlight)),
            "scikit-learn load_svmlight_file": (svmlight, lambda: load_svmlight_file(str(svmlight), dtype=np.float32)),
        }
        for _, run in runs.values():  # compile the parsers and read the files into memory
            run()
        found = medians({name: without_preparation(run) for name, (_, run) in runs.items()}, options.repeats)
    print(f"\n{options.rows:,} rows, medians of {options.repeats} in turns\n")
    for name, (path, _) in runs.items():
        print(f"{name:34} {sizes[path]:7.1f} MB {found[name]:7.3f} s {sizes[path] / found[name]:7.0f} MB/s")
    ratio = found["scikit-learn load_svmlight_file"] / found["forel, svmlight"]
    print(f"\nsvmlight: {ratio:.1f} times as fast as scikit-learn")


if __name__ == "__main__":
    main()
