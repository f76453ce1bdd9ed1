"""Throughput of reading text in blocks.

Peers: scikit-learn's ``load_svmlight_file``, which also keeps the matrix; for JSON lines ``polars.read_ndjson`` and
``pyarrow.json.read_json``, which keep the table, and ``json.loads`` of each line.
Input: files of click-like lines, 39 features each, in a temporary folder; opening is timed. VW text of two shapes: one
feature in each namespace of one letter, and 13 numbers in one namespace with 26 categories in namespaces of two or
three letters. JSON lines have the columns of the latter. CSV has a text column of 39 words, split by ``text``.
Output: medians in turns, MB/s, and ratios for svmlight and JSON lines.
"""

import argparse
import gzip
import json
import os
import pathlib
import tempfile
import time

import numpy as np
import polars
import pyarrow.json
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


def write_mixed(folder, rows, seed=0):
    """Write VW text and JSON lines of the same 13 numbers and 26 categories."""
    rng = np.random.default_rng(seed)
    vw, jsonl = folder / "mixed.vw", folder / "mixed.jsonl"
    with vw.open("w") as one, jsonl.open("w") as two:
        for _ in range(rows):
            label = int(rng.integers(0, 2))
            values = {f"i{k}": round(float(v), 4) for k, v in enumerate(rng.random(13))}
            words = {f"c{k}": f"{i:x}" for k, i in enumerate((FEATURES ** rng.random(26)).astype(np.int64).tolist())}
            numbers = " ".join(f"{name}:{value}" for name, value in values.items())
            spaces = " ".join(f"|{name} {word}" for name, word in words.items())
            one.write(f"{2 * label - 1} |n {numbers} {spaces}\n")
            two.write(json.dumps({"click": label, **values, **words}) + "\n")
    return vw, jsonl


def write_text(folder, rows, seed=0):
    """Write CSV with a column of 39 words, as long as English ones, with log-uniform popularity."""
    rng = np.random.default_rng(seed)
    path = folder / "text.csv"
    with path.open("w") as file:
        file.write("spam,message\n")
        for _ in range(rows):
            words = " ".join(f"w{i:x}" for i in (FEATURES ** rng.random(PER_ROW)).astype(np.int64).tolist())
            file.write(f"{int(rng.integers(0, 2))},{words}\n")
    return path


def parse_each(path):
    """Parse every line by Python's own parser."""
    with open(path, "rb") as file:
        return sum(len(json.loads(line)) for line in file)


def count(path, **options):
    """Number of examples in a file, read to its end."""
    return sum(len(block) for block in read(path, **options))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--processor", action="store_true", help="processor time of all threads, for a busy machine")
    options = parser.parse_args()
    clock = time.process_time if options.processor else time.perf_counter
    with tempfile.TemporaryDirectory() as name:
        vw, packed, svmlight = write(pathlib.Path(name), options.rows)
        mixed, jsonl = write_mixed(pathlib.Path(name), options.rows)
        text = write_text(pathlib.Path(name), options.rows)
        sizes = {path: os.path.getsize(path) / 1e6 for path in (vw, svmlight, mixed, jsonl, text)}
        runs = {
            "forel, VW": (vw, lambda: count(vw)),
            "forel, VW, names kept": (vw, lambda: count(vw, names=True)),
            "forel, VW, -q ab": (vw, lambda: count(vw, interactions=["ab"])),
            "forel, VW, -q a: (116 features)": (vw, lambda: count(vw, interactions=["a:"])),
            "forel, VW, gzip": (vw, lambda: count(packed)),
            "forel, VW, 13 numbers, 26 words": (mixed, lambda: count(mixed)),
            "forel, CSV, words of a text column": (text, lambda: count(text, label="spam", text=["message"])),
            "forel, JSON lines": (jsonl, lambda: count(jsonl, label="click")),
            "forel, JSON lines, names kept": (jsonl, lambda: count(jsonl, label="click", names=True)),
            "polars.read_ndjson": (jsonl, lambda: polars.read_ndjson(jsonl)),
            "pyarrow.json.read_json": (jsonl, lambda: pyarrow.json.read_json(str(jsonl))),
            "json.loads": (jsonl, lambda: parse_each(jsonl)),
            "forel, svmlight": (svmlight, lambda: count(svmlight)),
            "scikit-learn load_svmlight_file": (svmlight, lambda: load_svmlight_file(str(svmlight), dtype=np.float32)),
        }
        for _, run in runs.values():  # compile the parsers and read the files into memory
            run()
        found = medians({name: without_preparation(run) for name, (_, run) in runs.items()}, options.repeats, clock)
    of = "processor time" if options.processor else "wall-clock time"
    print(f"\n{options.rows:,} rows, {of}, medians of {options.repeats} in turns\n")
    for name, (path, _) in runs.items():
        print(f"{name:34} {sizes[path]:7.1f} MB {found[name]:7.3f} s {sizes[path] / found[name]:7.0f} MB/s")
    ratio = found["scikit-learn load_svmlight_file"] / found["forel, svmlight"]
    print(f"\nsvmlight: {ratio:.1f} times as fast as scikit-learn")
    for peer in ("polars.read_ndjson", "pyarrow.json.read_json", "json.loads"):
        print(f"JSON lines: {found[peer] / found['forel, JSON lines']:.1f} times as fast as {peer}")


if __name__ == "__main__":
    main()
