"""Every shape of input beside a peer, in one table: reading alone, and whole processes.

Input: files in a temporary folder. VW text of both shapes of ``shapes.py``; JSON lines, CSV and dicts with 13 numbers
and 26 words a row; a CSV with very many columns; VW text in gzip.
Peers: Vowpal Wabbit ``--ftrl``, if installed, as a whole process; ``polars`` for tables, which stops at a table;
``FeatureHasher`` of scikit-learn for dicts; for gzip, decompression alone by Python; for predictions, training.
Output: medians in turns of processor seconds, which other work on the machine affects less than wall-clock time, and
ratios of the peer's to forel's, from the worst to the best, as the table of ``docs/benchmarks.md``.
"""

import argparse
import gzip
import importlib.util
import json
import pathlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import polars
from shapes import SHAPES
from sklearn.feature_extraction import FeatureHasher
from timing import run_process
from train import forel, vw

from forel.data import read

NUMBERS, WORDS, VOCABULARY = 13, 26, 1 << 22
VW = "Vowpal Wabbit `--ftrl`"


class Comparison(NamedTuple):
    """Two runs of the same input, each a function or a command, and the bytes of text that forel reads."""

    mine: Callable[[], object] | list[str]
    theirs: Callable[[], object] | list[str]
    peer: str
    size: int | None = None


def write_columns(folder, rows, seed=0):
    """Write the same rows as JSON lines and CSV, and return the paths and the rows as dicts."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 10_000, (rows, NUMBERS)) / 10_000
    words = (VOCABULARY ** rng.random((rows, WORDS))).astype(np.int64)
    names = [*(f"i{k}" for k in range(NUMBERS)), *(f"c{k}" for k in range(WORDS))]
    cells = ([*v, *(f"w{i:x}" for i in w)] for v, w in zip(values.tolist(), words.tolist(), strict=True))
    dicts = [{"click": k % 2, **dict(zip(names, row, strict=True))} for k, row in enumerate(cells)]
    lines, table = folder / "rows.jsonl", folder / "rows.csv"
    lines.write_text("".join(json.dumps(row) + "\n" for row in dicts))
    table.write_text("\n".join([",".join(dicts[0]), *(",".join(map(str, row.values())) for row in dicts)]) + "\n")
    return lines, table, dicts


def write_wide(path, rows, columns, seed=0):
    """Write a CSV of digits with many columns."""
    rng = np.random.default_rng(seed)
    with path.open("w") as file:
        file.write(",".join(["click", *(f"x{k}" for k in range(columns))]) + "\n")
        for k in range(rows):
            file.write(f"{k % 2}," + ",".join(map(str, rng.integers(0, 10, columns).tolist())) + "\n")


def rows_read(source, **options):
    """Number of examples of a source, read to its end."""
    return sum(len(block) for block in read(source, **options))


def unpacked(path):
    """Number of bytes of a gzip file."""
    with gzip.open(path) as file:
        return sum(map(len, iter(lambda: file.read(1 << 20), b"")))


def used(run):
    """Processor seconds of a function in this process, or of a command."""
    if isinstance(run, list):
        return run_process(run[0], run)[2]
    start = time.process_time()
    run()
    return time.process_time() - start


def comparisons(folder, options):
    """Comparisons by the name of an input."""
    found, others = {}, options.rows // 2
    for shape, write in SHAPES.items():
        path = folder / f"{shape}.vw"
        write(path, options.rows)
        if importlib.util.find_spec("vowpalwabbit") is not None:
            runs = forel(path, folder), vw(path, folder)
            found[f"VW text to a model, shape `{shape}`"] = Comparison(*runs, VW, path.stat().st_size)
    mixed, packed = folder / "mixed.vw", folder / "mixed.vw.gz"
    packed.write_bytes(gzip.compress(mixed.read_bytes(), 6))
    lines, table, dicts = write_columns(folder, others)
    wide = folder / "wide.csv"
    write_wide(wide, options.wide_rows, options.columns)
    hasher = FeatureHasher(1 << 22)
    model = folder / "m.forel"
    run_process("forel", forel(mixed, folder))
    predict = [sys.executable, "-m", "forel", "predict", mixed, "--model", model, "--output", folder / "p.txt"]
    text, json_text, csv_text, wide_text = (path.stat().st_size for path in (mixed, lines, table, wide))
    return found | {
        "VW text in gzip, shape `mixed`, read": Comparison(
            lambda: rows_read(packed), lambda: unpacked(packed), "decompression alone, by Python", text,
        ),
        "JSON lines, read": Comparison(
            lambda: rows_read(lines, label="click"), lambda: polars.read_ndjson(lines), "`polars.read_ndjson`",
            json_text,
        ),
        f"CSV, {NUMBERS + WORDS + 1} columns, read": Comparison(
            lambda: rows_read(table, label="click"), lambda: polars.read_csv(table), "`polars.read_csv`", csv_text,
        ),
        f"CSV, {options.columns + 1:,} columns, {options.wide_rows:,} rows, read": Comparison(
            lambda: rows_read(wide, label="click"), lambda: polars.read_csv(wide), "`polars.read_csv`", wide_text,
        ),
        "dicts, read": Comparison(
            lambda: rows_read(dicts, label="click"), lambda: hasher.transform(dicts), "scikit-learn's `FeatureHasher`",
        ),
        "predictions of VW text, shape `mixed`": Comparison(
            [str(word) for word in predict], forel(mixed, folder), "training", text,
        ),
    }  # fmt: skip


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200_000, help="rows of VW text; half as many of other formats")
    parser.add_argument("--columns", type=int, default=100_000, help="features of the wide CSV")
    parser.add_argument("--wide-rows", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        compared = comparisons(pathlib.Path(name), options)
        seconds = {shape: ([], []) for shape in compared}
        for _ in range(options.repeats + 1):
            for shape, one in compared.items():
                for kept, run in zip(seconds[shape], (one.mine, one.theirs), strict=True):
                    kept.append(used(run))
    found = []
    for shape, one in compared.items():
        mine, theirs = (kept[1:] for kept in seconds[shape])  # the first turn compiles, and reads files into memory
        ratio = statistics.median(b / a for a, b in zip(mine, theirs, strict=True))
        speed = "" if one.size is None else f"{one.size / 1e6 / statistics.median(mine):,.0f}"
        found.append((ratio, shape, speed, one.peer, statistics.median(mine), statistics.median(theirs)))
    print(f"\nprocessor seconds, medians of {options.repeats} in turns, {options.rows:,} rows of VW text, ", end="")
    print(f"{options.rows // 2:,} of other formats\n")
    print("| input | forel | MB/s | peer | | ratio |\n|---|---:|---:|---|---:|---:|")
    for ratio, shape, speed, peer, mine, theirs in sorted(found):
        print(f"| {shape} | {mine:.3f} s | {speed} | {peer} | {theirs:.3f} s | {ratio:.2f} |")


if __name__ == "__main__":
    main()
